"""Submissions that need a job: every one is decided, and teams take turns."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.inbox import Request
from runner.execution.trials.handed_in import Form
from runner.model.errors import RunnerError
from runner.work.checks import Checks, Later, Slot, Upload
from runner.work.handlers import HANDLERS
from runner.work.handlers.software import hand_in_software
from runner.work.handlers.wish import Wish
from runner.work.requests import Requests
from tests.e2e.test_server import until
from tests.runner.work.test_requests import Desk, Member, desk

__all__ = ["desk"]


@pytest.fixture
def members(desk: Desk) -> Iterator[dict[str, Member]]:
    """Five teams, and the slot of a server for their systems."""
    desk.requests.engine = lambda: None  # type: ignore[assignment, return-value]
    with closing(Slot()) as slot:
        desk.requests.slot = slot
        others = {name: desk.accounts.add("team", name) for name in ("beta", "gamma", "delta", "epsilon")}
        yield {"alpha": (desk.account, desk.token), **others}


def submit(desk: Desk, member: Member, software: str) -> Request:
    data = {"task": "mini", "software": software}
    return desk.send("software", data, member, io.BytesIO(b"not a parcel"))


@pytest.mark.slow
def test_80_bad_and_80_good_systems_of_five_teams_are_all_decided(
    desk: Desk, members: dict[str, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def register(wish: Wish) -> dict[str, Any]:
        team = str(wish.account.team)
        order.append(team)
        if wish.data["software"].startswith("bad"):
            return hand_in_software(wish)
        return {"submission": f"{team}.{wish.data['software']}.00000000", "new": True, "runs": []}

    monkeypatch.setitem(HANDLERS, "software", replace(HANDLERS["software"], do=register))
    bad = [submit(desk, members["alpha"], f"bad{number}") for number in range(80)]
    others = [name for name in members if name != "alpha"]
    good = [submit(desk, members[others[n % 4]], f"good{n}") for n in range(80)]
    answers = desk.settle(*bad, *good)
    assert [answer["accepted"] for answer in answers] == [False] * 80 + [True] * 80
    assert {answer["code"] for answer in answers[:80]} == {"E205"}
    assert len(order) == 160, "each job is done once"
    first_rounds = [order[start : start + 5] for start in range(0, 100, 5)]
    assert all(len(set(turn)) == 5 for turn in first_rounds), "five teams take turns"
    assert desk.inbox.waiting() == []


def test_a_restart_loses_no_system(desk: Desk, members: dict[str, Member]) -> None:
    requests = [submit(desk, members["alpha"], f"bad{number}") for number in range(10)]
    desk.settle(*requests[:2])
    config, store, accounts = desk.project.config, desk.requests.store, desk.accounts
    with closing(Slot()) as slot:
        desk.requests = Requests(config, store, accounts, clock=desk.requests.clock, slot=slot)
        desk.requests.engine = lambda: None  # type: ignore[assignment, return-value]
        assert {answer["code"] for answer in desk.settle(*requests)} == {"E205"}


def test_a_removed_request_blocks_no_other(desk: Desk, members: dict[str, Member]) -> None:
    """A front may remove the request whose turn is next, and the request whose job runs."""
    go_on, begun = threading.Event(), threading.Event()

    def prepare() -> Any:
        begun.set()
        return lambda: go_on.wait(60)

    slot = desk.requests.slot
    assert slot is not None
    with pytest.raises(Later):
        slot.result("running", "alpha", 0, prepare)
    with pytest.raises(Later):
        slot.result("next", "beta", 0, prepare)
    go_on.set()
    request = submit(desk, members["gamma"], "bad")
    assert [answer["code"] for answer in desk.settle(request)] == ["E205"]
    assert slot.ready() == []


def test_a_result_counts_for_its_input_alone(desk: Desk) -> None:
    """A front replaces the input of a request after its check."""
    with closing(Slot()) as slot:
        for about in ("first", "second"):

            def result(about: str = about) -> str | None:
                try:
                    return str(slot.result("id", "alpha", about, lambda: lambda: about))
                except Later:
                    return None

            assert until(result, every=0.001) == about


def test_a_replaced_system_is_registered_anew(
    desk: Desk, members: dict[str, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A front that has the keys of two teams gives one the result of the other."""
    done: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def register(wish: Wish) -> dict[str, Any]:
        begun.set()
        assert go_on.wait(60)
        done.append(str(wish.account.team))
        raise RunnerError("E205", f"this is a text for {wish.account.team}")

    monkeypatch.setitem(HANDLERS, "software", replace(HANDLERS["software"], do=register))
    request = submit(desk, members["alpha"], "one")
    desk.requests.round(desk.tasks)
    assert begun.wait(60), "the first round begins the job"
    [(name, _)] = desk.inbox.waiting()
    desk.inbox.remove(name)
    account, token = members["beta"]
    other = replace(request, account=account.id, token=token.id, team="beta")
    desk.inbox.put(other, token.key, io.BytesIO(b"x"))
    go_on.set()
    [answer] = desk.settle(other)
    assert answer["team"] == "beta" and answer["what"].endswith("beta") and done == ["alpha", "beta"]


def test_many_invalid_run_files_are_all_checked_once(desk: Desk, members: dict[str, Member]) -> None:
    """More files than results were kept for, of teams that take turns."""
    order: list[str] = []

    def check(upload: Upload, stop: Any) -> Form:
        order.append(upload.team)
        return Form("inputs", valid=False)

    requests = []
    for number in range(8):
        for account, token in members.values():
            changes = {"account": account.id, "token": token.id, "team": account.team, "key": token.key}
            requests.append(desk.ask(f"{account.team} {number}", **changes))
    with closing(Checks(check)) as checks:
        desk.requests.checks = checks
        answers = desk.settle(*requests, seconds=120)
        desk.requests.checks = None
    assert {answer["code"] for answer in answers} == {"E219"} and len(order) == 40
    assert all(len(set(order[start : start + 5])) == 5 for start in range(0, 40, 5))


def test_a_file_is_removed_after_its_check_and_checked_once(tmp_path: Path, desk: Desk) -> None:
    checked: list[Path] = []

    def check(upload: Upload, stop: Any) -> Form:
        checked.append(upload.file)
        return Form("form")

    task = desk.tasks["mini"]
    file = tmp_path / "run.txt"
    file.write_text("x")
    first = Upload("1", "alpha", task, task.datasets["dev"], "default", file, "run.txt", "0" * 64)
    with closing(Checks(check)) as checks:
        with pytest.raises(Later):
            checks.form(first)
        until(lambda: not checks.slot.is_busy, every=0.001)
        for upload in (first, replace(first, request="2", team="beta")):
            assert checks.form(upload) == Form("form")
        with pytest.raises(Later):
            file.with_name("other.txt").write_text("y")
            checks.form(replace(first, file=file.with_name("other.txt"), sha256="1" * 64))
    assert len(checked) == 2 and not any(path.parent.exists() for path in checked)
