"""The plan: what is done, what is left alone, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runner.execution.evaluator import Evaluator
from runner.execution.executors.local import LocalExecutor
from runner.execution.plan import Planned, Skipped, plan, plan_evaluations
from runner.execution.pool import Control, Pool
from runner.execution.schedule import needs_of
from runner.execution.workspace import owner_of
from runner.model.container import Exit
from runner.model.errors import PlatformError, RunnerError
from runner.model.run import Selection
from runner.model.verdict import Verdict
from runner.records.store.charges import quota
from runner.records.store.queries import find_run
from runner.submissions.register import withdraw
from schemas.details import Detail
from tests.runner.execution.test_pool import EVALUATOR, World, evaluator
from tests.worlds.mini import TASK, Project

TABLES = [{"id": "main", "cells": [{"dataset": "test"}, {"dataset": "dev"}], "rank_by": "ndcg_10"}]


def _planned(world: World, *, force: bool = False, **selection: str) -> dict[str, Planned]:
    return {p.run.id: p for p in plan(world.desk(), Selection(**selection), force=force).work}


def _skipped(world: World) -> dict[str, Skipped]:
    return {s.run.id: s for s in plan(world.desk(), Selection()).skipped}


def test_everything_that_is_registered_once(world: World) -> None:
    runs = [world.hand_in("alpha"), world.hand_in("beta")]
    assert list(_planned(world)) == runs, "in the order of registration"
    assert {(p.step, p.changed) for p in _planned(world).values()} == {("execute", "")}
    world.work()
    assert _planned(world) == {}
    assert {s.why for s in _skipped(world).values()} == {"scored"}
    assert not any(s.blocked for s in _skipped(world).values())
    assert {p.why for p in _planned(world, force=True).values()} == {"forced"}


def test_selections(world: World, project: Project) -> None:
    project.write_task(tables=TABLES)
    project.write_task("other")
    test = world.hand_in("alpha")
    dev = test.removesuffix("test") + "dev"
    beta = world.hand_in("beta", task="other")
    assert set(_planned(world)) == {test, dev, beta}
    assert set(_planned(world, dataset="dev")) == {dev}
    assert set(_planned(world, team="beta")) == {beta}
    assert set(_planned(world, task="mini")) == {test, dev}
    assert set(_planned(world, submission=test.removesuffix(".test"))) == {test, dev}
    assert set(_planned(world, run=dev)) == {dev}
    assert _planned(world, task="mini", team="beta") == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"limits": {"memory": "65MiB"}}, "limits"),
        ({"exceptions": {"alpha/one": {"writable": ["/cache"]}}}, "exceptions"),
        ({"output": "other.txt"}, "digests.task"),
        ({}, "digests.view"),  # of its inputs
    ],
)
def test_a_changed_lock_is_other_work_and_says_what_changed(
    changes: dict[str, object], said: str, world: World, project: Project
) -> None:
    run = world.hand_in("alpha")
    world.work()
    project.write_task(**changes)
    if not changes:
        (project.private / "mini/test/inputs/queries.jsonl").write_text('{"qid": "new", "query": "x"}\n')
    [planned] = _planned(world).values()
    assert (planned.run.id, planned.step) == (run, "execute")
    assert said in planned.why and said in planned.changed


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "Another title"},
        {"description": "x"},
        {"quota": {"submissions": 9}},
        {"evaluator": {"limits": {"memory": "1GiB"}}},
    ],
)
def test_what_changes_nothing_for_the_software_runs_nothing_again(
    changes: dict[str, object], world: World, project: Project
) -> None:
    world.hand_in("alpha")
    world.work()
    project.write_task(**changes)
    assert _planned(world) == {}


def test_what_was_executed_is_evaluated_and_executed_again_only_where_somebody_wants_it(
    world: World, project: Project
) -> None:
    """The runner was stopped between the two steps, and the limits are others now."""
    project.write_task(quota={"attempts": 2})
    run = world.hand_in("alpha")
    _executed_only(world, run)
    project.write_task(quota={"attempts": 2}, limits={"memory": "65MiB"})
    todo = plan(world.desk(), Selection())
    assert [(p.run.id, p.step) for p in todo.again] == [(run, "execute")], "a person is asked"
    [kept] = todo.keeping().work
    assert (kept.run.id, kept.step, todo.keeping().skipped) == (run, "evaluate", ())
    project.write_task(quota={"attempts": 1}, limits={"memory": "65MiB"})
    [only] = _planned(world).values()
    assert (only.step, only.changed) == ("evaluate", ""), "it has had its attempts, and this one counts"
    world.work(plan(world.desk(), Selection()).keeping())
    assert (world.outcome(run).name, world.executed()) == ("scored", ["alpha.one"])


def _executed_only(world: World, run: str) -> None:
    """The runner is stopped between the two steps of ``run``."""
    world.engine.script[EVALUATOR] = PlatformError("the engine is gone", code="E301")
    with pytest.raises(RunnerError):
        world.work()
    world.engine.script[EVALUATOR], world.control = evaluator, Control(world.project.home / "cancel")
    assert world.outcome(run).todo == "evaluate"


@pytest.mark.parametrize("pause", [False, True])
def test_what_was_executed_is_evaluated_though_its_input_is_gone(world: World, pause: bool) -> None:
    """Its job cannot be made any more, and is not needed."""
    first = world.hand_in("alpha", "first")
    run = world.hand_in("alpha", "second", inputs={"x": "first"})
    world.work(plan(world.desk(), Selection(run=first)))
    _executed_only(world, run)
    assert withdraw(world.store, first.removesuffix(".test"), "")
    [planned] = _planned(world).values()
    assert (planned.run.id, planned.step, planned.needs) == (run, "evaluate", ())
    if pause:
        place = {"task": "mini", "dataset": "test", "reason": "a topic is wrong"}
        world.store.commit("dataset-paused", place, actor="organiser")
        assert "paused" in _skipped(world)[run].why
        return
    assert _planned(world, force=True) == {}, "executed again it cannot be"
    world.work()
    assert world.outcome(run).name == "scored"


def test_what_was_executed_is_evaluated_without_what_only_software_needs(world: World) -> None:
    """Software waits for such a file; a run file is scored without it."""
    dev, test = TASK["datasets"]
    sources = [{"path": "inputs/more.txt", "optional": True}]
    world.project.write_task(datasets=[dev, test | {"sources": sources}])
    more = world.tasks["mini"].datasets["test"].sources[0].path
    more.write_text("more")
    run = world.hand_in("alpha")
    _executed_only(world, run)
    waiting = world.hand_in("beta")
    more.unlink()
    [planned] = _planned(world).values()
    assert (planned.run.id, planned.step, planned.changed) == (run, "evaluate", "")
    assert "E402" in _skipped(world)[waiting].why
    assert _planned(world, force=True) == {}
    world.work()
    assert world.outcome(run).name == "scored"


def test_what_was_executed_is_evaluated_though_its_bundle_is_damaged(world: World) -> None:
    run = world.hand_in("alpha")
    _executed_only(world, run)
    desk = replace(world.desk(), bundles={})
    [planned] = plan(desk, Selection()).work
    assert (planned.run.id, planned.step) == (run, "evaluate")
    [skipped] = plan(desk, Selection(), force=True).skipped
    assert skipped.blocked and "bundle" in skipped.why
    evaluators = {
        "mini": Evaluator.of(
            desk.tasks["mini"], list(desk.tasks["mini"].datasets.values()), world.engine, EVALUATOR
        )
    }
    desk = replace(desk, evaluators=evaluators)
    pool = Pool(LocalExecutor(world.engine, desk, world.control), desk, world.control)
    assert pool.run(plan(desk, Selection()))[run].outcome.name == "scored"


def test_what_cannot_be_evaluated_again_says_so_and_stops_nothing_else(
    world: World, project: Project
) -> None:
    project.write_task("other")
    gone, fine = world.hand_in("alpha"), world.hand_in("beta", task="other")
    world.work()
    (project.root / "tasks" / "mini" / "task.yaml").write_text("nonsense: 1\n")
    todo = plan_evaluations(world.desk(), Selection())
    assert [p.run.id for p in todo.work] == [fine]
    [skipped] = todo.skipped
    assert (skipped.run.id, skipped.blocked) == (gone, True) and "mini" in skipped.why
    assert list(_planned(world)) == [] and _skipped(world)[gone].blocked


def test_held_cancelled_and_withdrawn_are_left_alone(world: World) -> None:
    held = world.hand_in("alpha", "held", PlatformError("broken"))
    world.work()
    cancelled, gone = world.hand_in("alpha", "cancelled"), world.hand_in("alpha", "gone")
    data = {"task": "mini", "dataset": "test", "scenario": "default"}
    data |= {"run": cancelled, "submission": cancelled.removesuffix(".test")}
    world.store.commit("run-cancelled", data, actor="organiser")
    assert withdraw(world.store, gone.removesuffix(".test"), "")
    assert _planned(world) == {}
    skipped = _skipped(world)
    assert skipped[held].blocked and "held" in skipped[held].why and "--force" in skipped[held].why
    assert "cancelled" in skipped[cancelled].why and not skipped[cancelled].blocked
    assert skipped[gone].why == "withdrawn"
    assert set(_planned(world, force=True)) == {held, cancelled}


def test_a_disputed_run_waits_for_the_organiser(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    how = {"code": 137, "memory": True, "outside": None}
    detail = Detail("reachable-ended", part="argument index", how=how, said="")
    run = world.hand_in("alpha")
    with monkeypatch.context() as patch:
        patch.setattr("runner.execution.workflows.starting.decide", lambda *_: Verdict("disputed", detail))
        world.work()
    found = find_run(world.store, run, world.tasks.values())
    assert (found.outcome.name, found.outcome.blame, found.outcome.verdict) == ("held", "none", "disputed")
    assert str(detail) in found.outcome.reason
    assert quota(world.store, world.tasks["mini"], "alpha").used == 0
    assert _planned(world) == {} and _skipped(world)[run].blocked
    world.work()
    assert find_run(world.store, run, world.tasks.values()).attempts == 1
    assert list(_planned(world, force=True)) == [run]


def test_attempts_are_capped_apart_from_quota(world: World, project: Project) -> None:
    project.write_task(quota={"attempts": 2})
    run = world.hand_in("alpha", "crash", Exit(code=1))
    world.work()
    world.work(plan(world.desk(), Selection(), force=True))
    project.write_task(quota={"attempts": 2}, limits={"memory": "65MiB"})
    assert _planned(world) == {}
    assert "2 attempts" in _skipped(world)[run].why and _skipped(world)[run].blocked


def test_a_team_may_have_limits_of_its_own(world: World) -> None:
    """They are in the lock of what it executes from then on, and change nobody else's; the last ones count."""
    alpha, beta = world.hand_in("alpha"), world.hand_in("beta")
    before = world.desk().job(world.desk().runs[1])
    given = {"task": "mini", "team": "alpha", "wall_clock": 7200.0, "reason": "a slow machine"}
    world.store.commit("limits-extended", given, actor="organiser")
    world.store.commit(
        "limits-extended", {"task": "mini", "team": "alpha", "memory": 2**30}, actor="organiser"
    )
    world.store.replay()
    jobs = {run.id: world.desk().job(run) for run in world.desk().runs}
    assert (jobs[alpha].limits.wall_clock, jobs[alpha].limits.memory) == (7200.0, 2**30)
    assert jobs[alpha].lock["limits"]["memory"] == 2**30
    assert jobs[beta].lock == before.lock
    world.work()
    assert _planned(world) == {}
    world.store.commit("limits-extended", given | {"wall_clock": 60.0}, actor="organiser")
    assert _planned(world)[alpha].changed == "limits.wall_clock", (
        "a person decides whether it is executed again"
    )


