"""What is said of the records that were wrong, field by field: which classes were mixed up, and how large errors are.

This goes to ``details.jsonl``, a line a field, which only those see who may see truths. All of it is bounded, however many
records, classes and words there are.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from itertools import compress, repeat
from math import isfinite
from operator import ge
from typing import Any

from evaluator.kinds.records.options import Wanted
from evaluator.measures.records.base import LABEL, MISSING, NUMBER, Columns
from evaluator.measures.records.spans import SPANS, Span

MOST_CLASSES = 20  # of a confusion matrix; the others are counted together
MOST_PAIRS = 50  # of classes that were mixed up
MOST_EACH = 10  # ids of such a pair, and of what is missing
MOST_RECORDS = 50  # with the largest errors
MAX_ID = 200  # characters of an id, and of a label
MAX_VALUE = 300  # characters of another value
SHARES = (50, 75, 90, 95)  # percentiles of errors

_Key = tuple[str, str, str, str]  # output, field, field of the truths, file of the truths


class Wrong:
    """Takes the columns of measures as they are computed; each field is looked at once, by the first measure that will do."""

    def __init__(self) -> None:
        self._found: dict[_Key, dict[str, Any]] = {}
        self._measures: dict[_Key, list[str]] = {}

    def add(self, wanted: Wanted, of: Columns, values: Sequence[float] | None) -> None:
        """Look at one measure's columns, and the ``values`` of its records where it has these."""
        read = {column.side: column for column in reversed(wanted.measure.columns())}
        if {"output", "truth"} - read.keys():
            return
        output, truth = read["output"], read["truth"]
        key = (wanted.output.path, output.field, truth.field, wanted.asked.truths)
        self._measures.setdefault(key, []).append(wanted.asked.id)
        known = self._found.get(key, {})
        said, right = of.output[output.field], of.truth[truth.field]
        if known.keys() & {"classes", "differences", "spans"}:
            return
        if output.form is truth.form is LABEL:
            self._found[key] = _classes(of, output.field, truth.field)
        elif output.form is truth.form is NUMBER:
            self._found[key] = _differences(of.keys, said, right)
        elif output.form is truth.form is SPANS:
            self._found[key] = _spans(of.keys, said, right)
        elif values is not None and "values" not in known:
            self._found[key] = _values(wanted, of.keys, (said, right), values)

    def rows(self) -> list[Mapping[str, Any]]:
        """A line for each field."""
        often = Counter(field for _, field, _, _ in self._found)
        paths = Counter((path, field) for path, field, _, _ in self._found)
        made: list[Mapping[str, Any]] = []
        for (path, field, truth, file), found in self._found.items():
            name = field if often[field] == 1 else f"{path}:{field}"
            name += f"={file}:{truth}" if paths[path, field] > 1 else ""
            place = {"topic": name, "output": path, "field": field, "truth": truth, "truths": file}
            made.append({**place, "measures": self._measures[path, field, truth, file], **found})
        return made


def _classes(of: Columns, output: str, truth: str) -> dict[str, Any]:
    """How often which class was taken for which, as a matrix, and the pairs that are mixed up most often with some ids."""
    pairs = {(true, got): count for (got, true), count in of.pairs(output, truth).items()}
    often: Counter[str] = Counter()
    for (true, got), count in pairs.items():
        often[true] += count
        if got is not MISSING:
            often[got] += count
    labels = sorted(nsmallest(MOST_CLASSES, often, key=lambda label: (-often[label], label)))
    places = {label: n for n, label in enumerate(labels)}
    others, missing = len(labels), len(labels) + 1
    matrix = [[0] * (missing + 1) for _ in range(len(labels) + 1)]  # rows: right; the last: others
    for (true, got), count in pairs.items():
        column = missing if got is MISSING else places.get(got, others)
        matrix[places.get(true, others)][column] += count
    mixed = {pair: count for pair, count in pairs.items() if pair[0] != pair[1]}
    most = nsmallest(
        MOST_PAIRS, mixed, key=lambda pair: (-mixed[pair], pair[0], pair[1] is MISSING, str(pair[1]))
    )
    examples: dict[tuple[Any, Any], list[str]] = {pair: [] for pair in most}
    left = sum(min(mixed[pair], MOST_EACH) for pair in most)
    rows = zip(of.keys, of.output[output], of.truth[truth], strict=True)
    while left:
        key, got, true = next(rows)
        if true != got and (ids := examples.get((true, got))) is not None and len(ids) < MOST_EACH:
            ids.append(_cut(key))
            left -= 1
    return {
        **_counts(len(of), sum(mixed.values()), sum(n for (_, got), n in mixed.items() if got is MISSING)),
        "classes": {
            "labels": [_cut(label) for label in labels],
            "matrix": matrix,
            "others": len(often) - len(labels),
            "pairs": [
                {"right": _cut(true), "said": None if got is MISSING else _cut(got), "count": mixed[true, got], "ids": ids}
                for (true, got), ids in examples.items()
            ],
        },
    }  # fmt: skip


