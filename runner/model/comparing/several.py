"""Three to eight runs on one measure, as pure figures: each run's, those of all pairs, topics by how far the runs are apart on them.

Runs are named by their place: 0, 1, ….
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from runner.model.comparing.overlap import DEPTHS, Rankings, jaccard
from runner.model.comparing.resampled import by_resamples
from runner.model.comparing.topics import TIE, by_number, effect, holm, is_mean, sign_test

MOST_RUNS = 8
LETTERS = "ABCDEFGH"  # what a run is called in a table
SIGN_TEST = "sign test"
Interval = tuple[float, float]


@dataclass(frozen=True)
class Scored:
    """A run on a measure: its figure, the 95 % interval that its evaluation has, its values by topic."""

    value: float
    interval: Interval | None
    by_topic: Mapping[str, float]


@dataclass(frozen=True)
class TopicRow:
    """The values of all runs on one topic."""

    topic: str
    values: tuple[float, ...]

    @property
    def spread(self) -> float:
        """The largest value less the smallest."""
        return max(self.values) - min(self.values)


@dataclass(frozen=True)
class Pair:
    """Two of the runs: ``difference`` is the first's figure less the second's; ``wins`` are topics on which the first is better. ``p`` is two-sided by
    ``test``, ``p_corrected`` with Holm's correction over all pairs of the measure; both None without a test. ``effect`` as in
    :class:`~runner.model.comparing.topics.Compared`. ``interval``: a 95 % interval of the difference, where it was made."""

    first: int
    second: int
    difference: float
    wins: int = 0
    losses: int = 0
    ties: int = 0
    effect: float | None = None
    interval: Interval | None = None
    p: float | None = None
    p_corrected: float | None = None
    test: str = ""


@dataclass(frozen=True)
class Several:
    """All runs on one measure. ``topics`` are those that all have, the largest spread first; ``left_out`` how many others there are. ``values`` are means over them,
    or, where there are none or where a figure is no mean of its values by topic (``means`` is false), the figures of the runs.
    ``intervals`` are those of the runs' evaluations, None where these were over other topics."""

    id: str
    measure: str
    direction: str
    values: tuple[float, ...]
    intervals: tuple[Interval | None, ...]
    topics: tuple[TopicRow, ...] = ()
    pairs: tuple[Pair, ...] = ()
    left_out: int = 0
    means: bool = True

    @property
    def tests(self) -> list[str]:
        """The tests that pairs were tested by, each once."""
        return list(dict.fromkeys(pair.test for pair in self.pairs if pair.p is not None))

    @property
    def best(self) -> float:
        """The best figure of a run."""
        return max(self.values) if self.direction == "higher" else min(self.values)

    def differences(self, pair: Pair) -> list[float]:
        """First minus second on each topic."""
        return [row.values[pair.first] - row.values[pair.second] for row in self.topics]

    def counts(self) -> list[list[tuple[int, int, int] | None]]:
        """Wins, losses and ties of each run against each other one; None against itself, and without topics."""
        size = range(len(self.values))
        found: list[list[tuple[int, int, int] | None]] = [[None for _ in size] for _ in size]
        for pair in self.pairs if self.topics else ():
            found[pair.first][pair.second] = pair.wins, pair.losses, pair.ties
            found[pair.second][pair.first] = pair.losses, pair.wins, pair.ties
        return found


def on_measure(
    id: str, measure: str, direction: str, runs: Sequence[Scored], *, means: bool = True
) -> Several:
    """All runs on a measure, not tested.

    Args:
        id: Of the measure.
        measure: As the task writes it.
        direction: Which end is good, ``higher`` or ``lower``.
        runs: Each run on it.
        means: False where the figures are known to be no means of their values by topic.
    """
    known = set[str]().union(*(run.by_topic for run in runs))
    shared = known.intersection(*(run.by_topic for run in runs))
    rows = [TopicRow(topic, tuple(run.by_topic[topic] for run in runs)) for topic in shared]
    rows.sort(key=lambda row: (-row.spread, by_number(row.topic)))
    means = means and bool(rows) and all(is_mean(run.value, run.by_topic) for run in runs)
    values = tuple(run.value for run in runs)
    if means:
        values = tuple(math.fsum(row.values[n] for row in rows) / len(rows) for n in range(len(runs)))
    kept = tuple(run.interval if not means or len(run.by_topic) == len(rows) else None for run in runs)
    made = Several(id, measure, direction, values, kept, tuple(rows), (), len(known) - len(rows), means)
    pairs = tuple(_pair(made, a, b) for a, b in combinations(range(len(runs)), 2))
    return replace(made, pairs=pairs)


