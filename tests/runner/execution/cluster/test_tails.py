"""What a software writes at a host reaches who follows its run, of public data alone, and bounded whatever a host sends."""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runner.cli import context
from runner.cli.live import follow, lines
from runner.execution.cluster import executor
from runner.execution.cluster.line import Line
from runner.execution.cluster.tails import (
    AT_ONCE,
    BYTES,
    EVERY,
    FOLDER,
    FRESH,
    MOST,
    Follower,
    Tail,
    Tails,
    following,
)
from runner.execution.coordinator import EvaluationRequest, coordinating
from runner.records.store.connect import open_store
from tests.e2e.test_server import until
from tests.runner.execution.cluster.test_hosts import coordinated
from tests.runner.execution.test_coordinator import Notes
from tests.runner.execution.test_pool import World
from tests.worlds.cluster import Cluster
from tests.worlds.mini import TASK, Project


@pytest.mark.slow
@pytest.mark.parametrize("astray", [False, True], ids=["as it is", "a coordinator that asks for everything"])
def test_a_run_at_a_host_is_followed_while_it_goes_on_and_a_blinded_one_never(
    project: Project,
    sound: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    astray: bool,
) -> None:
    project.write_task_only(
        tables=[{**TASK["tables"][0], "cells": [{"dataset": "dev"}, {"dataset": "test"}]}]
    )
    world, asked, out = World(project), list[str](), list[str]()
    hidden = world.hand_in("team0", "loud")
    run, folder, ask = hidden.removesuffix("test") + "dev", project.home / FOLDER, Line.tail
    monkeypatch.setattr(context, "engine", lambda *_: world.engine)
    monkeypatch.setattr(Line, "tail", lambda line, *of: (asked.append(of[1]), ask(line, *of)))
    if astray:
        monkeypatch.setattr(executor, "may_leave", lambda _: True)

    def times(run: str) -> int:
        return len([name for name in asked if f"~{run}~" in name])

    def printed() -> str:
        out.append(capsys.readouterr().out)
        return "".join(out)

    def watched() -> None:
        with open_store(project.config) as store:
            follow(project.config, store, run, world.tasks, show=True)

    def meanwhile() -> None:
        closed = Follower(folder, hidden, 1)
        try:
            sound.begun(2)
            until(lambda: (closed.ask(), times(run) >= 3 and (times(hidden) >= 3 or not astray))[1])
            until(lambda: "second" in printed())
            assert [path.name for path in folder.glob("*~*")] == [f"{run}~1"] and closed.read() == b""
        finally:
            sound.go()

    with coordinated(world, Notes(), sound) as coordinator, ThreadPoolExecutor(2) as threads:
        others = threads.submit(watched), threads.submit(meanwhile)
        result = coordinator.run(coordinator.plan(EvaluationRequest()), EvaluationRequest())
        for other in others:
            other.result()
    assert not result.undone and bool(times(hidden)) is astray
    assert printed() == "first\n\\x1b[2Jsecond\n", "once, escaped, of one run"
    assert not list(folder.glob("*~*")) and not (folder / run).exists()
    world.close()


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Tails, Callable[[], int | None]]:
    """What a coordinator keeps of an order whose run somebody follows, and the next time that it may ask."""
    clock = [0.0]
    tails = Tails(tmp_path / FOLDER, lambda: clock[0])
    Follower(tmp_path / FOLDER, "run", 1).ask()

    def due() -> int | None:
        clock[0] += EVERY
        return tails.due("order", "run", 1)

    return tails, due


def said(data: bytes, first: Any = 0) -> dict[str, Any]:
    return {"first": first, "data": base64.b64encode(data).decode()}


def test_ten_megabytes_at_once_are_their_end_and_control_characters_are_words(
    kept: tuple[Tails, Callable[[], int | None]],
) -> None:
    tails, due = kept
    many = b"\x1b]0;mine\x07\x9b2J\r\n" * (10 << 16) + b"the end\n"
    tail = Tail(lambda _: [b"begun\n", many])
    start = due()
    assert start == 0 and due() is None, "one question at a time"
    until(lambda: tail.since(0)["first"] > 0)
    tails.take("order", tail.since(start))
    with following(tails.folder, "run", 1) as follower:
        shown = list(lines([follower.read()]))
        assert shown[-1] == "the end" and "bytes" in shown[1]
        assert sum(map(len, shown)) < 8 * AT_ONCE and all(line.isprintable() for line in shown)
        start = due()
        assert start == len(many) + 6 and base64.b64decode(tail.since(start)["data"]) == b""
    assert tails.due("order", "run", 1) is None, "nobody follows any more"


