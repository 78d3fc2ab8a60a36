"""Requests of every kind with wrong types, odd folders and in great numbers: each is decided, and nothing grows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.exchange import inbox as inboxes
from runner.exchange.access import Token, prove
from runner.exchange.inbox import Inbox, Request
from runner.model.clock import FixedClock, stamp
from runner.model.errors import PlatformError
from runner.work import pending
from runner.work.daily_limits import DAY_SECONDS, LIMITS, DailyCounter, DailyLimits, Sender
from runner.work.handlers import HANDLERS
from runner.work.handlers.wish import Wish
from runner.work.requests import LINES, Requests
from tests.e2e.test_server import until
from tests.runner.work.test_requests import NOW, Desk, desk

__all__ = ["desk"]

VALUES: dict[str, Any] = {
    "number": 7,
    "fraction": 1.5,
    "huge number": 10**400,
    "true": True,
    "null": None,
    "list": [],
    "list of lists": [[1], {"a": 1}, "x", None],
    "mapping": {"a": {"b": ["c"]}},
    "empty": "",
    "long": "x" * 40_000,
    "control": "\x00\x1b[2J\u202e\n",
    "path": "../../etc/passwd",
    "deep": json.loads('{"a":' * 15 + "1" + "}" * 15),
}
GOOD: dict[str, Any] = {
    "task": "mini", "software": "one", "dataset": "dev", "file": "run.txt", "tag": "t", "method": "manual",
    "scenario": "default", "description": "d", "paper": "https://x.example/", "affiliation": "a",
    "token": "0" * 12, "key": "0" * 64, "scopes": ["read"], "replaces": False, "statement": "s",
    "about": ["done"], "mail": "ada@example.org", "team": "alpha", "contact": "ada@example.org",
    "members": ["Ada"], "purpose": "p", "terms_version": "1", "terms_sha256": "0" * 64, "action": "publish",
    "run": "alpha.one.00000000.dev", "stream": "stdout", "lines": "1", "role": "organiser",
    "account": "a-" + "0" * 16, "reason": "r", "state": "flagged", "to": "team",
    "submission": "alpha.one.00000000",
}  # fmt: skip


def schema_name(kind: str) -> str:
    return HANDLERS[kind].schema or f"inbox-{kind}"


def variants(kind: str) -> Iterator[dict[str, Any]]:
    """Yield the data of a request with one wrong value each, without each field, and with others."""
    wanted = schemas.schema(schema_name(kind))
    good = {name: GOOD[name] for name in wanted["properties"]}
    if kind == "team":
        good["action"] = "close"
    for name in good:
        for value in VALUES.values():
            yield good | {name: value}
        yield {key: value for key, value in good.items() if key != name}
    yield {}
    yield good | {"more": 1}
    yield {"\x1b[2J": {}, "": None}
    yield dict.fromkeys(map(str, range(100)), 0)


@pytest.mark.parametrize("kind", HANDLERS)
def test_every_kind_decides_wrong_values_at_once(desk: Desk, kind: str) -> None:
    organiser, its = desk.accounts.add("organiser")
    handler = HANDLERS[kind]
    desk.requests.limits = DailyLimits(dict.fromkeys(LIMITS, 10_000))
    asked = []
    for data in variants(kind):
        account, token = (organiser, its) if handler.scope == "manage" else (desk.account, desk.token)
        request = Request.new(kind, account.id, token.id, account.team, stamp(NOW), data)
        key = token.key
        if handler.strangers:
            new = Token.new()
            request = replace(request, account=f"a-{new.id}0000", token=new.id, team=None)
            key = str(data.get("key"))
        asked.append(desk.inbox.put(request, key))
    answers = desk.settle(*asked, seconds=120)
    assert not [line for line in desk.said if " waits: " in line], "no internal error"
    for answer in answers:
        assert not schemas.validate(answer, "inbox-answer"), answer
    for request, answer in zip(asked, answers, strict=True):
        fits = not schemas.validate(dict(request.data), schema_name(kind))
        assert fits or (answer["accepted"], answer["code"][:2]) == (False, "E2"), request.data
    assert {answer.get("code") for answer in answers} <= {
        None, "E101", "E102", "E103", "E201", "E205", "E207", "E208", "E210", "E214",
    }  # fmt: skip


def put_raw(desk: Desk, data: Any, number: int = 1, **changes: Any) -> Path:
    """Put a request as a front writes it that checks nothing."""
    request = Request.new("run-file", desk.account.id, desk.token.id, "alpha", stamp(NOW), data)
    request = replace(request, **changes)
    request = replace(request, proof=prove(desk.token.key, request.signed))
    folder = desk.inbox.root / f"{number:010}-{request.id}"
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps({"schema_version": 1, **asdict(request)}))
    return folder


def test_a_long_list_does_not_hold_the_others_up(desk: Desk) -> None:
    """jsonschema compares the items of a list pairwise if they cannot be sorted."""
    put_raw(desk, {"about": [{}, *([n] for n in range(8_000))]}, kind="notices")
    begun = time.monotonic()
    desk.requests.round(desk.tasks)
    assert desk.inbox.waiting() == [] and time.monotonic() - begun < 5


@pytest.mark.parametrize("number", [9_999_999_999, 99_999_999_999])
def test_a_folder_with_a_high_number_hides_no_request(desk: Desk, number: int) -> None:
    (desk.inbox.root / f"{number:010}-{'0' * 32}").mkdir(parents=True)
    request = desk.ask()
    desk.drain()
    assert (desk.answer(request) or {})["accepted"] is True


def test_waiting_requests_hide_no_other(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many requests as one round looks at wait for the engine, or for their turn."""
    monkeypatch.setattr(inboxes.Inbox.waiting, "__defaults__", (3,))

    def fails(wish: Wish) -> dict[str, Any]:
        if wish.data["software"].startswith("slow"):
            raise PlatformError("the engine is gone")
        return handler.do(wish)

    handler = HANDLERS["run-file"]
    monkeypatch.setitem(HANDLERS, "run-file", replace(handler, do=fails))
    for n in range(3):
        desk.ask(data={"software": f"slow{n}"})
    desk.settle(desk.ask())
    assert len(desk.inbox.waiting()) == 3