def _pair(of: Several, first: int, second: int) -> Pair:
    made = Pair(first, second, of.values[first] - of.values[second])
    apart = of.differences(made)
    better = apart if of.direction == "higher" else [-one for one in apart]
    wins, losses = sum(one > TIE for one in better), sum(one < -TIE for one in better)
    return replace(
        made,
        wins=wins,
        losses=losses,
        ties=len(apart) - wins - losses,
        effect=effect(apart) if of.means else None,
    )


def with_tests(of: Several, test: Callable[[Several], Iterable[Pair]]) -> Several:
    """The same with tests and Holm's correction over the pairs that have one; ``test`` gives all pairs with ``p``, in their order."""
    pairs = list(test(of))
    given = [pair.p for pair in pairs if pair.p is not None]
    corrected = iter(holm(given))
    return replace(
        of,
        pairs=tuple(pair if pair.p is None else replace(pair, p_corrected=next(corrected)) for pair in pairs),
    )


def by_sign(of: Several, drawn: Sequence[Mapping[str, Any] | None] = ()) -> Iterator[Pair]:
    """The pairs, tested by what needs no drawing: by values in the same resamples where both runs have such (``drawn``, in the order of the
    runs), else by signs where there are topics."""
    for pair in of.pairs:
        sides = (drawn[pair.first], drawn[pair.second]) if drawn else (None, None)
        if found := by_resamples(*sides, pair.difference):
            yield replace(pair, p=found[0], interval=found[1], test=found[2])
        elif of.topics:
            yield replace(pair, p=sign_test(pair.wins, pair.losses), test=SIGN_TEST)
        else:
            yield pair


@dataclass(frozen=True)
class Shared:
    """The documents that two runs both retrieved: over how many ``topics``, and the mean Jaccard coefficient within each of
    :data:`~runner.model.comparing.overlap.DEPTHS`."""

    first: int
    second: int
    topics: int
    jaccard: tuple[float, ...]


def shared_documents(runs: Sequence[Rankings]) -> list[Shared]:
    """How much the rankings of each two runs overlap, on the topics that both have documents for; pairs without such are left out."""
    within = [[{topic: one[:k] for topic, one in run.items() if one} for k in DEPTHS] for run in runs]
    found = []
    for a, b in combinations(range(len(runs)), 2):
        topics = within[a][0].keys() & within[b][0].keys()
        if topics:
            means = (
                math.fsum(jaccard(ours[topic], theirs[topic]) for topic in topics) / len(topics)
                for ours, theirs in zip(within[a], within[b], strict=True)
            )
            found.append(Shared(a, b, len(topics), tuple(means)))
    return found


def recorded(
    facts: Mapping[str, str], runs: Sequence[str], measures: Sequence[Several], shared: Sequence[Shared]
) -> dict[str, Any]:
    """A comparison for programs, as ``comparison.schema.json`` has it: ``facts`` are its task and dataset."""
    return {
        **facts,
        "runs": list(runs),
        "correction": "Holm",
        "measures": [
            {
                "id": one.id,
                "measure": one.measure,
                "direction": one.direction,
                "means": one.means,
                "values": list(one.values),
                "intervals": [None if span is None else list(span) for span in one.intervals],
                "pairs": [_recorded_pair(pair, runs) for pair in one.pairs],
                "topics": [
                    {"topic": row.topic, "spread": row.spread, "values": list(row.values)}
                    for row in one.topics
                ],
                "left_out": one.left_out,
            }
            for one in measures
        ],
        "overlap": [
            {
                "first": runs[one.first],
                "second": runs[one.second],
                "topics": one.topics,
                "jaccard": {str(depth): value for depth, value in zip(DEPTHS, one.jaccard, strict=True)},
            }
            for one in shared
        ],
    }


def _recorded_pair(pair: Pair, runs: Sequence[str]) -> dict[str, Any]:
    return {
        "first": runs[pair.first],
        "second": runs[pair.second],
        "difference": pair.difference,
        "interval": None if pair.interval is None else list(pair.interval),
        "wins": pair.wins,
        "losses": pair.losses,
        "ties": pair.ties,
        "effect": pair.effect,
        "p": pair.p,
        "p_corrected": pair.p_corrected,
        "test": pair.test or None,
    }
