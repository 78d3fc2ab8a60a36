"""Whether the baselines of a task can take part in it: their submission.yaml is right, is for this task, and fits it."""

from __future__ import annotations

from dataclasses import replace

import schemas
from runner.model.config import Config
from runner.model.errors import Problem, RunnerError
from runner.model.task import Task
from runner.submissions.load import load_submissions


def baseline_problems(task: Task, config: Config) -> list[Problem]:
    """What is wrong with the softwares that tables of ``task`` name as baselines; one that is not there is left out."""
    doc = schemas.load_yaml(task.folder / "task.yaml", f"tasks/{task.folder.name}/task.yaml")
    found: list[Problem] = []
    seen: set[str] = set()
    for i, table in enumerate(task.tables.values()):
        name = table.baseline
        if not name or name in seen or not (config.submissions / name / "submission.yaml").is_file():
            continue
        seen.add(name)
        team, _, software = name.partition("/")
        try:
            submissions = load_submissions(config, team, software, {task.id: task})
        except RunnerError as error:
            own = error.problems or [Problem(f"submissions/{name}/submission.yaml", error.what, error.fix)]
            found += [replace(problem, code="E402") for problem in own]
            continue
        others = {one.task for one in submissions} - {task.id}
        if others:
            what = f'the baseline "{schemas.show(name)}" takes part in {schemas.show(min(others))}, not here'
            found.append(
                replace(
                    doc.problem(("tables", i, "baseline"), what, "name a software of this task"), code="E402"
                )
            )
    return found
