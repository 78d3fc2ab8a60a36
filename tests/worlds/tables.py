"""Leaderboards that are compared: those of two machines are the same but for what is measured there."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from runner.records.store import queries, results
from runner.records.store.connect import open_store
from runner.tasks.load import load_tasks
from runner.views.audience import ORGANISER
from runner.views.leaderboard import export
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.leaderboard.table import build
from tests.worlds.mini import Project

MEASURED = {"wall_seconds", "cpu_seconds", "memory_peak", "registered"}  # and the date
LATENCY = "latency"  # how measures begin that are measured, too


def without_measured(table: str) -> list[dict[str, str]]:
    """The rows of a leaderboard (CSV) without the columns of measured time and memory."""
    rows = list(csv.DictReader(io.StringIO(table)))
    assert rows, table
    return [{key: one for key, one in row.items() if key not in MEASURED} for row in rows]


def boards(
    project: Project, home: Path, datasets: Mapping[str, str], *, scored: bool = True
) -> dict[str, str]:
    """The boards of tasks on one dataset each, as text, CSV and JSON and without the columns of what is measured; and all other
    measures of each of their runs by topic. All of them have to be ``scored``, unless they need not; what became of them is said, too."""
    config, found = replace(project.config, home=home), dict[str, str]()
    tasks = {task.id: task for task in load_tasks(config)[0].values() if task.id in datasets}
    with open_store(config) as store:
        for run in queries.runs(store, tasks.values()):
            if run.dataset != datasets[run.submission.task]:
                continue
            assert not scored or run.outcome.name == "scored", (run.id, run.outcome)
            found[run.id] = f"{run.outcome.name}: {run.outcome.reason}"
            for measure in tasks[run.submission.task].measures.values():
                if not measure.measure.startswith(LATENCY):
                    scores = results.topic_scores(store, run, measure.id)
                    found[f"{run.id} {measure.id}"] = str(sorted(scores.items()))
        for task in tasks.values():
            for name, table in task.tables.items():
                if {cell.dataset for cell in table.cells} == {datasets[task.id]}:
                    built = _unmeasured(build(store, task, name, ORGANISER))
                    text = io.StringIO()
                    export.print_table(built, text, wide=True)
                    found[f"{task.id} {name} text"] = text.getvalue()
                    found |= {
                        f"{task.id} {name} {form}": export.export(built, form) for form in ("csv", "json")
                    }
    return found


def _unmeasured(table: LeaderboardTable) -> LeaderboardTable:
    columns = tuple(one for one in table.columns if not one.measure.startswith(LATENCY))
    kept = {one.id for one in columns}
    rows = (
        replace(
            row,
            values={name: value for name, value in row.values.items() if name in kept},
            wall_seconds=None,
            memory_peak=None,
            memory_source="",
            time_step="",
            memory_step="",
        )
        for row in table.rows
    )
    return replace(table, columns=columns, rows=tuple(rows))
