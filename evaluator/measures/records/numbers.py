"""Measures of numbers: how far they are from the right ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, ClassVar

from evaluator.measures.records.base import MISSING, NUMBER, Columns, Measure, Parameter, PerRecord, refuse


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
    found = [None if a is MISSING else abs(a - b) for a, b in zip(said, right, strict=True)]
    worst = max((one for one in found if one is not None), default=0.0)
    return [
        float(max(b - low, high - b, worst) if a is None else a) for a, b in zip(found, right, strict=True)
    ]


class MAE(PerRecord):
    """Mean absolute error (Willmott and Matsuura, Climate Research 30, 2005), as ``sklearn.metrics.mean_absolute_error``.

    What a missing record counts: :func:`errors`.
    """

    name = "MAE"
    output_form = truth_form = NUMBER
    parameters: ClassVar[Mapping[str, Parameter]] = {"range": RANGE}
    direction = "lower"
    bounds = (0.0, inf)

    def values(self, of: Columns) -> Sequence[float]:
        """The absolute error of each record."""
        return errors(self, of)


MEASURES: tuple[type[Measure], ...] = (MAE,)
