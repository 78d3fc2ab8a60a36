"""Records out of CSV and TSV: a header, then rows, whose cells become what the schema says they are.

CSV is that of RFC 4180: commas, double quotes around cells, two of them inside. TSV has tabs instead, and the same quotes. A cell that is
empty is no value, unless its column is text and required: then it is empty text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from evaluator.findings import Log, show
from evaluator.kinds.records.reading import BROKEN, MAX_RECORD, Item, Read
from evaluator.kinds.records.words import did_you_mean
from schemas import closest
from schemas.jsonl import split

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,38})(?:\.[0-9]{1,60})?(?:[eE][+-]?[0-9]{1,2})?")
_DECIMAL = re.compile(r"-?[0-9]{1,18},[0-9]{1,18}")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,38})")
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}
# What the csv module says, and what it means.
_BROKEN = {
    "new-line": "a carriage return stands in a cell without quotes, or ends the lines",
    "unexpected end": "a double quote that was opened is not closed",
    "field larger": f"a cell has more than {MAX_RECORD:,} characters",
    "',' expected": "text stands behind a closing double quote",
    "'\t' expected": "text stands behind a closing double quote",
}
_MAX_COLUMNS = 1_000
_TYPES_OF = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def table_items(read: Read, log: Log, schema: Mapping[str, Any], *, tabs: bool) -> Iterator[Item]:
    """The records of a table. What is broken is a finding with its line, and its value is :data:`BROKEN`."""
    csv.field_size_limit(MAX_RECORD)
    lines = _Lines(read, log)
    reader = csv.reader(lines, delimiter="\t" if tabs else ",", strict=True)
    columns: list[_Column | None] = []
    rows = 0
    while True:
        line = reader.line_num + 1
        lines.fed = 0
        try:
            row = next(reader, None)
        except csv.Error as error:
            rows += 1
            said = next(
                (words for begin, words in _BROKEN.items() if str(error).startswith(begin)), show(str(error))
            )
            log.add(
                "F411",
                line,
                f"row {rows:,} cannot be read: {said}" if columns else f"the header cannot be read: {said}",
            )
            yield Item(line, BROKEN, row=rows)
            continue
        if row is None:
            break
        log.lines = reader.line_num
        if not row:
            continue
        if not columns:
            columns = _columns(row, line, schema, log, tabs)
            if not columns:
                return
            continue
        rows += 1
        if len(row) != len(columns):
            log.add("F410", line, _lengths(rows, row, columns) if log.wants("F410") else "")
            yield Item(line, BROKEN, row=rows)
            continue
        record = {}
        for column, cell in zip(columns, row, strict=True):
            if column is not None and (value := column.read(cell)) is not _NONE:
                record[column.name] = value
        yield Item(line, record, row=rows)


def _lengths(number: int, row: Sequence[str], columns: Sequence[object]) -> str:
    comma = any(_DECIMAL.fullmatch(f"{a},{b}") for a, b in pairwise(row)) and len(row) > len(columns)
    hint = "; numbers have a decimal point, not a comma" if comma else ""
    return f"row {number:,} has {len(row):,} cells, and the header {len(columns):,}{hint}"


class _Lines:
    """The lines of a table as text. ``fed`` counts the characters of a row, which quotes can lead over many lines."""

    def __init__(self, read: Read, log: Log) -> None:
        self.fed = 0
        self._lines = split(read, MAX_RECORD)
        self._log = log

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, _, raw = next(self._lines)
        if raw is None:
            self._log.add("F009", number, f"the line has more than {MAX_RECORD:,} bytes")
            return "\n"
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            self._log.add("F005", number, f"the line is not UTF-8: {show(raw)}")
            text = raw.decode("utf-8", "replace")
        if "\0" in text:
            self._log.add("F403", number, "there is a NUL character")
            text = text.replace("\0", "\ufffd")
        self.fed += len(text)
        if self.fed > MAX_RECORD:
            self.fed = 0
            raise csv.Error(f"it has more than {MAX_RECORD:,} characters")
        return text.removesuffix("\r") + "\n"


def _columns(
    row: Sequence[str], line: int, schema: Mapping[str, Any], log: Log, tabs: bool
) -> list[_Column | None]:
    """The columns of a header, None for each that is left out; none at all where it is no header."""
    known = _properties(schema)
    closed = schema.get("additionalProperties") is False or schema.get("unevaluatedProperties") is False
    required = [name for name in schema.get("required", ()) if isinstance(name, str)]
    if len(row) > _MAX_COLUMNS:
        log.add("F409", line, f"there are {len(row):,} columns; at most {_MAX_COLUMNS:,} are read")
        return []
    if not set(row) & {*known, *required} and (known or required):
        other = "commas" if tabs else "tabs or semicolons"
        hint = f"; are they parted by {other}?" if len(row) == 1 else ""
        expected = ", ".join(show(name) for name in [*known][:10])
        log.add("F409", line, f"the first line has no column that the schema names ({expected}){hint}")
        return []
    found: list[_Column | None] = []
    seen: set[str] = set()
    free = [name for name in known if name not in row]
    for place, name in enumerate(row, 1):
        near = did_you_mean(closest(name, free))
        if name in seen:
            log.add("F409", line, f"column {place}: {show(name)} is there twice")
        elif closed and name not in known:
            log.add("F409", line, f"column {place}: unknown column {show(name)}{near}")
        else:
            found.append(_Column(name, known.get(name, {}), schema, name in required))
            seen.add(name)
            continue
        found.append(None)
    for name in required:
        if name not in row:
            log.add("F409", line, f"the column {show(name)} is missing")
    return found if all(name in row for name in required) else []


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that a schema names: its own, and those of what it refers to or is made of."""
    found: dict[str, Any] = {}
    for one in _in_place(schema, schema):
        for name, below in one.get("properties", {}).items():
            found.setdefault(name, below)
    return found


def _in_place(one: Any, schema: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """A schema and what stands for the same value."""
    if not isinstance(one, dict) or depth > 16:
        return
    yield one
    if str(one.get("$ref", "")).startswith("#/$defs/"):
        name = one["$ref"].removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
        yield from _in_place(schema.get("$defs", {}).get(name), schema, depth + 1)
    for key in ("allOf", "anyOf", "oneOf"):
        for below in one.get(key, ()):
            yield from _in_place(below, schema, depth + 1)


_NONE = object()


class _Column:
    """How the cells of one column become values."""

    def __init__(self, name: str, node: Any, schema: Mapping[str, Any], required: bool) -> None:
        self.name = name
        types: set[str] = set()
        for one in _in_place(node, schema):
            given = one.get("type", ())
            types |= {given} if isinstance(given, str) else set(given)
            values = [*one.get("enum", ()), *([one["const"]] if "const" in one else ())]
            types |= {_TYPES_OF.get(type(value), "") for value in values} if not given else set()
        self.text = not types or "string" in types
        self.number = bool(types & {"integer", "number"})
        self.boolean = "boolean" in types
        self.empty: Any = "" if self.text and required else None if "null" in types else _NONE

    def read(self, cell: str) -> Any:
        """The value of a cell; what is none of its type stays text, and the schema says so. ``_NONE`` for no value."""
        if cell == "":
            return self.empty
        if self.text:
            return cell
        if self.boolean and cell in _BOOLEANS:
            return _BOOLEANS[cell]
        if self.number and _NUMBER.fullmatch(cell):
            return int(cell) if _INTEGER.fullmatch(cell) else float(cell)  # 1.0 is a whole number to a schema
        return cell
