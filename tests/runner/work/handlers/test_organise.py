"""What organisers and assistants decide on the web: done once, by whom it says, and by nobody else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from runner.exchange.inbox import Request, answered
from runner.execution.plan import plan
from runner.model.clock import FixedClock, stamp
from runner.model.config import Person
from runner.model.errors import PlatformError
from runner.model.run import Selection
from runner.records.review import decide, restart
from runner.records.store.queries import submission
from runner.work.news import Told
from tests.runner.execution.test_pool import EVALUATOR, World, good
from tests.runner.work.test_news import fails
from tests.runner.work.test_proposals import NOW, Table, table, table_of
from tests.worlds.command_line import Cli, cli
from tests.worlds.mini import Project

__all__ = ["cli", "table"]


def ask(table: Table, kind: str, role: str = "organiser", **data: Any) -> dict[str, Any]:
    return send(table, wish(table, kind, role, **data), role)


def wish(table: Table, kind: str, role: str = "organiser", **data: Any) -> Request:
    account, token = table.of[role]
    return Request.new(kind, account.id, token.id, account.team, stamp(NOW), data)


def send(table: Table, request: Request, role: str = "organiser") -> dict[str, Any]:
    table.inbox.put(request, table.of[role][1].key)
    table.requests.round(table.world.tasks)
    found = answered(table.world.project.config.published, request.id)
    assert found is not None
    return found


def events(table: Table, type: str) -> list[Any]:
    return [event for event in table.world.store.log if event.type == type]


@pytest.mark.parametrize("role", ["organiser", "assistant"])
def test_a_review_is_decided_and_its_event_says_by_whom(table: Table, role: str) -> None:
    run = table.world.hand_in("alpha")
    table.world.work()
    assert ask(table, "review", role, run=run, state="flagged", reason="odd", to="team")["accepted"] is True
    [event] = events(table, "run-reviewed")
    assert (event.data["state"], event.data["reason"], event.data["to"]) == ("flagged", "odd", "team")
    assert event.person is not None and event.person.name == table.of[role][0].id
    assert ask(table, "review", role, run=run, state="flagged")["code"] == "E101", "a flag needs a reason"
    assert ask(table, "review", role, run="nobody", state="approved")["code"] == "E102"


@pytest.mark.parametrize(
    ("kind", "role"),
    [("review", "team"), ("rerun", "team"), ("withdraw-any", "team"), ("withdraw-any", "assistant"),
     ("team", "team"), ("team", "assistant")],
)  # fmt: skip
def test_who_may_not_decide_it_is_refused(table: Table, kind: str, role: str) -> None:
    run = table.world.hand_in("beta")
    table.world.work()
    before = len(list(table.world.store.log))
    data: dict[str, dict[str, Any]] = {
        "review": {"run": run, "state": "approved"},
        "rerun": {"run": run},
        "withdraw-any": {"submission": run.removesuffix(".test")},
        "team": {"team": "alpha", "action": "close"},
    }
    assert ask(table, kind, role, **data[kind])["code"] == "E103"
    assert [event.type for event in list(table.world.store.log)[before:]] == ["request-decided"]


def test_a_held_run_is_executed_once_more_and_then_left_alone(project: Project) -> None:
    project.write_task(uploads=True)
    world = World(project, faults={"session": [PlatformError("the disk is full")] * 3})
    with table_of(world) as table:
        run = world.hand_in("alpha")
        for _ in range(3):
            world.work()
        assert world.outcome(run).name == "held"
        request = wish(table, "rerun", run=run, reason="the disk has space again")
        assert send(table, request)["accepted"] is True
        assert world.outcome(run).name == "pending"
        assert ask(table, "rerun", run=run)["accepted"] is True, "it waits already"
        [event] = events(table, "run-restarted")
        assert event.data["reason"] == "the disk has space again" and event.data["request"] == request.id
        world.work()
        assert world.outcome(run).name == "scored" and plan(world.desk(), Selection()).work == ()
    world.close()


def test_what_was_scored_counts_until_it_was_executed_again(table: Table) -> None:
    run, world = table.world.hand_in("alpha"), table.world
    world.work()
    restart(world.store, world.tasks, run)
    assert world.outcome(run).name == "scored" and world.outcome(run).ranked
    [planned] = plan(world.desk(), Selection()).work
    assert (planned.run.id, planned.step, planned.changed) == (run, "execute", "")
    world.work()
    assert world.outcome(run).attempt == 2 and plan(world.desk(), Selection()).work == ()


@pytest.mark.parametrize("ends", [good, fails])
def test_the_web_has_no_message_of_a_hidden_run_again(table: Table, ends: Any) -> None:
    """Each execution on hidden data is up to 16 bits for the team: an assistant who asks six times has none of them."""
    run, world = table.world.hand_in("alpha", script=ends), table.world
    world.work()
    for _ in range(6):
        said = ask(table, "rerun", "assistant", run=run)
        assert (said["accepted"], said["code"], said["fix"]) == (
            False,
            "E103",
            f"runner evaluate --run {run} --force",
        )
        world.work()
    assert events(table, "run-restarted") == [] and world.outcome(run).attempt == 1


def test_a_run_that_the_evaluator_could_not_do_is_no_reason_for_another_execution(table: Table) -> None:
    """Its run file may have brought that about: a software could say so as often as somebody asks."""
    run, world = table.world.hand_in("alpha"), table.world
    world.engine.script[EVALUATOR] = fails
    for _ in range(3):
        world.work()
    assert (world.outcome(run).name, world.outcome(run).verdict) == ("held", "ok")
    said = ask(table, "rerun", run=run)
    assert (said["accepted"], said["code"]) == (False, "E103")
    assert events(table, "run-restarted") == [] and world.outcome(run).attempt == 1


def test_the_web_answers_alike_before_and_after_a_hidden_run_has_ended(table: Table) -> None:
    clock = FixedClock(NOW)
    table.requests.told = Told(clock, "ten-minutes")
    run, world = table.world.hand_in("alpha"), table.world

    def answers() -> list[Any]:
        release = {"action": "release", "run": run}
        log = {"action": "release-log", "run": run, "lines": "1"}
        asked = [("review", {"run": run, "state": "approved"}), ("propose", release), ("propose", log)]
        said = [ask(table, kind, **data) for kind, data in [*asked, ("rerun", {"run": run})]]
        return [(one["accepted"], one.get("code"), one.get("what")) for one in said]

    before = answers()
    assert [one[1] for one in before] == ["E102", "E102", "E102", None]
    world.work()
    assert world.outcome(run).name == "scored" and answers() == before
    assert events(table, "run-restarted") == [] and plan(world.desk(), Selection()).work == ()
    clock.at += timedelta(minutes=10)
    assert [one[1] for one in answers()] == [None, None, None, "E103"]


def test_a_cancellation_after_it_holds(table: Table) -> None:
    run, world = table.world.hand_in("alpha"), table.world
    place = {"task": "mini", "run": run, "submission": run.removesuffix(".test"), "dataset": "test"}
    for _ in range(2):
        world.store.commit("run-cancelled", {**place, "scenario": "default"}, actor="organiser")
        assert plan(world.desk(), Selection()).work == ()
        assert ask(table, "rerun", run=run)["code"] == "E103"
        restart(world.store, world.tasks, run)
    assert len(plan(world.desk(), Selection()).work) == 1


def test_a_run_file_is_not_executed_and_what_was_withdrawn_stays_so(table: Table) -> None:
    run = table.world.hand_in("alpha")
    said = ask(table, "withdraw-any", submission=run.removesuffix(".test"), reason="two of them")
    assert said["accepted"] is True
    entry = submission(table.world.store, run.removesuffix(".test"))
    assert entry.withdrawn_reason == "two of them"
    [event] = events(table, "submission-withdrawn")
    assert event.actor == "organiser" and event.person.name == table.of["organiser"][0].id
    assert ask(table, "rerun", run=run)["code"] == "E102"
    assert ask(table, "withdraw-any", submission="alpha.none.00000000")["code"] == "E102"


def test_a_team_is_closed_and_opened_again_without_its_tokens(table: Table, cli: Cli) -> None:
    accounts = table.managing.accounts
    before = accounts.tokens.access().grants
    assert ask(table, "team", team="alpha", action="close", reason="it asked for it")["accepted"] is True
    assert accounts.teams() == [] and table.of["team"][1].id not in accounts.tokens.access().grants
    assert ask(table, "team", team="alpha", action="reopen")["accepted"] is True
    assert accounts.teams() == ["alpha"] and len(accounts.tokens.access().grants) == len(before) - 1
    [closed] = events(table, "account-closed")
    assert closed.data["reason"] == "it asked for it" and closed.person.name == table.of["organiser"][0].id
    assert ask(table, "team", team="nobody", action="close")["code"] == "E102"
    cli("team", "reopen", "alpha")
    assert len(events(table, "account-reopened")) == 1
    erased, _ = table.managing.add("team", "gone")
    table.managing.erase(erased)
    assert ask(table, "team", team="gone", action="reopen")["code"] == "E102"


def test_done_once_though_work_comes_to_it_again_and_somebody_changed_it_meanwhile(table: Table) -> None:
    """As after a kill behind the event and before its decision: the same request, which nothing says was decided."""
    run = table.world.hand_in("alpha")
    table.world.work()
    request = wish(table, "review", run=run, state="approved")
    asked = table.world.store.asked_for(Person(table.of["organiser"][0].id, "account"), request.id)
    decide(asked, table.world.tasks, run, "approved")
    decide(table.world.store, table.world.tasks, run, "flagged", "no")
    assert send(table, request)["accepted"] is True
    assert [event.data["state"] for event in events(table, "run-reviewed")] == ["approved", "flagged"]
    assert send(table, replace(request, id="a" * 32))["accepted"] is True
    assert len(events(table, "run-reviewed")) == 3


@pytest.mark.parametrize(
    ("kind", "data"),
    [("review", {"run": "x"}), ("review", {"run": "../x", "state": "approved"}), ("rerun", {}),
     ("team", {"team": "alpha", "action": "erase"}), ("withdraw-any", {"submission": "x", "uncharged": True})],
)  # fmt: skip
def test_what_is_no_such_request_is_refused(table: Table, kind: str, data: dict[str, Any]) -> None:
    assert ask(table, kind, **data)["problems"]
