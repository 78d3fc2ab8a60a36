"""Outputs whose order is known, made from the truths: the same values, some of them moved to other records, and one wrong one."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from evaluator.findings import Log
from evaluator.formats.files import plain_or_gzip
from evaluator.kinds.base import Order
from evaluator.kinds.records.joining import items
from evaluator.kinds.records.options import Getter, Options, Output, Wanted, id_of, steps, value_at
from evaluator.request import Request

Record = dict[str, Any]


def proof(inputs: Path, truths: Path, request: Request) -> list[Order] | None:
    """Return outputs for each file of truths. Raises EvaluatorError for wrong truths.

    None where a right record cannot be made of ids and of the fields that measures compare, because the schema asks for more,
    and where a run has to have several files.
    """
    options = Options(request)
    if any(one.required for one in list(options.outputs.values())[1:]):
        return None
    orders = []
    for name in dict.fromkeys(m.truths for m in request.measures):
        group = [
            w
            for w in options.wanted
            if w.asked.truths == name and w.output is options.first and w.measure.same
        ]
        right = _records(truths / name, name, options, group)
        if not group or not right or not all(map(options.first.validator.is_valid, right)):
            continue
        fields = [steps(w.measure.field) for w in group]
        outputs = {
            "perfect": right,
            "shuffled": _moved(right, fields, lambda key: sha256(key.encode()).digest()[0] < 128, options),
        }
        outputs["nearly empty"] = _moved(right, fields, lambda _: True, options)[:1]
        best = {w.asked.id: w.measure.bounds[w.measure.direction == "higher"] for w in group}
        orders.append(
            Order(
                [w.asked.id for w in group],
                {key: _written(records, options.first) for key, records in outputs.items()},
                {key: value for key, value in best.items() if isfinite(value)},
            )
        )
    return orders or None


def _records(path: Path, name: str, options: Options, group: Sequence[Wanted]) -> list[Record]:
    """For each truth the output's record that says the same."""
    shape = Output({"path": name, "schema": options.truth_schema or options.first.schema}, name)
    found = []
    for item in items(plain_or_gzip(path), shape, Log(name), None):
        record: Record = {}
        ways = zip(options.first.ids, options.ids_of_truths(options.first), strict=True)
        for to, way in ways:
            _put(record, to, value_at(item.value, way))
        for one in (w.measure for w in group):
            _put(record, steps(one.field), one.perfect(value_at(item.value, steps(one.truth))))
        found.append(record)
    return found


def _put(record: Record, way: Getter, value: Any) -> None:
    for step in way[:-1]:
        record = record.setdefault(str(step), {})
    record[str(way[-1])] = value


def _moved(
    records: Sequence[Record], fields: Sequence[Getter], chosen: Callable[[str], bool], options: Options
) -> list[Record]:
    """The records; those with ids that are ``chosen`` have the values of the next record that says something else."""
    found = []
    for place, record in enumerate(records):
        if not chosen(id_of(record, options.first.ids) or ""):
            found.append(record)
            continue
        said = [value_at(record, way) for way in fields]
        others = (records[(place + n) % len(records)] for n in range(1, len(records)))
        other = next(
            (o for o in others if all(value_at(o, w) != s for w, s in zip(fields, said, strict=True))), record
        )
        changed: Record = json.loads(json.dumps(record))
        for way in fields:
            _put(changed, way, value_at(other, way))
        found.append(changed)
    return found


def _written(records: Sequence[Mapping[str, Any]], output: Output) -> bytes:
    if output.form == "json":
        return json.dumps(records).encode()
    if output.form == "jsonl":
        return b"".join(json.dumps(record).encode() + b"\n" for record in records)
    text = io.StringIO(newline="")
    table = csv.writer(text, delimiter="\t" if output.form == "tsv" else ",", lineterminator="\n")
    columns = list(records[0])
    table.writerow(columns)
    table.writerows([_cell(record.get(column)) for column in columns] for record in records)
    return text.getvalue().encode()


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)
