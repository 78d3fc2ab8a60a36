"""Two figures that are no means over topics, such as an F1 or a correlation, compared by their values in the same resamples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Resampled = Mapping[
    str, Mapping[str, Any]
]  # measure -> ``resamples`` of result.json: what was ``drawn``, and ``values``


def bootstrap(differences: Sequence[float], observed: float) -> float:
    """The two-sided p-value of a paired difference being zero, from the same difference in each of many resamples.

    Were it zero, the differences would lie around zero as they lie around their mean: p = (1 + resamples whose difference is at
    least as far from the mean of all as ``observed`` is from zero) / (1 + resamples), so it is never 0 (B. Efron and
    R. J. Tibshirani, An Introduction to the Bootstrap, 1993, ch. 16; S. Riezler and J. T. Maxwell, On Some Pitfalls in Automatic
    Evaluation and Significance Testing for MT, 2005, section 4). Without resamples: 1.

    Args:
        differences: Of each resample.
        observed: The difference itself.
    """
    if not differences:
        return 1.0
    middle = math.fsum(differences) / len(differences)
    least = abs(observed) * (1 - 1e-8)  # values in resamples are kept with ten digits
    return (1 + sum(abs(d - middle) >= least for d in differences)) / (1 + len(differences))


def by_resamples(
    first: Mapping[str, Any] | None, second: Mapping[str, Any] | None, difference: float
) -> tuple[float, tuple[float, float], str] | None:
    """p, 95 % interval and test of the ``difference`` of two figures, from their values in the same resamples; None where they were not drawn alike."""
    if not first or not second or first["drawn"] != second["drawn"]:
        return None
    both = zip(first["values"], second["values"], strict=True)
    drawn = sorted(a - b for a, b in both if a is not None and b is not None)
    if not drawn:
        return None
    test = f"paired bootstrap test over {len(drawn):,} resamples"
    return bootstrap(drawn, difference), (_quantile(drawn, 0.025), _quantile(drawn, 0.975)), test


def _quantile(ordered: Sequence[float], share: float) -> float:
    """A quantile of values in their order, linear between two of them."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