def _differences(keys: Sequence[str], said: Sequence[Any], right: Sequence[Any]) -> dict[str, Any]:
    """How large errors are (without missing records), which way they go, and the records with the largest."""
    rows = [n for n, got in enumerate(said) if got is not MISSING] if MISSING in said else range(len(said))
    by = [said[n] - right[n] for n in rows]
    ordered = sorted(map(abs, by))
    exact = bisect_right(ordered, 0)
    above, missing = sum(map((0.0).__lt__, by)), len(keys) - len(by)
    least = ordered[-MOST_RECORDS] if len(ordered) > MOST_RECORDS else 0  # at least as large are the largest
    large = (
        (by[n], rows[n]) for n in compress(range(len(by)), map(ge, map(abs, by), repeat(least))) if by[n]
    )
    most = nsmallest(MOST_RECORDS, large, key=lambda one: (-abs(one[0]), one[1]))
    return {
        **_counts(len(keys), len(keys) - exact, missing),
        "differences": {
            # The nearest rank: the smallest error that so many percent of the records do not exceed.
            "shares": [[share, ordered[-(-share * len(by) // 100) - 1]] for share in SHARES if by],
            "largest": ordered[-1] if by else None,
            "above": above,
            "below": len(by) - exact - above,
        },
        "records": [{"id": _cut(keys[n]), "said": said[n], "right": right[n], "value": one} for one, n in most],
        "missing_ids": _missing(keys, said),
    }  # fmt: skip


def _spans(keys: Sequence[str], said: Sequence[Any], right: Sequence[frozenset[Span]]) -> dict[str, Any]:
    """Count the spans that were missed and those that are not in the truths, and list the records with most of both.

    Spans of missing records count as missed. A listed record has the spans that are not in the truths under ``said``, the
    missed ones under ``right``, and their number under ``value``.
    """
    pairs = [
        (frozenset[Span]() if got is MISSING else got, true) for got, true in zip(said, right, strict=True)
    ]
    wrong = [len(got ^ true) for got, true in pairs]
    rows = (n for n, number in enumerate(wrong) if number and said[n] is not MISSING)
    most = nsmallest(MOST_RECORDS, rows, key=lambda n: (-wrong[n], n))
    bad = sum(bool(number) or got is MISSING for number, got in zip(wrong, said, strict=True))
    return {
        **_counts(len(keys), bad, sum(got is MISSING for got in said)),
        "spans": {
            "missed": sum(len(true - got) for got, true in pairs),
            "extra": sum(len(got - true) for got, true in pairs),
        },
        "records": [
            {"id": _cut(keys[n]), "said": _value(got - true), "right": _value(true - got), "value": wrong[n]}
            for n, (got, true) in ((n, pairs[n]) for n in most)
        ],
        "missing_ids": _missing(keys, said),
    }


def _values(
    wanted: Wanted, keys: Sequence[str], pair: tuple[Sequence[Any], Sequence[Any]], values: Sequence[float]
) -> dict[str, Any]:
    """The records with the worst values on a measure, with what was said and what is right."""
    said, right = pair
    higher = wanted.measure.direction == "higher"
    best = wanted.measure.bounds[1 if higher else 0]
    wrong = sum(value != best for value in values) if isfinite(best) else None
    missing = sum(got is MISSING for got in said)
    rows = (n for n, value in enumerate(values) if value != best and said[n] is not MISSING)
    worst = nsmallest(MOST_RECORDS, rows, key=lambda n: (values[n] if higher else -values[n], n))
    return {
        **_counts(len(keys), wrong, missing),
        "values": {"measure": wanted.asked.id},
        "records": [
            {"id": _cut(keys[n]), "said": _value(said[n]), "right": _value(right[n]), "value": values[n]}
            for n in worst
        ],
        "missing_ids": _missing(keys, said),
    }


def _counts(total: int, wrong: int | None, missing: int) -> dict[str, int | None]:
    """``wrong`` counts missing ones, too; None where no value is the best there is."""
    return {"total": total, "wrong": wrong, "missing": missing}


def _missing(keys: Sequence[str], said: Sequence[Any]) -> list[str]:
    found = (_cut(key) for key, got in zip(keys, said, strict=True) if got is MISSING)
    return [key for _, key in zip(range(MOST_EACH), found, strict=False)]


def _value(value: Any) -> str:
    """A value as measures see it, in JSON: sets of labels or spans in order."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_plain)
    return _cut(text, MAX_VALUE)


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset | set) else str(value)


def _cut(text: str, limit: int = MAX_ID) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
