"""Leaderboards on a terminal, as several commands print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.cli import output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.execution.coordinator import Coordinator
    from runner.execution.workspace import Workspace
    from runner.model.run import Run, Selection
    from runner.records.store.connect import Store
    from runner.views.leaderboard.rows import LeaderboardTable


def print_table(
    table: LeaderboardTable, form: str = "table", *, wide: bool = False, excel: bool = False
) -> None:
    """Print a leaderboard to stdout, in one of the formats of :mod:`runner.views.leaderboard.formats`.

    ``wide`` is for the format for people: every column, however wide the terminal is. ``excel`` puts a byte order mark before CSV.
    """
    import sys

    from runner.views.leaderboard import export

    if form == "table":
        export.print_table(table, sys.stdout, wide=wide)
    else:
        output.spreadsheet(export.export(table, form), excel=excel)


def boards(coordinator: Coordinator, wanted: Selection, done: Mapping[str, Run]) -> None:
    """Print the whole tables of the tasks that ``done`` touched (none: of all wanted tasks with runs), and rounds to freeze."""
    from runner.views.audience import ORGANISER
    from runner.views.leaderboard.table import build

    store, workspace = coordinator.store, coordinator.workspace
    touched = {r.submission.task for r in done.values()}
    used = {r.submission.task for r in workspace.runs}
    first = True
    for name, task in workspace.tasks.items():
        if name not in used or wanted.task not in (None, name) or (done and name not in touched):
            continue
        for table in task.tables.values():
            if table.part_of is not None:
                continue  # a single cell of a table that is printed
            if not first:
                output.data("")
            first = False
            print_table(build(store, task, table.id, ORGANISER))
    _due(store, workspace)


def _due(store: Store, workspace: Workspace) -> None:
    """Say which rounds are over and wait to be frozen."""
    from runner.views.leaderboard.rounds import due

    for task, state in due(workspace.tasks.values(), store):
        ended = state.ends.says()
        output.say(
            f"the round {state.round.id} of {task.id} is over since {ended}: runner round freeze {task.id} {state.round.id}"
        )
