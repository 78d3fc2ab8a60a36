"""JSON Lines that may be hostile or broken: one strict value a line, the reason for every line that is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import schemas
from evaluator.findings import show
from evaluator.formats.files import Source
from schemas import Problem, render_pointer
from schemas.jsonl import Line, split

BOM = b"\xef\xbb\xbf"

Keys = tuple[str | int, ...]


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
        for line in split(source.read, max_line):
            if line.raw is None or line.raw.strip():
                yield line


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
