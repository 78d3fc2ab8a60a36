"""Requests decided: each once, by work's own accounts; what an enemy in the front can and cannot do."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import schemas
from runner.exchange.access import Token
from runner.exchange.inbox import Inbox, Request, answered
from runner.exchange.receipts import KEY, Signer, examine, receipt
from runner.execution.trials.handed_in import Form
from runner.model.clock import FixedClock, stamp
from runner.model.errors import PlatformError
from runner.records.store.charges import quota
from runner.records.store.connect import open_store
from runner.records.store.queries import submissions
from runner.tasks.load import load_tasks
from runner.work.arrivals import OLDEST
from runner.work.checks import Checks, Upload
from runner.work.daily_limits import LIMITS, UNKNOWN_ANSWERS, DailyLimits
from runner.work.members.accounts import Accounts, open_accounts
from runner.work.members.tokens import Account
from runner.work.requests import Requests
from tests.e2e.test_server import until
from tests.e2e.test_uploads_scored import run_text
from tests.worlds.mini import TASK, Project

NOW = datetime(2031, 5, 1, 12, tzinfo=UTC)
Member = tuple[Account, Token]


class Desk:
    """Work's side of the inbox, and a team ``alpha`` with an account."""

    def __init__(
        self, project: Project, requests: Requests, accounts: Accounts, account: Account, token: Token
    ) -> None:
        self.project, self.requests, self.accounts = project, requests, accounts
        self.account, self.token = account, token
        self.tasks = load_tasks(project.config)[0]
        self.inbox = Inbox(project.config.inbox)
        self.said: list[str] = []

    def ask(self, content: str = run_text("dev", "x"), *, key: str | None = None, **changes: Any) -> Request:
        data = {"task": "mini", "software": "one", "dataset": "dev", "file": "run.txt"} | changes.pop(
            "data", {}
        )
        request = Request.new("run-file", self.account.id, self.token.id, "alpha", stamp(NOW), data)
        return self.inbox.put(
            replace(request, **changes), key or self.token.key, io.BytesIO(content.encode())
        )

    def send(
        self, kind: str, data: Any, member: Member | None = None, payload: io.BytesIO | None = None
    ) -> Request:
        """Put a request of alpha, or of another account, into the inbox."""
        account, token = member or (self.account, self.token)
        request = Request.new(kind, account.id, token.id, account.team, stamp(NOW), data)
        return self.inbox.put(request, token.key, payload)

    def drain(self) -> None:
        """Decide until nothing waits. One round ends after seconds, however busy the machine is."""
        while self.inbox.waiting():
            self.requests.round(self.tasks)

    def settle(self, *requests: Request, seconds: float = 60) -> list[dict[str, Any]]:
        """Decide until these requests have answers, and return them."""

        def done() -> bool:
            self.requests.round(self.tasks)
            return all(self.answer(one) is not None for one in requests)

        until(done, seconds, every=0.01)
        return [found for one in requests if (found := self.answer(one)) is not None]

    def load_tasks(self, **changes: Any) -> None:
        """Write the task again, and read it."""
        self.project.write_task(**{"uploads": True, **changes})
        self.tasks = load_tasks(self.project.config)[0]

    def answer(self, request: Request) -> dict[str, Any] | None:
        return answered(self.project.config.published, request.id)

    def decided(self, request: Request) -> dict[str, Any]:
        self.requests.round(self.tasks)
        found = self.answer(request)
        assert found is not None and self.inbox.waiting() == []
        return found

    def used(self) -> int:
        use = quota(self.requests.store, self.tasks["mini"], "alpha")
        return use.used + use.open

    def events(self) -> list[str]:
        return [event.type for event in self.requests.store.log]


@contextmanager
def at_the_desk(project: Project, clock: FixedClock) -> Iterator[tuple[Requests, Accounts, list[str]]]:
    said: list[str] = []
    with open_store(project.config) as store, open_accounts(project.config, clock=clock) as accounts:
        signer = Signer.load(project.home / KEY)
        yield Requests(project.config, store, accounts, said.append, clock, None, signer), accounts, said


@pytest.fixture
def desk(project: Project) -> Iterator[Desk]:
    project.write_task(uploads=True)
    with at_the_desk(project, FixedClock(NOW)) as (requests, accounts, said):
        found = Desk(project, requests, accounts, *accounts.add("team", "alpha"))
        found.said = said
        yield found


