"""Measures of scores and probabilities of classes: whether they order the records, and whether they can be believed.

With ``positive=CLASS`` the field holds a number, of that class. Without, it holds an object with a number for each class,
such as ``{"cat": 0.7, "dog": 0.3}``; a class that is not in it has 0.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import fsum, inf, log
from typing import Any, ClassVar

from evaluator.measures.records.base import (
    LABEL,
    MISSING,
    NUMBER,
    Column,
    Columns,
    Form,
    Measure,
    Overall,
    Parameter,
    PerRecord,
    refuse,
)

MAX_CLASSES = 1_000  # of one record
_EPSILON = 2.0**-52  # of double precision; probabilities are kept as far from 0 and 1, as scikit-learn does


def _scores(value: Any) -> Any:
    if not isinstance(value, dict) or not 0 < len(value) <= MAX_CLASSES:
        return MISSING
    return MISSING if MISSING in map(NUMBER.read, value.values()) else value


def _probability(value: Any) -> Any:
    return value if NUMBER.read(value) is not MISSING and 0 <= value <= 1 else MISSING


def _distribution(value: Any) -> Any:
    found = _scores(value)
    fine = found is not MISSING and all(0 <= p <= 1 for p in found.values())
    return found if fine and abs(fsum(found.values()) - 1) <= 1e-4 else MISSING


SCORES = Form("scores", f"an object with a number for each class, at most {MAX_CLASSES:,}", _scores)
PROBABILITY = Form("probability", "a number from 0 to 1", _probability)
DISTRIBUTION = Form(
    "distribution", "an object with a probability for each class; they have the sum 1", _distribution
)
_POSITIVE = Parameter(
    "the class of which the field is the probability", lambda v: LABEL.read(v) is not MISSING
)
_SCORED = Parameter("the class that higher numbers mean", lambda v: LABEL.read(v) is not MISSING)


class _Scored(Measure):
    """What both forms of the field have in common."""

    truth_form = LABEL
    forms: ClassVar[tuple[Form, Form]] = (PROBABILITY, DISTRIBUTION)
    parameters: ClassVar[Mapping[str, Parameter]] = {"positive": _POSITIVE}

    @property
    def positive(self) -> str | None:
        """The class of which the field is a number."""
        given = self.given["positive"]
        return None if given is None else str(LABEL.read(given))

    @property
    def same(self) -> bool:
        """Certainty of what is right is the best there is."""
        return True

    def perfect(self, truth: Any) -> Any:
        """Certainty of what is right."""
        return (
            {str(LABEL.read(truth)): 1} if self.positive is None else int(LABEL.read(truth) == self.positive)
        )

    def columns(self) -> Sequence[Column]:
        """The field, in the form that ``positive`` means, and what else there is."""
        form = self.forms[self.positive is None]
        return (Column("output", self.field, form), *super().columns()[1:])


Score = tuple[float, int]  # how high a record stands; the second part tells missing ones apart


def roc_area(scores: Sequence[Score], right: Sequence[bool]) -> float:
    """The share of pairs of a right and a wrong one that are in order, ties half (Hanley and McNeil, Radiology 143, 1982)."""
    below, won = 0, 0.0
    for _, group in groupby(sorted(zip(scores, right, strict=True)), key=lambda pair: pair[0]):
        found = [one for _, one in group]
        hits = sum(found)
        won += hits * (below + (len(found) - hits) / 2)
        below += len(found) - hits
    return won / (below * (len(scores) - below))


def average_precision(scores: Sequence[Score], right: Sequence[bool]) -> float:
    """The sum over falling thresholds of precision times the gain in recall; equal scores are one threshold."""
    seen = found = 0
    total = 0.0
    order = sorted(zip(scores, right, strict=True), key=lambda pair: pair[0], reverse=True)
    for _, group in groupby(order, key=lambda pair: pair[0]):
        hits = [one for _, one in group]
        seen, found = seen + len(hits), found + sum(hits)
        total += sum(hits) * found / seen
    return total / found


class _Ordering(_Scored, Overall):
    forms = (NUMBER, SCORES)
    parameters: ClassVar[Mapping[str, Parameter]] = {"positive": _SCORED}

    @abstractmethod
    def of_class(self, scores: Sequence[Score], right: Sequence[bool]) -> float:
        """The value for one class against all others."""

    def value(self, of: Columns) -> float:
        """The value of ``positive``, else the mean over the classes of the truths."""
        found = self._by_class(of)
        return fsum(found.values()) / len(found)

    def parts(self, of: Columns) -> Mapping[str, float]:
        """The value of each class against all others, where it is not one class only."""
        return self._by_class(of) if self.positive is None else {}

    def _by_class(self, of: Columns) -> dict[str, float]:
        said, right = self.pair(of)
        there = set(right)
        if len(there) < 2 or (self.positive is not None and self.positive not in there):
            raise refuse(self, "the truths need the class and another one", "take more truths")
        out = {}
        for name in sorted(there) if self.positive is None else [self.positive]:
            hits = [one == name for one in right]
            rows = enumerate(zip(said, hits, strict=True), 1)
            out[name] = self.of_class([self._score(one, name, hit, row) for row, (one, hit) in rows], hits)
        return out

    def _score(self, said: Any, name: str, hit: bool, row: int) -> Score:
        """The score; a missing record stands at the wrong end, alone."""
        if said is MISSING:
            return (-inf if hit else inf, row)
        return float(said if self.positive is not None else said.get(name, 0)), 0


class AUC(_Ordering):
    """The area under the ROC curve: how often a record of the class has a higher score than one of another.

    A missing record stands at the wrong end of the order. As ``sklearn.metrics.roc_auc_score``; of several classes the mean of
    each against all others (``multi_class='ovr'``).
    """

    name = "AUC"

    def of_class(self, scores: Sequence[Score], right: Sequence[bool]) -> float:
        """See :func:`roc_area`."""
        return roc_area(scores, right)


class AveragePrecision(_Ordering):
    """Average precision: the area under the steps of precision over recall.

    A missing record stands at the wrong end of the order. As ``sklearn.metrics.average_precision_score``; of several classes the
    mean of each against all others.
    """

    name = "AveragePrecision"

    def of_class(self, scores: Sequence[Score], right: Sequence[bool]) -> float:
        """See :func:`average_precision`."""
        return average_precision(scores, right)


class _Loss(_Scored, PerRecord):
    direction = "lower"
    rules = ("mean",)

    @abstractmethod
    def loss(self, said: Mapping[str, float], right: str) -> float:
        """The loss of a record with these probabilities."""

    def values(self, of: Columns) -> Sequence[float]:
        """The loss of each record, the highest of missing ones."""
        pairs = zip(*self.pair(of), strict=True)
        return [self.bounds[1] if a is MISSING else self.loss(self._all(a), b) for a, b in pairs]

    def _all(self, said: Any) -> Mapping[str, float]:
        """The probabilities of all classes; "" is every class but the positive one."""
        return said if self.positive is None else {self.positive: said, "": 1 - said}

    def _named(self, right: str) -> str:
        return right if self.positive in (None, right) else ""


class LogLoss(_Loss):
    """The mean of -ln p, p being the probability of the right class, kept 2^-52 away from 0 and 1.

    A missing record has the highest loss, 36.04. As ``sklearn.metrics.log_loss`` (Good, "Rational decisions", 1952).
    """

    name = "LogLoss"
    bounds = (0.0, -log(_EPSILON))

    def loss(self, said: Mapping[str, float], right: str) -> float:
        """See the class."""
        return -log(min(max(said.get(self._named(right), 0), _EPSILON), 1 - _EPSILON))


class Brier(_Loss):
    """The mean squared distance of the probabilities from 1 for the right class and 0 for the others.

    With ``positive`` of that class alone (0 to 1), else the sum over all classes (0 to 2); a missing record has the highest. As
    ``sklearn.metrics.brier_score_loss``, without ``positive`` as with ``scale_by_half=False`` (Brier, Monthly Weather Review 78,
    1950).
    """

    name = "Brier"

    def check(self) -> None:
        """The highest loss depends on the form."""
        self.bounds = (0.0, 2.0 if self.positive is None else 1.0)

    def loss(self, said: Mapping[str, float], right: str) -> float:
        """See the class."""
        if self.positive is not None:
            return float((said[self.positive] - (right == self.positive)) ** 2)
        return fsum((said.get(name, 0) - (name == right)) ** 2 for name in {*said, right})


class CalibrationError(_Scored, Overall):
    """Expected calibration error: how far, in ``bins`` of equal width, probabilities are from the share that came true.

    The mean over bins, by their records. With ``positive``, of that class; else of the highest probability and whether its
    class is right (of equal ones the first by name). A missing record has an error of 1. The bins are those of
    ``sklearn.calibration.calibration_curve`` (Naeini et al., AAAI 2015; Guo et al., ICML 2017).
    """

    name = "CalibrationError"
    direction = "lower"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "positive": _POSITIVE,
        "bins": Parameter("a whole number from 1 to 1000", lambda v: type(v) is int and 0 < v <= 1000, 10),
    }

    def value(self, of: Columns) -> float:
        """See the class."""
        bins: int = self.given["bins"]
        edges = [n * (1 / bins) for n in range(1, bins)]
        off = [0.0] * bins
        missing = 0
        for sure, hit in self._sure(zip(*self.pair(of), strict=True)):
            missing += sure is None
            if sure is not None:
                off[bisect_left(edges, sure)] += sure - hit
        return (fsum(map(abs, off)) + missing) / len(of)

    def _sure(self, pairs: Iterable[tuple[Any, str]]) -> Iterable[tuple[float | None, bool]]:
        for said, right in pairs:
            if said is MISSING:
                yield None, False
            elif self.positive is not None:
                yield said, right == self.positive
            else:
                name = min(said, key=lambda one: (-said[one], one))
                yield said[name], name == right


MEASURES: tuple[type[Measure], ...] = (AUC, AveragePrecision, LogLoss, Brier, CalibrationError)
