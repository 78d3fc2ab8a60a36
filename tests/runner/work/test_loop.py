"""The work process on a scripted engine: what comes in is decided, run and published, and one is enough."""

from __future__ import annotations

import hashlib
import io
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.access import Access, Token
from runner.exchange.inbox import Inbox, Request, answered
from runner.exchange.published import Published, Publisher
from runner.execution.machine import Machine
from runner.model.clock import Clock, SystemClock, stamp
from runner.model.config import BASES, Config
from runner.model.container import Exit
from runner.model.errors import PlatformError, RunnerError
from runner.records.commit import coordinator
from runner.records.store.connect import Store, open_store
from runner.submissions.parcel import parts_for
from runner.work import loop, pending
from runner.work.between import ANEW, Between
from runner.work.handlers import HANDLERS
from runner.work.handlers.wish import Wish
from runner.work.live_logs import LiveLogs
from runner.work.loop import Work
from runner.work.members.accounts import open_accounts, publish_access
from runner.work.publishing import Desk
from runner.work.requests import Requests
from runner.work.run_pages import RunPages
from runner.work.shelf import NAME, Shelf
from tests.e2e.test_uploads_scored import run_text
from tests.runner.execution.test_coordinator import Notes
from tests.runner.execution.test_pool import EVALUATOR, World
from tests.runner.submissions.test_parcel import LAYERS, archive
from tests.runner.work.members.test_accounts import refused
from tests.worlds.mini import Project
from tests.worlds.postgres import Server
from tests.worlds.small_disk import read_only


def until(what: Callable[[], Any], seconds: float = 60) -> Any:
    last = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < last, "it never came"
        time.sleep(0.05)
    return found


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    project.write_task(uploads=True)
    made = World(project)
    yield made
    made.close()


def work_of(world: World, clock: Clock | None = None) -> tuple[Work, Notes]:
    config, notes = world.project.config, Notes()
    machine = Machine(config, engine=world.engine, images={"evaluator": EVALUATOR})
    return Work(config, notes, machine=machine, clock=clock), notes


@contextmanager
def at_work(world: World, clock: Clock | None = None) -> Iterator[Notes]:
    work, notes = work_of(world, clock)
    thread = threading.Thread(target=work.run)
    thread.start()
    try:
        yield notes
    finally:
        work.end()
        thread.join(60)
        assert not thread.is_alive()


def ask(world: World, token: Token, software: str = "one", inbox: Path | None = None) -> Request:
    grant = Access.read(world.project.config.published).grant(token)
    assert grant is not None
    data = {"task": "mini", "software": software, "dataset": "dev", "file": "run.txt"}
    request = Request.new("run-file", grant.account, token.id, grant.team, stamp(SystemClock().now()), data)
    return Inbox(inbox or world.project.config.inbox).put(
        request, token.key, io.BytesIO(run_text("dev", "x").encode())
    )


def team(world: World) -> Token:
    with open_accounts(world.project.config) as accounts:
        token = accounts.add("team", "alpha")[1]
        publish_access(world.project.config, accounts)
    return token


def withdraw(world: World, token: Token, submission: str) -> Request:
    config, now = world.project.config, stamp(SystemClock().now())
    grant = Access.read(config.published).grant(token)
    assert grant is not None
    data = {"submission": submission}
    request = Request.new("withdraw", grant.account, token.id, grant.team, now, data)
    return Inbox(config.inbox).put(request, token.key)


def scored(world: World, *softwares: str) -> Token:
    """Return the token of a team whose runs were submitted and scored."""
    token = team(world)
    with at_work(world):
        for software in softwares:
            ask(world, token, software)
        until(lambda: outcomes(world) == ["scored"] * len(softwares))
    return token


def outcomes(world: World) -> list[str]:
    view = Published(world.project.config.published).view("team:alpha")
    found = view.get("runs")
    return [row["outcome"]["name"] for row in view.data(found)] if found else []