def test_a_run_file_is_registered_as_of_its_arrival(desk: Desk) -> None:
    request = desk.ask(arrival=stamp(NOW - timedelta(hours=1)), data={"tag": "my-tag", "description": "mine"})
    found = desk.decided(request)
    assert found["accepted"] is True and found["new"] is True and found["sha256"] == request.sha256
    [entry] = submissions(desk.requests.store)
    assert (entry.tag, entry.description) == ("my-tag", "mine")
    assert (entry.team, entry.software, entry.id) == ("alpha", "one", found["submission"])
    assert entry.registered == "2031-05-01T11:00:00Z" and found["runs"] == [f"{entry.id}.dev"]
    decided = list(desk.requests.store.log)[-1]
    assert decided.type == "request-decided" and decided.actor == "alpha" and decided.person is None
    assert decided.data["account"] == desk.account.id and desk.used() == 1


@pytest.mark.parametrize("text", ["\U0001f600 \U00020bb7", "a\u2028b", '"\\: {x} #'])
def test_texts_come_as_they_were_written(desk: Desk, text: str) -> None:
    assert desk.decided(desk.ask(data={"description": text}))["accepted"] is True
    [entry] = submissions(desk.requests.store)
    assert entry.description == text


@pytest.mark.parametrize("lost", ["nothing", "answer", "event"])
def test_a_request_is_done_once_whatever_comes_again(desk: Desk, lost: str) -> None:
    """As after a kill between any two steps: the same folder is there again, with or without event and answer."""
    request = desk.ask()
    name = desk.inbox.waiting()[0][0]
    before = {path.name: path.read_bytes() for path in (desk.inbox.root / name).iterdir()}
    first = desk.decided(request)
    (desk.inbox.root / name).mkdir()
    for file, content in before.items():
        (desk.inbox.root / name / file).write_bytes(content)
    if lost != "nothing":
        (desk.project.config.published / "answers" / f"{request.id}.json").unlink()
    log = desk.project.config.events
    if lost == "event":
        desk.requests.store.close()
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
        for path in desk.project.home.glob("store.sqlite*"):
            path.unlink()
    with at_the_desk(desk.project, FixedClock(NOW)) as (requests, _, _):
        requests.round(desk.tasks)
        assert [e.type for e in requests.store.log].count("request-decided") == 1
        assert [e.type for e in requests.store.log].count("submission-registered") == 1
        assert len(submissions(requests.store)) == 1
    again = desk.answer(request)
    assert again is not None and again["submission"] == first["submission"] and desk.inbox.waiting() == []
    assert again["receipt"]["signature"] == first["receipt"]["signature"], "one decision has one receipt"


def test_what_was_not_signed_in_for_is_dropped_and_leaves_no_trace(desk: Desk) -> None:
    """A front in the attacker's hands knows ids and verifiers, and can write what it likes."""
    other, theirs = desk.accounts.add("team", "beta")
    verifier = desk.accounts.tokens.access().grants[desk.token.id].verifier
    asked = [
        desk.ask(key=verifier),
        desk.ask(key=theirs.key),
        desk.ask(token=theirs.id, key=theirs.key),
        desk.ask(account=other.id, token=theirs.id, key=theirs.key),  # right, but for another team
        desk.ask(token="0" * 12),
    ]
    desk.requests.round(desk.tasks)
    assert [desk.answer(one) for one in asked] == [None] * 5 and desk.inbox.waiting() == []
    assert desk.events() == [] and desk.used() == 0


def test_a_token_that_was_taken_away_meanwhile_asks_for_nothing_and_its_owner_is_told(desk: Desk) -> None:
    request = desk.ask()
    desk.accounts.tokens.rotate(desk.account)
    found = desk.decided(request)
    assert (found["accepted"], found["code"]) == (False, "E103") and desk.used() == 0
    desk.accounts.close(desk.account)
    assert desk.decided(desk.ask())["code"] == "E103" and desk.events() == ["request-decided"] * 2


def test_what_does_not_fit_is_refused_in_words_and_costs_nothing(desk: Desk) -> None:
    bad: dict[str, tuple[dict[str, Any], ...]] = {
        "E201": ({"file": "../../etc/passwd"}, {"software": 7}, {"method": "magic"}),
        "E207": ({"task": "other"}, {"dataset": "nowhere"}, {"dataset": "test", "scenario": "none"}),
        "E208": ({"software": "../../x"},),
    }
    for code, wrong in bad.items():
        for data in wrong:
            found = desk.decided(desk.ask(data=data))
            assert (found["accepted"], found["code"]) == (False, code), data
            assert found["what"] and desk.project.root.as_posix() not in str(found)
    assert desk.used() == 0 and set(desk.events()) == {"request-decided"}


