"""Rows of a leaderboard from the runs that count in them: means over the cells, and ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from runner.model.names import BASELINES, MAX_ADDRESS, MAX_DISPLAY
from runner.model.run import MeasureValue, rounded
from runner.model.task import Table, Task
from runner.views.audience import escape
from runner.views.leaderboard import choosing, ranks
from runner.views.leaderboard.choosing import Group
from runner.views.leaderboard.rows import CellScore, Row, Value

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
    rows = ranks.with_components(rows, values, table.cells, table.rank_by, directions)
    of = {row.submission: group for row, (group, _) in zip(rows, scored, strict=True)}
    return [
        (row, of[row.submission])
        for row in ranks.ranked(rows, table.rank_by, directions[table.rank_by.first])
    ]


def row_of(table: Table, task: Task, group: Group, cells: Values, topics: Sequence[int]) -> Row:
    """A row without a rank; ``topics`` are those of each cell, which it did not answer where nothing of it counts."""
    runs = group.runs
    by_age = sorted({run.submission.id: run.submission for run in runs}.values(), key=choosing.age)
    s = by_age[-1]
    values = {}
    for measure in measures_shown(table):
        # A measure that was added to the task later is missing until the run is evaluated again.
        if all(measure in cell for cell in cells):
            only = cells[0][measure] if len(cells) == 1 else None
            mean = ranks.aggregated(table.aggregate, table.cells, [cell[measure].value for cell in cells])
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
