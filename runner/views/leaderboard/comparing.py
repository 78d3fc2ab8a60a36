"""Rows of a leaderboard against its baseline, or any row: paired tests over topics, corrected for their number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.model.comparing import bootstrap, holm, is_mean
from runner.model.errors import no_such
from runner.model.run import rounded
from runner.model.task import Table, Task
from runner.records.split import WHOLE, Split
from runner.records.store import results
from runner.views.leaderboard import ranks, significance
from runner.views.leaderboard.choosing import Group
from runner.views.leaderboard.rows import Comparison, Row, Tested, software_of

if TYPE_CHECKING:
    from runner.model.run import MeasureValue, Run
    from runner.records.store.connect import Store

FEW_TOPICS = 25
MOST_EACH = 200  # rows that are tested against each of them: what that takes grows with their square
MOST_RESAMPLED = 10_000  # topics; the evaluator keeps no resamples of more
TEST_NAME = "Fisher's randomisation test"
CORRECTION = "Holm"


_Ranked = list[tuple[Row, Group]]
_Found = tuple[dict[int, Comparison], list[str], str | None]  # as in Tested


def compare(tests: Tests, against: str | None = None) -> tuple[str | None, Tested]:
    """Test every row against a row on the ranking measure.

    Args:
        tests: The rows.
        against: The row that the others are tested against, as :func:`row_of` finds it; None: the table's baseline.

    Returns:
        What that row is called where it was chosen, and what was found.

    Raises:
        RunnerError: E102 where no row is ``against``.
    """
    rows, baseline = tests.rows, tests.table.baseline
    if against is not None:
        base = row_of(rows, against)
        return software_of(rows[base]), tests.against(base)
    ranked = next((n for n, row in enumerate(rows) if f"{row.team}/{row.software}" == baseline), None)
    if ranked is not None:
        return None, tests.against(ranked)
    notes = [] if baseline is None else [f"No significance test: the baseline {baseline} is not ranked."]
    return None, Tested({}, tuple(notes), None)


def row_of(rows: Sequence[Row], said: str) -> int:
    """The number of the row that somebody means: by its software (or team, where a row is one), its submission, or one of its runs
    or the beginning of their ids. Raises E102 where it is none of them, or more than one."""
    exact = [n for n, row in enumerate(rows) if said in (software_of(row), row.submission, *row.runs)]
    begun = [n for n, row in enumerate(rows) if said and any(run.startswith(said) for run in row.runs)]
    for found in (exact, begun):
        if len(found) == 1:
            return found[0]
    fix = "name it as the leaderboard does, or by a run"
    raise no_such("ranked row", said, [software_of(row) for row in rows], fix=fix)


class Tests:
    """The rows of a table, and what they are tested by: what was read for one test serves all."""

    def __init__(self, store: Store, task: Task, table: Table, ranked: _Ranked, split: Split = WHOLE) -> None:
        self.task, self.table, self.rows = task, table, [row for row, _ in ranked]
        self._store, self._groups, self._split = store, [group for _, group in ranked], split
        self._p: dict[tuple[int, int], float] = {}  # of pairs of rows, where all were tested at once
        self._drawn: dict[tuple[int, tuple[int, ...]], tuple[float, Any]] = {}

    @cached_property
    def _sampled(self) -> list[list[_Sampled | None]]:
        by, whole = self.table.rank_by.first, self._whole
        split = [run for run in self._runs if run.dataset not in self._split.partial]
        drawn = results.resamples_of(self._store, split, by)
        known = {id: whole[id].get(by) for id in drawn}
        return [
            [
                None
                if run is None or (of := known.get(run.id)) is None
                else _Sampled(of.value, of.topics, *drawn[run.id])
                for run in group.chosen
            ]
            for group in self._groups
        ]

    @cached_property
    def _runs(self) -> list[Run]:
        return [run for group in self._groups for run in group.runs]

    @cached_property
    def _whole(self) -> Mapping[str, Mapping[str, MeasureValue]]:
        """Aggregates over all topics, by run and measure."""
        return results.measures_of(self._store, self.task.id, self._runs)

    @cached_property
    def _by_run(self) -> Mapping[str, Mapping[str, float]]:
        """Values of all topics on the ranking measure, by run."""
        return results.topic_scores_of(self._store, self._runs, self.table.rank_by.first)

    @cached_property
    def _scores(self) -> list[dict[tuple[str, str], float]]:
        """Values by topic; none where what is ranked by is no mean of them, such as RMSE or a median: that is resampled."""
        if any(map(any, self._sampled)) or not self._means:
            return [{} for _ in self.rows]
        return [_topic_scores(group, self._by_run, self._split) for group in self._groups]

    @cached_property
    def _tables(self) -> list[tuple[list[int], Any]]:
        """The rows that have values of the same topics, and an array of these: a line for each."""
        import numpy as np

        alike: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for n, scores in enumerate(self._scores):
            if scores:
                alike.setdefault(tuple(sorted(scores)), []).append(n)
        return [
            (rows, np.array([[self._scores[n][key] for key in keys] for n in rows]))
            for keys, rows in alike.items()
        ]

    @cached_property
    def _means(self) -> bool:
        """Whether the figures of rows are the means of their values by topic, where there are such."""
        by = self.table.rank_by.first
        return all(
            is_mean(whole.value, values)
            for id, values in self._by_run.items()
            if values and (whole := self._whole[id].get(by)) is not None
        )

    def against(self, base: int) -> Tested:
        """All other rows against the row ``base``."""
        found, notes, test = self._by_topic(base) or self._by_resample(base)
        by, rows = self.table.rank_by.first, self.rows
        if (places := self.task.measures[by].precision) is not None:
            found = {n: _rounded(one, rows[n], rows[base], by, places) for n, one in found.items()}
        return Tested(found, tuple(notes), test)

    def each(self) -> list[Tested]:
        """:meth:`against` for every row; what two rows differ by is tested once. Nothing where there are more than :data:`MOST_EACH`."""
        if len(self.rows) > MOST_EACH:
            return []
        for alike, values in self._tables:
            found = significance.between(values)
            self._p |= {(alike[a], alike[b]): p for (a, b), p in found.items()}
        return [self.against(n) for n in range(len(self.rows))]

    def _by_topic(self, base: int) -> _Found | None:
        """Rows against the row ``base`` by values of single topics; None where that has none."""
        rows, against = self.rows, self._scores[base]
        if not against:
            return None
        name, pairs = self._name(base), self._apart(base)
        notes = [
            f"No significance test of {rows[n].team}/{rows[n].software}: it shares no topic with {name}."
            for n, pair in pairs.items()
            if not pair
        ]
        pairs = {n: pair for n, pair in pairs.items() if pair}
        if any(len(pair) != len(against) for pair in pairs.values()):
            notes.append(f"Some rows were compared with {name} on the shared topics only.")
        differences = {n: math.fsum(pair) / len(pair) for n, pair in pairs.items()}
        known = {n: p for n in pairs if (p := self._p.get((min(n, base), max(n, base)))) is not None}
        missing = [n for n in pairs if n not in known]
        known |= zip(missing, significance.remembered([pairs[n] for n in missing]), strict=True)
        topics = {n: len(pair) for n, pair in pairs.items()}
        made = _corrected(self.task, self.table, differences, topics, [known[n] for n in pairs])
        return made, notes + _few(len(against)), TEST_NAME

    def _apart(self, base: int) -> dict[int, list[float]]:
        """By how much each other row differs from the row ``base``, topic by topic; empty where they share none."""
        against, found = self._scores[base], dict[int, list[float]]()
        for alike, values in self._tables:
            if base in alike:
                found |= zip(alike, (values - values[alike.index(base)]).tolist(), strict=True)
        for n, scores in enumerate(self._scores):
            if n not in found:
                found[n] = [scores[key] - against[key] for key in sorted(scores.keys() & against.keys())]
        return {n: found[n] for n in range(len(self.rows)) if n != base}

    def _by_resample(self, base: int) -> _Found:
        """Rows against the row ``base`` by values in the same resamples of the topics."""
        old = "evaluated before these were kept, or on truths with other ids"
        remedy = f"runner reevaluate --task {self.task.id} makes them"
        if not any(self._sampled[base]):
            return {}, [self._untested(base, old, remedy)], None
        found: dict[int, _Paired] = {}
        notes = []
        for n, row in enumerate(self.rows):
            pairs = zip(self._sampled[n], self._sampled[base], strict=True)
            where = tuple(
                i for i, (one, other) in enumerate(pairs) if one and other and one.drawn == other.drawn
            )
            if n != base and not where:
                of = f"{row.team}/{row.software}: no values in the resamples of {self._name(base)}"
                notes.append(f"No significance test of {of} ({old}): {remedy}.")
            elif n != base:
                found[n] = self._paired(n, base, where)
        p_values = [bootstrap(one.differences, one.observed) for one in found.values()]
        observed = {n: one.observed for n, one in found.items()}
        topics = {n: one.topics for n, one in found.items()}
        times = max((len(one.differences) for one in found.values()), default=0)
        notes += _few(max(topics.values(), default=FEW_TOPICS))
        made = _corrected(self.task, self.table, observed, topics, p_values)
        return made, notes, f"paired bootstrap test over {times:,} resamples of the topics" if made else None

    def _untested(self, base: int, old: str, remedy: str) -> str:
        """Why nothing is tested against the row ``base``, which has no resamples."""
        by = self.table.rank_by.first
        if not self._means:
            return (
                f"No significance test: {by} is no mean of its values by topic, and has no resamples ({old}, or over more than "
                f"{MOST_RESAMPLED:,} topics): where there are fewer, {remedy}."
            )
        why = f"No significance test: {by} has no values by topic"
        return (
            f"{why}."
            if self.rows[base].values[by].low is None
            else f"{why}, nor in resamples ({old}): {remedy}."
        )

    def _name(self, base: int) -> str:
        """The row ``base`` in notes."""
        name = software_of(self.rows[base])
        return "the baseline" if name == self.table.baseline else name

    def _paired(self, n: int, base: int, where: tuple[int, ...]) -> _Paired:
        """The difference of two rows in cells where both were drawn alike, as the table aggregates them."""
        import numpy as np

        cells = [self.table.cells[i] for i in where]
        found = [(cell, one) for cell, i in zip(cells, where, strict=True) if (one := self._sampled[n][i])]
        (mine, drawn), (theirs, other) = self._values(n, where), self._values(base, where)
        apart = drawn - other
        topics = {cell.dataset: one.topics for cell, one in found}
        return _Paired(mine - theirs, apart[np.isfinite(apart)].tolist(), sum(topics.values()))

    def _values(self, n: int, where: tuple[int, ...]) -> tuple[float, Any]:
        """The value of a row in these cells, as the table aggregates them, and an array of those in each resample."""
        import numpy as np

        if (n, where) not in self._drawn:
            cells = [self.table.cells[i] for i in where]
            found = [one for i in where if (one := self._sampled[n][i])]

            def whole(values: Sequence[float]) -> float:
                return ranks.aggregated(self.table.aggregate, cells, values)

            # A value that is none (NaN) makes none.
            draws = zip(*(one.values for one in found), strict=False)
            self._drawn[n, where] = whole([one.value for one in found]), np.array([whole(d) for d in draws])
        return self._drawn[n, where]


def _few(topics: int) -> list[str]:
    if topics >= FEW_TOPICS:
        return []
    return [f"Only {topics} topics: differences this few topics can show are large ones."]


P_DECIMALS = 3  # of p-values beside rounded scores


def _rounded(one: Comparison, row: Row, base: Row, measure: str, decimals: int) -> Comparison:
    """A comparison that says no more of the scores than the rounded means of ``row`` and ``base`` do."""
    shown = [one.values[measure].mean for one in (row, base) if measure in one.values]
    difference = rounded(shown[0] - shown[1] if len(shown) == 2 else one.difference, decimals)
    p, corrected = (round(p, P_DECIMALS) for p in (one.p, one.p_corrected))
    return replace(one, difference=difference, p=p, p_corrected=corrected)


def _corrected(
    task: Task,
    table: Table,
    differences: Mapping[int, float],
    topics: Mapping[int, int],
    p_values: Sequence[float],
) -> dict[int, Comparison]:
    """The comparisons of rows by their numbers; ``p_values`` in the order of ``differences``."""
    higher = task.measures[table.rank_by.first].direction == "higher"
    corrected = holm(p_values)
    return {
        n: Comparison(difference, topics[n], p, pc, _mark(difference, pc, higher))
        for (n, difference), p, pc in zip(differences.items(), p_values, corrected, strict=True)
    }


def _mark(difference: float, corrected: float, higher: bool) -> str:
    if corrected > significance.ALPHA or difference == 0:
        return ""
    return "†" if (difference > 0) == higher else "‡"


class _Sampled(NamedTuple):
    """The value of a run over ``topics`` topics, and in resamples of these."""

    value: float
    topics: int
    drawn: str
    values: Sequence[float]


class _Paired(NamedTuple):
    """The difference of two rows, over ``topics`` topics, and that in each resample in which both have a value."""

    observed: float
    differences: Sequence[float]
    topics: int


def _topic_scores(
    group: Group, by_run: Mapping[str, Mapping[str, float]], split: Split
) -> dict[tuple[str, str], float]:
    """Dataset and topic → mean score over the table's scenarios.

    A topic that is answered in several scenarios is one topic: counted twice it would make differences look
    more certain than they are.
    """
    scores: dict[tuple[str, str], list[float]] = {}
    for run in group.runs:
        for topic, value in split.topics(run.dataset, by_run[run.id]).items():
            scores.setdefault((run.dataset, topic), []).append(value)
    return {key: math.fsum(values) / len(values) for key, values in scores.items()}