def test_the_arrival_is_believed_within_bounds(desk: Desk) -> None:
    desk.load_tasks(closes="2031-05-01 11:30 UTC")
    hours = timedelta(hours=1)
    for number, back in enumerate((hours, hours / 6, -7200 * hours, OLDEST + timedelta(seconds=1))):
        found = desk.decided(desk.ask(data={"software": f"s{number}"}, arrival=stamp(NOW - back)))
        assert (found["accepted"], found.get("code")) == ((True, None) if back == hours else (False, "E210"))


BAD = ({"line": 3, "code": "F011", "severity": "error", "file": "run.txt", "message": "m", "fix": "f"},)


@contextmanager
def checking(desk: Desk, check: Any) -> Iterator[Checks]:
    with closing(Checks(check)) as checks:
        desk.requests.checks = checks
        yield checks
    desk.requests.checks = None


def test_a_file_that_is_not_valid_is_refused_with_all_findings_and_costs_nothing(desk: Desk) -> None:
    seen: list[tuple[str, bytes]] = []

    def check(one: Upload, stop: Any) -> Form:
        seen.append((one.file.name, one.file.read_bytes()))
        return Form("inputs", one.team != "alpha" or b"bad" not in one.file.read_bytes(), BAD)

    with checking(desk, check):
        bad, good = desk.settle(desk.ask("bad", data={"file": "my.txt"}), desk.ask())
        assert (bad["accepted"], bad["code"], bad["checked"]) == (False, "E219", "inputs")
        assert bad["findings"] == list(BAD) and seen[0] == ("my.txt", b"bad")
        assert good["accepted"] is True and good["findings"] == list(BAD) and desk.used() == 1
        (again,) = desk.settle(desk.ask())
        assert again["new"] is False and len(seen) == 2, "what is registered already is not looked at again"
    for one in (bad, good, again):
        assert not schemas.validate(one, "inbox-answer")


def test_the_clerk_does_not_wait_for_a_check_and_teams_take_turns(desk: Desk) -> None:
    order: list[str] = []
    free = threading.Event()

    def check(one: Upload, stop: Any) -> Form:
        order.append(one.team)
        assert free.wait(60)
        return Form("inputs")

    theirs, token = desk.accounts.add("team", "beta")
    with checking(desk, check):
        asked = [desk.ask(f"{n}") for n in range(4)]
        asked.append(desk.ask(account=theirs.id, token=token.id, team="beta", key=token.key))
        asked.append(desk.ask(data={"task": "other"}))
        desk.requests.round(desk.tasks)
        found = desk.answer(asked[-1])
        assert found is not None and found["code"] == "E207", "what needs no check is decided meanwhile"
        assert [desk.answer(one) for one in asked[:-1]] == [None] * 5 and desk.used() == 0
        free.set()
        assert {one["accepted"] for one in desk.settle(*asked[:-1])} == {True}
    assert order[:2] == ["alpha", "beta"] and order[2:] == ["alpha"] * 3


def test_who_may_not_hand_in_gets_no_check_and_our_failure_waits(desk: Desk) -> None:
    calls: list[str] = []

    def check(one: Upload, stop: Any) -> Form:
        calls.append(one.team)
        raise PlatformError("the engine is gone")

    with checking(desk, check):
        desk.load_tasks(closes="2031-04-01 12:00 UTC")
        assert desk.decided(desk.ask())["code"] == "E210" and calls == []
        desk.load_tasks()
        request = desk.ask()
        until(lambda: (desk.requests.round(desk.tasks), desk.said)[1], every=0.01)
        assert request.id in desk.said[0] and desk.answer(request) is None
        assert len(desk.inbox.waiting()) == 1


def test_a_decision_is_signed_whatever_it_is(desk: Desk) -> None:
    taken, refused = desk.ask(), desk.ask(data={"task": "other"})
    desk.requests.round(desk.tasks)
    for request, accepted in ((taken, True), (refused, False)):
        found = desk.answer(request)
        assert found is not None and not schemas.validate(found, "inbox-answer")
        assert examine(receipt(None, found["receipt"]), [desk.requests.signer.public]) == []  # type: ignore[union-attr]
        said = found["receipt"]["statement"]
        assert (said["request"], said["accepted"], said["sha256"]) == (request.id, accepted, request.sha256)
        assert said["size"] == request.size and said["decided"] == stamp(NOW)
    assert said["code"] == "E207" and "submission" not in said


