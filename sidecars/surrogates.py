"""JSON with half of a surrogate pair: JavaScript and Java write it when they cut a text in the middle of an emoji.

No UTF-8 text can hold it, so our readers refuse it. Where a dialogue comes from a client that passes on whatever a
software said, one such character must not end the debate.
"""

from __future__ import annotations

import re

# Backslashes occur in JSON within texts only; taking every escape as a whole tells \\ud800 from \ud800.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def with_whole_pairs(body: bytes) -> bytes:
    """JSON ``body`` with U+FFFD instead of every escape that is half of a surrogate pair; all else as it is."""
    if b"\\u" not in body:
        return body
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found["half"] else found[0], body)
