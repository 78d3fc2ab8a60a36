"""Two runs topic by topic on one measure, as pure figures: means, wins, losses, ties, effect."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TIE = 1e-9  # values that differ by less are equal
_APART = 1e300  # that two values differ by at most
_DOWN, _UP = 2.0**-600, 2.0**600  # what numbers are scaled by whose squares or sums would have no float


def mean(values: Sequence[float]) -> float:
    """The mean, which does not depend on the order of ``values``, and is finite where these are: also where their sum is not."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        found = math.fsum(scaled(values)) / len(values) * _UP
        return min(max(found, min(values)), max(values))  # rounding alone leads beyond them


def deviation(values: Sequence[float], middle: float) -> float:
    """The standard deviation (n - 1) of two values or more around their mean; infinity where it is beyond all floats."""
    try:
        found = _deviation(values, middle)
    except OverflowError:
        found = math.inf
    if math.isfinite(found):
        return found
    return _deviation(scaled(values), middle * _DOWN) * _UP


def scaled(values: Sequence[float]) -> list[float]:
    """Values divided by a power of two, so that they can be squared and added; what is lost of the smallest is nothing beside the others."""
    return [value * _DOWN for value in values]


def _deviation(values: Sequence[float], middle: float) -> float:
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def difference(first: float, second: float) -> float:
    """First minus second, within 1e300: more, of which there were no sums, only older archives can have."""
    return max(-_APART, min(first - second, _APART))


def by_number(name: str) -> tuple[list[tuple[int, str]], str]:
    """What names of topics and teams are sorted by: numbers in them as numbers, so that 9 stands before 10 and team-2 before team-10."""
    parts = re.split(r"([0-9]+)", name)
    digits = [part.lstrip("0") for part in parts]
    key = [(len(digits[n]), digits[n]) if n % 2 else (-1, part) for n, part in enumerate(parts)]
    return key, name


@dataclass(frozen=True)
class TopicPair:
    """The values of both runs on one topic."""

    topic: str
    first: float
    second: float

    @property
    def difference(self) -> float:
        """First minus second."""
        return difference(self.first, self.second)


@dataclass(frozen=True)
class Compared:
    """Both runs on one measure, over the topics that both have (``pairs``, the largest differences first).

    ``first`` and ``second`` are means over these topics; where there are none, or where a figure is no mean of its values by topic
    (RMSE, a median), the figures of the runs (``means`` is false). ``wins`` are topics on which the first run is better. ``p`` is two-sided, not corrected, by ``test`` (None: not
    tested). ``effect``: the mean difference as a multiple of the differences'
    standard deviation (d_z; J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, 2.3.5); None where
    that is 0. ``interval`` and ``effect_interval``: 95 % intervals of the difference and of the effect, by percentile bootstrap over
    the topics. ``only_first`` and ``only_second`` are topics that only one has.
    """

    id: str
    measure: str
    direction: str
    first: float
    second: float
    pairs: tuple[TopicPair, ...] = ()
    wins: int = 0
    losses: int = 0
    ties: int = 0
    p: float | None = None
    effect: float | None = None
    interval: tuple[float, float] | None = None
    effect_interval: tuple[float, float] | None = None
    test: str = ""
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    means: bool = True

    @property
    def difference(self) -> float:
        """First minus second."""
        return difference(self.first, self.second)


def is_mean(figure: float, values: Mapping[str, float]) -> bool:
    """Whether a figure is the mean of the values by topic, as far as rounding lets it be seen."""
    return math.isclose(figure, mean([*values.values()]), rel_tol=1e-3, abs_tol=1e-4)


def on_topics(
    id: str,
    measure: str,
    direction: str,
    ours: Mapping[str, float],
    theirs: Mapping[str, float],
    values: tuple[float, float],
    *,
    means: bool = True,
) -> Compared:
    """Both runs on a measure, not tested.

    Args:
        id: Of the measure.
        measure: As the task writes it.
        direction: Which end is good, ``higher`` or ``lower``.
        ours: Values of the first run by topic.
        theirs: Those of the second.
        values: The figures of both runs, for measures without topics, or that are no means of these.
        means: False where the figures are known to be no means of their values by topic.
    """
    pairs = [TopicPair(topic, ours[topic], theirs[topic]) for topic in ours if topic in theirs]
    if not pairs:
        return Compared(id, measure, direction, *values, means=False)
    pairs.sort(key=lambda pair: (-abs(pair.difference), by_number(pair.topic)))
    better = [pair.difference if direction == "higher" else -pair.difference for pair in pairs]
    wins, losses = sum(d > TIE for d in better), sum(d < -TIE for d in better)
    means = means and is_mean(values[0], ours) and is_mean(values[1], theirs)
    if means:
        values = mean([pair.first for pair in pairs]), mean([pair.second for pair in pairs])
    return Compared(
        id,
        measure,
        direction,
        *values,
        tuple(pairs),
        wins,
        losses,
        len(pairs) - wins - losses,
        effect=effect([pair.difference for pair in pairs]) if means else None,
        only_first=tuple(sorted(set(ours) - set(theirs), key=by_number)),
        only_second=tuple(sorted(set(theirs) - set(ours), key=by_number)),
        means=means,
    )


def sorted_pairs(one: Compared) -> list[TopicPair]:
    """The topics on which the first run is better, those by most first; then the others."""
    sign = -1 if one.direction == "higher" else 1
    return sorted(one.pairs, key=lambda pair: (sign * pair.difference, by_number(pair.topic)))


def effect(differences: Sequence[float]) -> float | None:
    """The mean of paired differences as a multiple of their standard deviation (n - 1); None where that is 0."""
    if len(differences) < 2:
        return None
    middle = mean(differences)
    spread = deviation(differences, middle)
    if math.isinf(spread):
        differences = scaled(differences)
        middle = mean(differences)
        spread = deviation(differences, middle)
    return middle / spread if spread > TIE else None


def sign_test(wins: int, losses: int) -> float:
    """The exact two-sided p-value of as many wins as losses, ties left out (W. J. Dixon and A. M. Mood, The Statistical Sign Test, Journal
    of the American Statistical Association 41, 1946). 1 where there are neither."""
    count, fewer = wins + losses, min(wins, losses)
    return min(1.0, 2 * sum(math.comb(count, k) for k in range(fewer + 1)) / (1 << count))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (S. Holm, Scandinavian Journal of Statistics 6, 1979): adjusted p-values in
    the order given."""
    count = len(p_values)
    adjusted = [0.0] * count
    highest = 0.0
    for step, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (count - step) * p_values[index]))
        adjusted[index] = highest
    return adjusted
