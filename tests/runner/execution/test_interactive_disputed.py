"""A disputed run: held at once, never tried again by itself, said clearly, and costing nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runner.execution.plan import plan
from runner.model.run import Selection
from runner.model.verdict import Facts, Verdict, decide
from runner.records.store.charges import quota
from runner.records.store.queries import find_run
from schemas.details import read
from tests.runner.execution.test_pool import World
from tests.worlds.mini import Project


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    made = World(project)
    yield made
    made.close()


def test_a_disputed_run_waits_for_the_organiser(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def disputes(facts: Facts, *rest: Any) -> Verdict:
        return Verdict(
            "disputed", read(None, "the argument index ended while the run went on (out of memory)")
        )

    monkeypatch.setattr("runner.execution.workflows.starting.decide", disputes)
    run = world.hand_in("alpha")
    world.work()
    desk = world.desk()
    found = find_run(desk.store, run, desk.tasks.values())
    assert (found.outcome.name, found.outcome.blame, found.attempts) == ("held", "none", 1)
    assert found.outcome.reason.startswith("disputed: the argument index ended")
    assert "waits for the organiser" in found.outcome.says
    task = next(iter(desk.tasks.values()))
    assert quota(desk.store, task, "alpha").used == 0

    # It is not run again, however often everything is evaluated.
    made = plan(desk, Selection())
    assert made.work == ()
    (skipped,) = made.skipped
    assert skipped.blocked and "--force" in skipped.why
    world.work()
    assert find_run(desk.store, run, desk.tasks.values()).attempts == 1

    # The organiser's own new try decides anew.
    monkeypatch.setattr("runner.execution.workflows.starting.decide", decide)
    assert [p.run.id for p in plan(desk, Selection(), force=True).work] == [run]
