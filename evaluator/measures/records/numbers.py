"""Measures of numbers: how far they are from the right ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, ClassVar

from evaluator.measures import correlation
from evaluator.measures.records.base import (
    MISSING,
    NUMBER,
    Columns,
    Measure,
    Parameter,
    PerRecord,
    bounded,
    refuse,
)
from evaluator.measures.records.labels import Coefficient


def is_range(value: Any) -> bool:
    """Whether a parameter is a list of two numbers, the lower one first."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(NUMBER.read(v) is not MISSING for v in value)
        and value[0] < value[1]
    )


RANGE = Parameter("the lowest and highest value that the field can have, such as [0, 5]", is_range)


def errors(measure: Measure, of: Columns) -> list[float]:
    """The absolute difference of each record.

    Errors have no highest value: a missing record has the largest error that a number between the lowest and the highest can have
    (``range=[0, 5]``; without it those of the truths), and never a smaller one than any record of the same output.
    """
    said, right = measure.pair(of)
    low, high = measure.given.get("range") or (min(right), max(right))
    if not low <= min(right) <= max(right) <= high:
        raise refuse(measure, "there are truths outside of its range", "correct range or the truths")
    if MISSING not in said:
        return [bounded(abs(a - b)) for a, b in zip(said, right, strict=True)]
    found = [None if a is MISSING else abs(a - b) for a, b in zip(said, right, strict=True)]
    worst = max((one for one in found if one is not None), default=0.0)
    return [
        bounded(max(b - low, high - b, worst) if a is None else a) for a, b in zip(found, right, strict=True)
    ]


class MAE(PerRecord):
    """Mean absolute error (Willmott and Matsuura, Climate Research 30, 2005), as ``sklearn.metrics.mean_absolute_error``.

    With ``rule=median`` as ``median_absolute_error``. What a missing record counts: the largest error that a number within
    ``range`` can have, and never less than the output's own largest. No error counts more than 1e149.
    """

    name = "MAE"
    output_form = truth_form = NUMBER
    parameters: ClassVar[Mapping[str, Parameter]] = {"range": RANGE}
    direction = "lower"
    bounds = (0.0, inf)

    def values(self, of: Columns) -> Sequence[float]:
        """The absolute error of each record."""
        return errors(self, of)


class RMSE(MAE):
    """The root of the mean squared error, as ``sklearn.metrics.root_mean_squared_error``; missing records as in MAE.

    Values of single records are squared errors, so that tests of them are about what the root is taken of. None counts more than 1e149.
    """

    name = "RMSE"
    rules = ("root",)

    def values(self, of: Columns) -> Sequence[float]:
        """The squared error of each record."""
        return [bounded(one * one) for one in errors(self, of)]


class _Correlation(Coefficient):
    output_form = truth_form = NUMBER

    @property
    def same(self) -> bool:
        """Numbers that were moved to other records may have any correlation."""
        return False


class Pearson(_Correlation):
    """Pearson's correlation with the right numbers, as ``scipy.stats.pearsonr`` (Pearson 1895).

    Missing records count -1 in the mean of what is there and what is not (as for MCC). Constant outputs have 0.
    """

    name = "Pearson"

    def over(self, said: Sequence[Any], right: Sequence[Any]) -> float | None:
        """See the class."""
        return correlation.pearson(right, said) if len(said) > 1 else None


class Spearman(_Correlation):
    """Spearman's rank correlation, as ``scipy.stats.spearmanr`` (Spearman 1904); missing records and constants as for Pearson."""

    name = "Spearman"

    def over(self, said: Sequence[Any], right: Sequence[Any]) -> float | None:
        """See the class."""
        return correlation.spearman(right, said) if len(said) > 1 else None


class Kendall(_Correlation):
    """Kendall's tau-b, as ``scipy.stats.kendalltau`` (Kendall 1945); missing records and constants as for Pearson."""

    name = "Kendall"

    def over(self, said: Sequence[Any], right: Sequence[Any]) -> float | None:
        """See the class."""
        return correlation.kendall(right, said) if len(said) > 1 else None


class Number(PerRecord):
    """A number that the output has of each record, such as seconds or cost, compared with nothing.

    ``range=[lowest, highest]`` is what it can be, and ``better=lower`` or ``higher``: a missing record, and a number outside of
    the range, count as the worse end. With ``rule=mean`` or ``median``, and ``macro=FIELD``. The plain mean and median
    (``statistics.fmean``, ``statistics.median``).
    """

    name = "Number"
    output_form = NUMBER
    compares = False
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "range": replace(RANGE, required=True),
        "better": Parameter("lower or higher", ("lower", "higher").__contains__, required=True),
    }

    def check(self) -> None:
        """Ends and direction are the task's."""
        low, high = self.given["range"]
        self.bounds = (bounded(low), bounded(high))
        self.direction = self.given["better"]

    @property
    def same(self) -> bool:
        """The truths say nothing of it."""
        return False

    def values(self, of: Columns) -> Sequence[float]:
        """The number of each record."""
        low, high = self.given["range"]
        worst = self.bounds[1 if self.direction == "lower" else 0]
        return [
            bounded(one) if one is not MISSING and low <= one <= high else worst
            for one in of.output[self.field]
        ]


MEASURES: tuple[type[Measure], ...] = (MAE, RMSE, Pearson, Spearman, Kendall, Number)
