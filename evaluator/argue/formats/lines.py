"""JSON Lines that may be hostile or broken: one strict value a line, and the reason for every line that is none.

Problems are :class:`schemas.Problem`; :func:`refused` makes one error of those of an organiser's file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import schemas
from evaluator.errors import EvaluatorError
from evaluator.findings import show
from evaluator.formats.files import Damaged, Source, TooLarge, Unreadable, WrongSort
from schemas import Problem, render_pointer
from schemas.jsonl import Line, kind_of, split

BOM = b"\xef\xbb\xbf"
MAX_SHOWN = 20  # problems that an error lists

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
        """Note one problem at the value with these keys; its message names the place."""
        self.add(f"{what} (at {render_pointer(keys) or '/'})", fix, render_pointer(keys))

    def add(self, what: str, fix: str = "", pointer: str = "") -> None:
        """Note one problem of the file or line."""
        where = schemas.show(self.name, 200) + (f":{self.line}" if self.line else "")
        self.problems.append(Problem(where, what, fix, pointer, self.line))

    def is_list(self, keys: Keys, value: Any, what: str) -> bool:
        """Whether ``value`` is a list; notes a problem if it is not."""
        if not isinstance(value, list):
            self.say(keys, f"{what} is {kind_of(value)}, not a list")
        return isinstance(value, list)


class Lines(Collector):
    """The values of an organiser's JSON Lines file one by one; what is wrong with it is collected.

    While a value is handled, ``line`` is its number, so that :meth:`Collector.say` names the line.
    """

    def values(self, path: Path, max_line: int) -> Iterator[Any]:
        """Every value; a line that is no JSON, or a file that cannot be read, is a problem instead."""
        try:
            for found in parse_lines(path, max_line=max_line, follow=True):
                self.line = found.number
                if found.code:
                    self.add(found.reason)
                else:
                    yield found.value
        except WrongSort as error:
            self.line = None
            self.add(f"is {error.sort.name}", error.sort.fix)
        except (Unreadable, Damaged, TooLarge) as error:
            self.line = None
            self.add(f"cannot be read: {error}", "check the file's name and its permissions")
        self.line = None


def name_of(value: Any) -> str | None:
    """The name that a JSON value stands for: printable text, or a whole number; None for anything else."""
    name = str(value) if type(value) is int else value
    return name if isinstance(name, str) and name.strip() and name.isprintable() else None


def refused(what: str, problems: Sequence[str | Problem], fix: str = "") -> EvaluatorError:
    """An error that lists its problems, the first of them at least."""
    more = f"; and {len(problems) - MAX_SHOWN:,} more" if len(problems) > MAX_SHOWN else ""
    return EvaluatorError(what, "; ".join(map(str, problems[:MAX_SHOWN])) + more, fix)


def line_of(data: Any) -> bytes:
    """One JSON line: keys in their order, UTF-8. Raises ValueError for what JSON cannot hold."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"
