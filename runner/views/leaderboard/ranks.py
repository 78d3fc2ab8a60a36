"""Ranks: by the value of one measure, or by the mean or median of the ranks on several measures and in several cells.

Wherever ranks stand on a board, equal figures share one and the ranks behind are left out (1, 2, 2, 4). The ranks that
``mean_rank`` and ``median_rank`` combine are those of Friedman's test (J. Demšar, Statistical Comparisons of Classifiers
over Multiple Data Sets, JMLR 7, 2006): equal values share the mean of their ranks (1, 2.5, 2.5, 4), so that a tie favours
nobody, and who has no value stands behind all who have one, several of these sharing the mean of the last ranks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

from runner.model.names import BASELINES, MAX_ADDRESS, MAX_DISPLAY
from runner.model.run import MeasureValue, rounded
from runner.model.task import Cell, Ranking, Table, Task
from runner.views.audience import escape
from runner.views.leaderboard.choosing import Group, age
from runner.views.leaderboard.rows import CellScore, Combined, Component, Row, Value


def ranked(rows: Sequence[Row], rank_by: Ranking, direction: str) -> list[Row]:
    """Rows with their ranks among each other, the best first; equal ones in the order of their names.

    Args:
        rows: Each with a value on the first measure of ``rank_by``, or where ranks are combined with these.
        rank_by: What decides.
        direction: Which end of the measure is good, ``higher`` or ``lower``; ranks are always better when lower.
    """
    rows = _combined(rows, rank_by) if rank_by.rule != "value" else rows
    sign = -1.0 if direction == "higher" else 1.0

    def figure(row: Row) -> float:
        return row.combined.value if row.combined else sign * row.values[rank_by.first].mean

    found: list[Row] = []
    for place, row in enumerate(sorted(rows, key=lambda r: (figure(r), r.team, r.software)), start=1):
        same = found and figure(found[-1]) == figure(row)
        found.append(replace(row, rank=found[-1].rank if same else place))
    return found


def _combined(rows: Sequence[Row], rank_by: Ranking) -> list[Row]:
    """Rows with ranks in each component that are those among ``rows`` only, and with what these give together.

    Ranks are made of ranks: they have the order of the values, and their ties.
    """
    parts = [row.combined.ranks for row in rows if row.combined]
    columns = [
        mean_ranks([None if one.missing else one.rank for one in part]) for part in zip(*parts, strict=True)
    ]
    made = []
    for n, row in enumerate(rows):
        ranks = [column[n] for column in columns]
        whole = median(ranks) if rank_by.rule == "median_rank" else fmean(ranks)
        components = (replace(one, rank=rank) for one, rank in zip(parts[n], ranks, strict=True))
        made.append(replace(row, combined=Combined(whole, tuple(components))))
    return made


def with_components(
    rows: Sequence[Row],
    values: Sequence[Sequence[Mapping[str, float]]],
    cells: Sequence[Cell],
    rank_by: Ranking,
    directions: Mapping[str, str],
) -> list[Row]:
    """Rows with their ranks on each measure of ``rank_by`` in each cell; nothing is added where a value decides.

    ``values`` are those of each row by measure, cell by cell, empty where nothing of it counts.
    """
    if rank_by.rule == "value":
        return list(rows)
    found: list[list[Component]] = [[] for _ in rows]
    for n, cell in enumerate(cells):
        for measure in rank_by.measures:
            sign = -1.0 if directions[measure] == "higher" else 1.0
            there = [row[n].get(measure) for row in values]
            places = mean_ranks([None if value is None else sign * value for value in there])
            for components, value, rank in zip(found, there, places, strict=True):
                components.append(Component(cell.dataset, cell.scenario, measure, rank, value is None))
    return [replace(row, combined=Combined(0.0, tuple(own))) for row, own in zip(rows, found, strict=True)]


def mean_ranks(values: Sequence[float | None]) -> list[float]:
    """The rank of each value, the lowest first: equal ones share the mean of their ranks, and so do those that are None,
    behind all others."""
    keys = [(value is None, 0.0 if value is None else value) for value in values]
    places: dict[tuple[bool, float], list[int]] = {}
    for place, key in enumerate(sorted(keys), start=1):
        places.setdefault(key, []).append(place)
    return [(places[key][0] + places[key][-1]) / 2 for key in keys]


def aggregated(rule: str, cells: Sequence[Cell], values: Sequence[float]) -> float:
    """The mean of ``values``, one a cell, by one of :data:`runner.tasks.tables.AGGREGATES`."""
    if rule == "mean":
        return fmean(values)
    parts: dict[str, list[float]] = {}
    for cell, value in zip(cells, values, strict=True):
        part = cell.dataset if rule == "scenarios-then-datasets" else cell.scenario
        parts.setdefault(part, []).append(value)
    return fmean([fmean(part) for part in parts.values()])


MIXED = "mixed"
MAX_DESCRIPTION = 4000  # characters, as submission.yaml allows
Values = Sequence[Mapping[str, MeasureValue]]  # by measure, cell by cell; empty where nothing counts


def measures_shown(table: Table) -> tuple[str, ...]:
    """The ranking measures first, then the others in the task's order."""
    return tuple(dict.fromkeys((*table.rank_by.measures, *table.measures)))


