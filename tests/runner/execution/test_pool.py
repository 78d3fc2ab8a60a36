"""The pool on the scripted engine: who is next, how many at once, and what happens when our side fails."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.engines.fake import FAKE, FakeEngine, Mounts
from runner.execution import pool
from runner.execution.evaluator import Evaluator
from runner.execution.executors import local
from runner.execution.executors.base import Host
from runner.execution.executors.local import LocalExecutor
from runner.execution.plan import Plan, plan
from runner.execution.pool import Control, Pool, RunProgress
from runner.execution.workspace import Workspace
from runner.model.container import Exit
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import GIB, MIB
from runner.model.outcome import TRIES
from runner.model.run import Selection
from runner.model.task import Task
from runner.records.archive import Attempt, Evaluation
from runner.records.commit import commit_orphans
from runner.records.store.charges import quota
from runner.records.store.connect import Store, open_store
from runner.records.store.queries import find_run
from runner.submissions.kept import registered
from runner.submissions.load import load_submission
from runner.submissions.pack import write
from runner.submissions.register import register
from runner.tasks.load import load_tasks
from tests.worlds.mini import Project

EVALUATOR = "proctor/evaluator"
RESULT = {
    "schema_version": 1,
    "status": "valid",
    "evaluator": {"name": "fake", "version": "1"},
    "measures": {m: {"value": 0.5, "topics": 3, "covered": 3, "interval": None} for m in ("ndcg_10", "p_10")},
    "findings": {"error": 0, "defect": 0, "warning": 0, "codes": {}},
    "run_tag": None,
    "message": "",
}


def evaluator(mounts: Mounts, out: Path) -> None:
    out.joinpath("result.json").write_text(json.dumps(RESULT))
    for name in ("scores.jsonl", "findings.jsonl"):
        out.joinpath(name).touch()


def good(mounts: Mounts, out: Path) -> None:
    out.joinpath("run.txt").write_text("1 Q0 d 1 1.0 tag\n")


class World:
    """A project, its store, and a scripted engine; softwares are scripts."""

    def __init__(self, project: Project, **options: Any) -> None:
        self.project = project
        self.engine = FakeEngine({EVALUATOR: evaluator}, **options)
        self.store: Store = open_store(project.config)
        self.control = Control(project.home / "cancel")
        self.told: list[RunProgress] = []

    @property
    def tasks(self) -> dict[str, Task]:
        return load_tasks(self.project.config)[0]

    def hand_in(
        self, team: str, software: str = "one", script: Any = good, *, task: str = "mini", **keys: Any
    ) -> str:
        """Register a software; returns its run id on the hidden dataset."""
        self.hand_in_later(team, software, script, task=task, **keys)
        return f"{self.register(team, software)}.test"

    def hand_in_later(
        self, team: str, software: str = "one", script: Any = good, *, task: str = "mini", **keys: Any
    ) -> None:
        """Pack a system, for :meth:`register`."""
        image = f"{team}/{software}"
        self.engine.script[image] = script
        self.project.software(software, team=team, image=image, task=task, **keys)
        submission = load_submission(self.project.config, team, software)
        target = self.project.home / "bundles" / f"{team}.{software}"
        ref = self.engine.resolve(image)
        write(submission, ref, target, engine=self.engine, check=None, with_archive=False)

    def register(self, team: str, software: str) -> str:
        """Register a packed software; returns the submission's id."""
        folder = self.project.home / "bundles" / f"{team}.{software}"
        return register(self.project.config, self.store, self.engine, self.tasks, folder).submission

    def desk(self) -> Workspace:
        bundles, errors = registered(self.project.config, self.store)
        assert not errors
        return Workspace(self.store, self.tasks, bundles)

    def work(self, todo: Plan | None = None, **options: Any) -> Pool:
        """Plan and run everything; returns the pool."""
        commit_orphans(self.store)
        desk = self.desk()
        evaluators = {
            name: Evaluator.of(task, list(task.datasets.values()), self.engine, EVALUATOR)
            for name, task in desk.tasks.items()
        }
        desk = replace(desk, evaluators=evaluators)
        executor = LocalExecutor(self.engine, desk, self.control, **options)
        pool = Pool(executor, desk, self.control, on_progress=self.told.append)
        self.done = pool.run(todo or plan(desk, Selection()))
        return pool

    def outcome(self, run: str) -> Any:
        return find_run(self.store, run, self.tasks.values()).outcome

    def executed(self) -> list[str]:
        """team.software in the order in which they were started."""
        begun = [m.run.submission for m in self.told if m.kind == "started" and m.step == "execute"]
        return [f"{one.team}.{one.software}" for one in begun]

    def close(self) -> None:
        self.store.close()
        self.engine.close()


