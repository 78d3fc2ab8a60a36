"""Who is told what, made of what was published, sent to real receivers on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.published import Published, Publisher
from runner.model.clock import FixedClock
from runner.model.errors import RunnerError
from runner.work.managing import Managing
from runner.work.members.accounts import open_accounts
from runner.work.members.registrations import Registration
from runner.work.notices.due import notices
from runner.work.notices.settings import load
from runner.work.notices.telling import Telling, of_team
from runner.work.publishing import Desk
from tests.runner.execution.test_pool import World, good
from tests.runner.work import test_loop as loop
from tests.runner.work.notices.test_sending import Box, Receiver, mail_server, receiving
from tests.worlds.mini import Project

NOW = datetime(2041, 12, 30, 23, 59, tzinfo=UTC)  # a day and a minute before the deadline
CANARY = "canary-7730"


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    project.write_task(closes="2041-12-31 23:59 UTC")
    made = World(project)
    with open_accounts(project.config) as accounts:
        for team in ("alpha", "beta", "gamma"):
            account = accounts.add("team", team)[0]
            accounts.people.put(account.id, contact=f"{team}@example.org" if team != "gamma" else "on paper")
    yield made
    made.close()


def publish(world: World) -> None:
    to = Publisher(world.project.config.published)
    assert Desk(world.store, world.tasks, to, pytest.fail).publish(["alpha", "beta", "gamma"]) is not None


def talkative(mounts: Any, out: Path) -> None:
    mounts.say(f"a hidden topic is {CANARY}")
    good(mounts, out)


class Told:
    """Rounds of telling, to a mail server that is there while the context lasts."""

    def __init__(self, world: World, at: datetime, **more: Any) -> None:
        self.world, self.box, self.said = world, Box(), list[str]()
        self.server, port = mail_server(self.box)
        mail = {"host": "localhost", "port": port, "tls": "none", "from": "task@example.org"}
        mail |= {"organisers": ["org@example.org"], "teams": True}
        settings = {"url": "https://task.example.org/", "mail": mail, **more}
        (world.project.root / "notices.yaml").write_text(json.dumps(settings))
        self.at = at

    def round(self, at: datetime | None = None) -> list[tuple[str, str]]:
        """One round of a new process: to whom what was sent, by subject."""
        self.box.got.clear()
        clock = FixedClock(at or self.at)
        Telling(self.world.project.config, clock, self.said.append, pytest.fail).round(threading.Event())
        return sorted((to[0].partition("@")[0], subject(text)) for _, to, text in self.box.got)


def subject(text: str) -> str:
    unfolded = text.replace("\r\n ", " ")
    return next(line for line in unfolded.split("\r\n") if line.startswith("Subject: ")).removeprefix(
        "Subject: "
    )


@pytest.fixture
def told(world: World) -> Iterator[Told]:
    made = Told(world, datetime(2041, 6, 1, tzinfo=UTC), quiet=["beta"])
    publish(world)
    assert made.round() == []
    yield made
    made.server.stop()


def test_teams_and_organisers_are_told_once_and_nothing_hidden(world: World, told: Told) -> None:
    mine, theirs = world.hand_in("alpha", script=talkative), world.hand_in("beta")
    publish(world)
    assert told.round() == [], "it waits"
    world.work()
    assert told.round() == [], "nothing is told that was not published"
    publish(world)
    first = told.round()
    whole = "".join(text for *_, text in told.box.got)
    assert [(who, run) for who, text in first for run in (mine, theirs) if run in text] == [
        ("alpha", mine), ("org", mine), ("org", theirs),
    ], "beta wants none, gamma has no address"  # fmt: skip
    assert all(text.endswith("scored") for _, text in first)
    assert CANARY not in whole and "0.5" not in whole and f"https://task.example.org/runs/{mine}" in whole
    assert told.round() == [] == told.round(), "never twice, also by another process"
    assert told.said == []


def test_a_team_is_told_what_it_wants_of_what_the_organiser_sends(world: World, told: Told) -> None:
    def want(*about: str) -> None:
        with open_accounts(world.project.config) as accounts:
            accounts.people.want(accounts.of_team("alpha").id, about)
            accounts.people.want(accounts.of_team("beta").id, ["done", "held", "deadline"])

    def run() -> list[str]:
        world.hand_in("alpha", f"one-{len(runs)}")
        runs.append(world.work())
        publish(world)
        return [who for who, _ in told.round() if who != "org"]

    runs: list[Any] = []
    want("held", "deadline")
    assert run() == [], "done it does not want"
    want()
    assert run() == [] and [who for who, _ in told.round(NOW.replace(day=31)) if who != "org"] == []
    want("done")
    assert run() == ["alpha"], "only what happened since"
    world.hand_in("beta")
    world.work()
    publish(world)
    assert [who for who, _ in told.round() if who != "org"] == [], "the organiser's quiet stays"


def test_a_held_run_is_told_to_the_organiser_and_its_team(world: World, told: Told) -> None:
    run = world.hand_in("alpha")
    world.engine.script["proctor/evaluator"] = lambda mounts, out: None  # leaves no result
    world.work()
    publish(world)
    assert world.outcome(run).name == "held"
    sent = told.round()
    assert [(who, run in text and "held" in text) for who, text in sent] == [("alpha", True), ("org", True)]


DELTA = Registration(
    "a-" + "d" * 16, "0" * 32, "1" * 12, "2" * 64, "2041-06-01T00:00:00Z", "mini", "delta", "d@example.org"
)


def admit(world: World, one: Registration, now: datetime, *, at_once: bool = False) -> None:
    with open_accounts(world.project.config, clock=FixedClock(now)) as accounts:
        Managing(world.project.config, world.store, accounts).admit(one, at_once=at_once)


def test_a_team_that_was_let_in_is_told_once(world: World, told: Told) -> None:
    admit(world, DELTA, told.at)
    sent = told.round()
    assert [(who, "delta" in text) for who, text in sent] == [("d", True), ("org", True)]
    assert "https://task.example.org/tasks/mini" in "".join(text for *_, text in told.box.got)
    assert told.round() == []
    one = replace(DELTA, account="a-" + "e" * 16, token="3" * 12, team="epsilon", contact="e@example.org")
    admit(world, one, told.at, at_once=True)
    assert told.round() == [], "strangers have no mail sent without a person"


@pytest.mark.parametrize("address", ["o'brien@example.org", "ada@xn--bcher-kva.example.xn--p1ai"])
def test_every_address_that_can_be_registered_is_written_to(world: World, told: Told, address: str) -> None:
    admit(world, replace(DELTA, contact=address), told.at)
    told.round()
    assert [address] in [to for _, to, _ in told.box.got]


def test_who_was_let_in_long_ago_is_not_told(world: World, told: Told) -> None:
    admit(world, DELTA, told.at)
    assert told.round(told.at + timedelta(days=1)) == []


def test_being_let_in_is_told_as_the_organiser_and_the_team_want(world: World) -> None:
    at = datetime(2041, 6, 1, tzinfo=UTC)
    made = Told(world, at, quiet=["delta"])
    publish(world)
    admit(world, DELTA, at)
    other = replace(DELTA, account="a-" + "e" * 16, token="3" * 12, team="epsilon", contact="e@example.org")
    admit(world, other, at)
    with open_accounts(world.project.config) as accounts:
        accounts.people.want(other.account, [])
        shown = of_team(load(world.project.root), accounts, "alpha")
    assert {who for who, _ in made.round()} == {"org"}
    assert shown["may"] == ["done", "held", "deadline"], "a team is let in before it can choose"
    made.server.stop()


@pytest.mark.parametrize(
    ("at", "told_"),
    [
        ("2041-12-30T23:58:00", False),
        ("2041-12-31T00:00:00", True),
        ("2041-12-31T23:58:59", True),
        ("2042-01-01T00:00:00", False),
    ],
)
def test_a_deadline_is_told_from_a_day_before_until_it_is_over(
    world: World, told: Told, at: str, told_: bool
) -> None:
    now = datetime.fromisoformat(at).replace(tzinfo=UTC)
    found = told.round(now)
    assert [who for who, _ in found] == (["alpha", "org", "org", "org"] if told_ else [])
    assert all("deadline" in words and "2041-12-31" in words for _, words in found)
    assert told.round(now) == []


def test_a_server_that_is_down_is_tried_again(world: World, told: Told) -> None:
    world.hand_in("alpha")
    world.work()
    publish(world)
    told.box.says = "450 later"
    assert told.round() == [] and len(told.said) == 2
    told.box.says = "250 OK"
    assert told.round() == [], "not at once"
    assert len(told.round(datetime(2041, 6, 1, 0, 2, tzinfo=UTC))) == 2


def test_settings_are_read_by_schema_with_lines(project: Project) -> None:
    assert load(project.root) is None
    file = project.root / "notices.yaml"
    for text, words in (
        ("url: nowhere\n", "url"),
        ("url: https://x.org\nhooks:\n- {id: a, url: 'ftp://x'}\n", ":3"),
        ("url: https://x.org\nhoks: []\n", "hoks"),
        ("url: https://x.org\nhooks: [{id: a, url: 'https://a'}, {id: a, url: 'https://b'}]\n", "hooks"),
        ("url: [\n", ""),
    ):
        file.write_text(text)
        with pytest.raises(RunnerError) as caught:
            load(project.root)
        assert words in str(caught.value) + " ".join(str(one) for one in caught.value.problems)


@pytest.mark.slow
def test_work_tells_while_it_works(project: Project) -> None:
    """The loop itself: what is handed in is run and published, and the hook is called once, also after a restart."""
    project.write_task(uploads=True)
    world = loop.World(project)
    token = loop.team(world)
    with receiving() as url:
        hook = {"id": "all", "url": url, "private": True}
        settings = {"url": "https://task.example.org", "hooks": [hook]}
        (project.root / "notices.yaml").write_text(json.dumps(settings))
        with loop.at_work(world) as notes:
            loop.until(lambda: (project.home / "notices.sqlite").exists())
            loop.ask(world, token)
            loop.until(lambda: Receiver.got)
        with loop.at_work(world):
            loop.until(lambda: loop.outcomes(world) == ["scored"])
        [(_, _, body)] = Receiver.got
    assert json.loads(body)["text"].endswith("scored") and notes.problems == []
    world.close()


def test_without_settings_nobody_is_told(world: World) -> None:
    publish(world)
    Telling(world.project.config, FixedClock(NOW), pytest.fail, pytest.fail).round(threading.Event())
    assert not (world.project.home / "notices.sqlite").exists()
    assert list(notices(Published(world.project.config.published), ["nobody"], NOW, 24)) == []