def test_teams_need_not_send_base_images_that_the_engine_has(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the first team need not, and the images that nobody lists in RUNNER_BASES are among them."""
    team(world)
    config = world.project.config
    world.engine.script[BASES[0]] = Exit(0)
    monkeypatch.setattr(world.engine, "save", lambda _, to: archive(to, LAYERS))
    with at_work(world):
        until(lambda: parts_for(config.home, []))
        # Publishing looks at everything again after a minute; an account makes it look now.
        with open_accounts(config) as accounts:
            accounts.add("team", "beta")
        published = until(lambda: _parts_of(config, "team:beta"))
    assert published == {hashlib.sha256(layer).hexdigest() for layer in LAYERS}


def _parts_of(config: Config, audience: str) -> set[str]:
    view = Published(config.published).view(audience)
    found = view.get("parts")
    return set(view.data(found)["sha256"]) if found else set()


@pytest.mark.slow
def test_a_request_is_decided_in_the_middle_of_a_long_publishing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    softwares, config = ("one", "two", "three"), world.project.config
    token = scored(world, *softwares)
    (config.home / NAME).unlink()  # as after an update: all pages are made anew
    monkeypatch.setattr(loop, "TICK", 0.0)
    asked, early, made = list[Request](), list[object](), RunPages.of

    def slow(self: RunPages, *of: Any) -> Any:
        """The first page is made when a request arrives; at the last one it is looked whether that was decided."""
        if not asked:
            asked.append(ask(world, token, "four"))
        elif len(early) < len(softwares) - 1:
            early.append(answered(config.published, asked[0].id))
        return made(self, *of)

    monkeypatch.setattr(RunPages, "of", slow)
    with at_work(world) as notes:
        until(lambda: len(early) == len(softwares) - 1)
        until(lambda: len(outcomes(world)) == len(softwares) + 1)
    assert early[-1] is not None
    assert notes.problems == []


@pytest.mark.slow
def test_work_ends_in_the_middle_of_a_long_publishing_and_goes_on_from_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = world.project.config
    scored(world, "one", "two", "three")
    (config.home / NAME).unlink()
    before, names, made = Published(config.published).pointer(), list[str](), RunPages.of
    work, notes = work_of(world)

    def ending(self: RunPages, listed: Any, audience: Any) -> Any:
        names.append(listed.run.id)
        found = made(self, listed, audience)
        work.end()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(RunPages, "of", ending)
        work.run()
    assert len(names) == 1 and notes.problems == []
    assert Published(config.published).pointer() == before
    assert [*Shelf(config.home / NAME).load()] == names


@pytest.mark.slow
def test_what_cannot_be_kept_over_a_restart_ends_no_clerk(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "REST", 0.0)
    token, place = team(world), world.project.config.home / NAME
    place.mkdir()  # a folder of that name
    with at_work(world) as notes:
        ask(world, token)
        until(lambda: outcomes(world) == ["scored"])
        ask(world, token, "two")
        until(lambda: outcomes(world) == ["scored", "scored"])
    assert notes.problems == ["E306"], "once"


@pytest.mark.slow
def test_what_is_kept_of_pages_may_be_read_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "REST", 0.0)
    token, place = scored(world, "one"), world.project.config.home / NAME
    assert len(Shelf(place).load()) == 1
    before = place.read_bytes()
    with read_only(place), at_work(world) as notes:
        ask(world, token, "two")
        until(lambda: outcomes(world) == ["scored", "scored"])
        until(lambda: notes.problems)
    assert set(notes.problems) == {"E306"} and place.read_bytes() == before
    assert len(Shelf(place).load()) == 1, "what was there is not lost"
    with at_work(world) as notes:
        until(lambda: len(Shelf(place).load()) == 2)
    assert notes.problems == []


class NoSharedMemory(sqlite3.Connection):
    """SQLite on a file system without shared memory: it says which journal it keeps to, and that is not the one that was wanted."""

    def execute(self, sql: str, *of: Any) -> sqlite3.Cursor:
        return super().execute("PRAGMA journal_mode" if sql == "PRAGMA journal_mode = WAL" else sql, *of)


def test_where_nobody_can_write_beside_readers_work_goes_on(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *of, **how: connect(*of, **how, factory=NoSharedMemory))
    project.write_task(uploads=True)
    world = World(project)
    assert not world.store.writes_beside_readers()
    token = team(world)
    with at_work(world) as notes:
        requests = [ask(world, token, software) for software in ("one", "two", "three")]
        for request in requests:
            assert until(lambda id=request.id: answered(project.config.published, id))["accepted"] is True  # type: ignore[misc]
        until(lambda: outcomes(world) == ["scored"] * 3)
        assert not world.store.writes_beside_readers()
    assert notes.problems == []
    world.close()


def test_a_request_that_fails_for_a_defect_of_ours_stops_no_other_and_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "RETRY_SECONDS", 1.0)
    token, published = team(world), world.project.config.published
    handler, times = HANDLERS["run-file"], list[str]()

    def fails(wish: Wish) -> dict[str, Any]:
        times.append(wish.request)
        if times.count(wish.request) == 1 and wish.data["software"] == "one":
            raise ValueError("a defect of ours")
        return handler.do(wish)

    monkeypatch.setitem(HANDLERS, "run-file", replace(handler, do=fails))
    with at_work(world) as notes:
        bad, good = ask(world, token, "one"), ask(world, token, "two")
        assert until(lambda: answered(published, good.id))["accepted"] is True
        assert until(lambda: answered(published, bad.id))["accepted"] is True
    assert times.count(bad.id) == 2 and notes.problems == []
    assert any(f"request {bad.id} waits" in line and "ValueError" in line for line in notes.lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), PlatformError("the log is locked", code="E306")]
)
def test_an_inbox_that_fails_as_a_whole_is_told_and_looked_at_again(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """In the middle of a publishing, too, which is ended first."""
    monkeypatch.setattr(loop, "PAUSE", 0.1)
    monkeypatch.setattr(loop, "TICK", 0.0)
    token, published = team(world), world.project.config.published
    real, failures = Requests.round, [error] * 3

    def failing(self: Requests, *of: Any) -> int:
        if failures:
            raise failures.pop()
        return real(self, *of)

    monkeypatch.setattr(Requests, "round", failing)
    with at_work(world) as notes:
        request = ask(world, token)
        assert until(lambda: answered(published, request.id))["accepted"] is True
        until(lambda: outcomes(world) == ["scored"])
    assert notes.problems == ["E306"] * 3


def test_what_a_defect_may_come_from_is_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    scored(world, "one")
    place = world.project.config.home / NAME
    assert Shelf(place).load()

    def broken(*_: Any) -> bool:
        raise ValueError("what was kept is not what it should be")

    monkeypatch.setattr(Desk, "publish", broken)
    with at_work(world) as notes:
        until(lambda: not Shelf(place).load())
    assert notes.problems == ["E308"]


@pytest.mark.slow
def test_what_is_withdrawn_while_it_is_published_does_not_appear_after_that(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, config = scored(world, "one", "two"), world.project.config
    (config.home / NAME).unlink()
    monkeypatch.setattr(loop, "TICK", 0.0)
    asked, seen, made, whole = list[Request](), list[list[str]](), RunPages.of, Publisher.publish

    def asking(self: RunPages, *of: Any) -> Any:
        if not asked:
            asked.append(withdraw(world, token, of[0].run.submission.id))
        return made(self, *of)

    def publish(self: Publisher, found: Any) -> bool:
        done = whole(self, found)
        if asked and answered(config.published, asked[0].id):
            seen.append(outcomes(world))
        return done

    monkeypatch.setattr(RunPages, "of", asking)
    monkeypatch.setattr(Publisher, "publish", publish)
    with at_work(world) as notes:
        until(lambda: seen)
    assert seen[0].count("scored") == 1 and notes.problems == []


@pytest.fixture
def withdrawing(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A team with six scored runs withdraws one whenever a page of a run is made; what is published next ends up in the list,
    and the submissions that are left to be withdrawn."""
    token = scored(world, "one", "two", "three", "four", "five", "six")
    (world.project.config.home / NAME).unlink()
    monkeypatch.setattr(loop, "TICK", 0.0)
    left, made = list[str](), RunPages.of
    left += [run.submission.id for run in world.desk().runs if run.dataset == "dev"]

    def asking(self: RunPages, *of: Any) -> Any:
        if left:
            withdraw(world, token, left.pop())
        return made(self, *of)

    monkeypatch.setattr(RunPages, "of", asking)
    return left


@pytest.mark.slow
def test_a_publication_restarts_three_times_and_the_pause_after_it_counts_all(
    world: World, withdrawing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A team that goes on withdrawing keeps nobody from being published."""
    monkeypatch.setattr(loop, "REST", 1.0)
    spans, begin, end = list[tuple[float, float, bool]](), Between.begin, Between.end
    made = RunPages.of

    def slowly(self: RunPages, *of: Any) -> Any:
        time.sleep(0.4)
        return made(self, *of)

    since = list[float]()

    def begins(self: Between) -> None:
        since.append(time.monotonic())
        begin(self)

    def ends(self: Between) -> float:
        spans.append((since[-1], time.monotonic(), self.anew))
        return end(self)

    monkeypatch.setattr(RunPages, "of", slowly)
    monkeypatch.setattr(Between, "begin", begins)
    monkeypatch.setattr(Between, "end", ends)
    with at_work(world) as notes:
        until(lambda: len(spans) > ANEW + 1)
        until(lambda: not withdrawing)
        until(lambda: outcomes(world) == ["withdrawn"] * 6)
    assert notes.problems == []
    assert [again for *_, again in spans[: ANEW + 1]] == [True] * ANEW + [False]
    spent = sum(ended - began for began, ended, _ in spans[: ANEW + 1])
    assert spans[ANEW + 1][0] - spans[ANEW][1] >= spent - 0.05


@pytest.mark.slow
def test_the_pause_holds_where_everything_is_looked_at_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "REST", 4.0)
    monkeypatch.setattr(loop, "REFRESH", 0.1)
    spans, publish = list[tuple[float, float]](), Desk.publish

    def slowly(self: Desk, *of: Any) -> None:
        began = time.monotonic()
        time.sleep(0.4)
        publish(self, *of)
        spans.append((began, time.monotonic()))

    monkeypatch.setattr(Desk, "publish", slowly)
    with at_work(world):
        until(lambda: len(spans) > 3)
    for (began, ended), (next_began, _) in pairwise(spans):
        assert next_began - ended >= 4 * (ended - began) - 0.2


@pytest.mark.slow
def test_plots_are_drawn_beside_work_and_published_after_that(world: World) -> None:
    on_dev = {"id": "main", "cells": [{"dataset": "dev"}], "rank_by": "ndcg_10"}
    world.project.write_task(uploads=True, tables=[on_dev])
    token, seen = team(world), Published(world.project.config.published)
    with at_work(world) as notes:
        until(lambda: seen.age() is not None)
        ask(world, token)
        until(lambda: seen.view("public").below("plots/"))
        board = seen.view("public").get("tasks/mini/main")
        assert board is not None and '<figure class="plot"' in seen.view("public").text(board)
    assert notes.problems == []


def test_what_came_while_nobody_worked_is_done_at_the_next_start(world: World) -> None:
    token = team(world)
    request = ask(world, token)
    assert answered(world.project.config.published, request.id) is None
    with at_work(world):
        until(lambda: outcomes(world) == ["scored"])
    with at_work(world):
        until(lambda: Inbox(world.project.config.inbox).waiting() == [])
    types = [event.type for event in world.store.log]
    assert [
        types.count(one) for one in ("submission-registered", "request-decided", "attempt-committed")
    ] == [1] * 3


@pytest.mark.slow
def test_a_clerk_whose_place_was_taken_decides_nothing_until_it_is_free_again(
    project: Project, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "PAUSE", 0.1)
    project.database = postgres.database_for(project.home)
    project.write_task(uploads=True)
    world = World(project)
    token, published = team(world), world.project.config.published
    with at_work(world) as notes:
        first = ask(world, token)
        until(lambda: answered(published, first.id))
        with open_store(project.config) as other, ExitStack() as place:
            with refused("E306"):
                place.enter_context(other.coordinating("runner work"))
            postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'proctor'")
            until(lambda: taken(place, other))
            until(lambda: notes.problems.count("E306") > 2)
            request = ask(world, token, "two")
            seen = len(notes.problems)
            until(lambda: len(notes.problems) > seen + 2)
            assert answered(published, request.id) is None
        assert until(lambda: answered(published, request.id))["accepted"] is True
    world.close()
    postgres.forget(project.home)


def taken(place: ExitStack, store: Store) -> bool:
    """Whether the place of work is taken now; nobody is at it for a moment."""
    try:
        place.enter_context(store.coordinating("runner work"))
    except RunnerError:
        return False
    return True


def test_who_evaluates_beside_work_is_told_that_it_is_work(world: World) -> None:
    config = world.project.config
    with at_work(world) as notes:
        until(lambda: Published(config.published).age() is not None)
        with pytest.raises(RunnerError) as error:
            work_of(world)[0].run()
        assert error.value.code == "E306" and "runner work" in error.value.what
        for is_work, other in ((False, "runner work"), (True, "runner evaluate")):
            with (
                until_free(config, world.store),
                pytest.raises(RunnerError) as error,
                coordinator(config, world.store, is_work=is_work),
            ):
                pass
            assert error.value.code == "E306" and other in error.value.what
    assert notes.problems == []


@contextmanager
def until_free(config: Config, store: Store) -> Iterator[None]:
    """Hold the coordinator's place as soon as work lets go of it."""
    last = time.monotonic() + 60
    while True:
        try:
            with coordinator(config, store):
                yield
            return
        except RunnerError:
            assert time.monotonic() < last
            time.sleep(0.05)


@pytest.mark.slow
def test_a_defect_in_publishing_is_told_and_deciding_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, published = team(world), Published(world.project.config.published)
    whole, forgotten = Desk.publish, list[bool]()

    def broken(*_: Any) -> bool:
        raise ValueError("two objects have one path")

    monkeypatch.setattr(Desk, "publish", broken)
    monkeypatch.setattr(LiveLogs, "forget", lambda _: forgotten.append(True))
    with at_work(world) as notes:
        until(lambda: notes.problems)
        assert forgotten, "nobody has decided who may read them now"
        request = ask(world, token)
        assert until(lambda: answered(published.root, request.id))["accepted"] is True
        until(published.stuck)
        monkeypatch.setattr(Desk, "publish", whole)
        ask(world, token, "two")
        until(lambda: outcomes(world) == ["scored", "scored"])
        until(lambda: not published.stuck())
    assert notes.problems == ["E308"], "once, not at each try"


def test_a_task_written_twice_within_the_same_tick_of_the_clock_is_read_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Linux 6.13 the times of files stand still for 4 to 10 ms."""
    definitions, at, titles = loop.Definitions(project.config), time.time_ns(), list[str]()
    monkeypatch.setattr(time, "time_ns", lambda: at + 1_000_000)
    for title in ("One", "Two"):
        project.write_task(title=title)
        os.utime(project.config.tasks / "mini" / "task.yaml", ns=(at, at))
        titles.append(definitions.now()["mini"].title)
    assert titles == ["One", "Two"]
    monkeypatch.setattr(time, "time_ns", lambda: at + 60_000_000)
    assert definitions.now() is definitions.now(), "what is settled is not read again"