def count_down(times: int) -> Iterator[int]:
    """``times``, one less each time, and then zeros."""
    while True:
        yield max(times, 0)
        times -= 1


class Gauge:
    """Counts how many scripts run at once."""

    def __init__(self, seconds: float = 0.15) -> None:
        self.now = self.most = 0
        self.seconds = seconds
        self.lock = threading.Lock()

    def __call__(self, mounts: Mounts, out: Path) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        good(mounts, out)


def sets(event: threading.Event, see: Callable[[], object] = lambda: None) -> Any:
    """A software that calls ``see``, sets the event, and ends well."""

    def script(mounts: Mounts, out: Path) -> None:
        see()
        event.set()
        good(mounts, out)

    return script


def waits_for(event: threading.Event) -> Any:
    """A software that ends well once the event is set."""

    def script(mounts: Mounts, out: Path) -> None:
        assert event.wait(60)
        good(mounts, out)

    return script


def sleeps(begun: threading.Event) -> Any:
    """A software that sets the event and then runs until it is stopped."""

    def script(mounts: Mounts, out: Path) -> None:
        begun.set()
        mounts.stopped.wait(100)

    return script


def test_teams_take_turns(world: World) -> None:
    """The first team to hand in five softwares does not make the others wait for all of them."""
    for n in range(4):
        world.hand_in("early", f"s{n}")
    world.hand_in("late", "s0")
    world.hand_in("later", "s0")
    world.work(jobs=1)
    order = [("early", 0), ("late", 0), ("later", 0), ("early", 1), ("early", 2), ("early", 3)]
    assert world.executed() == [f"{team}.s{n}" for team, n in order]
    assert {run.outcome.name for run in world.done.values()} == {"scored"}
    assert [m.step for m in world.told if m.kind == "started"] == ["execute", "evaluate"] * 6


@pytest.mark.parametrize(
    ("jobs", "cpus", "memory", "most"),
    [(1, 8, GIB, 1), (3, 8, 32 * GIB, 3), (8, 2, 32 * GIB, 2), (8, 8, int(200 * MIB / 0.9) + 1, 3)],
)
def test_bounded_by_jobs_processors_and_memory(
    jobs: int, cpus: int, memory: int, most: int, project: Project
) -> None:
    # The evaluator asks for little, so that the softwares are what fills the machine.
    project.write_task(evaluator={"limits": {"memory": "1MiB", "cpus": 0.01}})
    world = World(project, info=replace(FAKE, cpus=cpus, memory=memory))
    gauge = Gauge()
    for n in range(6):
        world.hand_in("alpha", f"s{n}", gauge)
    world.work(jobs=jobs)
    assert gauge.most == most
    world.close()


def test_what_cannot_begin_says_for_what_it_waits(project: Project) -> None:
    """Only runs that wait for one another are said to do so; others wait for one that is too large, directly or not."""
    project.write_task("large", limits={"memory": "8GiB"})
    world = World(project, info=replace(FAKE, memory=4 * GIB))
    big = world.hand_in("alpha", "big", task="large")
    second, third, fourth, fifth, fine = (world.hand_in("alpha", f"s{n}") for n in range(5))
    needs = {second: (big,), third: (second,), fourth: (fifth,), fifth: (fourth,)}
    todo = plan(world.desk(), Selection())
    pool = world.work(
        replace(todo, work=tuple(replace(one, needs=needs.get(one.run.id, ())) for one in todo.work))
    )
    said = {m.run.id: m.text for m in world.told if m.kind == "blocked"}
    assert said.keys() == pool.failed.keys() == {big, second, third, fourth, fifth}
    assert "memory" in said[big] and big in said[second] and second in said[third]
    assert said[fourth] == said[fifth] and big not in said[fourth]
    assert (world.outcome(fine).name, world.outcome(big).name) == ("scored", "pending")
    world.close()


