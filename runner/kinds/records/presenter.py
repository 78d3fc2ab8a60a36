"""The records of a run that were wrong, field by field, as the evaluator of the kind ``records`` writes them to ``details.jsonl``.

Another evaluator may write other things there: what has another form is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from runner.kinds.records.fields import Difference, Field, Fields, Matrix, Pair, Record, Spans
from runner.kinds.records.outputs import order
from runner.views.audience import Audience, escape, not_for, permissions_of
from runner.views.redact import cut, details
from runner.views.text import MAX_ID, number, shown, whole

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.run_detail import RunDetail

MAX_FIELDS = 200
MAX_ITEMS = 100  # of a field, of each kind
MAX_LABELS = 50
MAX_VALUE = 600  # characters


def read(found: RunDetail, task: Task | None, audience: Audience, dataset: Dataset) -> Fields | None:
    """The fields of a run's records; None when its evaluation has no details. Raises E103 for those who may not know of it.

    On a blinded dataset only the organiser sees them: truths stand in them.
    """
    may = permissions_of(found, audience, dataset)
    if not may.run:
        raise not_for(audience, f"run {found.run.id}")
    if not may.content:
        return Fields(audience, None)
    if found.evaluation is None or found.evaluation.file("details.jsonl") is None:
        return None
    rows: list[Mapping[str, Any]] = []
    left_out = 0
    lines = details(found, audience, dataset)
    for row in islice(lines, MAX_FIELDS):
        if isinstance(row.get("topic"), str):
            rows.append(row)
        else:
            left_out += 1
    places = {} if task is None else order(task)
    rows.sort(key=lambda row: places.get((str(row.get("output")), str(row.get("field"))), len(places)))
    fields = [_field(n, row) for n, row in enumerate(rows, 1)]
    notes: tuple[str, ...] = (
        (f"{left_out:,} lines of the details are no field and are not shown.",) if left_out else ()
    )
    if cut(found, lines):
        notes += ("The details are too long to be shown whole: what follows is left out.",)
    return Fields(audience, tuple(fields), notes)


def _field(n: int, row: Mapping[str, Any]) -> Field:
    classes, differences, values = (_dict(row.get(key)) for key in ("classes", "differences", "values"))
    spans = _dict(row.get("spans"))
    return Field(
        n,
        escape(row["topic"], MAX_ID),
        _text(row.get("output")),
        _text(row.get("truth")),
        tuple(_texts(row.get("measures"))),
        _count(row.get("total")),
        whole(row.get("wrong")),
        _count(row.get("missing")),
        _matrix(classes),
        tuple(_pair(one) for one in _dicts(classes.get("pairs"))),
        _difference(differences),
        _text(values.get("measure")),
        tuple(_record(one) for one in _dicts(row.get("records"))),
        tuple(_texts(row.get("missing_ids"))),
        Spans(_count(spans.get("missed")), _count(spans.get("extra"))) if spans else None,
    )


def _matrix(row: Mapping[str, Any]) -> Matrix | None:
    """A confusion matrix; None when there is none of a form that fits its labels."""
    labels = [one for one in _list(row.get("labels"), MAX_LABELS + 1) if isinstance(one, str)]
    counts = [[_count(one) for one in _list(line)] for line in _list(row.get("matrix"))]
    fits = len(counts) == len(labels) + 1 and {len(line) for line in counts} == {len(labels) + 2}
    if not labels or len(labels) > MAX_LABELS or not fits:
        return None
    names = tuple(escape(one, MAX_ID) for one in labels)
    return Matrix(names, tuple(map(tuple, counts)), _count(row.get("others")))


def _pair(row: Mapping[str, Any]) -> Pair:
    said = row.get("said")
    got = None if said is None else _text(said)
    return Pair(_text(row.get("right")), got, _count(row.get("count")), tuple(_texts(row.get("ids"))))


def _difference(row: Mapping[str, Any]) -> Difference | None:
    if not row:
        return None
    shares = [
        (share, error)
        for one in _list(row.get("shares"))
        if isinstance(one, list)
        and len(one) == 2
        and (share := whole(one[0])) is not None
        and (error := number(one[1])) is not None
    ]
    return Difference(
        tuple(shares), number(row.get("largest")), _count(row.get("above")), _count(row.get("below"))
    )


def _record(row: Mapping[str, Any]) -> Record:
    return Record(
        _text(row.get("id")), _value(row.get("said")), _value(row.get("right")), number(row.get("value"))
    )


def _value(value: Any) -> str:
    found = number(value)
    if found is not None:
        return f"{found:,.6g}" if abs(found) >= 1e15 or not found.is_integer() else f"{found:,.0f}"
    return shown(value, MAX_VALUE) if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return max(0, whole(value) or 0)


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any, limit: int = MAX_ITEMS) -> Sequence[Any]:
    return value[:limit] if isinstance(value, list) else ()


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in _list(value) if isinstance(one, dict)]


def _texts(value: Any) -> list[str]:
    return [_text(one) for one in _list(value) if isinstance(one, str)]


def _text(value: Any) -> str:
    return escape(value, MAX_ID) if isinstance(value, str) else ""
