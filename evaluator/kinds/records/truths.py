"""The truths of a dataset: records, too, of which the columns that measures read are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.codes import CODES
from evaluator.errors import EvaluatorError
from evaluator.findings import Log, plain
from evaluator.formats.files import Damaged, TooLarge, Unreadable, plain_or_gzip
from evaluator.kinds.records.joining import blocks, column_of
from evaluator.kinds.records.options import Getter, Options, Output, id_reader, ids_reader, steps, value_at
from evaluator.kinds.records.reading import BROKEN, Block, Item
from evaluator.measures.records.base import MISSING, Column
from evaluator.request import Request
from schemas.jsonl import LENIENT


class Truths(NamedTuple):
    """Records by id: the ``row`` of each, and the ``columns`` (by field and form) that were asked for."""

    rows: Mapping[str, int]
    columns: Mapping[tuple[str, str], Sequence[Any]]


def read_truths(
    path: Path, name: str, ids: Sequence[Getter], needed: Sequence[Column], schema: Any = None
) -> Truths:
    """Read a file of truths whole, without the strictness that ``runner task check`` has.

    Args:
        path: The file, or the same with ``.gz``.
        name: What messages call it.
        ids: Where ids stand.
        needed: The fields that measures read.
        schema: Says which cells of a table are numbers.

    Raises:
        EvaluatorError: It cannot be read, a record is broken, or has no id, an id of another, or lacks a field. Nothing of its
            values is said.
    """
    found, log = _Found(name, ids, needed), Log(name)
    shape = Output(
        {"path": path.name, "schema": schema if isinstance(schema, dict) else _of_columns(needed)}, name
    )
    try:
        for block in blocks(plain_or_gzip(path), shape, log, None, LENIENT):
            if not log.invalid and isinstance(block, Block) and found.take(block.values):
                continue
            for item in block:
                if item.value is BROKEN or log.invalid:
                    title = CODES[next(iter(log.counts))].title if log.counts else "broken"
                    raise _wrong(name, item.line, title, "correct the line")
                found.add(item)
    except Unreadable as error:
        raise EvaluatorError(f"the truths {plain(name)} cannot be read", str(error)) from None
    except (Damaged, TooLarge):
        raise EvaluatorError(f"the truths {plain(name)} cannot be read", "the file is damaged") from None
    if not found.rows:
        what = log.sorted()[0].message if log.kept else "there is no record in it"
        raise EvaluatorError(f"the truths {plain(name)} are empty", what, "write at least one record")
    return Truths(found.rows, found.columns)


class _Found:
    """What was read so far, as :class:`Truths`."""

    def __init__(self, name: str, ids: Sequence[Getter], needed: Sequence[Column]) -> None:
        self.rows: dict[str, int] = {}
        self.columns: dict[tuple[str, str], list[Any]] = {(c.field, c.form.name): [] for c in needed}
        self._name, self._ids = name, ids
        self._read_id, self._read_ids = id_reader(ids), ids_reader(ids)
        self._needed = [(self.columns[c.field, c.form.name], steps(c.field), c) for c in needed]
        self._labels: dict[str, str] = {}

    def take(self, records: Sequence[Any]) -> bool:
        """Take records of which none is wrong. Returns whether they are such; else nothing was done."""
        keys = self._read_ids(records)
        if keys is None or len({*keys}) < len(keys) or not self.rows.keys().isdisjoint(keys):
            return False
        made = [column_of(records, way, wanted.form, self._labels) for _, way, wanted in self._needed]
        if any(one is None or MISSING in one for one in made):
            return False
        self.rows.update(zip(keys, range(len(self.rows), len(self.rows) + len(keys)), strict=True))
        for (column, *_), values in zip(self._needed, made, strict=True):
            column += values or ()
        return True

    def add(self, item: Item) -> None:
        """Take one record. Raises :class:`EvaluatorError` that says what is wrong with it."""
        name, line, record = self._name, item.line, item.value
        key = self._read_id(record)
        if key is None:
            where = ", ".join("/".join(map(str, way)) for way in self._ids)
            fix = "give each record its id, or say options.truths.id"
            raise _wrong(name, line, f"there is no id at {plain(where)}", fix)
        if key in self.rows:
            raise _wrong(name, line, f"the id {plain(key)} is there twice", "keep one of them")
        self.rows[key] = len(self.rows)
        for column, way, wanted in self._needed:
            value = wanted.form.read(value_at(record, way))
            if value is MISSING:
                fix = "correct the record, or the field of the measure (truth=FIELD)"
                raise _wrong(name, line, f"{plain(wanted.field)} is not {wanted.form.says}", fix)
            column.append(self._labels.setdefault(value, value) if type(value) is str else value)


def topics_of(inputs: Path, request: Request, options: Options) -> Mapping[str, int] | None:
    """The ids in the file of the inputs that lists them; None where the task names none. Raises EvaluatorError."""
    if request.topics is None:
        return None
    return read_truths(inputs / request.topics, request.topics, options.first.ids, []).rows


def _wrong(name: str, line: int, why: str, fix: str) -> EvaluatorError:
    return EvaluatorError(f"the truths {plain(name)} are wrong", f"{plain(name)}:{line}: {why}", fix)


def _of_columns(needed: Sequence[Column]) -> dict[str, Any]:
    """A schema that says of tables which columns are numbers, where the task has none of its truths."""
    types = {"number": {"type": "number"}}
    return {"properties": {c.field: types.get(c.form.name, {}) for c in needed}}