def _broken(times: int) -> list[BaseException]:
    return [PlatformError("fault-17", why="No space left.") for _ in range(times)]


@pytest.mark.parametrize(("faults", "name", "attempts"), [(1, "scored", 2), (2, "scored", 3), (3, "held", 3)])
def test_our_failures_are_tried_again_twice(faults: int, name: str, attempts: int, project: Project) -> None:
    world = World(project, faults={"session": _broken(faults)})
    run = world.hand_in("alpha")
    world.work()
    assert world.outcome(run).name == name
    assert len(world.store.archive.attempts("mini", run)) == attempts
    assert not world.outcome(run).costs_quota or name == "scored"
    if name == "held":
        assert world.outcome(run).blame == "platform" and "fault-17" in world.outcome(run).reason
        assert plan(world.desk(), Selection()).work == (), "held runs wait for the organiser"
        assert plan(world.desk(), Selection(), force=True).work
    world.close()


def test_the_softwares_failures_are_never_repeated(world: World) -> None:
    runs = {
        world.hand_in("alpha", "crash", Exit(code=3)): "run-error",
        world.hand_in("alpha", "oom", Exit(code=137, oom_killed=True)): "memory-limit",
        world.hand_in("alpha", "silent", Exit(code=0)): "no-output",
    }
    world.work()
    for run, verdict in runs.items():
        outcome = world.outcome(run)
        assert (outcome.name, outcome.verdict, outcome.blame) == ("failed", verdict, "participant")
        assert outcome.costs_quota and not outcome.ranked and outcome.listed
        assert len(world.store.archive.attempts("mini", run)) == 1


def test_an_engine_that_is_gone_stops_everything_and_uses_up_no_try(project: Project) -> None:
    gone = PlatformError("no container engine answers", code="E301")
    world = World(project)
    runs = [world.hand_in("alpha", f"s{n}") for n in range(3)]
    world.engine._faults["session"] = [gone]
    with pytest.raises(RunnerError) as caught:
        world.work(jobs=1)
    assert caught.value.code == "E301" and caught.value.exit_code == 3
    assert all(world.store.archive.attempts("mini", run) == [] for run in runs)
    assert not any(p.is_dir() for p in world.store.archive.tmp.iterdir())
    world.control = Control(project.home / "cancel")
    world.work()
    assert {world.outcome(run).name for run in runs} == {"scored"}
    assert all(len(world.store.archive.attempts("mini", run)) == 1 for run in runs)
    world.close()


def test_an_engine_that_goes_during_an_evaluation(project: Project) -> None:
    world = World(project)
    run = world.hand_in("alpha")

    def leaves(mounts: Mounts, out: Path) -> None:
        good(mounts, out)
        world.engine._faults["data_volume"] = [PlatformError("no container engine answers", code="E301")]

    world.engine.script["alpha/one"] = leaves
    with pytest.raises(RunnerError) as caught:
        world.work(jobs=1)
    assert caught.value.code == "E301"
    [attempt] = world.store.archive.attempts("mini", run)
    assert attempt.evaluations() == []
    world.control = Control(project.home / "cancel")
    world.work()
    assert world.outcome(run).name == "scored"
    assert len(world.store.archive.attempts("mini", run)) == 1, "what was sealed was not lost"
    world.close()


def test_a_defect_of_ours_is_said_and_stops_nobody_else(world: World) -> None:
    """It is tried three times, as other failures of ours, and not in each round from then on."""
    broken = world.hand_in("alpha", "one", lambda mounts, out: int("what is hidden"))
    fine = world.hand_in("beta", "two")
    world.work()
    found = world.outcome(broken)
    assert found.name == "held" and not found.costs_quota, "it is not the software's fault and costs nothing"
    assert (
        all(word in found.reason for word in ("ValueError", "test_pool.py")) and "hidden" not in found.reason
    )
    assert world.outcome(fine).name == "scored"
    before = len(world.executed())
    assert plan(world.desk(), Selection(run=broken)).work == () and len(world.executed()) == before
    attempts = world.store.archive.attempts("mini", broken)
    assert len(attempts) == TRIES
    assert not any("hidden" in (one.path / "run.json").read_text() for one in attempts)


