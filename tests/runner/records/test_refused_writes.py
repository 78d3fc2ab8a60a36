"""Writes that the disk refuses: nothing of them stays, the error names the disk, and the same command works later."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import sqlalchemy.exc

from runner.execution.executors import local
from runner.model.errors import PLATFORM, PlatformError, disk_words
from runner.records.events import EventLog
from runner.records.store import database
from runner.records.store.connect import open_store
from runner.records.store.postgres import PostgreSQL
from runner.records.store.queries import submissions
from runner.records.store.sqlite import SQLite
from schemas.files import atomic_file
from tests.runner.execution.test_pool import World
from tests.worlds.mini import Project
from tests.worlds.small_disk import SmallDisk, small_disk

QUOTA = {"task": "mini", "team": "alpha", "submissions": 1}
PAGE = 4096


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project", tmp_path / "home", tmp_path / "truths")
    project.write_task(quota={"submissions": 1000})
    return project


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    world = World(project)
    yield world
    world.close()


@pytest.fixture
def full(project: Project) -> Iterator[tuple[World, SmallDisk]]:
    with small_disk(project.config.home, 32) as disk:
        world = World(project)
        yield world, disk
        world.close()


@pytest.mark.parametrize("words", [b"x", b"x" * 100_000])
def test_a_file_that_replaces_another_names_its_full_disk(tmp_path: Path, words: bytes) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        target = disk.path / "file"
        target.write_bytes(b"before")
        disk.fill()
        with pytest.raises(OSError) as raised, atomic_file(target) as file:
            file.write(words)
        why, _ = disk_words(raised.value)
        assert str(target) in why and raised.value.errno == errno.ENOSPC
        disk.free()
        assert [*disk.path.iterdir()] == [target] and target.read_bytes() == b"before"


def registered_ids(world: World) -> set[str]:
    """Return the ids of registered submissions, as a command that starts now sees them."""
    with open_store(world.project.config) as store:
        return {entry.id for entry in submissions(store)}


@pytest.mark.slow
def test_a_submission_refused_for_a_full_disk_is_not_registered(full: tuple[World, SmallDisk]) -> None:
    world, disk = full
    world.hand_in("alpha", "first")
    bundle = world.project.home / "bundles" / "alpha.first"
    refused = 0
    for pages in range(80):
        software = f"s{pages}"
        world.hand_in_later("alpha", software)
        before = registered_ids(world)
        disk.leave(pages * PAGE)
        try:
            world.register("alpha", software)
        except PlatformError as error:
            refused += 1
            assert error.code == "E306" and str(world.project.home) in error.why
            disk.free()
            assert registered_ids(world) == before, f"refused with {pages} free pages, and registered"
            world.store.catch_up()
            left = {path.name for path in world.project.config.registered.iterdir()}
            assert left <= before, "the bundle of a refused submission stays on the full disk"
            world.register("alpha", software)
        else:
            disk.free()
        assert len(registered_ids(world)) == len(before) + 1
    assert 0 < refused < 80
    assert bundle.exists()


def test_a_disk_that_fills_during_evaluate_is_named(full: tuple[World, SmallDisk]) -> None:
    world, disk = full
    runs = [world.hand_in("alpha", name, fill(disk)) for name in ("one", "two")]
    pool = world.work()
    assert {undone.exit_code for undone in pool.failed.values()} == {PLATFORM}
    assert pool.failed.keys() == {*runs}
    for undone in pool.failed.values():
        assert undone.why.startswith("E306") and str(world.project.home) in undone.why
    disk.free()
    for software in ("one", "two"):
        world.engine.script[f"alpha/{software}"] = good_script
    world.work()
    assert [world.outcome(run).name for run in runs] == ["scored", "scored"]


def good_script(mounts: Any, out: Path) -> None:
    out.joinpath("run.txt").write_text("1 Q0 d 1 1.0 tag\n")


def fill(disk: SmallDisk) -> Any:
    """Return a script whose last act fills the disk of the data directory."""

    def script(mounts: Any, out: Path) -> None:
        good_script(mounts, out)
        disk.fill()

    return script


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EMFILE]
)
def test_disk_errors_are_not_internal(world: World, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def broke(*_: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(local, "execute", broke)
    run = world.hand_in("alpha")
    [(name, undone)] = world.work().failed.items()
    assert name == run and undone.why.startswith("E306") and "Fix: " in undone.why
    assert str(world.project.home) in undone.why


@pytest.mark.parametrize("left", [0, 1, 300, 10**6])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_events_cut_in_the_middle_are_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, number: int
) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    log.append("quota-extended", QUOTA, actor="organiser")
    before, write, sync = log.path.read_bytes(), os.write, os.fsync

    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:left]))
    if left > 1000:  # all of it was written, and the disk refuses it afterwards
        monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(PlatformError) as raised:
        log.append_all([("quota-extended", QUOTA)] * 3, actor="organiser")
    assert raised.value.code == "E306" and str(tmp_path) in raised.value.why
    assert log.path.read_bytes() == before
    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "fsync", sync)
    log.append("quota-extended", QUOTA, actor="organiser")
    assert [event.seq for event in log] == [1, 2]


def test_half_a_line_that_a_crash_left_is_cut_off(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    log.append("quota-extended", QUOTA, actor="organiser")
    whole = log.path.read_bytes()
    for size in range(1, len(whole)):
        log.path.write_bytes(whole + whole[:size])
        assert [event.seq for event in log] == [1]
        log.append("quota-extended", QUOTA, actor="organiser")
        assert [event.seq for event in log] == [1, 2] and log.verify() == []


@pytest.mark.parametrize("refused", ["statement", "commit"])
def test_refused_events_are_removed(world: World, monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    world.store.commit("quota-extended", QUOTA, actor="organiser")
    before = world.store.log.path.read_bytes()
    with monkeypatch.context() as patch:
        break_database(patch, refused, sqlite3.SQLITE_FULL)
        with pytest.raises(PlatformError) as raised:
            world.store.commit("quota-extended", QUOTA, actor="organiser")
    assert raised.value.code == "E306" and str(world.project.home) in raised.value.why
    assert world.store.log.path.read_bytes() == before
    world.store.commit("quota-extended", QUOTA, actor="organiser")
    assert world.store.head().seq == 2


def test_an_event_of_unknown_state_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection to a server may break after the server has committed."""
    monkeypatch.setattr(SQLite, "is_rolled_back", lambda *_: False)
    with monkeypatch.context() as patch:
        break_database(patch, "commit", sqlite3.SQLITE_FULL)
        with pytest.raises(PlatformError):
            world.store.commit("quota-extended", QUOTA, actor="organiser")
    assert [event.seq for event in world.store.log] == [1]
    assert world.store.catch_up().seq == 1


