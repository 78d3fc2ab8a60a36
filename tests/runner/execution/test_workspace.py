"""What may change in task.yaml between a plan and the start of its runs, and what stops them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from runner.execution.workspace import RULES_OF_DATASETS
from runner.model.errors import RunnerError
from runner.tasks.load import load_tasks
from tests.runner.execution.test_pool import World
from tests.worlds.mini import TASK

RULES: dict[str, Any] = {
    "opens": "2026-05-01 12:00 UTC",
    "closes": "2026-06-01 12:00 UTC",
    "grace": "2h",
    "quota": {"per_day": 3},
    "requires": "dev",
    "scores": "team",
    "publish_at": "2026-07-01 12:00 UTC",
    "public_topics": "30%",
}


def _edited(**keys: Any) -> list[dict[str, Any]]:
    """The datasets of the task, the second with other keys."""
    datasets = deepcopy(TASK["datasets"])
    datasets[1] |= keys
    return datasets


def test_the_rules_of_datasets_may_be_edited_while_a_plan_is_worked_on(world: World) -> None:
    """They change no run: neither what was planned, nor what was executed already."""
    assert set(RULES) <= set(RULES_OF_DATASETS)
    world.hand_in("alpha")
    desk = world.desk()
    job = desk.job(desk.runs[0])
    world.project.write_task_only(title="Another title")
    desk.check_current(job)
    for number, key in enumerate(RULES, 1):
        world.project.write_task_only(datasets=_edited(**dict(list(RULES.items())[:number])))
        desk.check_current(job)
        now, problems = world.desk(), load_tasks(world.project.config)[1]
        assert not problems, problems
        assert now.job(now.runs[0]).lock == job.lock, key


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"datasets": _edited(visibility="public")}, "datasets in task.yaml"),
        ({"datasets": _edited(topics="other.jsonl")}, "datasets in task.yaml"),
        ({"limits": TASK["limits"] | {"memory": "65MiB"}}, "limits in task.yaml"),
    ],
)
def test_what_decides_a_run_stops_it(world: World, changes: dict[str, Any], named: str) -> None:
    world.hand_in("alpha")
    desk = world.desk()
    job = desk.job(desk.runs[0])
    world.project.write_task_only(**changes)
    with pytest.raises(RunnerError) as caught:
        desk.check_current(job)
    assert caught.value.code == "E402" and named in caught.value.why