def let_run_files_fail(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[str]:
    """Let every run file fail, and be tried again at once; return the list of the tries."""
    tries: list[str] = []

    def fail(wish: Wish) -> dict[str, Any]:
        tries.append(wish.request)
        raise error

    monkeypatch.setattr(pending, "RETRY_SECONDS", 0.0)
    monkeypatch.setitem(HANDLERS, "run-file", replace(HANDLERS["run-file"], do=fail))
    return tries


def test_an_internal_error_is_an_answer_after_some_tries(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = let_run_files_fail(monkeypatch, TypeError("a number where text belongs"))
    request = desk.ask()
    for _ in range(pending.MAX_INTERNAL_ERRORS + 3):
        desk.requests.round(desk.tasks)
    answer = desk.answer(request)
    assert answer is not None and (answer["accepted"], answer["code"]) == (False, "E308")
    assert len(tries) == pending.MAX_INTERNAL_ERRORS and desk.inbox.waiting() == []
    assert desk.events() == ["request-decided"], "decided once, also for a restart"
    assert len([line for line in desk.said if " waits: " in line]) == 1, "reported once"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), PlatformError("no engine")])
def test_a_failure_of_the_machine_is_no_reason_to_refuse(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    let_run_files_fail(monkeypatch, error)
    request = desk.ask()
    for _ in range(3 * pending.MAX_INTERNAL_ERRORS):
        desk.requests.round(desk.tasks)
    assert desk.answer(request) is None and len(desk.inbox.waiting()) == 1


def test_tries_get_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("runner.work.pending.time.monotonic", lambda: now[0])
    requests = pending.PendingRequests()
    pauses = []
    for _ in range(9):
        requests.fail("a", "name", OSError("disk"), "disk")
        begun = now[0]
        while requests.is_idle("a"):
            now[0] += 1
        pauses.append(now[0] - begun)
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_the_events_of_one_team_are_bounded_and_others_go_on(desk: Desk) -> None:
    """A front in an attacker's hands signs what it likes with the key of a team."""
    limit = 20
    desk.requests.limits = DailyLimits({**LIMITS, "other": limit})
    asked = [desk.send("withdraw", {"submission": "x"}) for _ in range(4 * limit)]
    other = desk.send("withdraw", {"submission": "x"}, desk.accounts.add("team", "beta"))
    mine = desk.ask()
    desk.drain()
    codes = [answer["code"] if (answer := desk.answer(one)) else None for one in asked]
    assert codes == ["E102"] * limit + ["E106"] * limit + [None] * 2 * limit
    assert (desk.answer(other) or {})["code"] == "E102" and (desk.answer(mine) or {})["accepted"] is True
    assert desk.events().count("request-decided") == limit + 2
    assert len(desk.said) <= LINES + 1, "lines are bounded"


def test_a_restart_does_not_reset_the_limit(desk: Desk) -> None:
    def withdraw(requests: Requests) -> str:
        request = desk.send("withdraw", {"submission": "x"})
        requests.round(desk.tasks)
        return str((desk.answer(request) or {})["code"])

    config, store, accounts = desk.project.config, desk.requests.store, desk.accounts
    assert withdraw(desk.requests) == "E102"
    later = {
        hours: Requests(
            config, store, accounts, clock=FixedClock(NOW + timedelta(hours=hours)),
            limits=DailyLimits({**LIMITS, "other": 1}),
        )
        for hours in (23, 25)
    }  # fmt: skip
    assert withdraw(later[23]) == "E106" and withdraw(later[25]) == "E102"


def test_a_request_counts_once_and_for_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    counter, sender = DailyCounter(), Sender("alpha", "other")
    assert counter.add(sender, "a", 1) and counter.add(sender, "a", 1) and not counter.add(sender, "b", 1)
    later = time.monotonic() + DAY_SECONDS + 1
    monkeypatch.setattr("runner.work.daily_limits.time.monotonic", lambda: later)
    assert counter.add(sender, "b", 1)


def test_withdrawals_take_nothing_from_submissions_and_no_file(desk: Desk) -> None:
    assert Sender.identify("alpha", "a", "withdraw") != Sender.identify("alpha", "a", "run-file")
    assert Sender.identify(None, "a-1", "review") != Sender.identify(None, "a-2", "review")
    folder = put_raw(desk, {"submission": "x"}, kind="withdraw", sha256="0" * 64, size=1 << 40)
    desk.requests.round(desk.tasks)
    other = put_raw(desk, {"submission": "x"}, kind="withdraw", sha256="0" * 64, size=9)
    desk.requests.round(desk.tasks)
    assert not folder.exists() and not other.exists() and desk.events() == []


def fill(folder: Path, depth: int) -> None:
    """Make a tree that is deeper than a path may be long."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for number in range(depth):
        os.mkdir("folder", dir_fd=here)
        os.mkfifo(f"pipe{number}", dir_fd=here)
        below = os.open("folder", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_refused_folders_are_deleted_however_deep(desk: Desk, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").write_text("x")
    root = desk.inbox.root
    root.mkdir(parents=True, exist_ok=True)
    fill(root / f"{1:010}-{'a' * 32}", 3_000)
    (root / f"{2:010}-{'b' * 32}").mkdir()
    (root / f"{2:010}-{'b' * 32}" / "link").symlink_to(secret)
    (root / ".refused-link").symlink_to(secret)
    (root / ".refused-file").touch()

    def is_empty() -> bool:
        desk.requests.round(desk.tasks)
        desk.inbox.delete_refused(1)
        return not list(root.iterdir())

    until(is_empty, every=0.01)
    assert (secret / "file").read_text() == "x"


def test_deleting_takes_bounded_time_and_goes_on_later(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    for number in range(5):
        (tmp_path / f".refused-{number}").mkdir()
    inbox.delete_refused(0)
    assert len(list(tmp_path.iterdir())) == 5
    inbox.delete_refused(10)
    assert list(tmp_path.iterdir()) == []


def test_a_front_starts_after_a_deep_tree(tmp_path: Path) -> None:
    fill(tmp_path / f".{'a' * 32}", 1_100)
    Inbox(tmp_path).sweep()
    assert list(tmp_path.iterdir()) == []


def test_removing_follows_no_link_that_replaces_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, inbox = tmp_path / "other", Inbox(tmp_path / "inbox")
    other.mkdir()
    (other / "payload").write_text("of work")
    name = f"{1:010}-{'a' * 32}"
    (inbox.root / name).mkdir(parents=True)
    checked = Path.is_dir

    def replace_it(path: Path) -> bool:
        is_dir = checked(path)
        if path == inbox.root / name and not path.is_symlink():
            path.rename(tmp_path / "moved")
            path.symlink_to(other)
        return is_dir

    monkeypatch.setattr(Path, "is_dir", replace_it)
    inbox.remove(name)
    assert (other / "payload").read_text() == "of work"