def test_refused_events_go_before_other_writes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that gets the database applies what stands in the log."""
    world.store.commit("quota-extended", QUOTA, actor="organiser")
    before = world.store.log.path.read_bytes()
    invalidate, seen = sqlalchemy.Connection.invalidate, []

    def invalidate_and_let_another_write(connection: sqlalchemy.Connection, *args: Any) -> None:
        invalidate(connection, *args)
        seen.append(world.store.log.path.read_bytes())
        with open_store(world.project.config) as other:
            other.catch_up()

    with monkeypatch.context() as patch:
        break_database(patch, "commit", sqlite3.SQLITE_FULL)
        with monkeypatch.context() as inner:
            inner.setattr(sqlalchemy.Connection, "invalidate", invalidate_and_let_another_write)
            with pytest.raises(PlatformError):
                world.store.commit("quota-extended", QUOTA, actor="organiser")
    assert seen == [before]
    with open_store(world.project.config) as store:
        store.commit("quota-extended", QUOTA, actor="organiser")
        assert store.head().seq == 2 == len([*store.log])


INTERRUPTED = ("commit_all", "added")  # the functions that write an event


@pytest.mark.slow
def test_an_interrupt_at_any_step_loses_no_committed_event(world: World) -> None:
    """Events of the database stay in the log, and events of the log can be applied."""
    world.store.commit("quota-extended", QUOTA, actor="organiser")
    config, events = world.project.config, 1
    outcomes = set()
    for step in range(1, 1000):
        interrupted = interrupt(lambda: world.store.commit("quota-extended", QUOTA, actor="organiser"), step)
        gc.collect()
        committed = database.read_recorded(config).position.seq
        with open_store(config) as store:
            assert store.head().seq == len([*store.log]), step
            assert committed <= store.head().seq <= events + 1, step
        outcomes.add((committed - events, store.head().seq - events))
        events = store.head().seq
        if not interrupted:
            break
    assert not interrupted and outcomes == {(0, 0), (0, 1), (1, 1)}


def interrupt(command: Callable[[], object], step: int) -> bool:
    """Run a command, and interrupt it at the ``step``-th instruction of the functions that write an event. False if it ended."""
    left = step

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_name not in INTERRUPTED:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        command()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize(
    ("state", "rolled_back"),
    [("53100", True), ("40001", True), ("08006", False), ("57P01", False), (None, False)],
)
def test_what_a_server_says_of_a_failed_commit(state: str | None, rolled_back: bool) -> None:
    original = Exception("refused")
    original.sqlstate = state  # type: ignore[attr-defined]
    error = sqlalchemy.exc.OperationalError("COMMIT", None, original)
    assert PostgreSQL().is_rolled_back(error) is rolled_back
    assert not PostgreSQL().is_rolled_back(KeyboardInterrupt())


def break_database(patch: pytest.MonkeyPatch, where: str, code: int) -> None:
    """Have the next statement after the append fail, or the commit."""
    original = sqlite3.OperationalError("database or disk is full")
    original.sqlite_errorcode = code
    error = sqlalchemy.exc.OperationalError(where, None, original)

    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    if where == "commit":
        patch.setattr(sqlalchemy.engine.default.DefaultDialect, "do_commit", refuse)
    else:
        patch.setattr(database, "remember", refuse)


def test_the_copy_of_a_refused_bundle_is_removed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.hand_in_later("alpha", "one")
    with monkeypatch.context() as patch:
        break_database(patch, "statement", sqlite3.SQLITE_FULL)
        with pytest.raises(PlatformError):
            world.register("alpha", "one")
    assert not [*world.project.config.registered.iterdir()] and not registered_ids(world)
    world.register("alpha", "one")
    assert len(registered_ids(world)) == 1
    shutil.rmtree(world.project.home / "bundles")
