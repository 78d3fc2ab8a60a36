"""First cases: some topics are run before the others, and what fails on them ends the run there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runner.engines.fake import Mounts
from runner.model.container import Exit, Resources
from runner.model.errors import PlatformError
from runner.model.quota import FIRST_CASES
from runner.records.store.charges import quota, spent
from runner.records.store.queries import find_run
from runner.records.store.run_detail import detail
from runner.views.audience import ORGANISER, Audience
from runner.views.estimate import estimate
from runner.views.redact import RunView, redact_run
from tests.runner.execution.test_pool import World, good
from tests.worlds.mini import TASK, Project

ALPHA = Audience("team", "alpha")


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    _write(project, smoke=2)
    made = World(project)
    yield made
    made.close()


def _write(project: Project, **keys: Any) -> None:
    datasets = deepcopy(TASK["datasets"])
    datasets[1] |= keys
    project.write_task(datasets=datasets)


def _topics(mounts: Mounts) -> list[str]:
    """The topics that a software is shown."""
    (inputs,) = (path for target, path in mounts.items() if (path / "queries.jsonl").is_file())
    return [json.loads(line)["qid"] for line in (inputs / "queries.jsonl").read_text().splitlines()]


class Software:
    """Notes the topics that it is shown each time; ``ends`` are how it ends, one after another, and then well."""

    def __init__(self, *ends: Any) -> None:
        self.ends, self.shown = list(ends), list[list[str]]()

    def __call__(self, mounts: Mounts, out: Path) -> Any:
        self.shown.append(_topics(mounts))
        (mounts.say)(f"topics: {len(self.shown[-1])}")
        end = self.ends.pop(0) if self.ends else None
        if end is None:
            good(mounts, out)
        return end


def _view(world: World, run: str, audience: Audience) -> RunView:
    task = world.tasks["mini"]
    return redact_run(detail(world.store, run, [task]), audience, task.datasets["test"])


def _record(world: World, run: str) -> dict[str, Any]:
    return dict(world.store.archive.attempts("mini", run)[-1].record())


def test_some_topics_are_run_first_then_all_of_them(world: World) -> None:
    """The same image, limits and other files; the archive has what all topics gave, and says how the first went."""
    software = Software()
    run = world.hand_in("alpha", "one", software)
    world.work()
    assert world.outcome(run).name == "scored"
    some, whole = software.shown
    assert whole == ["test-1", "test-2", "test-3"] and len(some) == 2 and set(some) < set(whole)
    first, second = [spec for spec in world.engine.started if spec.role == "software"]
    for name in ("image", "limits", "command", "env"):
        assert getattr(first, name) == getattr(second, name), name
    record = _record(world, run)
    assert record["first_cases"]["topics"] == 2 and record["first_cases"]["verdict"] == "ok"
    assert record["verdict"] == {**record["verdict"], "name": "ok", "warnings": []}
    again = Software()
    other = world.hand_in("beta", "one", again)
    world.work()
    assert again.shown[0] == some, "the same topics for everybody"
    assert world.outcome(other).name == "scored"


@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        (Exit(code=3), "run-error"),
        (Exit(code=137, oom_killed=True), "memory-limit"),
        (Exit(code=None, killed="time"), "time-limit"),
        (0, "no-output"),
    ],
)
def test_what_fails_on_them_ends_there_with_the_real_cause(world: World, end: Any, verdict: str) -> None:
    software = Software(end)
    run = world.hand_in("alpha", "one", software)
    world.work()
    assert [len(topics) for topics in software.shown] == [2], "the other topics were not run"
    outcome = world.outcome(run)
    assert (outcome.name, outcome.verdict, outcome.first_cases) == ("failed", verdict, True)
    record = _record(world, run)
    assert record["verdict"]["name"] == record["first_cases"]["verdict"] == verdict
    assert "first-cases" in [one["kind"] for one in record["verdict"]["details"]["warnings"]]
    seen = _view(world, run, ORGANISER)
    assert "topics: 2" in str(seen["log"]), "its log is that of the first cases"
    world.work()
    assert len(software.shown) == 1, "a failure is settled"


def test_a_failure_on_the_others_is_as_ever(world: World) -> None:
    run = world.hand_in("alpha", "one", Software(None, Exit(code=3)))
    world.work()
    assert (world.outcome(run).verdict, world.outcome(run).first_cases) == ("run-error", False)
    assert quota(world.store, world.tasks["mini"], "alpha").used == 1


def test_on_hidden_data_a_team_is_told_no_more_than_of_a_usual_failure(world: World) -> None:
    early = world.hand_in("alpha", "early", Software(Exit(code=3)))
    late = world.hand_in("alpha", "later", Software(None, Exit(code=3)))
    world.work()
    told = []
    for run in (early, late):
        view = dict(_view(world, run, ALPHA))
        for key in ("run", "submission", "software", "registered", "started", "command", "image"):
            view.pop(key)
        view["tag"] = view["description"] = ""
        told.append(view)
    assert told[0] == told[1] and "first cases" not in json.dumps(told)
    assert "first cases" in json.dumps(dict(_view(world, early, ORGANISER)))


def test_what_they_used_is_a_part_of_what_an_attempt_took(world: World) -> None:
    """Of the budget, of what a campaign would cost, and of the time from start to end; of a failure there it is all."""
    used = Resources(wall_seconds=2.0, cpu_seconds=1.5)
    ends = [Exit(code=0, resources=used), Exit(code=0, resources=replace(used, cpu_seconds=6.0))]
    shown = []

    def software(mounts: Mounts, out: Path) -> Exit:
        shown.append(datetime.now(UTC).replace(microsecond=0))
        good(mounts, out)
        return ends.pop(0)

    run = world.hand_in("baselines", "one", software)
    world.work()
    assert world.outcome(run).name == "scored" and not ends
    assert spent(world.store, "mini") == 7.5
    task = world.tasks["mini"]
    task = replace(task, tables={"main": replace(task.tables["main"], baseline="baselines/one")})
    assert estimate(world.store, task, teams=1, submissions=1).processor == pytest.approx(7.5 / 3600)
    assert datetime.fromisoformat(_record(world, run)["started"]) <= shown[0]
    world.hand_in("alpha", "one", Software(Exit(code=3, resources=used)))
    world.work()
    assert spent(world.store, "mini") == 9.0
    world.store.replay()
    assert spent(world.store, "mini") == 9.0


def test_a_quarter_of_a_failure_is_what_it_costs(world: World) -> None:
    task = world.tasks["mini"]
    for number in range(1, FIRST_CASES + 1):
        world.hand_in("alpha", f"s{number}", Software(Exit(code=3)))
        world.work()
        use = quota(world.store, task, "alpha")
        assert (use.used, use.first, use.open) == (int(number == FIRST_CASES), number, 0)
    assert str(FIRST_CASES) in use.says
    world.store.replay()
    assert quota(world.store, task, "alpha") == use


def test_our_failure_on_them_is_ours(world: World) -> None:
    software = Software()
    run = world.hand_in("alpha", "one", software)
    world.engine.script["alpha/one"] = PlatformError("broken")
    world.work()
    outcome = world.outcome(run)
    assert (outcome.name, outcome.blame, outcome.first_cases) == ("held", "platform", False)
    assert find_run(world.store, run, world.tasks.values()).attempts == 3


def test_all_topics_are_run_at_once_if_there_are_no_more(world: World) -> None:
    _write(world.project, smoke=3)
    software = Software()
    run = world.hand_in("alpha", "one", software)
    world.work()
    assert [len(topics) for topics in software.shown] == [3]
    assert "first_cases" not in _record(world, run)
    _write(world.project, smoke=1)
    world.work()
    assert len(software.shown) == 1, "another number of first cases runs nothing again"
