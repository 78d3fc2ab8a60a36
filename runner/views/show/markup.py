"""Pieces of a page. Whatever comes in as text goes out escaped; only these functions and literals write markup."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

SIGNS = {True: "✓", False: "✗", None: ""}
CLASSES = {True: "good", False: "bad", None: ""}


class Markup(str):
    """Text that is HTML already: made of literals and :func:`h` only."""

    __slots__ = ()


class Chip(NamedTuple):
    """A short fact: ``good`` True or False makes it a mark, with a sign and a colour. ``to``: an id on the page."""

    words: str
    good: bool | None = None
    to: str = ""


def h(value: object) -> Markup:
    """Any value as HTML text; what is markup already stays."""
    return value if isinstance(value, Markup) else Markup(html.escape(str(value), quote=True))


def chips(found: Iterable[Chip], label: str) -> Iterator[str]:
    """A list of short facts, called ``label`` for those who hear it; nothing when there are none."""
    items = [_chip(one) for one in found]
    if items:
        yield f'<ul class="chips" aria-label="{h(label)}">{"".join(items)}</ul>'


def _chip(one: Chip) -> str:
    sign = f"{SIGNS[one.good]} " if one.good is not None else ""
    css = f' class="{CLASSES[one.good]}"' if one.good is not None else ""
    words = f'<bdi dir="auto">{h(one.words)}</bdi>'
    return f"<li{css}>{sign}{link(one.to, Markup(words)) if one.to else words}</li>"


def link(to: str, words: str) -> Markup:
    """A link to a place on the page."""
    return Markup(f'<a href="#{h(to)}">{h(words)}</a>')


def table(
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    number: Sequence[int] = (),
    ids: Sequence[str] = (),
) -> Iterator[str]:
    """A table that scrolls by itself when it is too wide. ``number``: columns of figures; ``ids``: one a row, or none."""
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{h(caption)}">'
    yield f"<table><caption>{h(caption)}</caption><thead><tr>"
    yield "".join(
        f'<th scope="col"{" class=number" if i in number else ""}>{h(head)}</th>'
        for i, head in enumerate(heads)
    )
    yield "</tr></thead><tbody>"
    for k, row in enumerate(rows):
        cells = "".join(
            f'<td{" class=number" if i in number else ""} dir="auto">{h(cell)}</td>'
            for i, cell in enumerate(row[1:], 1)
        )
        place = f' id="{h(ids[k])}"' if ids else ""
        yield f'<tr{place}><th scope="row" dir="auto">{h(row[0])}</th>{cells}</tr>'
    yield "</tbody></table></div>"


def figures(scores: Mapping[str, float]) -> str:
    """``f1 0.4444, words 17``."""
    return ", ".join(f"{name} {value:.4g}" for name, value in sorted(scores.items()))
