"""Records in the truths of another platform: in which file, how they are told apart, and what each says.

Read are JSON Lines, a JSON array, CSV and TSV with a header, and files with one value a line, whose records are numbered.
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
_NAME = re.compile(r"[^\s/'\"][^'\"\x00-\x1f]{0,99}")
FORMS = {"jsonl": "JSON Lines", "json": "a JSON array", "csv": "CSV", "tsv": "TSV", "lines": "a value a line"}


@dataclass
class Records:
    """The records of a file: ``form`` (of :data:`FORMS`), the field ``id`` that tells them apart, and the ``rows``."""

    form: str
    id: str
    rows: list[dict[str, Any]]

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
    rows = _json(data, form) if form in ("json", "jsonl") else _table(text, form)
    if not rows:
        raise Wrong("holds no record")
    if form == "lines":
        return Records(form, "id", rows)
    found = id_field or _id(rows)
    known: set[str] = set()
    for number, row in enumerate(rows, 1):
        value = row.get(found)
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise Wrong(f"has no {show(found)} in record {number:,}", "give each record its id")
        if str(value) in known:
            raise Wrong(f"has the {show(found)} of record {number:,} twice", "keep one of them")
        known.add(str(value))
    if form in ("csv", "tsv"):
        _type_cells(rows, found)
    return Records(form, found, rows)


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
        raise Wrong("has no header", "write the names of the columns into the first line")
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