def test_nothing_of_a_paused_dataset_is_begun_unless_it_is_forced(world: World) -> None:
    run = world.hand_in("alpha")
    place = {"task": "mini", "dataset": "test", "reason": "a topic is wrong"}
    world.store.commit("dataset-paused", place, actor="organiser")
    assert _planned(world) == {} and set(_planned(world, force=True)) == {run}
    assert _skipped(world)[run].blocked and "resume mini" in _skipped(world)[run].why
    world.store.commit("dataset-resumed", place, actor="organiser")
    assert list(_planned(world)) == [run]
    world.work()
    world.store.commit("dataset-paused", place | {"dataset": ""}, actor="organiser")
    assert _skipped(world)[run].why == "scored", "what is settled stays as it is"


@pytest.mark.parametrize(
    ("source", "team", "found"),
    [("one", "alpha", ("alpha", "one")), ("alpha/one", "alpha", ("alpha", "one")), ("baselines/bm25", "alpha", ("baselines", "bm25")), ("beta/one", "alpha", None)],
)  # fmt: skip
def test_whose_runs_may_be_inputs(source: str, team: str, found: tuple[str, str] | None) -> None:
    if found is not None:
        assert owner_of(source, team) == found
        return
    with pytest.raises(RunnerError) as caught:
        owner_of(source, team)
    assert caught.value.code == "E207"


def test_an_input_that_is_not_registered_blocks_only_its_own(world: World) -> None:
    lonely = world.hand_in("alpha", "second", inputs={"x": "first"})
    fine = world.hand_in("beta")
    assert set(_planned(world)) == {fine}
    assert "not registered" in _skipped(world)[lonely].why


def test_runs_that_are_pinned_are_other_work_and_count_whole_processors(
    world: World, project: Project
) -> None:
    run = world.hand_in("alpha")
    before = world.desk().job(world.desk().runs[0]).lock
    assert "pinned" not in before["limits"], "locks of before stay what they are"
    world.work()
    project.write_task_only(limits=TASK["limits"] | {"pinned": False})
    assert _planned(world) == {}
    project.write_task_only(limits=TASK["limits"] | {"pinned": True, "cpus": 1.5})
    assert _planned(world)[run].changed == "limits.cpus, limits.pinned"
    desk = world.desk()
    assert desk.job(desk.runs[0]).lock["limits"]["pinned"] is True
    needs = needs_of(desk.tasks["mini"], next(iter(desk.bundles.values())), "execute")
    assert needs.cpus == 2.0, "what a schedule counts with is what is taken away from others"
