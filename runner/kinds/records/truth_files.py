"""Records in the truths of another platform: in which file, how they are told apart, and what each says.

Accepted are JSON Lines, a JSON array, CSV and TSV, and files with one value a line, whose records are numbered. The columns of a
table of numbers without a header are named ``id`` and ``value``, if the first one tells the rows apart; otherwise rows are numbered.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import schemas
from runner.kinds.release import Wrong, read
from schemas import jsonl, show
from schemas.file_sorts import find_wrong_sort

MOST = 256 << 20  # bytes of a file, unpacked
_IDS = ("id", "_id", "uid", "uuid", "instance_id", "example_id")
_MOST_TRIED = 10  # fields, of which two could tell records apart together
_MAYBE_IDS = ("qid", "query_id", "docno", "doc_id", "index", "name")
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,38})(?:\.[0-9]{1,60})?(?:[eE][+-]?[0-9]{1,2})?")
_BEGINNING = re.compile(f"0*{_NUMBER.pattern}")  # also 007
_NAME = re.compile(r"[^\s/'\"][^'\"\x00-\x1f]{0,99}")
FORMS = {"jsonl": "JSON Lines", "json": "a JSON array", "csv": "CSV", "tsv": "TSV", "lines": "a value a line"}


@dataclass
class Records:
    """The records of a file: ``form`` (of :data:`FORMS`), the field ``id`` that tells them apart, and the ``rows``.

    ``headless`` is true for a table without a header, whose columns were named here.
    """

    form: str
    id: str
    rows: list[dict[str, Any]]
    headless: bool = False

    def fields(self) -> list[str]:
        """The other fields, in which every record has a text, a number, true or false."""
        first = [one for one in self.rows[0] if one != self.id and _NAME.fullmatch(one)]
        return [one for one in first if all(isinstance(row.get(one), str | int | float) for row in self.rows)]

    def numbers(self, name: str) -> bool:
        """Whether a field holds amounts: numbers that are not just a few whole ones, which are classes."""
        values = [row[name] for row in self.rows]
        if any(isinstance(one, bool | str) for one in values):
            return False
        return any(isinstance(one, float) for one in values) or len(set(values)) > min(20, len(values) / 2)

    def type(self, name: str) -> str | None:
        """The JSON Schema type of a field; None for several."""
        kinds = {type(row[name]) for row in self.rows}
        names = {str: "string", bool: "boolean", int: "integer", float: "number"}
        return names[kinds.pop()] if len(kinds) == 1 else "number" if kinds == {int, float} else None


def read_records(path: Path, name: str, id_field: str = "") -> Records:
    """The records of a file. Raises :class:`Wrong` when it holds none that can be told apart."""
    data = read(path)
    if len(data) > MOST:
        raise Wrong(f"is larger than {MOST >> 20} MiB")
    text = _decode(data)
    form = _form(name, text)
    if headless := _without_header(text, form):
        _type_cells(headless, "id")
        return Records("csv" if form == "lines" else form, "id", headless, headless=True)
    rows = _json(data, form) if form in ("json", "jsonl") else _table(text, form)
    if not rows:
        raise Wrong("holds no record")
    if form == "lines":
        return Records(form, "id", rows)
    found = id_field or _id(rows)
    _check_ids(rows, found)
    if form in ("csv", "tsv"):
        _type_cells(rows, found)
    return Records(form, found, rows)


def _check_ids(rows: Sequence[Mapping[str, Any]], found: str) -> None:
    """Raise :class:`Wrong` for a record without the id ``found``, or with that of an earlier one."""
    known: set[str] = set()
    for number, row in enumerate(rows, 1):
        value = row.get(found)
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise Wrong(f"has no {show(found)} in record {number:,}", "give each record its id")
        if str(value) in known:
            raise Wrong(f"has the {show(found)} of record {number:,} twice", "keep one of them")
        known.add(str(value))


def _decode(data: bytes) -> str:
    """Return the text of a file. Raises :class:`Wrong` for a file of another sort, and for an empty one."""
    if (sort := find_wrong_sort(data)) is not None:
        raise Wrong(f"is {sort.name}", sort.fix)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Wrong("is not UTF-8 text", "save it as UTF-8") from None
    if not text.strip():
        raise Wrong("is empty")
    return text


def _form(name: str, text: str) -> str:
    bare = name.lower().removesuffix(".gz")
    start = text.lstrip()[:1]
    first = text.lstrip("\n").partition("\n")[0]
    if start == "[":
        return "json"
    if start == "{":
        return "jsonl"
    if bare.endswith(".tsv") or "\t" in first:
        return "tsv"
    return "csv" if "," in first else "lines"


def _json(data: bytes, form: str) -> list[dict[str, Any]]:
    if form == "json":
        doc = schemas.load_json(data, "it", max_bytes=MOST)
        if doc.problems:
            raise Wrong(doc.problems[0].what)
        values = doc.data if isinstance(doc.data, list) else []
    else:
        values = [jsonl.parse(line) for line in data.splitlines() if line.strip()]
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise Wrong(f"holds no JSON object as record {number:,}", "write one object for each record")
    return values


def _without_header(text: str, form: str) -> list[dict[str, Any]]:
    """Return the rows of a table whose first cell is a number, or of words that are all numbers; none for another file."""
    if form in ("json", "jsonl"):
        return []
    lines = [line for line in text.splitlines() if line.strip()]
    if form == "lines":
        cells = [line.split() for line in lines]
        if not all(_NUMBER.fullmatch(cell) for row in cells for cell in row):
            return []
    else:
        try:
            cells = list(csv.reader(lines, delimiter="\t" if form == "tsv" else ",", strict=True))
        except csv.Error:
            return []
    cells = [[cell.strip() for cell in row] for row in cells]
    width = len(cells[0])
    if width < 2 or any(len(row) != width for row in cells) or not _BEGINNING.fullmatch(cells[0][0]):
        return []
    ids = [row[0] for row in cells]
    if numbered := len(set(ids)) < len(ids) or any(id_ == "" or _is_float(id_) for id_ in ids):
        cells = [[str(number), *row] for number, row in enumerate(cells, 1)]
    count = width if numbered else width - 1
    names = ["id", *(["value"] if count == 1 else [f"value-{n}" for n in range(1, count + 1)])]
    return [dict(zip(names, row, strict=True)) for row in cells]


def _is_float(cell: str) -> bool:
    """True for a number that cannot be an id."""
    return _NUMBER.fullmatch(cell) is not None and not cell.lstrip("-").isdecimal()


def _table(text: str, form: str) -> list[dict[str, Any]]:
    if form == "lines":
        values = [line.strip() for line in text.splitlines() if line.strip()]
        if any(len(value.split()) > 1 for value in values):
            raise Wrong("has several values in a line, and no header", "write CSV, with names of the columns")
        rows: list[dict[str, Any]] = [{"id": str(n), "value": value} for n, value in enumerate(values, 1)]
        if len(rows) > 1 and not _NUMBER.fullmatch(values[0]) and all(map(_NUMBER.fullmatch, values[1:])):
            raise Wrong("begins with a line that could be a header, and has no ids", "add a column id")
        _type_cells(rows, "id")
        return rows
    csv.field_size_limit(1 << 24)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if form == "tsv" else ",")
        lines = [row for row in reader if row]
    except csv.Error as error:
        raise Wrong(f"is no table that can be read ({show(str(error))})") from None
    header = [cell.strip() for cell in lines[0]] if lines else []
    if not all(header) or len(set(header)) < len(header) or any(map(_NUMBER.fullmatch, header)):
        raise Wrong(
            "has no header, or one with a number as a name",
            "write the names of the columns into the first line",
        )
    for number, row in enumerate(lines[1:], 1):
        if len(row) != len(header):
            raise Wrong(
                f"has {len(row)} cells in row {number:,}, and {len(header)} in its header", "correct the row"
            )
    return [dict(zip(header, row, strict=True)) for row in lines[1:]]


def _id(rows: Sequence[Mapping[str, Any]]) -> str:
    """The field that tells the records apart: one that is called so, else the first that does."""

    def apart(name: str) -> bool:
        values = [row.get(name) for row in rows]
        fine = all(isinstance(one, str | int) and not isinstance(one, bool) and one != "" for one in values)
        return fine and len(set(map(str, values))) == len(values)

    folded = {name.lower(): name for name in reversed([*rows[0]])}
    if sure := [folded[one] for one in _IDS if one in folded]:
        return sure[0]
    for name in [*(folded[one] for one in _MAYBE_IDS if one in folded), *rows[0]]:
        if apart(name):
            return name
    for pair in combinations([*rows[0]][:_MOST_TRIED], 2):
        if len({tuple(str(row.get(name)) for name in pair) for row in rows}) == len(rows):
            both = " and ".join(map(show, pair))
            raise Wrong(
                f"has no field that tells its records apart; only {both} together do",
                "add an id to each, or write the task by hand with two ids (docs/how-to/records.md)",
            )
    raise Wrong("has no field that tells its records apart", "add an id to each")


def _type_cells(rows: Sequence[dict[str, Any]], id_field: str) -> None:
    """Make numbers of the cells of columns that hold nothing else; ids stay text."""
    for name in rows[0]:
        cells = [row[name] for row in rows]
        make = (
            int
            if all(map(_WHOLE.fullmatch, cells))
            else float
            if all(map(_NUMBER.fullmatch, cells))
            else None
        )
        if make is not None and name != id_field:
            for row in rows:
                row[name] = make(row[name])
