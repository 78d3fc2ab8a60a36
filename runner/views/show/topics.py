"""Scores of a run topic by topic, the worst first, on its ranking measure and the others; beside the median of the board."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from runner.model.comparing import by_number
from runner.model.run import rounded
from runner.model.task import Cell
from runner.records.store import results
from runner.views.audience import Audience, bests_open, medians_open
from runner.views.leaderboard import choosing
from runner.views.redact import RunView, topics_escaped

if TYPE_CHECKING:
    from runner.model.run import Run
    from runner.model.task import Dataset, Table, Task
    from runner.records.store.connect import Store

EACH = 3  # of the worst and of the best topics, where not all are shown
_GAP = 2  # spaces between the columns of a table on a terminal


@dataclass(frozen=True)
class Medians:
    """The median of each topic on one measure, and for the organiser the best value, over so many ``runs`` of the board."""

    measure: str
    runs: int
    topics: Mapping[str, float]
    best: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        of_topics = {"topics": dict(self.topics), "best": dict(self.best)}
        return {"measure": self.measure, "runs": self.runs, **of_topics}


@dataclass(frozen=True)
class Topics:
    """The scores of one run by topic: ``order`` are the topics, those with the worst value on ``measure`` first.

    ``names`` are measures by their ids, the ranking one first; ``scores`` is id → topic → value.
    """

    names: Mapping[str, str]
    scores: Mapping[str, Mapping[str, float]]
    order: tuple[str, ...]
    medians: Medians | None = None

    @property
    def measure(self) -> str:
        """The measure by which topics are sorted, as the task writes it."""
        return next(iter(self.names.values()))

    @property
    def values(self) -> list[float]:
        """The values on :attr:`measure`, the worst first."""
        first = self.scores[next(iter(self.names))]
        return [first[topic] for topic in self.order]

    @property
    def chosen(self) -> tuple[str | None, ...]:
        """The worst and the best topics, None where others are left out; all of them where they are few."""
        if len(self.order) <= 2 * EACH + 1:
            return self.order
        return *self.order[:EACH], None, *self.order[-EACH:]

    def beside(self, topic: str) -> tuple[float | None, float | None, float | None]:
        """The value on :attr:`measure`, the median and the best of a topic; None for what there is not, or not for the audience."""
        of_all = (self.medians.topics, self.medians.best) if self.medians else ({}, {})
        return self.scores[next(iter(self.names))].get(topic), of_all[0].get(topic), of_all[1].get(topic)

    @property
    def span(self) -> tuple[float, float]:
        """The least and the highest of what stands :meth:`beside` one another, over all topics."""
        found = [value for topic in self.order for value in self.beside(topic) if value is not None]
        return min(found), max(found)

    def heads(self) -> list[str]:
        """Heads of a table: topic, ranking measure, its median and best where there are, the other measures."""
        first, *others = self.names.values()
        between = (
            [f"median of {self.medians.runs:,}", *(["best"] if self.medians.best else [])]
            if self.medians
            else []
        )
        return ["topic", first, *between, *others]

    def rows(self, topics: Sequence[str | None]) -> Iterator[list[str]]:
        """A row for each of ``topics``, with dots for None."""
        for topic in topics:
            if topic is None:
                yield ["…"] * len(self.heads())
                continue
            first, *others = (_figure(self.scores[id].get(topic)) for id in self.names)
            beside = [self.medians.topics, self.medians.best] if self.medians else []
            between = [_figure(values.get(topic)) for values in beside if values]
            yield [topic, first, *between, *others]

    def alone(self) -> Topics:
        """The same with the ranking measure only."""
        return replace(self, names=dict([*self.names.items()][:1]))

    def fitting(self, width: int) -> Topics:
        """The same with as many of the measures as a table of this width has space for; one at least."""
        for count in range(len(self.names), 1, -1):
            shown = replace(self, names=dict([*self.names.items()][:count]))
            widths = [
                max(map(len, column)) for column in zip(shown.heads(), *shown.rows(self.order), strict=True)
            ]
            if sum(widths) + _GAP * (len(widths) - 1) <= width:
                return shown
        return self.alone()


def topics_of(view: RunView, task: Task | None, medians: Medians | None = None) -> Topics | None:
    """The scores by topic in a view; None when there are none, or none for its audience."""
    scores: Mapping[str, Mapping[str, float]] = view["topic_scores"]
    if not scores:
        return None
    known = [] if task is None else list(task.measures)
    table = ranking(task, Cell(view["dataset"], view["scenario"]))
    by = None if table is None else table.rank_by.first
    ids = sorted(scores, key=lambda id: (id != by, known.index(id) if id in known else len(known), id))
    names = measure_names(task, ids)
    higher = task is None or ids[0] not in task.measures or task.measures[ids[0]].direction == "higher"
    values = scores[ids[0]]
    order = sorted(values, key=lambda topic: (values[topic] if higher else -values[topic], by_number(topic)))
    fits = medians is not None and medians.measure == ids[0]
    return Topics(names, scores, tuple(order), medians if fits else None)


def measure_names(task: Task | None, ids: Sequence[str]) -> dict[str, str]:
    """What measures are called, by their ids: as the task writes them, with the id where it has several so."""
    written = {} if task is None else {id: task.measures[id].measure for id in ids if id in task.measures}
    often = Counter(written.values())
    return {
        id: id if id not in written else written[id] if often[written[id]] == 1 else f"{written[id]} ({id})"
        for id in ids
    }


def ranking(task: Task | None, cell: Cell) -> Table | None:
    """The table by which runs on a dataset and scenario are ranked: the first with that cell, else the task's first."""
    tables = [] if task is None else [*task.tables.values()]
    return next((table for table in tables if cell in table.cells), tables[0] if tables else None)


