"""The log of a run that goes on: for those alone who may read it once it is sealed, on public data alone, escaped and bounded."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any

import httpx2
import pytest

from runner.exchange import tails
from runner.exchange.access import Token
from runner.exchange.published import Published
from runner.exchange.tails import Tail
from runner.execution import pool
from runner.execution.cluster.tails import Follower, Tails
from runner.records.archive import Attempt, Evaluation
from runner.records.store.connect import Store
from runner.work import live_logs
from runner.work.live_logs import LiveLogs
from runner.work.members.accounts import open_accounts, publish_access
from tests.e2e.test_server import until
from tests.runner.execution.test_pool import World, good
from tests.runner.work.test_loop import at_work
from tests.worlds.mini import TASK, Project
from tests.worlds.site import serving

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202eevil"
SHOWN = "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J\\u202eevil"
LIVE = 'role="log"'
READERS, OTHERS = ("alpha", "organiser", "assistant"), ("beta", "public")


@dataclass
class Talking:
    """A software that says what it reads, and goes on when it is let: on ``dev``, and on ``test``."""

    gates: dict[str, threading.Event] = field(
        default_factory=lambda: {"dev": threading.Event(), "test": threading.Event()}
    )
    at: Queue[str] = field(default_factory=Queue)
    say: Callable[[str], None] = print

    def __call__(self, mounts: Any, out: Path) -> None:
        read = next(
            path.read_text() for folder in mounts.values() for path in folder.glob("**/queries.jsonl")
        )
        dataset = json.loads(read.splitlines()[0])["qid"].partition("-")[0]
        self.say = mounts.say
        mounts.say(f"canary-{dataset} {HOSTILE}")
        self.at.put(dataset)
        assert self.gates[dataset].wait(120)
        mounts.say("the second")
        good(mounts, out)


@dataclass
class Site:
    """A front, and work on a scripted engine beside it; teams and people by their names."""

    world: World
    url: str
    tokens: dict[str, Token]

    @contextmanager
    def client(self, who: str) -> Iterator[httpx2.Client]:
        headers = {"authorization": f"Bearer {self.tokens[who]}"} if who in self.tokens else {}
        with httpx2.Client(base_url=self.url, trust_env=False, timeout=60, headers=headers) as client:
            yield client

    def page(self, who: str, run: str) -> str:
        with self.client(who) as client:
            return client.get(f"/runs/{run}").text

    def live(self, who: str, page: str) -> str:
        """The tag of a page for somebody."""
        with self.client(who) as client:
            return client.get("/live", params={"page": page}).text

    @property
    def files(self) -> list[Path]:
        return sorted((self.world.project.config.published / "tails").glob("*"))


@pytest.fixture
def site(project: Project, tmp_path: Path) -> Iterator[Site]:
    cells = [{"dataset": "dev"}, {"dataset": "test"}]
    project.write_task(tables=[{**TASK["tables"][0], "cells": cells}])
    world, config = World(project), project.config
    with open_accounts(config) as accounts:
        tokens = {team: accounts.add("team", team)[1] for team in ("alpha", "beta")}
        tokens |= {role: accounts.add(role)[1] for role in ("organiser", "assistant")}
        publish_access(config, accounts)
    with serving(config.exchange, tmp_path / "front") as url:
        yield Site(world, url, tokens)
    world.close()


def nothing(site: Site, who: str, run: str) -> None:
    """Nobody of those who may not read a log can tell that it is there."""
    with site.client(who) as client:
        never = (
            client.get("/runs/alpha.none.dev"),
            client.get("/live", params={"page": "/runs/alpha.none.dev"}),
        )
        asked = client.get(f"/runs/{run}"), client.get("/live", params={"page": f"/runs/{run}"})
    for one, other in zip(asked, never, strict=True):
        assert (one.status_code, one.content) == (other.status_code, other.content)
        assert [name for name, _ in one.headers.items()] == [name for name, _ in other.headers.items()]


@pytest.mark.slow
def test_a_log_that_grows_is_shown_to_its_readers_and_to_nobody_else(site: Site) -> None:
    talking = Talking()
    hidden = site.world.hand_in("alpha", "loud", talking)
    run = hidden.removesuffix("test") + "dev"
    seen: set[str] = set()
    with at_work(site.world) as notes:
        for _ in range(2):
            dataset = talking.at.get(timeout=120)
            if dataset == "dev":
                _goes_on(site, run, talking)
            else:
                until(lambda: "running" in site.page("alpha", hidden))
                seen_by = Published(site.world.project.config.published)
                for audience in seen_by.pointer():
                    assert seen_by.view(audience).below("tails/") == [], "it is not even followed"
                assert not site.files and "canary" not in site.page("organiser", hidden)
                talking.gates["test"].set()
            seen.add(dataset)
        until(lambda: not site.files)
        until(lambda: "the second" in site.page("alpha", run))
    assert seen == {"dev", "test"} and notes.problems == []
    assert "canary-test" not in "".join(site.page(who, hidden) for who in READERS)


def _goes_on(site: Site, run: str, talking: Talking) -> None:
    until(lambda: site.files)
    for who in OTHERS:
        nothing(site, who, run)
    for who in READERS:
        until(lambda who=who: f"canary-dev {SHOWN}" in site.page(who, run))
        assert LIVE in site.page(who, run)
    assert [one.stat().st_mode & 0o777 for one in site.files] == [0o644]
    published = Published(site.world.project.config.published)
    pages = (("alpha", f"/runs/{run}"), ("public", "/tasks/mini"), ("beta", "/team"))
    pointer, before = published.pointer(), [site.live(*page) for page in pages]
    talking.say("again and again")
    until(lambda: site.live(*pages[0]) != before[0])
    assert "again and again" in site.page("alpha", run)
    assert [site.live(*page) for page in pages[1:]] == before[1:], "nobody else can tell"
    assert pointer == published.pointer(), "nor is anything published anew"
    talking.gates["dev"].set()
    until(lambda: LIVE not in site.page("alpha", run))


def shown(logs: LiveLogs, root: Path, name: str | None) -> str:
    """The text of a log, as it is written now."""
    live_logs.WRITE_SECONDS, before = 0.0, live_logs.WRITE_SECONDS
    logs.write()
    live_logs.WRITE_SECONDS = before
    return tails.read(root / "published", str(name)).text


class Engine:
    """An engine on which every attempt writes the same pieces."""

    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        self._pieces, self.asked = pieces, list[str]()

    def follow(self, attempt: str, may_cut: object) -> Iterator[bytes]:
        """The pieces."""
        self.asked.append(attempt)
        return self._pieces()


@pytest.mark.slow
def test_whatever_is_written_its_end_is_kept_and_is_text(tmp_path: Path) -> None:
    problems: list[Exception] = []
    said = [
        b"\xf0\x9f",
        b"\x99\x82\r",
        b"\n\0\xff\x1b]0;mine\x07\r50 %\r",
        "\u2028\u202eevil\t".encode(),
        b"x" * (10 << 20),
        b" the end",
    ]
    engine: Any = Engine(lambda: iter(said))
    logs = LiveLogs(tmp_path / "published", tmp_path / "notes", lambda: engine, problems.append)
    try:
        assert logs.name_of("run") is None, "it has no place"
        logs.share({("run", 1): "alpha", ("other", 1): "alpha"})
        name = logs.name_of("run")
        assert name is not None and name == logs.name_of("run") != logs.name_of("other")
        until(lambda: shown(logs, tmp_path, name).endswith(" the end"))
        tail = tails.read(tmp_path / "published", name)
        assert len(tail.text) <= tails.MOST and all(one == "\n" or one.isprintable() for one in tail.text)
        assert re.search(r"\d[\d,]{6,}", tail.text), "how many bytes were left out"
        assert all(
            path.stat().st_size < 4 * tails.MOST for path in (tmp_path / "published" / "tails").iterdir()
        )
        logs.share({("other", 1): "alpha"})
        logs.settle()
        assert tails.read(tmp_path / "published", name) == Tail(), "nobody may see it any more"
        assert [*problems] == []
    finally:
        logs.close()
    assert not list((tmp_path / "published" / "tails").iterdir())


@pytest.mark.slow
def test_where_the_disk_refuses_it_is_said_once_and_left_at_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems: list[Exception] = []
    tried = [0]

    def full(*_: Any) -> None:
        tried[0] += 1
        raise OSError(28, "No space left on device")

    def pieces() -> Iterator[bytes]:
        while tried[0] < 3:
            yield b"more\n"
            time.sleep(0.2)

    engine: Any = Engine(pieces)
    monkeypatch.setattr(tails, "write", full)
    logs = LiveLogs(tmp_path / "published", tmp_path / "notes", lambda: engine, problems.append)
    try:
        logs.share({("run", 1): "alpha"})
        assert logs.name_of("run")
        until(lambda: shown(logs, tmp_path, logs.name_of("run")) or tried[0] >= 3)
    finally:
        logs.close()
    assert len(problems) == 1


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[tuple[LiveLogs, Engine, list[Exception]]]:
    """Logs on an engine on which nothing runs, and what went wrong: as soon as that is possible they are looked at again."""
    engine, problems = Engine(lambda: iter(())), list[Exception]()
    given: Any = engine
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_logs, "WRITE_SECONDS", 0.01)
        patch.setattr(live_logs, "PAUSES", (0.01, 0.01))
        logs = LiveLogs(tmp_path / "published", tmp_path / "notes", lambda: given, problems.append)
        yield logs, engine, problems
        logs.close()


def test_one_log_that_fails_is_told_once_and_the_others_go_on(
    silent: tuple[LiveLogs, Engine, list[Exception]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, _, problems = silent
    failed, read = [0], Follower.read

    def broken(of: Follower) -> bytes:
        text = read(of)
        if b"bad" in text or (failed[0] and not text):
            failed[0] += 1
            raise ValueError("read of closed file")
        return text

    monkeypatch.setattr(Follower, "read", broken)
    logs.share({("bad", 1): "alpha", ("good", 1): "alpha"})
    assert logs.name_of("bad")
    name = logs.name_of("good") or ""
    (tmp_path / "notes").mkdir(exist_ok=True)
    (tmp_path / "notes" / "bad~1").write_bytes(b"bad")
    until(lambda: shown(logs, tmp_path, name) or failed[0] >= 3)
    (tmp_path / "notes" / "good~1").write_bytes(b"good")
    until(lambda: shown(logs, tmp_path, name) == "good")
    assert [str(one) for one in problems] == ["read of closed file"]


@pytest.mark.slow
def test_runs_at_hosts_that_end_at_any_moment_end_no_log(
    silent: tuple[LiveLogs, Engine, list[Exception]], tmp_path: Path
) -> None:
    logs, engine, problems = silent
    notes = tmp_path / "notes"
    notes.mkdir()
    for n in range(40):
        runs = {(f"r{n}-{i}", 1): "alpha" for i in range(10)}
        logs.share(runs)
        names = [logs.name_of(one[0]) or "" for one in runs]
        for run, _ in runs:
            (notes / f"{run}~1").write_bytes(b"x\n" * 4000)
        if n % 8 == 0:
            until(lambda names=names: shown(logs, tmp_path, names[-1]))
        logs.share({})
        logs.settle()
        assert not any(tails.read(tmp_path / "published", one).text for one in names)
    logs.share({("last", 1): "alpha"})
    name = logs.name_of("last") or ""
    (notes / "last~1").write_bytes(b"text")
    until(lambda: shown(logs, tmp_path, name))
    assert [one for one in Tails(notes).followed() if "~" not in one] == ["last"], "its host is asked"
    asked = len(engine.asked)
    for n in range(1, 9):
        (notes / "last~1").write_bytes(b"text" + b" and more" * n)
        until(lambda n=n: shown(logs, tmp_path, name) == "text" + " and more" * n)
    assert problems == [] and len(engine.asked) == asked, "a run at a host is not looked for here any more"


@pytest.mark.slow
def test_what_it_wrote_stays_until_its_own_log_is_there(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt that is over and not recorded yet goes on for those who look at it."""
    talking, recorded, done = Talking(), threading.Event(), pool.commit

    def late(store: Store, *sealed: Attempt | Evaluation) -> None:
        if any(isinstance(one, Attempt) and one.run_id.endswith("dev") for one in sealed):
            assert recorded.wait(120)
        done(store, *sealed)

    monkeypatch.setattr(pool, "commit", late)
    talking.gates["test"].set()
    run = site.world.hand_in("alpha", "loud", talking).removesuffix("test") + "dev"
    archive, published = site.world.store.archive, Published(site.world.project.config.published)
    with at_work(site.world) as notes:
        until(lambda: "canary-dev" in site.page("alpha", run))
        before = published.pointer()["team:alpha"]
        talking.gates["dev"].set()
        until(lambda: run not in archive.live() and archive.has_attempt("mini", run, 1))
        until(lambda: published.pointer()["team:alpha"] != before)
        text = site.page("alpha", run)
        recorded.set()
        assert "canary-dev" in text and LIVE in text
        until(lambda: LIVE not in (now := site.page("alpha", run)) and "the second" in now)
        until(lambda: not site.files)
    assert notes.problems == []


