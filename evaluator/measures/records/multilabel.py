"""Measures of sets of labels: a record has none, one or several."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar

from evaluator.measures.records.base import (
    LABEL,
    MISSING,
    Columns,
    Form,
    Measure,
    Parameter,
    PerRecord,
    classes,
    refuse,
)
from evaluator.measures.records.labels import F1, Counts, Precision, Recall

MAX_LABELS = 1_000  # of one record


def _labels(value: Any) -> Any:
    if not isinstance(value, list) or len(value) > MAX_LABELS:
        return MISSING
    found = frozenset(map(LABEL.read, value))
    return MISSING if MISSING in found else found


LABELS = Form("labels", f"a list of at most {MAX_LABELS:,} labels", _labels)


class _ManyLabels(F1):
    """Counts of records with several labels, for :class:`evaluator.measures.records.labels.ByClass`."""

    output_form = truth_form = LABELS

    def classes(self, of: Columns) -> list[str]:
        """Those of truths and output, or ``labels``."""
        given = self.given["labels"]
        found = (chain.from_iterable(v for v in side if v is not MISSING) for side in self.pair(of))
        return [str(LABEL.read(label)) for label in given] if given else classes(*found)

    def counts(self, of: Columns) -> Counts:
        """See :class:`Counts`."""
        pairs = list(zip(*self.pair(of), strict=True))
        there = [(a, b) for a, b in pairs if a is not MISSING]
        return Counts(
            Counter(label for a, b in there for label in a & b),
            Counter(label for a, _ in there for label in a),
            Counter(label for _, b in pairs for label in b),
            Counter(label for a, b in pairs if a is MISSING for label in b),
        )


class LabelsF1(_ManyLabels):
    """F1 over sets of labels: ``average`` is ``macro``, ``weighted``, ``micro`` or a label, as for F1 of single labels.

    Labels of a missing record are not found. As ``sklearn.metrics.f1_score`` of indicator matrices, ``zero_division=0``.
    """

    name = "LabelsF1"


class LabelsPrecision(_ManyLabels):
    """Precision over sets of labels, averaged as LabelsF1 is; each label of a missing record counts as a wrong one.

    Else as ``sklearn.metrics.precision_score`` of indicator matrices, ``zero_division=0``.
    """

    name = "LabelsPrecision"
    ratio = Precision.ratio


class LabelsRecall(_ManyLabels):
    """Recall over sets of labels, averaged as LabelsF1 is; labels of a missing record are not found.

    As ``sklearn.metrics.recall_score`` of indicator matrices, ``zero_division=0``.
    """

    name = "LabelsRecall"
    ratio = Recall.ratio


class _Sets(PerRecord):
    """A value for each pair of sets."""

    output_form = truth_form = LABELS
    rules = ("mean",)
    worst = 0.0

    @abstractmethod
    def one(self, said: frozenset[str], right: frozenset[str]) -> float:
        """The value of a record."""

    def values(self, of: Columns) -> Sequence[float]:
        """The value of each record, the worst of missing ones."""
        pairs = zip(*self.pair(of), strict=True)
        return [self.worst if said is MISSING else self.one(said, right) for said, right in pairs]


class SubsetAccuracy(_Sets):
    """The share of records whose set of labels is exactly right; a missing one is wrong.

    As ``sklearn.metrics.accuracy_score`` of indicator matrices.
    """

    name = "SubsetAccuracy"

    def one(self, said: frozenset[str], right: frozenset[str]) -> float:
        """1 or 0."""
        return float(said == right)


class Jaccard(_Sets):
    """The mean of |A and B| / |A or B| of each record; of two empty sets 1, of a missing record 0.

    As ``sklearn.metrics.jaccard_score`` with ``average='samples', zero_division=1`` (Jaccard 1901).
    """

    name = "Jaccard"

    def one(self, said: frozenset[str], right: frozenset[str]) -> float:
        """See the class."""
        return len(said & right) / len(said | right) if said or right else 1.0


class HammingLoss(_Sets):
    """The mean share of ``labels=[…]`` that a record has wrongly, or wrongly has not; of a missing record 1.

    As ``sklearn.metrics.hamming_loss`` (Tsoumakas and Katakis, "Multi-label classification: an overview", 2007). ``labels``
    are all that there are; an output with another one has the worst value for that record.
    """

    name = "HammingLoss"
    direction = "lower"
    worst = 1.0
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "labels": replace(F1.parameters["labels"], required=True),
    }

    def values(self, of: Columns) -> Sequence[float]:
        """See the class."""
        if not self._known().issuperset(chain.from_iterable(self.pair(of)[1])):
            raise refuse(self, "the truths have labels that labels does not name", "name all of them")
        return super().values(of)

    def one(self, said: frozenset[str], right: frozenset[str]) -> float:
        """The symmetric difference, as a share."""
        known = self._known()
        return len(said ^ right) / len(known) if said <= known else 1.0

    def _known(self) -> frozenset[str]:
        return frozenset(map(LABEL.read, self.given["labels"]))


MEASURES: tuple[type[Measure], ...] = (
    LabelsF1,
    LabelsPrecision,
    LabelsRecall,
    SubsetAccuracy,
    Jaccard,
    HammingLoss,
)
