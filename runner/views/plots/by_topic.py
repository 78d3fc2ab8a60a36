"""Scores topic by topic of the rows of a leaderboard, of those runs whose single topics are open to an audience."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runner.model.comparing import by_number
from runner.model.errors import RunnerError
from runner.model.run import run_named
from runner.records.store import queries, results
from runner.views.audience import Audience, escape, not_for, topics_open
from runner.views.leaderboard.rows import Column, LeaderboardTable
from runner.views.plots.base import column_of, label, nothing
from runner.views.scores import board_split, topics_rounded

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
