"""Proposals: asked for on the web, shown and done at the terminal alone; what a hostile front can and cannot do with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.access import Role, Token
from runner.exchange.inbox import Inbox, Request, answered
from runner.model.clock import FixedClock, stamp
from runner.model.errors import RunnerError
from runner.records.store.queries import published
from runner.work.console import console
from runner.work.managing import Managing
from runner.work.members.accounts import open_accounts
from runner.work.members.registrations import Registration
from runner.work.members.tokens import Account
from runner.work.proposals import Desk, proposals, waiting
from runner.work.requests import Requests
from tests.runner.execution.test_pool import World, good
from tests.worlds.command_line import Cli, cli
from tests.worlds.mini import Project, call

__all__ = ["cli"]

NOW = datetime(2031, 5, 1, 12, tzinfo=UTC)


class Table:
    """Work's side, with an organiser, an assistant and a team."""

    def __init__(self, world: World, requests: Requests, managing: Managing) -> None:
        self.world, self.requests, self.managing = world, requests, managing
        self.inbox = Inbox(world.project.config.inbox)
        roles: list[tuple[Role, str | None]] = [("organiser", None), ("assistant", None), ("team", "alpha")]
        self.of: dict[str, tuple[Account, Token]] = {role: managing.add(role, team) for role, team in roles}

    @property
    def desk(self) -> Desk:
        return Desk(self.managing, self.world.tasks)

    def ask(
        self, data: dict[str, Any], role: str = "organiser", *, key: str | None = None
    ) -> dict[str, Any] | None:
        account, token = self.of[role]
        request = Request.new("propose", account.id, token.id, account.team, stamp(NOW), data)
        self.inbox.put(request, key or token.key)
        self.requests.round(self.world.tasks)
        return answered(self.world.project.config.published, request.id)

    def number(self) -> int:
        [one] = waiting(self.world.store.log)
        return one.number

    def is_open(self) -> bool:
        return "test" in published(self.world.store, "mini")


@contextmanager
def table_of(world: World) -> Iterator[Table]:
    config, clock = world.project.config, FixedClock(NOW)
    with open_accounts(config, clock=clock) as accounts:
        requests = Requests(config, world.store, accounts, lambda text: None, clock)
        yield Table(world, requests, Managing(config, world.store, accounts))


@pytest.fixture
def table(project: Project) -> Iterator[Table]:
    project.write_task(uploads=True)
    world = World(project)
    with table_of(world) as made:
        yield made
    world.close()


PUBLISH = {"action": "publish", "task": "mini", "dataset": "test"}
CANARY = "canary-6614"


def test_nothing_happens_before_it_is_approved_at_the_terminal(table: Table, cli: Cli) -> None:
    table.world.hand_in("alpha")
    table.world.work()
    said = table.ask(PUBLISH)
    assert said is not None and said["accepted"] and not table.is_open()
    number = table.number()
    assert "mini test" in cli("requests", "list").out
    shown = cli("requests", "show", str(number)).out
    assert "mini/test" in shown
    assert "E101" in cli("requests", "approve", str(number), expect=2).err
    assert not table.is_open()
    cli("requests", "approve", str(number), "--yes")
    assert table.is_open()
    assert "E101" in cli("requests", "approve", str(number), "--yes", expect=2).err
    assert cli("requests", "list", "--json").json == []


def test_what_is_rejected_never_happens(table: Table, cli: Cli) -> None:
    table.ask(PUBLISH)
    number = table.number()
    cli("requests", "reject", str(number), "--reason", "not yet")
    assert not table.is_open() and waiting(table.world.store.log) == []
    assert [one.state for one in proposals(table.world.store.log)] == ["rejected"]
    with pytest.raises(RunnerError) as error:
        table.desk.find(number)
    assert error.value.code == "E101"


@pytest.mark.parametrize("role", ["assistant", "team"])
def test_only_organisers_propose(table: Table, role: str) -> None:
    said = table.ask(PUBLISH, role)
    assert said is not None and (said["accepted"], said["code"]) == (False, "E103")
    assert waiting(table.world.store.log) == []


