"""Files of another format where lines of a TREC run are expected: recognised by their beginning, and said in one line."""

from __future__ import annotations

import re

from evaluator.formats.files import BOM

HEAD = 1 << 16  # bytes that are looked at
_LINES = 5
_JSON = re.compile(rb"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])")
_SEPARATORS = (
    (b",", "CSV: its columns are separated by commas"),
    (b";", "CSV: its columns are separated by semicolons"),
)
_LIKE = 'lines of a TREC run are separated by blanks, such as "301 Q0 doc-17 1 12.5 mytag"'


def other_format(head: bytes) -> str:
    """What a file that begins with ``head`` is, in one sentence, if it is JSON or CSV; empty if it may be a TREC run.

    It may be one if any of its first five lines has six columns with Q0 in the second.
    """
    text = head.removeprefix(BOM)
    lines = [line for line in text.split(b"\n", 4 * _LINES) if line.strip()][:_LINES]
    if any(len(words) == 6 and words[1] == b"Q0" for words in map(bytes.split, lines)):
        return ""
    if _JSON.match(text):
        return f"the file is JSON; {_LIKE}"
    for separator, what in _SEPARATORS:
        if lines and all(line.count(separator) >= 2 and len(line.split()) < 6 for line in lines):
            return f"the file is {what}; {_LIKE}"
    return ""