@pytest.mark.parametrize("grace", ["", "10min"])
def test_a_deadline_counts_the_last_byte_with_the_grace_that_the_task_gives(desk: Desk, grace: str) -> None:
    """What begins before the deadline and ends after it is late, unless a dataset has a grace: to the second."""
    dataset = {**TASK["datasets"][0], "closes": "2031-05-01 11:30:00 UTC"}
    if grace:
        dataset["grace"] = grace
    desk.load_tasks(datasets=[dataset, TASK["datasets"][1]])
    end = datetime(2031, 5, 1, 11, 40 if grace else 30, tzinfo=UTC)
    asked = {
        seconds: desk.ask(data={"software": f"s{at}"}, arrival=stamp(end + timedelta(seconds=seconds)))
        for at, seconds in enumerate((-600, -1, 1, 600))
    }
    desk.drain()
    found = {seconds: desk.answer(request) for seconds, request in asked.items()}
    assert [one and one["accepted"] for one in found.values()] == [True, True, False, False]
    assert {one["code"] for one in found.values() if one and not one["accepted"]} == {"E210"}


def test_a_front_that_lies_about_the_time_gains_minutes_while_work_looks(desk: Desk) -> None:
    desk.load_tasks(closes="2031-05-01 11:30 UTC")
    desk.requests.round(desk.tasks)
    late = desk.ask(arrival=stamp(NOW - timedelta(hours=1)))
    found = desk.decided(late)
    assert (found["accepted"], found["code"]) == (False, "E210")
    assert (found["arrival"], found["said"]) == ("2031-05-01T11:55:00Z", "2031-05-01T11:00:00Z")
    assert found["receipt"]["statement"]["said"] == found["said"]
    assert any("3300 s" in one for one in desk.said), "the organiser is told"


def test_what_fails_on_our_side_waits(desk: Desk) -> None:
    request = desk.ask()
    desk.project.config.registered.write_text("where bundles should go")
    desk.requests.round(desk.tasks)
    assert desk.answer(request) is None and len(desk.inbox.waiting()) == 1 and desk.used() == 0
    desk.project.config.registered.unlink()
    with at_the_desk(desk.project, FixedClock(NOW)) as (requests, _, _):
        assert requests.round(desk.tasks) == 1


def test_strangers_fill_neither_disk_nor_log(desk: Desk) -> None:
    """A front in the attacker's hands can ask as often as it likes to be let in. Who registers keeps nobody out who signs in by a provider."""
    desk.requests.limits = DailyLimits({**LIMITS, "register": 1, "identity": 1})

    def strange(kind: str, **more: str) -> Request:
        token = Token.new()
        data = {"key": token.key, **more}
        request = Request.new(kind, f"a-{token.id}0000", token.id, None, stamp(NOW), data)
        return desk.inbox.put(request, token.key)

    for number in range(1 + UNKNOWN_ANSWERS + 2):
        strange("register", task="mini", team=f"t{number}")
    signs_in, mine = strange("identity", statement="none"), desk.ask()
    desk.drain()
    kept = list(desk.project.config.published.glob("answers/*"))
    assert len(kept) == 1 + UNKNOWN_ANSWERS + 2, "those who are told to come again, and no more"
    heard = desk.answer(signs_in)
    assert heard is not None and heard["code"] != "E106", "what it says was looked at"
    found = desk.answer(mine)
    assert found is not None and found["accepted"] is True, "teams are heard all the same"
    assert desk.events().count("request-decided") == 1


def test_what_nobody_expected_in_one_request_stops_no_other(project: Project) -> None:
    """An error of ours that a file brings out is the matter of its own request, which waits; the others are decided."""
    project.write_task(uploads=True)
    clock = FixedClock(NOW)

    def check(upload: Upload, stop: Callable[[], bool]) -> Form:
        if "bad" in upload.file.read_text():
            raise ZeroDivisionError
        return Form("form")

    with at_the_desk(project, clock) as (requests, accounts, said), closing(Checks(check)) as checks:
        requests.checks = checks
        desk = Desk(project, requests, accounts, *accounts.add("team", "alpha"))
        bad, good = desk.ask("bad"), desk.ask(data={"software": "two"})
        desk.settle(good)
        assert desk.answer(bad) is None and [id for _, id in desk.inbox.waiting()] == [bad.id]
        assert any("ZeroDivisionError" in line and bad.id in line for line in said)
