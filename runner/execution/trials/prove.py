"""Prove a task with its baselines: each is run and scored on every dataset, before the task opens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.execution.machine import Machine
from runner.execution.trials.software import check_submission
from runner.model.errors import RunnerError
from runner.model.task import Task
from runner.submissions.load import load_submission
from runner.submissions.pack import image_of
from runner.tasks.files import missing_sources, why_stage_missing


def prove(machine: Machine, task: Task, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Run the baselines that the task's tables name on every dataset, in every scenario they enter.

    Returns one row for each: software, dataset, scenario, outcome, why, scores, and ``good`` when it scored above
    zero on the measure its table ranks by. Raises E402 when the task names no baseline.
    """
    names = sorted({table.baseline for table in task.tables.values() if table.baseline})
    if not names:
        fix = (
            "write one (a changed copy of submissions/baselines/dirichlet will do for a start), and name it "
            "in a table of task.yaml as baseline: team/software"
        )
        raise RunnerError("E402", f"{task.id} names no baseline", why="A proof needs a software.", fix=fix)
    engine = machine.engine([task.limits, task.evaluator_limits])
    machine.evaluator()  # missing: known before anything is built
    rank_by = {table.rank_by for table in task.tables.values()}
    rows: list[dict[str, Any]] = []
    for name in names:
        team, _, software = name.partition("/")
        submission = load_submission(machine.config, team, software)
        if submission.task != task.id:
            what, why = f"the baseline {name} is for the task {submission.task}", "cannot be proven with it."
            fix = f"name a software for {task.id} as the table's baseline"
            raise RunnerError("E207", what, why=f"{task.id} {why}", fix=fix)
        say(f"building {name} …")
        image = image_of(machine.config, engine, submission)
        for dataset in task.datasets.values():
            missing = "its files have not been fetched" if missing_sources(dataset) else ""
            if why := missing or why_stage_missing(dataset):
                say(f"left out {dataset.id}: {why}")
                continue
            for scenario in submission.scenarios:
                say(f"running {name} on {dataset.id} …")
                with check_submission(machine, submission, image, task, dataset, scenario) as checked:
                    scores, outcome = checked.summary()["scores"], checked.detail.run.outcome
                    good = checked.good and any(scores.get(measure, 0) > 0 for measure in rank_by)
                    cell = {"software": name, "dataset": dataset.id, "scenario": scenario}
                    result = {"outcome": outcome.name, "why": outcome.reason, "scores": scores}
                    rows.append({**cell, **result, "good": good})
    return rows
