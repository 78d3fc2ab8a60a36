"""Measures of labels: how often the label is right, and how well each class is told from the others."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import fsum, sqrt
from typing import Any, ClassVar, NamedTuple

from evaluator.measures.records.base import (
    LABEL,
    MISSING,
    Columns,
    Measure,
    Overall,
    Parameter,
    PerRecord,
    classes,
    one_of,
    refuse,
)

AVERAGES = ("macro", "micro", "weighted")


class Accuracy(PerRecord):
    """The share of records with the right label; a missing one is wrong.

    As ``sklearn.metrics.accuracy_score`` (Pedregosa et al., "Scikit-learn: Machine Learning in Python", JMLR 12, 2011).
    """

    name = "Accuracy"
    output_form = truth_form = LABEL
    rules = ("mean",)

    def values(self, of: Columns) -> Sequence[float]:
        """1 for the right label, else 0."""
        return [1.0 if said == right else 0.0 for said, right in zip(*self.pair(of), strict=True)]


class BalancedAccuracy(Overall):
    """The mean of the recall of each class of the truths; a missing record is not found.

    As ``sklearn.metrics.balanced_accuracy_score`` (Brodersen et al., "The balanced accuracy and its posterior distribution",
    ICPR 2010).
    """

    name = "BalancedAccuracy"
    output_form = truth_form = LABEL

    def value(self, of: Columns) -> float:
        """See the class."""
        recalls = self.parts(of)
        return fsum(recalls.values()) / len(recalls)

    def parts(self, of: Columns) -> Mapping[str, float]:
        """The recall of each class."""
        said, right = self.pair(of)
        found, there = Counter(a for a, b in zip(said, right, strict=True) if a == b), Counter(right)
        return {name: found[name] / there[name] for name in sorted(there)}


class Counts(NamedTuple):
    """Of each class: how often it was ``found``, ``said``, is ``right``, and how much of that was ``missing`` in the output.

    Counters by class; or, of one class, numbers.
    """

    found: Any
    said: Any
    right: Any
    missing: Any

    def of(self, name: str) -> Counts:
        """The counts of one class."""
        return Counts(*(one[name] for one in self))


class ByClass(Overall):
    """What is counted by class and averaged.

    ``average``: ``macro`` (each class the same), ``weighted`` (by how often the truths have it), ``micro`` (over all), or a
    class, which stands alone then. Classes are those of the truths and of the output, or ``labels=[…]``.
    """

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

    @abstractmethod
    def ratio(self, counts: Counts) -> tuple[Any, Any]:
        """The value of counts as a fraction; its parts are numbers, or arrays with a place for each class."""

    def score(self, counts: Counts) -> float:
        """The value of counts; 0 where there is nothing to count."""
        above, below = self.ratio(counts)
        return above / below if below else 0.0

    def value(self, of: Columns) -> float:
        """See the class."""
        average = LABEL.read(self.given["average"])
        counts = self.counts(of)
        if average not in AVERAGES:
            return self.score(counts.of(average))
        names = self.classes(of)
        if average == "micro":
            return self.score(Counts(*(sum(one[name] for name in names) for one in counts)))
        scores = [self.score(counts.of(name)) for name in names]
        weights = [counts.right[name] if average == "weighted" else 1 for name in names]
        whole = sum(weights)
        return fsum(s * w for s, w in zip(scores, weights, strict=True)) / whole if whole else 0.0

    def parts(self, of: Columns) -> Mapping[str, float]:
        """The value of each class that the truths have; an output may say a million others."""
        counts = self.counts(of)
        names = [name for name in self.classes(of) if counts.right[name]]
        return {name: self.score(counts.of(name)) for name in names}

    def classes(self, of: Columns) -> list[str]:
        """Those that are averaged, sorted; ``labels`` in their order."""
        given = self.given["labels"]
        return (
            [str(LABEL.read(one)) for one in given] if given else classes(*of.pairs(self.field, self.truth))
        )

    def counts(self, of: Columns) -> Counts:
        """See :class:`Counts`."""
        found = Counts(Counter(), Counter(), Counter(), Counter())
        for (said, right), times in of.pairs(self.field, self.truth).items():
            found.said[said] += times
            found.right[right] += times
            if said is MISSING:
                found.missing[right] += times
            elif said == right:
                found.found[right] += times
        return found


class F1(ByClass):
    """F1 by class, averaged: ``macro``, ``weighted``, ``micro``, or a class; ``labels=[…]`` are those that are averaged.

    A missing record counts as not found for its class. As ``sklearn.metrics.f1_score`` with ``zero_division=0`` and the classes as
    ``labels`` (a missing record is a label outside of these); the macro mean is that of F1 by class (Opitz and Burst,
    "Macro F1 and Macro F1", 2019, recommend it).
    """

    name = "F1"

    def ratio(self, counts: Counts) -> tuple[Any, Any]:
        """2 TP / (TP + FP + TP + FN) (van Rijsbergen 1979)."""
        return 2 * counts.found, counts.said + counts.right


class Precision(ByClass):
    """The share of what the output says of a class that is right, averaged as F1 is.

    A missing record counts as a wrong answer for its class, so that leaving out what is uncertain gains nothing. Else as
    ``sklearn.metrics.precision_score`` with ``zero_division=0``.
    """

    name = "Precision"

    def ratio(self, counts: Counts) -> tuple[Any, Any]:
        """TP / (TP + FP + missing)."""
        return counts.found, counts.said + counts.missing


class Recall(ByClass):
    """The share of the records of a class that the output says is one, averaged as F1 is; a missing record is not found.

    As ``sklearn.metrics.recall_score`` with ``zero_division=0``.
    """

    name = "Recall"

    def ratio(self, counts: Counts) -> tuple[Any, Any]:
        """TP / (TP + FN)."""
        return counts.found, counts.right


class Coefficient(Overall):
    """A coefficient from -1 to 1 over the records that are there.

    A record cannot be wrong by itself in a coefficient: a missing one counts as the worst value, -1, in the mean of both.
    """

    bounds = (-1.0, 1.0)

    @abstractmethod
    def over(self, said: Sequence[Any], right: Sequence[Any]) -> float | None:
        """The coefficient of columns without MISSING; None where it is undefined."""

    def value(self, of: Columns) -> float:
        """See the class. Constant outputs have 0, constant truths no value."""
        said, right = self.pair(of)
        if len(set(right)) < 2:
            raise refuse(self, "all truths are the same", "take another measure, or truths that differ")
        there = [(a, b) for a, b in zip(said, right, strict=True) if a is not MISSING]
        share = len(there) / len(of)
        found = self.over(*zip(*there, strict=True)) if there else None
        return share * min(max(found or 0.0, -1.0), 1.0) - (1 - share)


class MCC(Coefficient):
    """Matthews' correlation coefficient, for two classes or more.

    As ``sklearn.metrics.matthews_corrcoef`` (Gorodkin, "Comparing two K-category assignments by a K-category correlation
    coefficient", Computational Biology and Chemistry 28, 2004). A missing record counts -1 in the mean of those that are there and
    those that are not: with 900 of 1,000 answered, and 0.8 over these, it is 0.9 times 0.8 and 0.1 times -1, 0.62.
    """

    name = "MCC"
    output_form = truth_form = LABEL

    def over(self, said: Sequence[Any], right: Sequence[Any]) -> float | None:
        """See the class."""
        whole, found = len(said), sum(a == b for a, b in zip(said, right, strict=True))
        a, b = Counter(said), Counter(right)
        both = sum(n * b[name] for name, n in a.items())
        spread = [whole**2 - sum(n * n for n in one.values()) for one in (a, b)]
        return (found * whole - both) / sqrt(spread[0] * spread[1]) if all(spread) else None


class Kappa(Coefficient):
    """Cohen's kappa: the agreement with the truths beyond chance.

    ``weights=linear`` or ``quadratic`` for classes in an order, which is ``labels=[…]``. As ``sklearn.metrics.cohen_kappa_score``
    (Cohen, Educational and Psychological Measurement 20, 1960; weighted: Psychological Bulletin 70, 1968). Missing records
    as for MCC.
    """

    name = "Kappa"
    output_form = truth_form = LABEL
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "weights": one_of("none", "linear", "quadratic"),
        "labels": ByClass.parameters["labels"],
    }

    def check(self) -> None:
        """Weights need an order."""
        if self.given["weights"] != "none" and not self.given["labels"]:
            raise refuse(self, "weights need the order of the classes", "write labels=[…], from low to high")

    def over(self, said: Sequence[Any], right: Sequence[Any]) -> float | None:
        """1 - weighted disagreement / disagreement by chance; None where chance alone always agrees."""
        order = {str(LABEL.read(v)): n for n, v in enumerate(self.given["labels"] or ())}
        if order and not {*said, *right} <= order.keys():
            raise refuse(self, "there are classes that labels does not name", "name all of them")
        power = {"none": 0, "linear": 1, "quadratic": 2}[self.given["weights"]]

        def apart(a: str, b: str) -> int:
            return int(a != b) if not power else int(abs(order[a] - order[b]) ** power)

        seen = sum(n * apart(a, b) for (a, b), n in Counter(zip(said, right, strict=True)).items())
        chance = sum(n * m * apart(a, b) for a, b, n, m in _products(Counter(said), Counter(right)))
        return 1 - len(said) * seen / chance if chance else None


def _products(said: Counter[str], right: Counter[str]) -> Iterator[tuple[str, str, int, int]]:
    return ((a, b, n, m) for a, n in said.items() for b, m in right.items())


MEASURES: tuple[type[Measure], ...] = (Accuracy, BalancedAccuracy, F1, Precision, Recall, MCC, Kappa)
