"""Which steps wait in one lane: only those that may be done at the same hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from runner.execution.cluster.evaluations import evaluation_travels
from runner.execution.cluster.software import software_travels
from runner.execution.executors.base import Host
from runner.execution.plan import Planned, Step
from runner.execution.schedule import Lane, Schedule, lane_of
from runner.model.limits import GIB, MIB, Limits
from runner.model.sidecars import Service
from tests.runner.execution.test_pool import World

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
        by = software_travels if step == "execute" else evaluation_travels
        return by(desks[planned.run.id], planned)

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
