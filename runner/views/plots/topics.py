"""The distribution of scores over topics, of each row of a leaderboard: box, median, and a stroke for every topic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from runner.model.comparing import by_number
from runner.model.errors import RunnerError
from runner.model.run import run_named
from runner.records.store import queries, results
from runner.views.audience import Audience, escape, not_for, topics_open
from runner.views.leaderboard.rows import Column, LeaderboardTable
from runner.views.plots import style
from runner.views.plots.base import Plot, axis, column_of, figure, label, nothing, of_board
from runner.views.scores import board_split, topics_rounded
from runner.views.text import plural

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.records.store.connect import Store


@dataclass(frozen=True)
class ByTopic:
    """Scores on a ``measure`` by row and topic, the rows in the order of the ``table``."""

    table: LeaderboardTable
    measure: Column
    scores: Mapping[str, Mapping[str, float]]

    @property
    def topics(self) -> list[str]:
        """The topics on which any row has a score, by name; numbers in their order."""
        found = {topic for scores in self.scores.values() for topic in scores}
        return sorted(found, key=by_number)


def by_topic(
    store: Store,
    task: Task,
    table: LeaderboardTable,
    audience: Audience,
    measure: str | None = None,
    runs: Sequence[str] = (),
) -> ByTopic:
    """The scores by topic of a leaderboard.

    Args:
        store: The open store.
        task: The task.
        table: Its leaderboard, for the same audience.
        audience: Who looks.
        measure: A measure of the table; None: the one that ranks.
        runs: Only rows with one of these runs (ids, or their beginnings); empty: all.

    Raises:
        RunnerError: E101 for a round, E102 for an unknown measure or run and where there are no scores by topic, E103 where
            none is open to the audience.
    """
    if table.round is not None:
        what, fix = "a round has no scores by topic", "leave --round away"
        raise RunnerError("E101", what, why="Its means were frozen, and nothing else.", fix=fix)
    column = column_of(table, measure)
    published = queries.published(store, task.id)
    known = {run.id: run for run in queries.runs(store, [task], task=task.id)}
    seen = {
        name: known[name]
        for row in table.rows
        for name in row.runs
        if name in known
        and topics_open(
            known[name], audience, task.datasets[known[name].dataset], known[name].dataset in published
        )
    }
    if not seen and table.rows:
        raise not_for(audience, f"scores by topic of {table.table}")
    wanted = {run_named(list(seen), name) for name in runs} or {*seen}
    split = board_split(store, task, [cell.dataset for cell in table.cells], audience, _part(table))
    decimals = {} if audience.kind == "organiser" else task.decimals([column.id])
    several = len({cell.dataset for cell in table.cells}) > 1
    found: dict[str, dict[str, float]] = {}
    for row in table.rows:
        values: dict[str, list[float]] = {}
        for name in row.runs:
            if name in seen and wanted & {*row.runs}:
                scores = {column.id: results.topic_scores(store, seen[name], column.id, split)}
                for topic, value in topics_rounded(scores, decimals)[column.id].items():
                    key = f"{seen[name].dataset}/{topic}" if several else topic
                    values.setdefault(escape(key, 200), []).append(value)
        if values:
            found[label(row)] = {topic: math.fsum(each) / len(each) for topic, each in values.items()}
    if not found:
        why = "It is a figure over all answers at once, or nothing is ranked yet."
        raise nothing(f"{column.measure} has no values by topic in {table.table}", why)
    return ByTopic(table, column, found)


def _part(table: LeaderboardTable) -> str | None:
    """Over which part of split topics a table is; None where none are."""
    parts = {*table.parts.values()}
    return parts.pop() if len(parts) == 1 else None


COLUMNS = ("row", "topic", "value")


def plot(scores: ByTopic) -> Plot:
    """The plot of scores by topic."""
    column = scores.measure
    made: list[dict[str, Any]] = [
        {"row": row, "topic": topic, "value": value}
        for row, values in scores.scores.items()
        for topic, value in sorted(values.items(), key=lambda one: by_number(one[0]))
    ]
    medians = {row: median(values.values()) for row, values in scores.scores.items()}
    spread = {row: max(values.values()) - min(values.values()) for row, values in scores.scores.items()}
    better = max if column.direction == "higher" else min
    first, widest = better(medians, key=lambda row: medians[row]), max(spread, key=lambda row: spread[row])
    says = (
        f"Over {plural(len(scores.topics), 'topic')}, {first} has the best median {column.measure} of "
        f"{plural(len(medians), 'row')}, {figure(medians[first])}. The scores of {widest} are the furthest apart, by "
        f"{figure(spread[widest])}."
    )
    title = of_board(scores.table, f"{column.measure} by topic")
    return Plot(
        "topics", title, says, COLUMNS, tuple(made), chart, {"axis": axis(column), "measure": column.measure}
    )


def chart(of: Plot) -> Any:
    """The chart: a box for each row."""
    import altair as alt

    names = of.names("row")
    size = style.step(len(names)) + 4
    base = alt.Chart({"values": [dict(row) for row in of.rows]}, width=style.WIDTH, height=alt.Step(size))
    x = alt.X(field="value", type="quantitative", title=of.facts["axis"])
    y = style.rows_of(names)
    strokes = base.mark_tick(color=style.PALE, opacity=1, thickness=1, size=size - 6).encode(
        x=x, y=y, tooltip=style.tips(row="row", topic="topic", value=f"{of.facts['measure']}:f")
    )
    boxes = base.mark_boxplot(
        extent="min-max",
        size=size / 2.2,
        opacity=1,
        box={"fill": None, "stroke": style.INK, "strokeWidth": 1, "opacity": 1},
        median={"color": style.VERMILION, "thickness": 4, "opacity": 1},
        rule={"color": style.MUTED},
    ).encode(x=x, y=y)
    return style.finished(alt.layer(strokes, boxes))
