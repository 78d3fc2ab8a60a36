"""What a team decides of its own submissions, and of no other team's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runner.exchange.inbox import Request
from runner.model.clock import SystemClock, stamp
from runner.records.store.queries import submission
from tests.runner.work.test_requests import Desk, Member, desk

__all__ = ["desk"]


def ask(desk: Desk, kind: str, member: Member | None = None, **data: Any) -> dict[str, Any]:
    return desk.decided(desk.send(kind, data, member))


def types(desk: Desk, name: str) -> int:
    return desk.events().count(name)


@pytest.mark.parametrize("kind", ["withdraw", "choose"])
def test_another_teams_submission_is_one_that_is_not_there(desk: Desk, kind: str) -> None:
    mine = desk.decided(desk.ask())["submission"]
    beta = desk.accounts.add("team", "beta")
    found = ask(desk, kind, beta, submission=mine)
    none = ask(desk, kind, beta, submission="alpha.none.00000000")
    assert (found["accepted"], found["code"]) == (False, "E102")
    assert found["what"].replace(mine, "X") == none["what"].replace("alpha.none.00000000", "X")
    assert (found["why"], found["fix"]) == (none["why"], none["fix"])
    assert submission(desk.requests.store, mine).withdrawn is None
    assert types(desk, "submission-withdrawn") == types(desk, "submission-chosen") == 0


def test_a_team_withdraws_its_own_and_what_was_withdrawn_is_not_chosen(desk: Desk) -> None:
    mine = desk.decided(desk.ask())["submission"]
    done = ask(desk, "withdraw", submission=mine, reason="wrong file")
    assert done["accepted"] is True and done["submission"] == mine
    entry = submission(desk.requests.store, mine)
    assert entry.withdrawn is not None and entry.withdrawn_reason == "wrong file" and not entry.uncharged
    [event] = [e for e in desk.requests.store.log if e.type == "submission-withdrawn"]
    assert event.actor == "alpha" and event.person is None
    refused = ask(desk, "choose", submission=mine)
    assert (refused["accepted"], refused["code"]) == (False, "E102")


def test_choosing_is_done_once_though_work_comes_to_it_again(desk: Desk) -> None:
    """As after a kill behind the choice and before its decision; another wish later counts anew."""
    mine = desk.decided(desk.ask())["submission"]
    desk.requests.clock = SystemClock()  # by which events have their times
    now = stamp(SystemClock().now())
    data = {"submission": mine}
    request = Request.new("choose", desk.account.id, desk.token.id, "alpha", now, data)
    assert desk.decided(desk.inbox.put(request, desk.token.key))["accepted"] is True
    again = replace(request, id="a" * 32)
    assert desk.decided(desk.inbox.put(again, desk.token.key))["accepted"] is True
    assert types(desk, "submission-chosen") == 1


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("withdraw", {}),
        ("withdraw", {"submission": "x" * 200}),
        ("choose", {"submission": "a", "uncharged": True}),
        ("withdraw", {"submission": "a", "uncharged": True}),
    ],
)
def test_what_is_no_such_request_is_refused(desk: Desk, kind: str, data: dict[str, Any]) -> None:
    found = ask(desk, kind, **data)
    assert found["accepted"] is False and found["problems"]
