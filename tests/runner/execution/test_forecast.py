"""The schedule: how long work takes, which is shown before it starts, and which steps share a lane."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runner.engines.fake import Mounts
from runner.execution.cluster.roles import role_of
from runner.execution.executors.base import Host
from runner.execution.plan import Planned, Step, plan
from runner.execution.schedule import Forecast, Lane, Schedule, forecast, lane_of
from runner.model.limits import GIB, MIB, Limits
from runner.model.run import Selection
from runner.model.sidecars import Service
from runner.records.store.results import Took, took
from runner.views.text import duration
from tests.runner.execution.test_pool import World, good
from tests.worlds.mini import TASK, Project, Said, call_here

DAY = 86400.0


def said(world: World, seconds: dict[str, float], jobs: int, *, cpus: int = 8) -> Forecast:
    desk = world.desk()
    work = plan(desk, Selection(), force=True).work
    info = replace(world.engine.info(), cpus=cpus, memory=64 * 2**30)
    times = {p.run.id: Took(seconds[team]) for p in work if (team := p.run.submission.team) in seconds}
    return forecast(work, times, info, jobs, partial(lane_of, desk))


def test_it_is_the_time_until_the_last_of_all_slots_is_free(world: World) -> None:
    for team in ("alpha", "beta", "gamma"):
        world.hand_in(team)
    days = {"alpha": 3 * DAY, "beta": DAY, "gamma": DAY}
    assert said(world, days, 1) == Forecast(5 * DAY, 1, 3, 0, 0.0)
    assert said(world, days, 2) == Forecast(3 * DAY, 2, 3, 0, 0.0)
    assert said(world, days, 8).slots == 3
    limits = world.tasks["mini"].limits
    assert limits.cpus == 1 and said(world, days, 8, cpus=1).seconds == 5 * DAY, "processors bound it, too"
    del days["gamma"]
    assert said(world, days, 1) == Forecast(4 * DAY, 1, 2, 1, limits.wall_clock)


def test_an_evaluation_follows_an_execution_and_an_input_comes_first(world: World) -> None:
    world.hand_in("alpha")
    world.hand_in("alpha", "two", inputs={"base": "alpha/one"})
    desk = world.desk()
    info = world.engine.info()
    first, second = (run.id for run in desk.runs)
    work = [Planned(run, "execute", "w", needs) for run, needs in zip(desk.runs, ((), (first,)), strict=True)]
    times = {first: Took(10.0, 1.0), second: Took(5.0, 2.0)}
    assert forecast(work, times, info, 2, partial(lane_of, desk)).seconds == 18.0
    again = [Planned(run, "evaluate", "w") for run in desk.runs]
    assert forecast(again, times, info, 1, partial(lane_of, desk)).seconds == 3.0


@pytest.mark.usefixtures("machine")
def test_a_plan_forecasts_its_time_before_anything_is_executed_again(
    world: World, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluate(*words: str) -> Said:
        return call_here(project, ["evaluate", "--all", *words], capsys)

    def slow(mounts: Mounts, out: Path) -> None:
        time.sleep(1.0)
        good(mounts, out)

    run = world.hand_in("alpha", script=slow)
    assert evaluate("--dry-run", "--json").json["takes"] is None, "the run was never executed"
    world.work()
    seconds = took(world.store)[run].execution
    assert seconds is not None and seconds >= 1.0
    project.write_task_only(limits={**TASK["limits"], "memory": "128MiB"})
    data = evaluate("--dry-run", "--json").json
    assert data["again"] == [{"run": run, "changed": "limits.memory"}]
    takes = data["takes"]
    assert takes["seconds"] >= seconds and (takes["known"], takes["unknown"]) == (1, 0)
    dry = evaluate("--dry-run")
    assert duration(takes["seconds"]) in dry.out and "limits.memory" in dry.out
    refused = evaluate()
    assert refused.code == 2 and duration(takes["seconds"]) in refused.err and "E104" in refused.err
    assert len(world.store.archive.attempts("mini", run)) == 1
    again = call_here(project, ["reevaluate", "--all", "--dry-run"], capsys)
    assert again.code == 0 and "cluster" not in dry.out + again.out
    project.env = {**project.env, "RUNNER_CLUSTER": "tls://nobody.example:8786"}
    dry = evaluate("--dry-run")
    assert "cluster" in dry.out and all(len(line) <= 80 for line in dry.out.splitlines())


USER = Service("user", limits=Limits(memory=96 * MIB))
ASKS = {
    "user": replace(USER, limits=Limits(memory=64 * MIB), options={"llm": {"model": "m"}}),
    "gateway": Service("gateway", limits=Limits(memory=32 * MIB)),
}
TASKS: Mapping[Step, tuple[dict[str, Any], dict[str, Any]]] = {
    "execute": (
        {"workflow": "interactive", "services": {"user": USER}},
        {"workflow": "interactive", "services": ASKS},
    ),
    "evaluate": (
        {"evaluator_limits": Limits(memory=GIB)},
        {
            "evaluator_limits": Limits(memory=GIB - 32 * MIB),
            "services": ASKS,
            "evaluator_gateway": True,
        },
    ),
}


@pytest.mark.parametrize("step", TASKS)
def test_what_models_are_asked_for_stays_here_whatever_needs_as_much(world: World, step: Step) -> None:
    """Two tasks need the same by coincidence, and beside the second models are asked."""
    for name in ("one", "two"):
        world.hand_in("alpha", name)
    desk = world.desk()
    plain, asking = (Planned(run, step, "") for run in desk.runs)
    desks = {
        one.run.id: replace(desk, tasks={"mini": replace(desk.tasks["mini"], **keys)})
        for one, keys in zip((plain, asking), TASKS[step], strict=True)
    }

    def travels(planned: Planned) -> bool:
        return role_of(desks[planned.run.id], planned) is not None

    def lane(planned: Planned) -> Lane:
        return lane_of(desks[planned.run.id], planned)

    assert travels(plain) and not travels(asking)
    assert lane(plain).limits == lane(asking).limits
    here, there = Host("here", 64 * GIB, 8, 1), Host("there", 64 * GIB, 8, 8, role="software")
    schedule = Schedule([plain, asking], lane)

    def begun(held: Planned | None) -> tuple[Planned, Host] | None:
        return schedule.next(
            [here, there], lambda one: one is held, lambda host, one: (host is there) == travels(one)
        )

    assert begun(plain) == (asking, here)  # the first of them is paused, or waits for its input
    assert begun(None) == (plain, there)
