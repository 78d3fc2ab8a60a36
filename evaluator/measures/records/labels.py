"""Measures of labels: how often the label is right, and how well each class is told from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum
from typing import ClassVar

from evaluator.measures.records.base import (
    LABEL,
    MISSING,
    Columns,
    Measure,
    Overall,
    Parameter,
    PerRecord,
    classes,
)

AVERAGES = ("macro", "micro", "weighted")


class Accuracy(PerRecord):
    """The share of records with the right label; a missing one is wrong.

    As ``sklearn.metrics.accuracy_score`` (Pedregosa et al., "Scikit-learn: Machine Learning in Python", JMLR 12, 2011).
    """

    name = "Accuracy"
    output_form = truth_form = LABEL

    def values(self, of: Columns) -> Sequence[float]:
        """1 for the right label, else 0."""
        return [1.0 if said == right else 0.0 for said, right in zip(*self.pair(of), strict=True)]


def f_score(found: int, said: int, right: int) -> float:
    """F1 of a class: 2 TP / (TP + FP + TP + FN), 0 where there is nothing to count (van Rijsbergen 1979)."""
    return 2 * found / (said + right) if said + right else 0.0


class F1(Overall):
    """F1 by class, averaged: ``macro`` (each class the same), ``weighted`` (by its records), ``micro`` (over all records).

    ``average=yes`` (any other word) is F1 of that class alone. Classes are those of the truths and of the output, or
    ``labels=[…]``. A missing record counts as not found for its class. As ``sklearn.metrics.f1_score`` with
    ``zero_division=0`` and the classes as ``labels`` (a missing record is a label outside of these); the macro mean is that of F1 by class
    (Opitz and Burst, "Macro F1 and Macro F1", 2019, recommend it).
    """

    name = "F1"
    output_form = truth_form = LABEL
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "average": Parameter(
            "macro, micro, weighted, or a class", lambda v: isinstance(v, str | bool | int), "macro"
        ),
        "labels": Parameter(
            "a list of classes",
            lambda v: isinstance(v, list) and v != [] and MISSING not in map(LABEL.read, v),
        ),
    }

    def value(self, of: Columns) -> float:
        """See the class."""
        average = LABEL.read(self.given["average"])
        found, said, right = self._counts(of)
        if average not in AVERAGES:
            return f_score(found[average], said[average], right[average])
        names = self._classes(of)
        if average == "micro":
            return f_score(*(sum(counts[name] for name in names) for counts in (found, said, right)))
        scores = [f_score(found[name], said[name], right[name]) for name in names]
        weights = [right[name] if average == "weighted" else 1 for name in names]
        whole = sum(weights)
        return fsum(s * w for s, w in zip(scores, weights, strict=True)) / whole if whole else 0.0

    def parts(self, of: Columns) -> Mapping[str, float]:
        """F1 of each class."""
        found, said, right = self._counts(of)
        return {name: f_score(found[name], said[name], right[name]) for name in self._classes(of)}

    def _classes(self, of: Columns) -> list[str]:
        given = self.given["labels"]
        return [str(LABEL.read(label)) for label in given] if given else classes(*self.pair(of))

    def _counts(self, of: Columns) -> tuple[Counter[object], Counter[object], Counter[object]]:
        """By class: right ones, those of the output, those of the truths."""
        said, right = self.pair(of)
        return Counter(a for a, b in zip(said, right, strict=True) if a == b), Counter(said), Counter(right)


MEASURES: tuple[type[Measure], ...] = (Accuracy, F1)