def test_a_front_in_the_attackers_hands_gets_nothing_done(table: Table) -> None:
    """It has every verifier, and the keys of teams that are signed in; it cannot even propose."""
    verifier = table.managing.accounts.tokens.access().grants[table.of["organiser"][1].id].verifier
    assert table.ask(PUBLISH, key=verifier) is None
    assert table.ask(PUBLISH, key=table.of["team"][1].key) is None
    assert waiting(table.world.store.log) == [] and not table.is_open()


def test_with_an_organisers_key_it_can_propose_and_no_more(table: Table, cli: Cli) -> None:
    evil = "mini\x1b[2J\x1b]0;x\x07"
    for data in (
        {"action": "publish", "task": evil, "dataset": "test"}, {"action": "approve", "proposal": 1},
        {"action": "publish", "task": "mini", "dataset": "dev"}, {"action": "publish", "task": "other", "dataset": "test"},
        {"action": "release", "run": "alpha.x.y.test"}, {"action": "release", "run": "../../x"}, {"action": "role", "role": "team"},
        {"action": "role"}, {"action": "publish"}, {}, PUBLISH | {"says": "harmless"},
    ):  # fmt: skip
        said = table.ask(data)
        assert said is not None and said["accepted"] is False, data
    assert waiting(table.world.store.log) == []
    table.ask(PUBLISH)
    again = table.ask(PUBLISH)
    assert again is not None and again["accepted"] is False, "the same waits once"
    assert len(waiting(table.world.store.log)) == 1 and not table.is_open()
    out = call(table.world.project, "requests", "list").all
    assert "\x1b" not in out and "harmless" not in out