@pytest.mark.parametrize(
    "answer",
    [
        None, [], {}, "x", {"error": {"code": "E308"}}, said(b"x" * (AT_ONCE + 9)), said(b"x" * (10 << 20)), said(b"x", -1),
        said(b"x", True), said(b"x", "0"), said(b"x", 1 << 60), {"first": 0, "data": "no base64"}, {"first": 0, "data": ["x"]},
    ],
    ids=range(13),
)  # fmt: skip
def test_what_no_host_of_ours_says_is_not_kept(
    kept: tuple[Tails, Callable[[], int | None]], answer: Any
) -> None:
    tails, due = kept
    assert due() == 0
    tails.take("order", answer)
    tails.take("another", said(b"x"))
    tails.take("order", said(b"unasked"))
    assert [path.name for path in tails.folder.iterdir()] == ["run"]
    assert due() == 0
    tails.take("order", said(b"asked"))
    assert (tails.folder / "run~1").read_bytes() == b"asked"


def test_no_more_is_kept_of_an_attempt_than_has_its_place_and_who_follows_has_all_of_it(
    kept: tuple[Tails, Callable[[], int | None]],
) -> None:
    tails, due = kept
    path, came, sent = tails.folder / "run~1", b"", b""
    with following(tails.folder, "run", 1) as follower:
        for n in range(2 * MOST // AT_ONCE + 3):
            follower.ask()
            piece = bytes([97 + n % 26]) * AT_ONCE
            assert due() == len(sent)
            tails.take("order", said(piece, len(sent)))
            sent += piece
            if n % 3 == 0:
                came += follower.read()
            assert path.stat().st_size <= MOST and path.stat().st_mode & 0o777 == 0o600
        assert came + follower.read() == sent and len(sent) > 2 * MOST
        tails.forget("order")
        assert not path.exists() and follower.read() == b""


@pytest.mark.slow
def test_of_a_flood_so_much_is_read_in_a_second_and_the_end_is_not_waited_for() -> None:
    read, more = [0], threading.Event()

    def flood(_: object) -> Iterator[bytes]:
        while not more.is_set():
            read[0] += 1
            yield b"x" * (BYTES // 4)

    tail, begun = Tail(flood), time.monotonic()
    tail.came(0)
    until(lambda: read[0] > 8)
    assert read[0] <= 4 * (time.monotonic() - begun + 1) + 1, "in the next second comes as much again"
    tail.close()
    more.set()


def test_a_stream_that_breaks_is_taken_up_and_an_attempt_that_begins_anew_is_another() -> None:
    streams: list[list[bytes]] = [[], [b"one ", b"two "], [b"on", b"e two thr", b"ee "]]
    streams += [[], [b"on", b"ce more"]]

    def follow(_: object) -> Iterator[bytes]:
        yield from streams.pop(0) if streams else ()
        raise ValueError("the engine broke off")

    tail = Tail(follow, (0.01, 0.02))
    until(lambda: tail.came(0)[1] == b"one two three once more")
    tail.close()
    assert tail.closed


def test_the_reader_of_a_software_that_says_nothing_ends_when_nobody_reads_on() -> None:
    cut, ended, begun = threading.Event(), threading.Event(), threading.Event()

    def silent(may_cut: Callable[[Callable[[], None]], object]) -> Iterator[bytes]:
        may_cut(cut.set)
        begun.set()
        assert cut.wait(120)
        ended.set()
        yield from ()

    tail = Tail(silent)
    tail.came(0)
    assert begun.wait(120)
    tail.close()
    assert ended.wait(120)


def test_who_has_closed_asks_for_nothing_more(tmp_path: Path) -> None:
    (tmp_path / "run~1").write_bytes(b"text")
    with following(tmp_path, "run", 1) as follower:
        follower.ask()
        assert follower.read() == b"text"
    follower.ask()
    assert follower.read() == b"" and [path.name for path in tmp_path.iterdir()] == ["run~1"]


def test_what_killed_processes_left_goes_at_the_next_start(project: Project) -> None:
    project.write_task()
    folder = project.home / FOLDER
    folder.mkdir(parents=True)
    for name in ("run~1", "old", "now"):
        (folder / name).touch()
    os.utime(folder / "old", (time.time() - 2 * FRESH,) * 2)
    with coordinating(project.config, Notes(), dry_run=True):
        assert len(list(folder.iterdir())) == 3
    with coordinating(project.config, Notes()):
        assert [path.name for path in folder.iterdir()] == ["now"], "somebody still follows that run"


def test_nobody_is_asked_for_runs_that_nobody_follows(tmp_path: Path) -> None:
    tails = Tails(tmp_path)
    assert tails.due("order", "run", 1) is None
    (tmp_path / "run").touch()
    os.utime(tmp_path / "run", (time.time() - 2 * FRESH,) * 2)  # of somebody who was killed
    assert tails.due("order", "run", 1) is None
    with following(tmp_path, "run", 1) as follower:
        follower.ask()
        assert tails.due("order", "run", 1) == 0