def test_a_defect_of_ours_in_evaluating(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truths may be in what it says: nothing records that."""

    def evaluate(*_: Any) -> Evaluation:
        raise KeyError("topic 7: a truth")

    monkeypatch.setattr(local, "evaluate", evaluate)
    run = world.hand_in("alpha", "one")
    world.work()
    assert len(world.executed()) == 1, "what was executed is not executed again"
    [attempt] = world.store.archive.attempts("mini", run)
    assert len(attempt.evaluations()) == TRIES and not world.outcome(run).costs_quota
    assert not any("truth" in str(one.record(check=False)["message"]) for one in attempt.evaluations())
    message = str(attempt.evaluations()[0].record(check=False)["message"])
    assert "KeyError" in message and "test_pool.py" in message
    assert plan(world.desk(), Selection(run=run)).work == ()


@pytest.mark.parametrize(
    "error", [OSError(24, "too many open files"), RuntimeError("can't start new thread")]
)
def test_what_the_machine_lacks_holds_no_run(
    world: World, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hold all that wait within seconds."""

    def broke(*_: Any) -> Any:
        raise error

    run, executed = world.hand_in("alpha", "one"), local.execute
    monkeypatch.setattr(local, "execute", broke)
    world.work()
    assert world.outcome(run).name == "pending" and world.store.archive.attempts("mini", run) == []
    monkeypatch.setattr(local, "execute", executed)
    world.work()
    assert world.outcome(run).name == "scored"


def test_a_defect_of_ours_that_cannot_be_recorded_either(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broke(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(local, "execute", broke)
    monkeypatch.setattr(pool, "fail", broke)
    broken = world.hand_in("alpha", "one")
    world.work()
    assert world.outcome(broken).name == "pending"
    [why] = [m.text for m in world.told if m.kind == "blocked"]
    assert "E308" in why and "ZeroDivisionError" in why
    assert not [m for m in world.told if m.kind == "done"], "it is counted once"


def _spoiled(attempt: Attempt) -> Attempt:
    """A sealed attempt that no store can hold."""
    path = attempt.path / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"resources": {**record["resources"], "memory_peak": 10**30}}))
    return attempt


