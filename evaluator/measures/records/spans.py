"""Measures of spans: where something begins and ends, and which label it has.

A record holds a list of spans, each ``[start, end]``, ``[start, end, label]``, or an object with ``start``, ``end`` and perhaps
``label``; ``end`` is the first character (or token) behind the span.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import Any, ClassVar

from evaluator.measures.records.base import (
    LABEL,
    MISSING,
    Columns,
    Form,
    Measure,
    Overall,
    Parameter,
    one_of,
    refuse,
)
from evaluator.measures.records.labels import f_score

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


SPANS = Form("spans", f"a list of at most {MAX_SPANS:,} spans, such as [0, 5] or [0, 5, label]", _spans)


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


class _Spans(Overall):
    """Counts over all records; labels are averaged as ``average`` says."""

    output_form = truth_form = SPANS
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "match": one_of("exact", "overlap"),
        "average": one_of("micro", "macro"),
    }

    @abstractmethod
    def score(self, found: int, said: int, right: int, missing: int) -> float:
        """The value of counts."""

    def value(self, of: Columns) -> float:
        """See the class."""
        return self.resampled(of)(range(len(of)))

    def resampled(self, of: Columns) -> Callable[[Sequence[int]], float]:
        """See :meth:`Measure.resampled`: records are counted once."""
        counts = [self._counts(said, right) for said, right in zip(*self.pair(of), strict=True)]

        def value(rows: Sequence[int]) -> float:
            whole = _added(counts[row] for row in rows)
            labels = {*whole[1], *whole[2]}
            if not whole[2]:
                raise refuse(self, "there is no span in the truths", "take truths with a span")
            if self.given["average"] == "micro":
                return self.score(*(sum(one.values()) for one in whole))
            return fsum(self.score(*(one[name] for one in whole)) for name in labels) / len(labels)

        return value

    def parts(self, of: Columns) -> Mapping[str, float]:
        """The value of each label that the truths have."""
        whole = _added(self._counts(said, right) for said, right in zip(*self.pair(of), strict=True))
        labels = sorted({*whole[2]} - {""})
        return {name: self.score(*(one[name] for one in whole)) for name in labels}

    def _counts(self, said: Any, right: frozenset[Span]) -> tuple[Counter[str], ...]:
        """By label: what is found, said, right, and missing; spans, or characters where they may overlap."""
        size = length if self.given["match"] == "overlap" else _number
        if said is MISSING:
            return Counter(), Counter(), size(right), size(right)
        found = common(said, right) if self.given["match"] == "overlap" else _number(said & right)
        return found, size(said), size(right), Counter()


def _number(spans: Iterable[Span]) -> Counter[str]:
    return Counter(label for _, _, label in spans)


def _added(counts: Iterable[tuple[Counter[str], ...]]) -> tuple[Counter[str], ...]:
    whole: tuple[Counter[str], ...] = (Counter(), Counter(), Counter(), Counter())
    for one in counts:
        for to, part in zip(whole, one, strict=True):
            to.update(part)
    return whole


class SpanF1(_Spans):
    """F1 over the spans of all records: ``match=exact`` counts spans with the same start, end and label.

    ``match=overlap`` counts characters that have the same label in both, so that a span which is almost right is almost worth one
    that is. ``average=macro`` is the mean over labels. Spans of a missing record are not found. As
    ``sklearn.metrics.f1_score`` of indicators of spans (the rule of CoNLL: Tjong Kim Sang and Buchholz, 2000) or of characters.
    """

    name = "SpanF1"

    def score(self, found: int, said: int, right: int, missing: int) -> float:
        """See :func:`f_score`."""
        return f_score(found, said, right)


class SpanPrecision(_Spans):
    """Precision over the spans of all records, counted as in SpanF1; those of a missing record count as said, and wrong."""

    name = "SpanPrecision"

    def score(self, found: int, said: int, right: int, missing: int) -> float:
        """TP / (TP + FP + missing)."""
        return found / (said + missing) if said + missing else 0.0


class SpanRecall(_Spans):
    """Recall over the spans of all records, counted as in SpanF1; those of a missing record are not found."""

    name = "SpanRecall"

    def score(self, found: int, said: int, right: int, missing: int) -> float:
        """TP / (TP + FN)."""
        return found / right if right else 0.0


MEASURES: tuple[type[Measure], ...] = (SpanF1, SpanPrecision, SpanRecall)