def rank_rows(table: Table, task: Task, scored: Sequence[tuple[Group, Values]]) -> list[tuple[Row, Group]]:
    """The rows of what ranks, the best first."""
    topics = [
        max((c[n][table.rank_by.first].topics for _, c in scored if c[n]), default=0)
        for n in range(len(table.cells))
    ]
    directions = {name: task.measures[name].direction for name in table.rank_by.measures}
    rows = [row_of(table, task, group, cells, topics) for group, cells in scored]
    values = [[{name: one.value for name, one in cell.items()} for cell in cells] for _, cells in scored]
    rows = with_components(rows, values, table.cells, table.rank_by, directions)
    of = {row.submission: group for row, (group, _) in zip(rows, scored, strict=True)}
    return [(row, of[row.submission]) for row in ranked(rows, table.rank_by, directions[table.rank_by.first])]


def row_of(table: Table, task: Task, group: Group, cells: Values, topics: Sequence[int]) -> Row:
    """A row without a rank; ``topics`` are those of each cell, which it did not answer where nothing of it counts."""
    runs = group.runs
    by_age = sorted({run.submission.id: run.submission for run in runs}.values(), key=age)
    s = by_age[-1]
    values = {}
    for measure in measures_shown(table):
        # A measure that was added to the task later is missing until the run is evaluated again.
        if all(measure in cell for cell in cells):
            only = cells[0][measure] if len(cells) == 1 else None
            mean = aggregated(table.aggregate, table.cells, [cell[measure].value for cell in cells])
            mean = rounded(mean, task.measures[measure].precision)
            values[measure] = Value(mean, only.low if only else None, only.high if only else None)
    # Copying a file that was handed in is no run time.
    executed = [r for r in runs if r.submission.how == "executed"]
    walls = [r.wall_seconds for r in executed if r.wall_seconds is not None]
    peaks = [r.memory_peak for r in runs if r.memory_peak is not None]
    by = table.rank_by.first
    answered = [cell[by].covered for cell in cells if by in cell]
    return Row(
        rank=0,
        team=s.team,
        software=", ".join(dict.fromkeys(x.software for x in sorted(by_age, key=lambda x: x.software))),
        tag=escape(s.tag, 40) if len({x.tag for x in by_age}) == 1 else "",
        method=_common([x.method for x in by_age]),
        baseline=s.team == BASELINES or f"{s.team}/{s.software}" == table.baseline,
        values=values,
        topics=sum(
            cell[by].topics if by in cell else other for cell, other in zip(cells, topics, strict=True)
        ),
        covered=None if None in answered else sum(filter(None, answered)),
        wall_seconds=math.fsum(walls) if len(walls) == len(runs) else None,
        memory_peak=max(peaks) if len(peaks) == len(runs) else None,
        memory_source="sampled" if any(r.memory_source == "sampled" for r in runs) else runs[0].memory_source,
        submission=s.id,
        runs=tuple(r.id for r in runs),
        registered=s.registered,
        description=escape(" ".join(s.description.split()), MAX_DESCRIPTION),
        paper=escape(s.paper, MAX_ADDRESS),
        affiliation=escape(s.affiliation, MAX_DISPLAY),
        how=_common([x.how for x in by_age]),
        stale=tuple(dict.fromkeys(line for run in runs for line in run.stale)),
        cells=tuple(
            CellScore(r.dataset, r.scenario, r.submission.id, r.id, cell[by].value if by in cell else None)
            for r, cell in zip(group.chosen, cells, strict=True)
            if r is not None
        ),
    )


def _common(words: Sequence[str]) -> str:
    return words[0] if len(set(words)) == 1 else MIXED
