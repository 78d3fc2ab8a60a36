"""JSON Lines that may be hostile or broken: one strict value a line, the reason for every line that is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import schemas
from evaluator.findings import show
from evaluator.formats.files import Source
from schemas import Problem, render_pointer

CHUNK = 1 << 20
BOM = b"\xef\xbb\xbf"

Keys = tuple[str | int, ...]


class Line(NamedTuple):
    """One line that is not blank: its number from 1, its bytes (None if it is too long) and where it starts."""

    number: int
    raw: bytes | None
    offset: int


class Parsed(NamedTuple):
    """The value of a line, or the reason why it has none (``code`` is a finding code).

    ``bom`` says that the line began with a byte order mark, which was taken off.
    """

    number: int
    value: Any
    code: str = ""
    reason: str = ""
    bom: bool = False


def iter_lines(
    path: Path, *, max_line: int, max_bytes: int | None = None, follow: bool = False
) -> Iterator[Line]:
    """The lines of a plain or gzip file with something in them; a byte order mark is part of line 1.

    Raises what :class:`evaluator.formats.files.Source` raises.
    """
    with Source(path, max_bytes, follow=follow) as source:
        number, start, rest, skipping = 0, 0, b"", False
        while piece := source.read(CHUNK):
            lines = (rest + piece).split(b"\n")
            rest = lines.pop()
            for line in lines:
                number += 1
                if skipping:
                    skipping = False
                elif len(line) > max_line:
                    yield Line(number, None, start)
                elif line.strip():
                    yield Line(number, line, start)
                start += len(line) + 1
            if skipping:
                start += len(rest)
                rest = b""
            elif len(rest) > max_line:
                yield Line(number + 1, None, start)
                start += len(rest)
                rest, skipping = b"", True
        if rest.strip():
            yield Line(number + 1, rest, start)


def parse_lines(
    path: Path, *, max_line: int, max_bytes: int | None = None, follow: bool = False
) -> Iterator[Parsed]:
    """The value of every line, or why there is none. Raises what ``Source`` raises."""
    for line in iter_lines(path, max_line=max_line, max_bytes=max_bytes, follow=follow):
        if line.raw is None:
            yield Parsed(line.number, None, "F330", f"it is longer than {max_line:,} bytes")
        else:
            yield parse(line.number, line.raw)


def parse(number: int, raw: bytes) -> Parsed:
    """The value of one line, strictly: no duplicate keys, no NaN, no deep nesting, no half surrogates."""
    bom = number == 1 and raw.startswith(BOM)
    doc = schemas.load_json(raw.removeprefix(BOM) if bom else raw, max_bytes=len(raw))
    if doc.problems:
        return Parsed(number, None, "F301", f"the line {doc.problems[0].what}: {show(raw)}", bom)
    return Parsed(number, doc.data, bom=bom)


class Collector:
    """Collects what is wrong in one file, or in one line of it, with the place as a JSON pointer."""

    def __init__(self, name: str, line: int | None = None) -> None:
        self.name, self.line = name, line
        self.problems: list[Problem] = []

    def say(self, keys: Keys, what: str, fix: str = "") -> None:
        """Note one problem at the value with these keys."""
        where = schemas.show(self.name, 200) + (f":{self.line}" if self.line else "")
        pointer = render_pointer(keys)
        self.problems.append(Problem(where, f"{what} (at {pointer or '/'})", fix, pointer, self.line))


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return {str: "text", bool: "true or false", type(None): "null"}.get(type(value), "a number")
