"""The coordinator from end to end on a scripted engine: what commands and servers call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest

from runner.execution.attempt import execute
from runner.execution.coordinator import Coordinator, EvaluationRequest, coordinating
from runner.execution.machine import Machine
from runner.execution.plan import Plan, Selection
from runner.execution.pool import RunProgress
from runner.model.errors import RunnerError
from tests.e2e.mini import Project
from tests.runner.execution.test_pool import EVALUATOR, World


class Notes:
    """A listener that writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.problems: list[str] = []
        self.moments: list[RunProgress] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def problem(self, error: RunnerError) -> None:
        self.problems.append(error.code)

    def progress(self, total: int) -> AbstractContextManager[Callable[[RunProgress], None]]:
        return nullcontext(self.moments.append)


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    made = World(project)
    yield made
    made.close()


def opened(world: World, notes: Notes, *, dry_run: bool = False) -> AbstractContextManager[Coordinator]:
    config = world.project.config
    machine = Machine(config, engine=world.engine, images={"evaluator": EVALUATOR})
    return coordinating(config, notes, dry_run=dry_run, machine=machine)


def test_what_is_missing_is_run_evaluated_and_posted_once(world: World) -> None:
    runs, notes, request = [world.hand_in("alpha"), world.hand_in("beta")], Notes(), EvaluationRequest()
    with opened(world, notes) as coordinator:
        result = coordinator.run(coordinator.plan(request), request)
    assert sorted(result.done) == sorted(runs) and result.undone == {} == result.unsettled()
    assert {m.run.id for m in notes.moments if m.kind == "done"} == set(runs)
    assert [world.outcome(run).name for run in runs] == ["scored", "scored"]
    with opened(world, notes) as coordinator:
        assert coordinator.plan(request).work == ()
        again = coordinator.plan_evaluations(Selection(run=runs[0]))
        assert [(p.run.id, p.step) for p in again.work] == [(runs[0], "evaluate")]


def test_what_a_killed_process_sealed_is_adopted(world: World) -> None:
    world.hand_in("alpha")
    notes, request = Notes(), EvaluationRequest()
    with opened(world, notes) as coordinator:
        todo = coordinator.plan(request)
        execute(coordinator.workspace.job(todo.work[0].run), world.engine, coordinator.store.archive)
    with opened(world, notes, dry_run=True) as coordinator:
        assert coordinator.adopted == 0
    with opened(world, notes) as coordinator:
        assert coordinator.adopted == 1
        assert [p.step for p in coordinator.plan(request).work] == ["evaluate"]


def test_only_looking_needs_no_lock_and_working_does(world: World) -> None:
    world.hand_in("alpha")
    with opened(world, Notes()):
        with opened(world, Notes(), dry_run=True) as looking:
            assert len(looking.plan(EvaluationRequest()).work) == 1
        with pytest.raises(RunnerError) as refused, opened(world, Notes()):
            pass
    assert refused.value.code == "E306"


def test_a_task_with_wrong_files_is_told_and_stops_no_other(world: World, project: Project) -> None:
    project.write_task("other")
    bad, good = world.hand_in("alpha", task="other"), world.hand_in("beta")
    for path in world.tasks["other"].datasets["test"].truths.iterdir():
        path.unlink()
    notes, request = Notes(), EvaluationRequest()
    with opened(world, notes) as coordinator:
        result = coordinator.run(coordinator.plan(request), request)
    assert list(result.done) == [good] and list(result.unsettled()) == [bad]
    assert notes.problems


def test_names_that_nothing_has_are_refused_with_the_nearest(world: World) -> None:
    world.hand_in("alpha")
    with opened(world, Notes()) as coordinator, pytest.raises(RunnerError) as refused:
        coordinator.plan(EvaluationRequest(Selection(team="alpa")))
    assert refused.value.code == "E102" and "alpha" in refused.value.why


def test_several_plans_are_one(world: World) -> None:
    runs = [world.hand_in("alpha"), world.hand_in("beta")]
    with opened(world, Notes()) as coordinator:
        parts = [coordinator.plan(EvaluationRequest(Selection(run=run))) for run in reversed(runs)]
    joined = Plan.joined(parts)
    assert [p.run.id for p in joined.work] == runs[::-1] and joined.skipped == ()
