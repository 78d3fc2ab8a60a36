"""Reading one output file: each record is validated, told by its id, and what measures need of it is kept."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from evaluator.findings import Log, Unknown, show
from evaluator.formats.files import Source
from evaluator.formats.lines import reporting
from evaluator.kinds.records.options import Getter, Output, id_reader, ids_reader, steps, value_at
from evaluator.kinds.records.reading import BROKEN, Block, Item, json_items, other_format, without_mark
from evaluator.kinds.records.table import table_items
from evaluator.kinds.records.words import violations
from evaluator.measures.records.base import LABEL, MISSING, Column, Form
from schemas import render_pointer
from schemas.jsonl import STRICT, Rules

MOST_VIOLATIONS = 20  # of one record that are told
MAX_SEEN = 2_000_000  # ids that are remembered where nobody says which there are
# Telling what is wrong takes far longer than finding out that something is: in all, so many bytes of records are told.
_TOLD = 2 << 20
_TOLD_AT_ONCE = 64 << 10

Columns = dict[tuple[str, str], list[Any]]


def items(
    path: Path, output: Output, log: Log, max_bytes: int | None, rules: Rules = STRICT
) -> Iterator[Item]:
    """The records of a file in the format of its output; see :func:`json_items`. Raises what :class:`Source` raises."""
    for block in blocks(path, output, log, max_bytes, rules):
        yield from block


def blocks(
    path: Path, output: Output, log: Log, max_bytes: int | None, rules: Rules = STRICT
) -> Iterator[Iterable[Item]]:
    """The same, some records at once; a :class:`Block` where they may be looked at together."""
    with Source(path, max_bytes) as source:
        read = without_mark(source.read, log)
        if output.form in ("csv", "tsv"):
            yield table_items(read, log, output.schema, tabs=output.form == "tsv")
        else:
            yield from json_items(read, log, array=output.form == "json", rules=rules)


class Reader:
    """Reads an output, and keeps of it what measures need: a row for each known id, however long the file is.

    Args:
        output: What is read.
        known: The ids that there are, and their rows; None where nobody knows.
        needed: What measures read of a record.
        log: Takes findings.
        suggest: Whether ids may be named that were probably meant.
    """

    def __init__(
        self,
        output: Output,
        known: Mapping[str, int] | None,
        needed: Sequence[Column],
        log: Log,
        *,
        suggest: bool,
    ) -> None:
        self.output, self.known, self.log = output, known, log
        rows = 0 if known is None else len(known)
        self.columns: Columns = {(c.field, c.form.name): [MISSING] * rows for c in needed}
        self._needed = [(self.columns[c.field, c.form.name], c.form, steps(c.field)) for c in needed]
        self._lines = array("q", bytes(8 * rows))  # of the first record of each id
        self._seen: dict[str, int] = {}  # the same, where nobody knows the ids
        self._unknown = Unknown(
            log, "F406", "ids", "the dataset", known.keys if suggest and known is not None else None
        )
        self._told = 0
        self._labels: dict[str, str] = {}
        self._read_ids = ids_reader(output.ids)
        self.records = self.found = 0
        self.broken = False  # something was a record, and nobody knows which

    def read(self, path: Path, max_bytes: int | None) -> None:
        """Read the file; whatever is wrong becomes a finding, with the name of the file."""
        log, lines = self.log, self._lines
        read_id, known = id_reader(self.output.ids), (self.known or {}).get
        with reporting(log, max_bytes):
            if said := other_format(path, self.output.form):
                log.add("F030" if self.output.form == "json" else "F101", 1, said)
                if log.invalid:
                    return
            valid = self.output.validator.is_valid
            for item in self._single(blocks(path, self.output, log, max_bytes)):
                self.records += 1
                record = item.value
                if record is BROKEN:
                    self.broken = True
                    continue
                fits, key = valid(record), read_id(record)
                if fits and key is not None and (row := known(key)) is not None and not lines[row]:
                    lines[row] = item.line  # the short way of most records
                    self.found += 1
                    self._keep(row, item, key)
                    continue
                if not fits:
                    self._tell(item, self._topic(key))
                if key is None:
                    self._without_id(item, fits)
                elif (row := self._row(key, item)) is not None and fits:
                    self._keep(row, item, key)
            if not self.records and not log.invalid:
                log.add("F001", None, "the file holds no record")

    def _single(self, found: Iterable[Iterable[Item]]) -> Iterator[Item]:
        """The records that have to be looked at one by one; those of other blocks are taken here."""
        for block in found:
            if not (isinstance(block, Block) and self._take(block)):
                yield from block

    def _take(self, block: Block) -> bool:
        """Take records of which none is wrong, unknown or there twice. Returns whether they are such; else nothing was done."""
        records = block.values
        if not all(map(self.output.validator.is_valid, records)):
            return False
        keys = self._read_ids(records)
        if keys is None or len({*keys}) < len(keys):
            return False
        lines = range(block.first, block.first + len(keys))
        if self.known is None:
            if len(self._seen) + len(keys) > MAX_SEEN or not self._seen.keys().isdisjoint(keys):
                return False
            self._seen.update(zip(keys, lines, strict=True))
        else:
            rows: list[Any] = [*map(self.known.get, keys)]
            if None in rows or any(map(self._lines.__getitem__, rows)):
                return False
            made: list[Any] = [column_of(records, way, form, self._labels) for _, form, way in self._needed]
            if None in made:
                return False
            put(self._lines, rows, array("q", lines))
            for (column, *_), values in zip(self._needed, made, strict=True):
                put(column, rows, values)
            self.found += len(keys)
        self.records += len(keys)
        return True

    def _topic(self, key: str | None) -> bytes | None:
        """An id for a finding, if it is one of the dataset's: what others write is not kept."""
        return (
            None if key is None or key not in (self.known or ()) else key.encode("utf-8", "backslashreplace")
        )

    def _without_id(self, item: Item, fits: bool) -> None:
        self.broken = True  # nobody knows which one it is
        if fits:
            names = " and ".join(render_pointer(way) for way in self.output.ids)
            self.log.add("F404", item.line, f"{item.where()}there is no usable id at {names}")

    def _row(self, key: str, item: Item) -> int | None:
        """The row of an id; None for an unknown one, a second record, and where no rows are kept."""
        if self.known is None:
            if first := self._seen.get(key):
                self._twice(key, item, first)
            elif len(self._seen) < MAX_SEEN:
                self._seen[key] = item.line
            return None
        row = self.known.get(key)
        if row is None:
            near = self._unknown.add(key)
            self.log.add(
                "F406", item.line, f"{item.where()}there is no record {show(key)} in this dataset{near}"
            )
            return None
        if first := self._lines[row]:
            self._twice(key, item, first)
            return None
        self._lines[row] = item.line
        self.found += 1
        return row

    def _twice(self, key: str, item: Item, first: int) -> None:
        what = f"{item.where()}the record {show(key)} is there twice (first at line {first:,})"
        self.log.add("F405", item.line, what, self._topic(key))

    def _keep(self, row: int, item: Item, key: str) -> None:
        record, labels = item.value, self._labels
        for column, form, way in self._needed:
            if (value := value_at(record, way)) is None:
                continue
            value = form.read(value)
            if value is MISSING:
                self.log.add("F408", item.line, f"{item.where(way)}expected {form.says}", self._topic(key))
            column[row] = labels.setdefault(value, value) if type(value) is str else value

    def _tell(self, item: Item, topic: bytes | None) -> None:
        """Say what a record breaks of the schema: everything of the first ones, of later or large ones that they do."""
        log = self.log
        size = _size(item.value, _TOLD_AT_ONCE)
        if not log.wants("F401") or size >= _TOLD_AT_ONCE or self._told > _TOLD:
            log.add(
                "F401", item.line, f"{item.where()}it does not fit the schema (too large to say where)", topic
            )
            return
        self._told += size
        errors = self.output.validator.iter_errors(item.value)
        found = list(islice(violations(errors, self.output.schema), MOST_VIOLATIONS + 1))
        for one in found[:MOST_VIOLATIONS]:
            log.add("F401", item.line, f"{item.where(one.pointer)}{one.what}", topic)
        if len(found) > MOST_VIOLATIONS:
            log.add("F401", item.line, f"{item.where()}and more in this record", topic)

    def summarise(self) -> None:
        """Say what unknown ids come to, and which are missing (unless records were broken: these may be the ones)."""
        if self.known is None or not self.records:
            return
        self._unknown.summarise(self.found)
        if not self.found and self.known and self.log.counts.get("F406"):
            self.log.add("F028", None, "no record of the file is in this dataset")
        elif not self.broken and self.found < len(self.known):
            for key, row in self.known.items():
                if not self._lines[row]:
                    self.log.add("F407", None, f"there is no record {show(key)}", self._topic(key))


