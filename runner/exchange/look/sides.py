"""Pieces of pages of two runs beside each other: as a whole, or part by part where both have parts, such as the turns of a debate."""

from __future__ import annotations

import re
from itertools import zip_longest

PART = '<div class="part">'  # begins a part of a piece, directly in its section; of a text of somebody's it would be escaped
_END = "</section>"
_PLACE = re.compile(r' (id|for|aria-labelledby|aria-describedby)="|(?<= href="#)')


def rows(first: str, second: str) -> list[tuple[str, str]]:
    """Two pieces in rows, of which each is HTML that is whole by itself: what stands before the parts, then part beside part, without those that
    are the same in both; one row where either has no parts. Places in them have names that the other side's have not."""
    ours, theirs = (_PLACE.sub(rf"\g<0>{side}-", piece) for piece, side in ((first, "a"), (second, "b")))
    parts = _parts(ours), _parts(theirs)
    if len(parts[0]) == 1 or len(parts[1]) == 1:
        return [(ours, theirs)]
    same = [one == other for one, other in zip(_parts(first)[1:], _parts(second)[1:], strict=False)]
    told = (
        f'<p class="muted">Alike in both, and left out: {sum(same)} of {len(same)}.</p>' if any(same) else ""
    )
    head, *others = zip_longest(*parts, fillvalue="")
    apart = [row for n, row in enumerate(others) if n >= len(same) or not same[n]]
    return [(head[0] + told, head[1] + told), *apart]


def _parts(piece: str) -> list[str]:
    """What stands before the parts of a section, closed; and each part."""
    head, *parts = re.split(f"(?={PART})", piece.strip())
    if not parts or not head.startswith("<section") or not parts[-1].endswith(_END):
        return [piece]
    return [head + _END, *parts[:-1], parts[-1].removesuffix(_END)]
