"""Clocks that are set back and forward under a real front and working work: nothing is lost, doubled or charged, and it is said."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from runner.exchange.access import Token
from runner.exchange.inbox import answered
from runner.exchange.published import Published
from runner.records.store.charges import quota
from runner.work.managing import managing
from tests.e2e.test_uploads_scored import run_text
from tests.runner.execution.test_pool import World
from tests.runner.web.test_resumed_uploads import ask, begin, id_of, put
from tests.runner.web.test_routes import form_of
from tests.runner.work.test_loop import at_work, outcomes, team, until
from tests.worlds.command_line import Cli, cli
from tests.worlds.mini import Project
from tests.worlds.site import notices, serving

__all__ = ["cli"]

DAY = timedelta(days=1)
NONE = timedelta(0)


@dataclass
class Turned:
    """The clock of a machine, as somebody set it."""

    by: timedelta = NONE

    def now(self) -> datetime:
        return datetime.now(UTC) + self.by


@dataclass
class Server:
    """A front and work, each with its clock."""

    world: World
    token: Token
    url: str
    front: Turned
    work: Turned
    said: list[str] = field(default_factory=list)

    def client(self, token: object = "") -> httpx2.Client:
        headers = {"authorization": f"Bearer {token or self.token}"} if token is not None else {}
        return httpx2.Client(base_url=self.url, trust_env=False, timeout=60, headers=headers)

    def set(self, front: timedelta, work: timedelta) -> None:
        self.front.by, self.work.by = front, work

    def hand_in(self, software: str) -> dict[str, Any]:
        """Hand in a run file, wait for the answer, and see that both halves of the receipt are there."""
        with self.client() as client:
            said = client.post(
                "/api/v1/tasks/mini/run-files",
                data={"software": software, "dataset": "dev"},
                files={"file": ("run.txt", run_text("dev", software).encode())},
            )
            assert said.status_code == 202, said.text
            id = said.json()["request"]
            published = self.world.project.config.published
            answer: dict[str, Any] = until(lambda: answered(published, id))
            shown = client.get(f"/api/v1/requests/{id}")
            assert shown.status_code == 200
        return answer

    def used(self) -> int:
        use = quota(self.world.store, self.world.tasks["mini"], "alpha")
        return use.used + use.open


@pytest.fixture
def server(project: Project) -> Iterator[Server]:
    project.write_task(uploads=True, quota={"submissions": 9})
    world, front, work = World(project), Turned(), Turned()
    with ExitStack() as stack:
        stack.callback(world.close)
        token = team(world)
        notes = stack.enter_context(at_work(world, work))
        published = Published(project.config.published)
        until(lambda: published.view("public").get("tasks/mini"))
        url = stack.enter_context(serving(project.config.exchange, project.home / "front", clock=front))
        yield Server(world, token, url, front, work, notes.lines)
        assert notes.problems == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("front", "work"),
    [(-DAY, -DAY), (DAY, NONE), (NONE, -DAY), (NONE, DAY)],
    ids=["both back", "front forward", "work back", "work forward"],
)
def test_hand_ins_are_taken_once_whatever_the_clocks_say(
    server: Server, front: timedelta, work: timedelta
) -> None:
    begun = datetime.now(UTC)
    with server.client(None) as person:
        form = form_of(person.get("/sign-in").text)
        person.post("/sign-in", data={"form-token": form, "token": str(server.token)})
        assert person.get("/team").status_code == 200
        for n, (f, w) in enumerate(((NONE, NONE), (front, work), (NONE, NONE))):
            server.set(f, w)
            answer = server.hand_in(f"s{n}")
            assert answer["accepted"], answer
            counted = datetime.strptime(answer["arrival"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
            assert counted - begun - w < timedelta(minutes=3), "never in what work takes for the future"
            assert min(abs(counted - begun - w), abs(counted - begun - f)) < timedelta(minutes=6)
        assert person.get("/team").status_code == 200, "who was signed in is again"
    until(lambda: outcomes(server.world) == ["scored"] * 3)
    types = [event.type for event in server.world.store.log]
    assert types.count("submission-registered") == types.count("request-decided") == 3
    assert types.count("attempt-committed") == server.used() == 3


def test_a_deadline_that_a_wrong_clock_sees_costs_nothing(server: Server) -> None:
    closes = (datetime.now(UTC) + DAY).strftime("%Y-%m-%d %H:%M UTC")
    server.world.project.write_task(uploads=True, quota={"submissions": 9}, closes=closes)
    server.set(2 * DAY, 2 * DAY)
    answer = server.hand_in("early")
    assert not answer["accepted"] and answer["code"] == "E210" and server.used() == 0
    server.set(NONE, NONE)
    assert server.hand_in("early")["accepted"] and server.used() == 1


@pytest.mark.slow
def test_work_says_that_its_clock_was_set_back(server: Server, cli: Cli) -> None:
    server.hand_in("one")
    server.set(-DAY, -DAY)
    server.hand_in("two")
    assert any("clock" in line for line in server.said)
    cli("store", "verify")  # the order of events is that of the log, whatever their times
    with server.client(None) as person:
        assert notices(person.get("/").text) == ["bad"], "as the sign of life is of tomorrow"


@pytest.mark.parametrize("by", [-DAY, DAY], ids=["back", "forward"])
def test_a_one_time_link_opens_once(server: Server, by: timedelta) -> None:
    with managing(server.world.project.config) as office:
        link = f"/link/{office.link(office.accounts.of_team('alpha'), timedelta(hours=1))[0]}"
    with server.client(None) as person:
        server.set(by, by)
        seen = person.get(link)
        if by > NONE:  # it is over by this clock, and nothing used it up
            assert seen.status_code == 404
            server.set(NONE, NONE)
            seen = person.get(link)
        assert person.post(link, data={"form-token": form_of(seen.text)}).status_code == 200
        server.set(NONE, NONE)
        assert person.get(link).status_code == 404, "used"


@pytest.mark.parametrize("by", [-3 * DAY, 3 * DAY], ids=["back", "forward"])
def test_an_upload_goes_on_and_counts_once_the_clock_is_right_again(server: Server, by: timedelta) -> None:
    content = run_text("dev", "sent").encode()
    digest = hashlib.sha256(content).hexdigest()
    with server.client() as client:
        where = begin(client, len(content), digest)
        assert put(client, where, content[:10], 0, len(content)).status_code == 200
        server.set(by, by)
        ask(client, 5, "0" * 64)  # who begins one has those swept that are over
        server.set(NONE, NONE)
        id = id_of(client, where)
        assert put(client, where, content[10:], 10, len(content)).status_code == 200
        data = {"software": "sent", "dataset": "dev", "upload": id, "name": "run.txt"}
        said = client.post("/api/v1/tasks/mini/run-files", data=data)
        assert said.status_code == 202, said.text
        answer = until(lambda: answered(server.world.project.config.published, said.json()["request"]))
        assert answer["accepted"] and server.used() == 1


def test_what_was_lent_and_how_often_somebody_may_follow_no_clock_but_the_right_one(server: Server) -> None:
    lent, wrong = Token.new(), replace(server.token, secret="x" * 43)
    with managing(server.world.project.config) as office:
        office.lend_token(office.accounts.of_team("alpha"), lent.id, lent.key, timedelta(hours=1))
    with server.client(lent) as by_lent, server.client(wrong) as by_wrong:
        until(lambda: by_lent.get("/api/v1/me").status_code == 200)
        server.set(DAY, DAY)
        assert by_lent.get("/api/v1/me").status_code == 401, "it is over"
        server.set(NONE, NONE)
        assert by_lent.get("/api/v1/me").status_code == 200, "and nothing took it away"
        until(lambda: by_wrong.get("/api/v1/me").status_code == 429)
        server.set(DAY, DAY)
        assert by_wrong.get("/api/v1/me").status_code == 429, "nobody may more often for a clock's sake"
        server.set(-DAY, -DAY)
        assert by_wrong.get("/api/v1/me").status_code == 429
        server.set(NONE, NONE)


@pytest.mark.parametrize("front", [-DAY, DAY], ids=["back", "forward"])
def test_what_came_after_a_deadline_is_not_taken_for_a_wrong_clock_of_the_front(
    server: Server, front: timedelta
) -> None:
    """The front may say that it came before: work saw itself when it was not there yet."""
    closed = (datetime.now(UTC) - timedelta(hours=2)).strftime("%Y-%m-%d %H:%M UTC")
    published = Published(server.world.project.config.published)
    before = published.view("public").get("tasks/mini")
    server.world.project.write_task(uploads=True, quota={"submissions": 9}, closes=closed)
    until(lambda: published.view("public").get("tasks/mini") != before)
    server.set(front, NONE)
    answer = server.hand_in("late")
    assert not answer["accepted"] and answer["code"] == "E210" and server.used() == 0
