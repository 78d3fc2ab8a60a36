"""The organiser's console: what needs somebody, and nothing that the front must not have."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.published import Published, Publisher
from runner.model.errors import PlatformError
from runner.records.review import comment_run, decide
from runner.work.members.accounts import open_accounts
from runner.work.members.registrations import Registration
from runner.work.publishing import Desk
from tests.runner.execution.test_pool import EVALUATOR, World, good
from tests.worlds.command_line import Cli, cli
from tests.worlds.mini import Project

__all__ = ["cli"]

CANARIES = [f"canary-{n}-7719" for n in range(8)]


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    project.write_task(uploads=True, review="required", prefix=CANARIES[0])
    made = World(project)
    yield made
    made.close()


def talkative(mounts: Any, out: Path) -> None:
    mounts.say(f"the hidden topic is {CANARIES[2]}")
    good(mounts, out)


def published(world: World) -> Published:
    root = world.project.config.published

    def problem(error: Exception) -> None:
        raise error

    Desk(world.store, world.tasks, Publisher(root), problem).publish(["alpha", "gamma"])
    return Published(root)


def console(seen: Published, audience: str = "organiser") -> Any:
    view = seen.view(audience)
    found = view.get("console")
    assert found is not None
    return view.data(found)


def test_runs_of_baselines_and_of_teams_without_an_account_are_listed(world: World) -> None:
    """The organiser sees them in the list of runs, on their pages and in the console; nobody signs in for them."""
    names = [world.hand_in(team) for team in ("alpha", "baselines", "delta")]
    world.work()
    seen = published(world)
    for audience in ("organiser", "assistant"):
        listed = seen.view(audience).get("runs")
        assert listed is not None
        assert sorted(row["run"] for row in seen.view(audience).data(listed)) == sorted(names), audience
        teams = {row["team"]: (row["runs"], row["account"]) for row in console(seen, audience)["teams"]}
        assert teams == {
            "alpha": (1, "open"),
            "baselines": (1, "none"),
            "delta": (1, "none"),
            "gamma": (0, "open"),
        }
    assert all(seen.view("organiser").get(f"runs/{name}") for name in names)
    assert {"team:baselines", "team:delta"}.isdisjoint(seen.pointer())


def test_registrations_stand_there_without_what_people_said(world: World) -> None:
    said = Registration(
        "a-" + "5" * 16, "0" * 32, "0" * 12, "0" * 64, "2031-05-01T12:00:00Z", "mini", "gamma", *CANARIES[3:5]
    )
    with open_accounts(world.project.config) as accounts:
        accounts.registrations.put(said)
        shown = accounts.registrations.shown(world.tasks.values(), datetime(2031, 5, 1, 12, tzinfo=UTC))
    to = Publisher(world.project.config.published)
    Desk(world.store, world.tasks, to, pytest.fail, registrations=shown).publish(["alpha"])
    found = console(Published(world.project.config.published))["registrations"]
    assert [(one["team"], one["account"]) for one in found["waiting"]] == [("gamma", said.account)]
    assert not any(canary in str(found) for canary in CANARIES)


def test_it_says_what_needs_somebody_and_what_to_do(world: World) -> None:
    bad = world.hand_in("alpha", "bad")
    world.work()
    run = world.hand_in("beta", "scored")
    world.work()
    waits = world.hand_in("alpha", "waits")
    shown = console(published(world))
    assert all(one["says"] for one in shown["events"])
    assert {one["run"]: one["state"] for one in shown["review"]["runs"]} == {bad: "waits", run: "waits"}
    assert shown["review"]["runs"][0]["look"] == f"runner review {bad} --approve"
    assert [one["run"] for one in shown["queue"]["runs"]] == [waits] and shown["queue"]["waiting"] == 1
    none = dict.fromkeys(("runs", "queue", "held", "scored", "failed"), 0)
    some = {**none, "runs": 2, "queue": 1, "scored": 1, "account": "open"}
    beta = {**none, "team": "beta", "runs": 1, "scored": 1, "account": "none"}
    gamma = {**none, "team": "gamma", "account": "open"}
    assert shown["teams"] == [{**some, "team": "alpha"}, beta, gamma]
    assert 0 <= shown["disk"]["free_gib"] <= shown["disk"]["of_gib"]
    decide(world.store, world.tasks, run, "approved", "", "organiser")
    decide(world.store, world.tasks, bad, "flagged", "why not", "organiser")
    shown = console(published(world))
    assert {one["run"]: one["state"] for one in shown["review"]["runs"]} == {bad: "flagged"}
    for event, words in zip(shown["events"], ((bad, "flagged"), (run, "approved")), strict=False):
        assert all(word in event["says"] for word in words)
    assert {(one["action"], one["task"]) for one in shown["events"][:2]} == {("run-reviewed", "mini")}


def test_a_held_run_says_why_and_which_command_helps(project: Project) -> None:
    world = World(project, faults={"session": [PlatformError("the disk is full", why=CANARIES[1])] * 3})
    run = world.hand_in("alpha")
    for _ in range(3):
        world.work()
    [held] = console(published(world))["held"]["runs"]
    assert held["run"] == run and CANARIES[1] not in str(held)
    assert "evaluate --force" in held["next"] and held["look"] == f"runner show {run}" and held["again"]
    world.close()


def test_another_execution_is_offered_only_where_it_would_be_done(world: World) -> None:
    world.engine.script[EVALUATOR] = lambda mounts, out: None
    world.hand_in("alpha")
    for _ in range(3):
        world.work()
    [held] = console(published(world))["held"]["runs"]
    assert held["verdict"] == "ok" and not held["again"]


def test_nothing_goes_there_that_the_front_must_not_have(world: World, cli: Cli) -> None:
    """Logs, hidden data, scores before their time, names of people, and what people wrote."""
    run = world.hand_in("alpha", script=talkative, description=CANARIES[3])
    world.work()
    cli(
        "review",
        run,
        "--flag",
        CANARIES[4],
        "--comment",
        CANARIES[5],
        env={"RUNNER_ACTOR": CANARIES[6]},
    )
    comment_run(world.store, world.tasks, run, CANARIES[5], "organiser")
    seen = published(world)
    for audience in ("organiser", "assistant"):
        text = str(console(seen, audience))
        assert not [one for one in CANARIES if one in text] and "0.5" not in text
        assert str(world.project.home) not in text and "was executed" not in text
    assert seen.view("public").get("console") is None and seen.view("team:alpha").get("console") is None


def test_it_moves_with_nothing_that_the_platform_does_by_itself(world: World) -> None:
    world.hand_in("alpha")
    world.work()
    before = published(world).pointer()["organiser"]
    world.store.commit("key-drawn", {"task": "mini", "key": "0" * 64}, actor="runner")
    assert published(world).pointer()["organiser"] == before
