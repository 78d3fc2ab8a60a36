"""The coordinator from end to end on a scripted engine, and what may change between a plan and its runs."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from runner.execution.attempt import execute
from runner.execution.coordinator import Coordinator, EvaluationRequest, coordinating
from runner.execution.machine import Machine
from runner.execution.plan import Plan
from runner.execution.pool import RunProgress
from runner.execution.workspace import RULES_OF_DATASETS
from runner.model.clock import Clock, FixedClock
from runner.model.errors import RunnerError
from runner.model.run import Selection
from runner.records.store.queries import published
from runner.tasks.load import load_tasks
from tests.runner.execution.test_pool import EVALUATOR, World
from tests.worlds.mini import TASK, Project


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


def opened(
    world: World, notes: Notes, *, dry_run: bool = False, clock: Clock | None = None
) -> AbstractContextManager[Coordinator]:
    config = world.project.config
    machine = Machine(config, engine=world.engine, images={"evaluator": EVALUATOR})
    return coordinating(config, notes, dry_run=dry_run, machine=machine, clock=clock)


def test_what_is_missing_is_run_evaluated_and_posted_once(world: World) -> None:
    runs, notes, request = [world.hand_in("alpha"), world.hand_in("beta")], Notes(), EvaluationRequest()
    with opened(world, notes) as coordinator:
        result = coordinator.run(coordinator.plan(request), request)
    assert sorted(result.done) == sorted(runs) and result.undone == {} == result.unsettled()
    assert {m.run.id for m in notes.moments if m.kind == "done"} == set(runs)
    assert [world.outcome(run).name for run in runs] == ["scored", "scored"]
    with opened(world, notes) as coordinator:
        assert coordinator.plan(request).work == ()
        again = coordinator.plan(EvaluationRequest(Selection(run=runs[0]), only_evaluate=True))
        assert [(p.run.id, p.step) for p in again.work] == [(runs[0], "evaluate")]


@pytest.mark.parametrize("only_evaluate", [False, True])
def test_a_run_is_named_by_the_beginning_of_its_id(world: World, only_evaluate: bool) -> None:
    one, two, other = world.hand_in("alpha"), world.hand_in("alpha", "two"), world.hand_in("beta")
    if only_evaluate:
        with opened(world, Notes()) as coordinator:
            coordinator.run(coordinator.plan(EvaluationRequest()), EvaluationRequest())
    with opened(world, Notes()) as coordinator:

        def meant(**names: str) -> list[str]:
            request = EvaluationRequest(Selection(**names), only_evaluate=only_evaluate)
            return [planned.run.id for planned in coordinator.plan(request).work]

        assert meant(run=other) == meant(run="beta") == meant(run="Beta.o") == [other]
        assert meant(run="alpha.t") == [two]
        with pytest.raises(RunnerError) as several:
            meant(run="alpha")
        assert several.value.code == "E102" and one in several.value.why and two in several.value.why
        for names in ({"run": "gamma"}, {"run": ""}, {"run": "beta", "team": "alpha"}, {"run": one[1:]}):
            with pytest.raises(RunnerError) as none:
                meant(**names)
            assert none.value.code == "E102" and two not in none.value.why
        assert meant(run="alpha", submission=one.removesuffix(".test")) == [one]  # among what else is meant


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


@pytest.fixture
def clock(project: Project) -> FixedClock:
    """The time one second before scores are to be published."""
    blinded = {"id": "test", "visibility": "blinded", "publish_at": "2031-02-01 12:00 UTC"}
    project.write_task(datasets=[{"id": "dev", "visibility": "public"}, blinded])
    return FixedClock(datetime(2031, 2, 1, 11, 59, 59, tzinfo=UTC))


def test_scores_are_published_when_they_are_due(world: World, clock: FixedClock) -> None:
    for at, dry_run, is_open in ((59, False, False), (60, True, False), (60, False, True)):
        clock.at = datetime(2031, 2, 1, 11, 59, tzinfo=UTC) + timedelta(seconds=at)
        notes = Notes()
        with opened(world, notes, dry_run=dry_run, clock=clock) as coordinator:
            coordinator.plan(EvaluationRequest())
            assert (published(coordinator.store, "mini") == {"test"}) is is_open
        assert any("mini/test" in line for line in notes.lines) is is_open


def test_scores_that_become_due_during_the_work_are_published_after_it(
    world: World, clock: FixedClock
) -> None:
    world.hand_in("alpha")
    with opened(world, Notes(), clock=clock) as coordinator:
        todo = coordinator.plan(EvaluationRequest())
        assert published(coordinator.store, "mini") == frozenset()
        clock.at = datetime(2031, 2, 1, 12, tzinfo=UTC)
        coordinator.run(todo, EvaluationRequest())
        assert published(coordinator.store, "mini") == {"test"}


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
    assert refused.value.code == "E102" and "alpha" in refused.value.fix


def test_several_plans_are_one(world: World) -> None:
    runs = [world.hand_in("alpha"), world.hand_in("beta")]
    with opened(world, Notes()) as coordinator:
        parts = [coordinator.plan(EvaluationRequest(Selection(run=run))) for run in reversed(runs)]
    joined = Plan.joined(parts)
    assert [p.run.id for p in joined.work] == runs[::-1] and joined.skipped == ()


def test_a_job_is_made_with_the_plan_unless_its_input_is_still_to_come(world: World) -> None:
    first = world.hand_in("alpha", "first")
    second = world.hand_in("alpha", "second", inputs={"ranking": "first"})
    with opened(world, Notes()) as coordinator:
        todo = coordinator.plan(EvaluationRequest())
        jobs = {planned.run.id: planned.job for planned in todo.work}
        assert jobs[first] is not None and jobs[first].run_id == first and jobs[second] is None
        assert set(coordinator.run(todo, EvaluationRequest()).done) == {first, second}
        locks = {run: world.store.archive.attempt("mini", run, 1).lock() for run in jobs}
        assert locks[first] == jobs[first].lock and first in locks[second]["digests"]["input_runs"]


@pytest.mark.parametrize("what", ["limits in task.yaml", "the inputs of test"])
def test_what_has_changed_between_plan_and_start_is_not_executed(
    world: World, project: Project, what: str
) -> None:
    run, request = world.hand_in("alpha"), EvaluationRequest()
    with opened(world, Notes()) as coordinator:
        todo = coordinator.plan(request)
        if "task.yaml" in what:
            project.write_task_only(limits={"memory": "128MiB"})
        else:
            (project.private / "mini/test/inputs/queries.jsonl").write_text('{"qid": "x"}\n')
        undone = coordinator.run(todo, request).undone
        assert list(undone) == [run] and what in undone[run].why and undone[run].exit_code == 4
        assert world.store.archive.attempts("mini", run) == []
    with opened(world, Notes()) as coordinator:
        assert list(coordinator.run(coordinator.plan(request), request).done) == [run]


class Lines:
    """Counts the lines of our own code that are executed: every pass of a loop counts, on any machine the same.

    The garbage collector rests meanwhile: what other tests left behind may end in lines of ours, at any time.
    """

    def __init__(self) -> None:
        self.count = 0

    def _line(self, frame: FrameType, event: str, _: object) -> object:
        self.count += event == "line"
        return self._line

    def _call(self, frame: FrameType, event: str, _: object) -> object:
        ours = "/runner/" in frame.f_code.co_filename or "/schemas/" in frame.f_code.co_filename
        return self._line if ours else None

    def __enter__(self) -> Lines:
        gc.collect()
        gc.disable()
        self._old = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.settrace(self._old)
        gc.enable()


# A process of its own, since the order of sets is drawn for each: how many lines are executed depends a little on it.
LOOKING = """
import sys
from pathlib import Path
from benchmarks import planning
from tests.runner.execution.test_coordinator import Lines
for runs in (20, 40, 80):
    root = Path(sys.argv[1]) / str(runs)
    planning.write_project(root, runs, teams=2, chained=True)
    assert planning.evaluate_all(root)["done"] == runs
    assert planning.evaluate_all(root)["done"] == 0  # what is asked first, once a process, is known now
    counts = []
    for _ in range(3):  # what the clock adds now and then, such as a second that began, is left out
        with Lines() as lines:
            planning.evaluate_all(root)
        counts.append(lines.count)
    print(min(counts))
"""


@pytest.mark.slow
def test_what_looking_costs_grows_with_the_runs_and_not_faster(tmp_path: Path) -> None:
    """Opening, planning and printing when nothing is to do: twice the runs are twice the work, and no more."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", LOOKING, str(tmp_path)],
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    steps = [int(line) for line in done.stdout.splitlines()[-3:]]
    first, second = steps[1] - steps[0], steps[2] - steps[1]
    # What elapsed time adds is a little. A share s of the first step that grew with the square adds 2 s of it to the second.
    assert abs(second - 2 * first) < 0.06 * first, f"20, 40, 80 runs: {steps} lines"


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