def test_where_nothing_can_be_published_no_log_goes_on(
    silent: tuple[LiveLogs, Engine, list[Exception]], tmp_path: Path
) -> None:
    logs, _, _ = silent
    wanted, notes = {("run", 1): "alpha"}, tmp_path / "notes"
    notes.mkdir()
    (notes / "run~1").write_bytes(b"text")
    logs.share(wanted)
    name = logs.name_of("run") or ""
    until(lambda: shown(logs, tmp_path, name))
    logs.forget()
    assert not shown(logs, tmp_path, name)
    logs.share(wanted)
    again = logs.name_of("run") or ""
    assert again != name
    until(lambda: shown(logs, tmp_path, again))
    assert not shown(logs, tmp_path, name)


def test_places_are_shared_by_teams_and_those_of_runs_that_are_over_are_free(
    silent: tuple[LiveLogs, Engine, list[Exception]], tmp_path: Path
) -> None:
    logs, _, _ = silent

    def named(**runs: range) -> dict[str, list[int]]:
        wanted = {(f"{team}{n}", 1): team for team, of in runs.items() for n in of}
        logs.share(wanted)
        return {team: [n for n in of if logs.name_of(f"{team}{n}")] for team, of in runs.items()}

    assert named(alpha=range(100)) == {"alpha": [*range(64)]}
    found = named(alpha=range(100), beta=range(100), gamma=range(3))
    assert found == {"alpha": [*range(31)], "beta": [*range(30)], "gamma": [0, 1, 2]}
    tails.write(tmp_path / "published", name := logs.name_of("beta0") or "", Tail(0, "text"))
    assert named(gamma=range(1, 80)) == {"gamma": [*range(1, 65)]}
    assert tails.read(tmp_path / "published", name).text, "its file stays until its page is another one"
    logs.settle()
    assert tails.read(tmp_path / "published", name) == Tail()