def column_of(records: Sequence[Any], way: Getter, form: Form, labels: dict[str, str]) -> list[Any] | None:
    """What a column holds of objects, as :meth:`Form.column`; equal ``labels`` are the same object."""
    try:
        values = (
            [*map(itemgetter(*way), records)] if len(way) == 1 else [value_at(one, way) for one in records]
        )
    except KeyError:
        values = [record.get(way[0]) for record in records]
    found = form.column(values)
    return [*map(labels.setdefault, found, found)] if form is LABEL and found is not None else found


def put(column: Any, rows: Sequence[int], values: Sequence[Any]) -> None:
    """Put ``values`` into the ``rows`` of a column."""
    first, after = rows[0], rows[0] + len(rows)
    if rows[-1] == after - 1 and rows == [*range(first, after)]:
        column[first:after] = values
        return
    for row, value in zip(rows, values, strict=True):
        column[row] = value


def _size(value: Any, most: int) -> int:
    """About how many bytes a value has as JSON, up to ``most``."""
    size, left = 0, [value]
    while left and size < most:
        one = left.pop()
        if isinstance(one, str):
            size += len(one) + 2
        elif isinstance(one, dict):
            size += 2
            left += [*one, *one.values()] if len(one) < most else ["x" * most]
        elif isinstance(one, list):
            size += 2
            left += one if len(one) < most else ["x" * most]
        else:
            size += 6
    return size