def test_so_many_wait_and_no_more(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 5
    monkeypatch.setattr("runner.work.proposals.MOST", most)
    names = [f"d{n}" for n in range(most + 1)]
    blinded = [
        {"id": name, "visibility": "blinded", "topics": "queries.jsonl", "corpus": "documents.jsonl.gz"}
        for name in names
    ]
    table.world.project.write_task(
        datasets=blinded, tables=[{"id": "main", "cells": [{"dataset": "d0"}], "rank_by": "ndcg_10"}]
    )
    answers = [table.ask({"action": "publish", "task": "mini", "dataset": name}) for name in names]
    assert [a["accepted"] for a in answers if a] == [True] * most + [False]


def test_what_it_is_about_may_not_change_meanwhile(table: Table) -> None:
    run = table.world.hand_in("alpha")
    table.world.work()
    said = table.ask({"action": "release", "run": run})
    assert said is not None and said["proposal"] == {"action": "release", "run": run, "attempt": 1}
    one = table.desk.find(table.number())
    assert any(run in line for line in table.desk.shown(one))
    table.world.store.commit(
        "run-released", {"task": "mini", "run": run, "attempt": 1, "reason": ""}, actor="organiser"
    )
    with pytest.raises(RunnerError):
        table.desk.approve(one)
    assert waiting(table.world.store.log) == []
    assert [one.state for one in proposals(table.world.store.log)] == ["done"]


@pytest.mark.parametrize("command", ["approve", "reject", "publish"])
def test_a_proposal_is_closed_on_the_web_once_it_is_decided_or_done(
    table: Table, command: str, cli: Cli
) -> None:
    table.ask(PUBLISH)
    [proposal] = proposals(table.world.store.log)
    commands = {
        "approve": ("requests", "approve", str(proposal.number), "--yes"),
        "reject": ("requests", "reject", str(proposal.number)),
        "publish": ("publish", "mini", "test"),
    }
    assert _console(table)["decided"] == {}
    cli(*commands[command])
    states = {"approve": "approved", "reject": "rejected", "publish": "done"}
    shown = _console(table)
    assert shown["decided"] == {proposal.request: states[command]} and shown["proposals"] == []


def _console(table: Table) -> dict[str, Any]:
    """Return the console as it would be published now."""
    log, home = table.world.store.log, table.world.project.config.home
    table.world.store.catch_up()
    return console([], [], table.world.tasks, [], log, home, {}, {})


def test_who_lost_the_right_proposed_for_nothing(table: Table) -> None:
    table.ask(PUBLISH)
    one = table.desk.find(table.number())
    table.managing.close(table.of["organiser"][0])
    with pytest.raises(RunnerError) as error:
        table.desk.approve(one)
    assert error.value.code == "E103" and not table.is_open()


def test_a_role_is_given_at_the_terminal_and_its_token_shown_there_alone(table: Table, cli: Cli) -> None:
    said = table.ask({"action": "role", "role": "assistant"})
    assert said is not None and said["accepted"]
    before = len(table.managing.accounts.all())
    token = cli("requests", "approve", str(table.number()), "--yes").out.strip()
    assert Token.read(token) is not None and len(table.managing.accounts.all()) == before + 1
    root = table.world.project.config.published
    assert not any(token.encode() in path.read_bytes() for path in root.rglob("*") if path.is_file())


def test_a_run_is_released_by_approval(table: Table) -> None:
    run = table.world.hand_in("alpha")
    table.world.work()
    table.ask({"action": "release", "run": run})
    table.desk.approve(table.desk.find(table.number()))
    types = [event.type for event in table.world.store.log]
    assert types[-2:] == ["run-released", "proposal-decided"]


def test_lines_of_a_log_are_given_by_approval_and_the_web_learns_nothing_of_them(table: Table) -> None:
    def talks(mounts: Any, out: Path) -> None:
        mounts.say("one")
        mounts.say(CANARY)
        good(mounts, out)

    run = table.world.hand_in("alpha", script=talks)
    table.world.work()
    asked = {"action": "release-log", "run": run, "stream": "stdout", "lines": "2"}
    said = table.ask(asked)
    assert said is not None and said["accepted"]
    assert said["proposal"] == {**asked, "attempt": 1} and CANARY not in str(said)
    far = table.ask({**asked, "lines": "1-900"})
    assert far is not None and far["accepted"], "how long the log is stays here"
    one, other = waiting(table.world.store.log)
    assert any(CANARY in line for line in table.desk.shown(one))
    with pytest.raises(RunnerError) as error:
        table.desk.approve(other)
    assert error.value.code == "E102" and "900" in str(error.value)
    table.desk.approve(one)
    [event] = [e for e in table.world.store.log if e.type == "log-excerpt-released"]
    assert (event.data["text"], event.data["first"]) == (CANARY, 2)
    for lines in ("0", "9-3", "x", ""):
        no = table.ask({**asked, "lines": lines})
        assert no is not None and no["accepted"] is False


def registered(table: Table, team: str, account: str) -> Registration:
    one = Registration(account, "0" * 32, "0" * 12, "0" * 64, stamp(NOW), "mini", team, "ada@example.org")
    table.managing.wait(one)
    return one


def test_letting_a_team_in_is_proposed_and_says_here_who_it_is(table: Table, cli: Cli) -> None:
    one = registered(table, "gamma", "a-" + "5" * 16)
    other = registered(table, "delta", "a-" + "6" * 16)
    assert (table.ask({"action": "admit", "account": "a-" + "7" * 16}) or {})["code"] == "E102"
    assert (table.ask({"action": "admit", "account": one.account}) or {})["accepted"]
    number, project = table.number(), table.world.project
    assert not table.managing.accounts.has(one.account), "nothing happens before it is approved"
    shown = cli("requests", "show", str(number)).out
    assert "gamma" in shown and "ada@example.org" in shown and one.account in shown
    cli("requests", "approve", str(number), "--yes")
    assert table.managing.accounts.has(one.account)
    refuse = {"action": "refuse", "account": other.account, "reason": "<b>you</b>"}
    assert (table.ask(refuse) or {})["accepted"]
    cli("requests", "approve", str(table.number()), "--yes")
    assert (answered(project.config.published, other.request) or {})["why"] == "<b>you</b>"
    assert table.managing.accounts.registrations.waiting() == []
    log = project.config.events.read_text()
    assert not any(word in log for word in ("gamma", "delta", "ada@")), "events name accounts alone"


def test_a_proposal_about_a_registration_that_was_decided_does_nothing(table: Table, cli: Cli) -> None:
    one = registered(table, "gamma", "a-" + "5" * 16)
    table.ask({"action": "admit", "account": one.account})
    cli("team", "reject", one.account)
    said = cli("requests", "approve", str(table.number()), "--yes", expect=2)
    assert "E102" in said.err and not table.managing.accounts.has(one.account)
