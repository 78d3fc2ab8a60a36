"""Two runs topic by topic on one measure, as pure figures for commands and for the front: means, wins, losses, ties, effect, tests."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import schemas

# measure -> ``resamples`` of result.json: what was ``drawn``, and ``values``
Resampled = Mapping[str, Mapping[str, Any]]
SIGN_TEST = "sign test"
TIE = 1e-9  # values that differ by less are equal


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
        return self.first - self.second


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
        return self.first - self.second


def is_mean(figure: float, values: Mapping[str, float]) -> bool:
    """Whether a figure is the mean of the values by topic, as far as rounding lets it be seen."""
    return math.isclose(figure, fmean(values.values()), rel_tol=1e-3, abs_tol=1e-4)


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
        values = fmean([pair.first for pair in pairs]), fmean([pair.second for pair in pairs])
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
    middle = fmean(differences)
    spread = math.sqrt(math.fsum((one - middle) ** 2 for one in differences) / (len(differences) - 1))
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


def why_not(views: Sequence[Mapping[str, Any]], name: str) -> str:
    """Why runs cannot be compared on a measure, by its id; empty where they can. ``views`` are the runs as somebody may see them."""
    for view in views:
        if name in view["pending"]:
            return f"no value of {view['run']} yet ({view['pending'][name]})"
        if name not in view["scores"]:
            return f"{view['run']} was evaluated without it"
    computed = dict.fromkeys(view["scores"][name]["measure"] for view in views)
    if None not in computed and len(computed) > 1:
        return f"computed as {' and as '.join(schemas.show(one, 80) for one in computed)}"
    return ""


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


def recorded(
    facts: Mapping[str, str], first: str, second: str, measures: Sequence[Compared]
) -> dict[str, Any]:
    """Return a comparison for programs, as ``comparison.schema.json`` has it; ``facts`` are its task and dataset."""
    return {
        **facts,
        "first": first,
        "second": second,
        "measures": [
            {
                **{key: value for key, value in asdict(one).items() if key != "pairs"},
                "difference": one.difference,
                "topics": [{**asdict(pair), "difference": pair.difference} for pair in one.pairs],
            }
            for one in measures
        ],
    }