class Counting:
    """The runs that count on a dataset and scenario of a task, and their scores by topic on its ranking measure: read once,
    for the medians of as many audiences as are asked for."""

    def __init__(self, store: Store, task: Task, cell: Cell, *, organiser: bool) -> None:
        self._store, self._task, self._cell, self._organiser = store, task, cell, organiser

    @cached_property
    def _table(self) -> Table | None:
        return ranking(self._task, self._cell)

    @cached_property
    def _runs(self) -> list[Run]:
        assert self._table is not None
        table = replace(self._table, cells=(self._cell,))
        groups, _ = choosing.groups_of(self._store, self._task, table, (), None, organiser=self._organiser)
        return [run for group in groups for run in group.runs]

    @cached_property
    def _scores(self) -> Mapping[str, Mapping[str, float]]:
        assert self._table is not None
        return results.topic_scores_of(self._store, self._runs, self._table.rank_by.first)

    @cached_property
    def _sorted(self) -> Mapping[str, Sequence[float]]:
        """The values on each topic, the least first."""
        found: dict[str, list[float]] = {}
        for scores in self._scores.values():
            for topic, value in scores.items():
                found.setdefault(topic, []).append(value)
        return {topic: sorted(values) for topic, values in found.items()}

    def medians(self, audience: Audience, dataset: Dataset, measures: Collection[str]) -> Medians | None:
        """The median on each topic for an audience that sees scores by topic on ``measures``: for the organiser beside the best, for a
        team over the runs of the other teams; None where it may not see it."""
        if self._table is None or (by := self._table.rank_by.first) not in measures:
            return None
        own = {run.id for run in self._runs if run.submission.team == audience.team}
        if not medians_open(audience, dataset, [r.submission.team for r in self._runs if r.id not in own]):
            return None
        runs = sum(bool(scores) for id, scores in self._scores.items() if id not in own)
        values = {topic: found for topic in self._sorted if (found := self._without(topic, own))}
        places = None if audience.kind == "organiser" else self._task.measures[by].precision
        better = max if self._task.measures[by].direction == "higher" else min
        shown = topics_escaped(
            {
                name: {topic: rounded(of(found), places) for topic, found in values.items()}
                for name, of in (("median", _middle), ("best", better))
                if name == "median" or bests_open(audience)
            }
        )
        return Medians(by, runs, shown["median"], shown.get("best", {})) if values else None

    def _without(self, topic: str, runs: Collection[str]) -> Sequence[float]:
        """The values on a topic, the least first, without those of some runs."""
        found = list(self._sorted[topic])
        for run in runs:
            if (value := self._scores[run].get(topic)) is not None:
                del found[bisect_left(found, value)]
        return found


def _middle(values: Sequence[float]) -> float:
    """The median of values in their order."""
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def medians_for(store: Store, task: Task | None, view: RunView, dataset: Dataset) -> Medians | None:
    """The median of the board on each topic, for the audience of ``view``: see :meth:`Counting.medians`."""
    if task is None:
        return None
    cell, organiser = Cell(view["dataset"], view["scenario"]), view.audience.kind == "organiser"
    return Counting(store, task, cell, organiser=organiser).medians(
        view.audience, dataset, view["topic_scores"]
    )


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
