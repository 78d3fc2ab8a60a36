"""Files of another format than is expected: recognised by their beginning, and said in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from evaluator.formats.files import BOM, Damaged, Source

HEAD = 1 << 16  # bytes that are looked at
_LINES = 5
_JSON = re.compile(rb"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])")
_METADATA = re.compile(
    rb"(?:\xef\xbb\xbf)?#[ \t]*ir_metadata\.start[ \t]*\r?\n(?:#[^\n]*\n)*?#[ \t]*ir_metadata\.end[ \t]*\r?\n"
)
_ARRAY = re.compile(rb"\s*\[\s*[\[{]")
_SEPARATORS = {b",": "commas", b";": "semicolons", b"\t": "tabs"}


def metadata_header(text: bytes) -> bytes:
    """The lines from ``# ir_metadata.start`` to ``# ir_metadata.end`` with which ``text`` begins, comments all of them; b"" where
    it begins otherwise (https://www.ir-metadata.org)."""
    found = _METADATA.match(text)
    return found[0] if found else b""


def beginning(path: str | Path, follow: bool = False) -> bytes:
    """The first bytes of a file, b"" where they are damaged. Raises :class:`Unreadable`."""
    with Source(path, follow=follow) as source:
        try:
            return source.read(HEAD)
        except Damaged:
            return b""


def no_trec_run(path: str | Path) -> str:
    """What a file is, in one sentence, if it is JSON or CSV where a TREC run is expected; "" if it may be one.

    It may be one if any of its first five lines has six columns with Q0 in the second. Raises :class:`Unreadable`.
    """
    like = 'lines of a TREC run are separated by blanks, such as "301 Q0 doc-17 1 12.5 mytag"'

    def look(text: bytes) -> str:
        text = text[len(metadata_header(text)) :]
        return "" if _trec(_lines(text)) else _no_columns(text, 6)

    return _other(path, look, like)


def no_columns(path: str | Path, columns: str) -> str:
    """The same where lines of these ``columns``, between blanks or tabs, are expected."""
    like = f"a line has the columns {columns}, separated by blanks"
    return _other(path, lambda text: _no_columns(text, len(columns.split())), like)


def no_json_lines(path: str | Path, *, arrays: bool = False, follow: bool = False) -> str:
    """The same where JSON Lines are expected: they may be some if any of the first five lines is JSON.

    ``arrays``: a JSON array is as good. ``follow``: the file may be a link.
    """

    def look(text: bytes) -> str:
        if arrays and text.lstrip()[:1] == b"[":
            return ""
        return "a JSON array" if _ARRAY.match(text) else _no_objects(text)

    return _other(path, look, "JSON Lines have one complete object a line", follow)


def no_json_array(path: str | Path) -> str:
    """The same where a JSON array is expected."""

    def look(text: bytes) -> str:
        if text.lstrip()[:1] != b"{":
            return ""
        return "JSON Lines" if sum(map(_is_json, _lines(text))) > 1 else "a JSON object"

    return _other(path, look, "a JSON array has its records between [ and ], separated by commas")


def _other(path: str | Path, look: Callable[[bytes], str], like: str, follow: bool = False) -> str:
    what = look(beginning(path, follow).removeprefix(BOM))
    return f"the file is {what}; {like}" if what else ""


def _lines(text: bytes) -> list[bytes]:
    return [line for line in text.split(b"\n", 4 * _LINES) if line.strip()][:_LINES]


def _trec(lines: Iterable[bytes]) -> bool:
    return any(len(words) == 6 and words[1] == b"Q0" for words in map(bytes.split, lines))


def _no_columns(text: bytes, columns: int) -> str:
    return "JSON" if _JSON.match(text) else _separated(_lines(text), b",;", columns)


def _no_objects(text: bytes) -> str:
    lines = _lines(text)
    if len(text) >= HEAD and len(lines) < _LINES:
        lines = lines[:-1]  # the last one may go on
    if not lines or any(map(_is_json, lines)):
        return ""
    if _trec(lines):
        return "a TREC run"
    if lines[0].lstrip()[:1] in (b"{", b"["):
        return "JSON with line ends inside its objects" if _indented(text) else ""
    if lines[0].lstrip()[:1] == b"<":
        return "XML or HTML"
    return _separated(lines, b",;\t", 1 << 16)


def _separated(lines: list[bytes], separators: bytes, words: int) -> str:
    """Which of these separators stands twice in every line, where each has fewer than so many ``words``."""
    for one, name in _SEPARATORS.items():
        if one in separators and all(line.count(one) >= 2 and len(line.split()) < words for line in lines):
            return f"CSV: its columns are separated by {name}" if lines else ""
    return ""


def _indented(text: bytes) -> bool:
    """Whether it begins with a JSON value of several lines, as far as it was read."""
    try:
        words = text.decode("utf-8", "replace").lstrip()
        end = json.JSONDecoder().raw_decode(words)[1]
    except json.JSONDecodeError as error:
        return len(text) >= HEAD and error.pos > len(words) // 2
    except RecursionError:
        return False
    return "\n" in words[:end]


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
