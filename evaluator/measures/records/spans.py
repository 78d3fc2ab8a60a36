"""Measures of spans: where something begins and ends, and which label it has.

A record holds a list of spans, each ``[start, end]``, ``[start, end, label]``, or an object with ``start``, ``end`` and perhaps
``label``; ``end`` is the first character (or token) after the span, so it is greater than ``start``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, ClassVar

from evaluator.errors import EvaluatorError
from evaluator.measures.records.base import (
    LABEL,
    MISSING,
    Columns,
    Form,
    Measure,
    Parameter,
    one_of,
    refuse,
)
from evaluator.measures.records.labels import F1, Counts, Precision, Recall

MAX_SPANS = 10_000  # of one record
_END = 1 << 53

Span = tuple[int, int, str]


def _span(value: Any) -> Span | None:
    if isinstance(value, dict):
        value = [value.get("start"), value.get("end"), value.get("label", "")]
    if not isinstance(value, list) or not 2 <= len(value) <= 3:
        return None
    start, end, label = [*value, ""][:3]
    label = LABEL.read(label)
    fine = type(start) is int and type(end) is int and 0 <= start < end < _END and label is not MISSING
    return (start, end, label) if fine else None


def _spans(value: Any) -> Any:
    if not isinstance(value, list) or len(value) > MAX_SPANS:
        return MISSING
    found = frozenset(map(_span, value))
    return MISSING if None in found else found


SPANS = Form(
    "spans",
    f"a list of at most {MAX_SPANS:,} spans, such as [0, 5] or [0, 5, label], each with its end after its start",
    _spans,
)


def length(spans: Iterable[Span]) -> Counter[str]:
    """How many characters spans of each label cover, each counted once."""
    found: Counter[str] = Counter()
    ends: dict[str, int] = {}
    for start, end, label in sorted(spans):
        begin = max(start, ends.get(label, 0))
        found[label] += max(end - begin, 0)
        ends[label] = max(end, begin)
    return found


def common(said: frozenset[Span], right: frozenset[Span]) -> Counter[str]:
    """How many characters both cover with the same label: |A| + |B| - |A or B|."""
    found = length(said)
    found.update(length(right))
    found.subtract(length(said | right))
    return found


class _Spans(F1):
    """Counts over all records; labels are averaged as ``average`` says."""

    output_form = truth_form = SPANS
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "match": one_of("exact", "overlap"),
        "average": one_of("micro", "macro"),
    }

    def value(self, of: Columns) -> float:
        """See the class."""
        whole = self._whole(of)
        if not whole.right:
            raise self._without_spans()
        if self.given["average"] == "micro":
            return self.score(Counts(*(one.total() for one in whole)))
        labels = {*whole.said, *whole.right}
        return fsum(self.score(whole.of(name)) for name in labels) / len(labels)

    def resampled(self, of: Columns) -> Callable[[Sequence[int]], float]:
        """See :meth:`Measure.resampled`: records are counted once, and resamples add these counts as arrays."""
        import numpy as np

        micro, labels = self.given["average"] == "micro", dict[str, int]()
        lines = Counts([], [], [], [])  # of record and label: how many
        for row, counts in enumerate(self._each(of)):
            for kept, by_label in zip(lines, counts, strict=True):
                kept.extend(
                    (row, 0 if micro else labels.setdefault(label, len(labels)), number)
                    for label, number in by_label.items()
                )
        # Sums of numbers below 2**53 are exact as floats, and those of an absurd output cannot overflow.
        columns = [np.array(kept, dtype=np.float64).reshape(-1, 3).T for kept in lines]
        tables = [(row.astype(np.intp), label.astype(np.intp), number) for row, label, number in columns]

        def value(rows: Sequence[int]) -> float:
            times = np.bincount(rows, minlength=len(of))
            whole = Counts(
                *(
                    np.bincount(label, times[row] * number, minlength=max(len(labels), 1))
                    for row, label, number in tables
                )
            )
            if not whole.right.any():
                raise self._without_spans()
            above, below = self.ratio(whole)
            shares = np.divide(above, below, out=np.zeros(len(above)), where=below > 0)
            return float(shares.sum() / np.count_nonzero(whole.said + whole.right))

        return value

    def parts(self, of: Columns) -> Mapping[str, float]:
        """The value of each label that the truths have."""
        whole = self._whole(of)
        return {name: self.score(whole.of(name)) for name in sorted({*whole.right} - {""})}

    def _without_spans(self) -> EvaluatorError:
        return refuse(self, "there is no span in the truths", "take truths with a span")

    def _whole(self, of: Columns) -> Counts:
        """The counts of all records, by label."""
        whole = Counts(Counter(), Counter(), Counter(), Counter())
        for counts in self._each(of):
            for to, part in zip(whole, counts, strict=True):
                to.update(part)
        return whole

    def _each(self, of: Columns) -> Iterator[Counts]:
        """The counts of each record, by label: spans, or characters where spans may overlap."""
        overlap = self.given["match"] == "overlap"
        size, both = (length, common) if overlap else (_number, lambda a, b: _number(a & b))
        for said, right in zip(*self.pair(of), strict=True):
            in_truths = size(right)
            if said is MISSING:
                yield Counts(Counter(), Counter(), in_truths, in_truths)
            else:
                yield Counts(both(said, right), size(said), in_truths, Counter())


def _number(spans: Iterable[Span]) -> Counter[str]:
    return Counter(label for _, _, label in spans)


class SpanF1(_Spans):
    """F1 over the spans of all records: ``match=exact`` counts spans with the same start, end and label.

    ``match=overlap`` counts characters that have the same label in both, so that a span which is almost right is almost worth one
    that is. ``average=macro`` is the mean over labels. Spans of a missing record are not found. As
    ``sklearn.metrics.f1_score`` of indicators of spans (the rule of CoNLL: Tjong Kim Sang and Buchholz, 2000) or of characters.
    """

    name = "SpanF1"


class SpanPrecision(_Spans):
    """Precision over the spans of all records, counted as in SpanF1; those of a missing record count as said, and wrong."""

    name = "SpanPrecision"
    ratio = Precision.ratio


class SpanRecall(_Spans):
    """Recall over the spans of all records, counted as in SpanF1; those of a missing record are not found."""

    name = "SpanRecall"
    ratio = Recall.ratio


MEASURES: tuple[type[Measure], ...] = (SpanF1, SpanPrecision, SpanRecall)