@pytest.mark.parametrize("times", [1, 9])
def test_what_the_store_refuses_is_executed_again_as_other_failures_of_ours_are(
    world: World, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Three times in all; then the organiser looks at it, however often everything is evaluated."""
    left, executed = count_down(times), local.execute

    def execute(*of: Any) -> Attempt:
        made = executed(*of)
        return _spoiled(made) if next(left) else made

    monkeypatch.setattr(local, "execute", execute)
    run, fine = world.hand_in("alpha"), world.hand_in("beta")
    for _ in range(2 if times == 9 else 1):
        world.work(plan(world.desk(), Selection(run=run)))
    found = find_run(world.store, run, world.tasks.values())
    assert len(world.executed()) == min(times + 1, TRIES)
    if times == 1:
        assert found.outcome.name == "scored"
    else:
        assert found.outcome.name == "held" and found.outcome.failed_through_us
        assert plan(world.desk(), Selection(run=run)).work == ()
        monkeypatch.setattr(local, "execute", executed)
        world.work(plan(world.desk(), Selection(run=run), force=True))
        assert world.outcome(run).name == "scored", "the organiser has it tried again"
    charged = quota(world.store, world.tasks["mini"], "alpha").used
    assert charged == 1 and world.outcome(fine).name == "pending"


def test_stopping_leaves_nothing_half_done(world: World) -> None:
    begun = threading.Event()
    slow, waiting = world.hand_in("alpha", "slow", sleeps(begun)), world.hand_in("beta")
    stopper = threading.Thread(target=lambda: begun.wait(60) and world.control.stop.set())
    stopper.start()
    with pytest.raises(KeyboardInterrupt):
        world.work(jobs=1)
    stopper.join()
    assert world.store.archive.attempts("mini", slow) == []
    assert world.outcome(slow).name == world.outcome(waiting).name == "pending"
    assert not any(p.is_dir() for p in world.store.archive.tmp.iterdir())


def _both_at_once(
    monkeypatch: pytest.MonkeyPatch, then: Callable[[Any], Any] = lambda one: one, pairs: int = 1
) -> None:
    """Have steps be given out once two have ended, so often, and ``then`` be what is done to the second."""
    real, kept, left = LocalExecutor.ended, list[Any](), pairs

    def ended(self: LocalExecutor, timeout: float | None) -> Any:
        nonlocal left
        if timeout != 0 and left:
            left -= 1
            kept.extend(real(self, None) for _ in range(2))
            return kept.pop(0)
        return then(kept.pop(0)) if kept else real(self, timeout)

    monkeypatch.setattr(LocalExecutor, "ended", ended)


def _gathers(monkeypatch: pytest.MonkeyPatch, seconds: float, role: str = "software") -> None:
    """Have the pool gather what ended for so long, also where few steps are under way; ``role`` is what its host is for."""
    real = LocalExecutor.hosts

    def hosts(self: LocalExecutor) -> Sequence[Host]:
        for one in (found := real(self)):
            one.role = role
        return found

    monkeypatch.setattr(LocalExecutor, "hosts", hosts)
    monkeypatch.setattr("runner.execution.pool.MANY", 1)
    monkeypatch.setattr("runner.execution.pool.GATHERED", seconds)


def test_where_many_are_under_way_the_next_begins_before_what_ended_is_committed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _gathers(monkeypatch, 3600)
    third, together, real = threading.Event(), list[int](), Store.commit_all
    seen = []

    def commit_all(self: Store, said: Any, *, actor: str) -> Any:
        together.append(len(said))
        return real(self, said, actor=actor)

    monkeypatch.setattr(Store, "commit_all", commit_all)
    first = world.hand_in("alpha")
    runs = [first, world.hand_in("beta", script=waits_for(third))]
    runs.append(world.hand_in("gamma", script=sets(third, lambda: seen.append(world.outcome(first).name))))
    together.clear()
    world.work(jobs=2)
    assert seen == ["pending"], "its slot is given to the next at once"
    assert together[0] == 3, "and where nothing is under way any more nobody waits"
    assert [world.outcome(run).name for run in runs] == ["scored"] * 3


def test_where_evaluations_are_made_too_a_run_goes_on_before_another_begins(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _gathers(monkeypatch, 3600, role="")
    third, seen = threading.Event(), []

    first = world.hand_in("alpha")
    world.hand_in("beta", script=waits_for(third))
    world.hand_in("gamma", script=sets(third, lambda: seen.append(world.outcome(first).todo)))
    world.work(jobs=2)
    assert seen and seen[0] != "run", "it was committed, and its evaluation known"


def test_what_is_gathered_is_committed_in_time_though_nothing_else_ends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _gathers(monkeypatch, 0.1)
    told, scored = world.told, threading.Event()

    class Telling(list[RunProgress]):
        def append(self, one: RunProgress) -> None:
            if one.kind == "done":
                scored.set()
            told.append(one)

    world.told = Telling()
    runs = [world.hand_in("alpha"), world.hand_in("beta", script=waits_for(scored))]
    world.work(jobs=2)
    assert [one.run.id for one in told if one.kind == "done"] == runs


def test_what_was_gathered_when_everything_was_stopped_is_committed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _gathers(monkeypatch, 3600)

    def stops(mounts: Mounts, out: Path) -> None:
        world.control.stop.set()
        mounts.stopped.wait(100)

    runs = [world.hand_in("alpha"), world.hand_in("beta", script=sleeps(threading.Event()))]
    runs.append(world.hand_in("gamma", script=stops))
    with pytest.raises(KeyboardInterrupt):
        world.work(jobs=2)
    assert [world.outcome(run).todo for run in runs] == ["evaluate", "run", "run"]
    assert commit_orphans(world.store) == 0


def test_what_was_asked_to_stop_is_seen_by_one_look(world: World) -> None:
    assert world.control.called_off({"a", "b"}) == set()
    world.control.request("b")
    world.control.request("c")
    assert world.control.called_off({"a", "b"}) == {"b"}
    world.control.forget("b")
    assert world.control.called_off({"a", "b"}) == set()
    world.control.stop.set()
    assert world.control.called_off({"a", "b"}) == {"a", "b"}


@pytest.mark.parametrize(("large", "alone"), [("scores.jsonl", True), ("result.json", True), (None, False)])
def test_large_evaluations_are_committed_one_after_the_other_so_that_others_get_in_between(
    world: World, monkeypatch: pytest.MonkeyPatch, large: str | None, alone: bool
) -> None:
    def wide(mounts: Mounts, out: Path) -> None:
        evaluator(mounts, out)
        out.joinpath("scores.jsonl").write_text('{"measure": "ndcg_10", "topic": "1", "value": 0.5}')
        if large is not None:
            with out.joinpath(large).open("a") as file:
                file.write(" " * 2000 + "\n")

    world.engine.script[EVALUATOR] = wide
    together: list[int] = []
    real = Store.commit_all

    def commit_all(self: Store, said: Any, **more: Any) -> Any:
        together.append(len(said))
        return real(self, said, **more)

    runs = [world.hand_in("alpha"), world.hand_in("beta")]
    monkeypatch.setattr("runner.execution.executors.base.AT_ONCE", 2000)
    monkeypatch.setattr(Store, "commit_all", commit_all)
    _both_at_once(monkeypatch, pairs=2)
    world.work(jobs=2)
    assert together == ([2, 1, 1] if alone else [2, 2]), "attempts together, large evaluations each by itself"
    assert [world.outcome(run).name for run in runs] == ["scored", "scored"]


def test_who_interrupts_while_results_are_gathered_loses_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(second: Any) -> Any:
        raise KeyboardInterrupt

    runs = [world.hand_in("alpha"), world.hand_in("beta")]
    _both_at_once(monkeypatch, interrupted)
    with pytest.raises(KeyboardInterrupt):
        world.work(jobs=2)
    assert [world.outcome(run).todo for run in runs] == ["evaluate", "evaluate"]
    assert commit_orphans(world.store) == 0


def test_a_result_that_the_store_cannot_hold_is_a_failure_of_its_run_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoilt: list[str] = []

    def spoils(second: Any) -> Any:
        planned, attempt = second
        path = attempt.path / "run.json"
        record = json.loads(path.read_text())
        path.write_text(json.dumps({**record, "started": None}))
        spoilt.append(planned.run.id)
        return second

    runs = [world.hand_in("alpha"), world.hand_in("beta")]
    _both_at_once(monkeypatch, spoils)
    pool = world.work(jobs=2)
    assert pool.failed == {} and len(spoilt) == 1
    assert [world.outcome(run).name for run in runs] == ["scored", "scored"]
    attempts = {run: find_run(world.store, run, world.tasks.values()).attempts for run in runs}
    assert attempts == {run: 1 + (run in spoilt) for run in runs}, (
        "one failed on our side, and it was tried again"
    )
    [error, said] = world.store.archive.attempts("mini", spoilt[0])[1:]
    assert error.record()["verdict"]["name"] == "platform-error" and said.number == 3
    world.store.close()
    with open_store(world.project.config) as again:
        assert again.head() == again.log.end()


def test_an_evaluation_whose_list_of_files_is_none_is_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, spoilt = LocalExecutor.ended, list[str]()

    def ended(self: LocalExecutor, timeout: float | None) -> Any:
        one = real(self, timeout)
        if one is not None and isinstance(one[1], Evaluation) and not spoilt:
            path = one[1].path / "manifest.json"
            path.chmod(0o644)
            path.write_text("{}")
            spoilt.append(one[0].run.id)
        return one

    runs = [world.hand_in("alpha"), world.hand_in("beta")]
    monkeypatch.setattr(LocalExecutor, "ended", ended)
    pool = world.work(jobs=1)
    assert not pool.failed and spoilt == runs[:1]
    outcomes = [world.outcome(run) for run in runs]
    # The store refuses the first, which counts as a failure of ours, the second; the third is that of the run.
    assert [(one.name, one.evaluation) for one in outcomes] == [("scored", 3), ("scored", 1)]


def test_one_run_can_be_cancelled(world: World) -> None:
    begun = threading.Event()
    slow, other = world.hand_in("alpha", "slow", sleeps(begun)), world.hand_in("beta")
    canceller = threading.Thread(target=lambda: begun.wait(60) and world.control.request(slow))
    canceller.start()
    world.work(jobs=1)
    canceller.join()
    assert world.outcome(slow).name == "cancelled" and not world.outcome(slow).costs_quota
    assert world.outcome(other).name == "scored"
    # An old request does not hit a new start.
    world.engine.script["alpha/slow"] = good
    world.control.request(slow)
    world.work(plan(world.desk(), Selection(run=slow), force=True))
    assert world.outcome(slow).name == "scored"


def test_what_was_withdrawn_since_it_was_planned_is_not_begun_and_holds_no_slot(world: World) -> None:
    runs = [world.hand_in("alpha", name) for name in ("one", "two", "three")]
    todo = plan(world.desk(), Selection())
    for run in runs[:2]:
        facts = {"submission": run.removesuffix(".test"), "reason": "wrong"}
        world.store.commit("submission-withdrawn", facts, actor="alpha")
    world.work(todo, jobs=2)
    assert [world.outcome(run).name for run in runs] == ["withdrawn", "withdrawn", "scored"]
    assert world.executed() == ["alpha.three"] and world.done.keys() == set(runs)


def pauses(world: World, dataset: str = "test") -> Any:
    """A software that ends well after the organiser paused the dataset, or with an empty name the task."""

    def script(mounts: Mounts, out: Path) -> None:
        place = {"task": "mini", "dataset": dataset, "reason": ""}
        world.store.commit("dataset-paused", place, actor="organiser")
        good(mounts, out)

    return script


def test_a_pause_lets_what_runs_end_and_begins_nothing_more_until_it_is_resumed(world: World) -> None:
    place = {"task": "mini", "dataset": "", "reason": "a topic is wrong"}

    first, second = world.hand_in("alpha", "one", pauses(world, "")), world.hand_in("beta", "two")
    pool = world.work(jobs=1)
    assert world.executed() == ["alpha.one"]
    assert world.outcome(first).name == "scored", "its evaluation belongs to it"
    assert world.outcome(second).name == "pending"
    assert "resume mini" in pool.failed[second].why
    world.store.commit("dataset-resumed", place, actor="organiser")
    world.work()
    assert world.outcome(second).name == "scored"


def test_what_is_resumed_meanwhile_is_begun_by_the_same_plan(world: World) -> None:
    place = {"task": "mini", "dataset": "test", "reason": ""}
    begun: list[list[str]] = []

    def resumes(mounts: Mounts, out: Path) -> None:
        while not any(m.kind == "done" for m in world.told):
            assert not mounts.stopped.wait(0.01)
        begun.append(world.executed())
        world.store.commit("dataset-resumed", place, actor="organiser")
        good(mounts, out)

    world.hand_in("alpha", "one", pauses(world))
    world.hand_in("beta", "two", resumes)
    waiting = world.hand_in("gamma", "three")
    pool = world.work(jobs=2)
    assert begun == [["alpha.one", "beta.two"]] and not pool.failed
    assert world.outcome(waiting).name == "scored"


def test_a_pause_does_not_hold_what_is_forced(world: World) -> None:
    runs = [world.hand_in("alpha", "one", pauses(world)), world.hand_in("beta", "two")]
    world.work(plan(world.desk(), Selection(), force=True), jobs=1)
    assert [world.outcome(run).name for run in runs] == ["scored", "scored"]


def test_an_input_is_run_first_and_given_to_the_next_stage(world: World) -> None:
    seen: list[str] = []

    def second(mounts: Mounts, out: Path) -> None:
        folder = next(path for target, path in mounts.items() if target.endswith("input-run"))
        seen.append(folder.joinpath("run.txt").read_text())
        good(mounts, out)

    first = world.hand_in("alpha", "first", Gauge(0.3))
    late = world.hand_in("alpha", "second", second, inputs={"ranking": "first"})
    world.work(jobs=4)
    assert seen == ["1 Q0 d 1 1.0 tag\n"]
    assert world.outcome(first).name == world.outcome(late).name == "scored"
    assert plan(world.desk(), Selection()).work == ()


def test_a_stage_whose_input_failed_is_not_run(world: World) -> None:
    world.hand_in("alpha", "first", Exit(code=1))
    late = world.hand_in("alpha", "second", good, inputs={"ranking": "first"})
    pool = world.work()
    assert list(pool.failed) == [late]
    assert world.outcome(late).name == "pending"


BOTH = [{"id": "main", "cells": [{"dataset": "test"}, {"dataset": "dev"}], "rank_by": "ndcg_10"}]


class Crowd:
    """Which kinds of data are being looked at, at every moment that something begins."""

    def __init__(self) -> None:
        self.now: list[str] = []
        self.seen: list[frozenset[str]] = []
        self.order: list[str] = []
        self.lock = threading.Lock()

    def __call__(self, mounts: Mounts, out: Path) -> None:
        topics = next(path for path in mounts.values() if (path / "queries.jsonl").is_file())
        kind = "public" if "dev-" in (topics / "queries.jsonl").read_text() else "blinded"
        with self.lock:
            self.now.append(kind)
            self.order.append(kind)
            self.seen.append(frozenset(self.now))
        time.sleep(0.1)
        with self.lock:
            self.now.remove(kind)
        (evaluator if mounts.spec.role == "evaluator" else good)(mounts, out)


@pytest.mark.slow
def test_public_runs_first_and_never_beside_blinded_ones(project: Project) -> None:
    project.write_task(tables=BOTH)
    world, crowd = World(project), Crowd()
    world.engine.script[EVALUATOR] = crowd
    for n in range(3):
        world.hand_in(f"team{n}", script=crowd, datasets=["test", "dev"])
    world.work(jobs=4)
    assert {run.outcome.name for run in world.done.values()} == {"scored"}
    assert set(crowd.seen) == {frozenset({"public"}), frozenset({"blinded"})}
    # Evaluations too: the evaluator of a blinded run reads truths, and shares layers with softwares.
    assert crowd.order == ["public"] * 6 + ["blinded"] * 6
    assert world.engine.calls.count("evict") == 1, "that it works is tried once before the first blinded run"
    world.close()


@pytest.mark.parametrize("engine_for", ["public", "blinded"])
def test_an_engine_for_one_kind_leaves_the_others_to_another(project: Project, engine_for: Any) -> None:
    project.write_task(tables=BOTH)
    world, crowd = World(project, engine_for=engine_for), Crowd()
    world.engine.script[EVALUATOR] = crowd
    run = world.hand_in("alpha", script=crowd, datasets=["test", "dev"])
    todo = plan(replace(world.desk(), engine_for=engine_for), Selection())
    left = {"public": run, "blinded": run.removesuffix("test") + "dev"}[engine_for]
    assert [(s.run.id, s.elsewhere) for s in todo.skipped] == [(left, True)]
    assert "RUNNER_ENGINE_FOR" in todo.skipped[0].why
    pool = world.work(todo)
    assert pool.failed == {} and set(crowd.order) == {engine_for}
    assert "evict" not in world.engine.calls
    # Planned all the same (by a process that was told otherwise), it is refused before anything starts.
    pool = world.work(plan(world.desk(), Selection()))
    assert list(pool.failed) == [left] and set(crowd.order) == {engine_for}
    assert world.outcome(left).name == "pending"
    world.close()


def test_without_eviction_no_blinded_run_and_no_attempt_spent(project: Project) -> None:
    from runner.engines.turns import cannot_evict

    world = World(project, faults={"evict": [cannot_evict("no"), cannot_evict("no")]})
    run = world.hand_in("alpha")
    pool = world.work()
    assert "two-engines.md" in pool.failed[run].why
    assert world.outcome(run).name == "pending" and world.store.archive.attempts("mini", run) == []
    world.close()


def test_a_label_that_this_machine_has_not_is_said(project: Project) -> None:
    """The kinds of its GPUs are labels of a machine."""
    project.write_task_only(limits={"gpus": 1, "labels": ["nvidia-a100"]})
    for kinds in ((), ("nvidia-a100",)):
        world = World(project, info=replace(FAKE, gpus=1, gpu_kinds=kinds))
        run = world.hand_in(f"team{len(kinds)}")
        done = world.work()
        if kinds:
            assert world.outcome(run).name == "scored"
        else:
            assert "nvidia-a100" in done.failed[run].why
        world.close()
