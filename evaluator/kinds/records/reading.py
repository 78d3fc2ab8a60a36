"""Records out of a file, one after the other: JSON Lines, a JSON array, or a table. Memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.findings import Log, show
from evaluator.formats.files import BOM
from evaluator.formats.mistaken import no_json_array, no_json_lines
from schemas import render_pointer
from schemas.jsonarray import array_rows
from schemas.jsonl import STRICT, Fault, Rules, blocks

MAX_RECORD = 4 << 20  # bytes
FORMATS = {"jsonl": "JSON Lines", "json": "a JSON array", "csv": "CSV", "tsv": "TSV"}
_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv"}
_CODES = {
    "too-long": "F009", "encoding": "F005", "syntax": "F101", "duplicate": "F402",
    "constant": "F403", "number": "F403", "deep": "F403", "surrogate": "F403",
}  # fmt: skip

Read = Callable[[int], bytes]


class Item(NamedTuple):
    """A record: its line, its number in an array or its row in a table, and its value; :data:`BROKEN` if it has none."""

    line: int
    value: Any
    entry: int | None = None
    row: int | None = None

    def where(self, way: Sequence[str | int] = ()) -> str:
        """Where in the line a value of the record is, with a colon behind it; "" for the whole line."""
        if self.row is not None:
            column = f", column {show(str(way[0]))}" if way else ""
            return f"row {self.row:,}{column}: "
        pointer = render_pointer(way if self.entry is None else (self.entry, *way))
        return f"{pointer}: " if pointer else ""


BROKEN = object()


# As Item(…), which takes three times as long: there may be millions.
_item: Callable[[type[Item], tuple[Any, ...]], Item] = tuple.__new__


@dataclass(frozen=True)
class Block:
    """Records of lines that follow one another, of which none is broken or blank: the number of the ``first``, and ``values``."""

    first: int
    values: list[Any]

    def __iter__(self) -> Iterator[Item]:
        """One after the other."""
        for number, value in enumerate(self.values, self.first):
            yield _item(Item, (number, value, None, None))


def format_of(name: str) -> str:
    """The format that a file's name tells, JSON Lines where it does not."""
    bare = name.removesuffix(".gz")
    return next((form for ending, form in _ENDINGS.items() if bare.endswith(ending)), "jsonl")


def other_format(path: Path, form: str) -> str:
    """What a file is, in one sentence, if it is no JSON Lines or array as ``form`` says; "" if it may be. Raises :class:`Unreadable`."""
    look = {"jsonl": no_json_lines, "json": no_json_array}.get(form)
    return "" if look is None else look(path)


def json_items(read: Read, log: Log, *, array: bool, rules: Rules = STRICT) -> Iterator[Iterable[Item]]:
    """The records of JSON Lines, or of an array, some at once. What is broken is a finding, and its value is :data:`BROKEN`.

    ``rules`` say how strictly lines are read; arrays are read strictly.
    """
    if array:
        yield _entries(read, log)
        return
    for first, block in blocks(read, MAX_RECORD, rules):
        if isinstance(block, list):
            log.lines = first + len(block) - 1
            yield Block(first, block)
        else:
            yield _lines(first, block, log)


def _lines(first: int, block: Iterator[Any | Fault], log: Log) -> Iterator[Item]:
    for number, value in enumerate(block, first):
        log.lines = number
        if type(value) is Fault:
            if value.kind == "blank":
                continue
            log.add(_CODES[value.kind], number, _said(value, False))
            value = BROKEN
        yield _item(Item, (number, value, None, None))


def _entries(read: Read, log: Log) -> Iterator[Item]:
    for number, (line, value, fault) in enumerate(array_rows(read, MAX_RECORD)):
        log.lines = line
        if fault is None:
            yield Item(line, value, number)
        else:
            log.add(_CODES[fault.kind], line, _said(fault, True))
            yield Item(line, BROKEN, number)


def _said(fault: Fault, array: bool) -> str:
    what = "array is broken from here on" if array else "line is not JSON"
    return {
        "too-long": f"the record has more than {MAX_RECORD:,} bytes",
        "encoding": "the line is not UTF-8",
        "syntax": f"the {what}: {show(fault.detail)}",
        "duplicate": f"the key {show(fault.detail)} is there twice in one object",
        "constant": f"{fault.detail} is no number of JSON",
        "number": "there is a number that is too large or has more than 40 digits",
        "deep": "it is nested more than 64 levels deep",
        "surrogate": "there is text with half of a surrogate pair",
    }[fault.kind]


def without_mark(read: Read, log: Log) -> Read:
    """``read`` without a byte order mark at its beginning, which is a finding."""
    head = b""
    while len(head) < len(BOM) and (piece := read(1 << 16)):
        head += piece
    if head.startswith(BOM):
        log.add("F118", 1, "the file begins with a byte order mark")
        head = head[len(BOM) :]

    def rest(size: int) -> bytes:
        nonlocal head
        if head:
            given, head = head, b""
            return given
        return read(size)

    return rest
