"""A room that stays: one program after another, each with files, folders and a user of its own. Both engines."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.engines.base import ROOM_IN, ROOM_OUT, ROOM_TMP, ContainerSpec, Room, RoomRun
from runner.engines.fake import FakeEngine, Mounts
from runner.engines.lending import IDLE, Rooms
from runner.model.container import Exit, Resources
from runner.model.errors import PlatformError
from runner.model.limits import Limits
from tests.contracts.conftest import LIMITS, World, raises_in

# It tells what it found when it came, leaves something in every folder that is its own, and ends as its word says.
PROGRAM = f"""
import os, sys, time
word = open("{ROOM_IN}/run/word").read()
print("hello", word, os.environ["WORD"], os.listdir("{ROOM_OUT}"), os.listdir("{ROOM_TMP}"), flush=True)
print("warned", word, file=sys.stderr)
open("{ROOM_OUT}/result.txt", "w").write(word)
open("{ROOM_OUT}/other.txt", "w").write("x")
open("{ROOM_TMP}/scratch", "w").write(word)
if word == "loud": print(("x" * 99 + "\\n") * 10_000, end=""); print("the end")
if word == "sleeps": time.sleep(20)
while word == "works" and time.process_time() < 0.7 or word == "for-ever": pass
sys.exit(3 if word == "fails" else 0)
"""


def script(mounts: Mounts, out: Path) -> int | Exit:
    """The same for the scripted engine."""
    word = (mounts[ROOM_IN] / "run/word").read_text()
    there = [sorted(p.name for p in mounts[name].iterdir()) for name in (ROOM_OUT, ROOM_TMP)]
    mounts.say(f"hello {word} {word} {there[0]} {there[1]}")
    mounts.complain(f"warned {word}")
    (out / "result.txt").write_text(word)
    (out / "other.txt").write_text("x")
    (mounts[ROOM_TMP] / "scratch").write_text(word)
    if word == "loud":
        mounts.stdout += (b"x" * 99 + b"\n") * 10_000
        mounts.say("the end")
    if word == "sleeps":
        mounts.stopped.wait(100)
    if word in ("works", "for-ever"):
        return Exit(code=0, resources=Resources(1.0, 0.7 if word == "works" else 5.0))
    return 3 if word == "fails" else 0


@pytest.fixture
def place(world: World) -> World:
    """The world of the contract suites, whose scripted engine has one image that does all of this."""
    if isinstance(world.engine, FakeEngine):
        world.engine.script["staying"] = script
    return world


def spec(place: World, limits: Limits = LIMITS) -> ContainerSpec:
    return ContainerSpec("evaluator", place.image("staying"), None, limits)


@contextmanager
def room_of(place: World, attempt: str, limits: Limits = LIMITS) -> Iterator[Room]:
    with place.engine.session(attempt, stays=True) as session:
        yield session.room(spec(place, limits), given=1 << 20)


def run(room: Room, word: str, dest: Path, **changes: Any) -> RoomRun:
    given: dict[str, Any] = {
        "env": {"WORD": word},
        "deadline": 30,
        "cancelled": lambda: False,
        "allowed": lambda name: name == "result.txt",
        "max_bytes": 1000,
        "max_files": 2,
    }
    return room.run(("python3", "-c", PROGRAM), {"run/word": word.encode()}, dest, **given | changes)


def test_programs_one_after_another_each_as_if_it_were_the_first(
    place: World, attempt: str, tmp_path: Path
) -> None:
    with room_of(place, attempt) as room:
        for word in ("one", "two", "three"):
            assert room.usable
            done = run(room, word, tmp_path / word)
            assert (done.exit.code, done.exit.killed, done.exit.oom_killed) == (0, None, False)
            assert done.stdout == f"hello {word} {word} [] []\n".encode()
            assert done.stderr == f"warned {word}\n".encode()
            assert done.collected.files == ("result.txt",)
            assert (tmp_path / word / "result.txt").read_text() == word
            assert done.exit.started and done.exit.finished and not done.exit.log_truncated


def test_after_a_failure_nothing_more_runs_in_it(place: World, attempt: str, tmp_path: Path) -> None:
    with room_of(place, attempt) as room:
        done = run(room, "fails", tmp_path / "out")
        assert (done.exit.code, done.exit.killed) == (3, None)
        assert done.collected.files == () and not (tmp_path / "out/result.txt").exists()
        assert not room.usable
        with raises_in("room.py" if place.real else "scripted.py"):
            run(room, "one", tmp_path / "out")


@pytest.mark.slow
def test_processor_time_is_limited_for_each_program_and_not_for_the_room(
    place: World, attempt: str, tmp_path: Path
) -> None:
    with room_of(place, attempt, replace(LIMITS, cpu_time=1.2)) as room:
        for n in range(3):  # together more than the limit
            done = run(room, "works", tmp_path / str(n), deadline=120)
            assert (done.exit.code, done.exit.killed) == (0, None) and room.usable
        done = run(room, "for-ever", tmp_path / "out", deadline=120)
        assert (done.exit.killed, done.collected.files) == ("processor", ()) and not room.usable


@pytest.mark.parametrize("killed", ["time", "cancel"])
def test_a_program_that_is_stopped_is_killed_with_its_room(
    place: World, attempt: str, tmp_path: Path, killed: str
) -> None:
    stop = threading.Event()
    more = {"deadline": 1.5} if killed == "time" else {"cancelled": stop.is_set}
    with room_of(place, attempt) as room:
        threading.Timer(3.0, stop.set).start()  # the program has begun by then
        begun = time.monotonic()
        done = run(room, "sleeps", tmp_path / "out", **more)
        assert done.exit.killed == killed and time.monotonic() - begun < 60
        assert done.collected.files == ()
        if killed == "time":  # a cancelled program may not have begun
            assert done.stdout.startswith(b"hello sleeps")
        assert not room.usable


def test_a_long_log_keeps_its_end_and_a_retired_room_is_not_usable(
    place: World, attempt: str, tmp_path: Path
) -> None:
    with room_of(place, attempt) as room:
        done = run(room, "loud", tmp_path / "out")
        assert done.exit.log_truncated and len(done.stdout) == LIMITS.log
        assert done.stdout.endswith(b"x\nthe end\n")
        assert room.usable and done.collected.files == ("result.txt",)
        room.retire()
        assert not room.usable


@pytest.mark.slow
def test_rooms_are_kept_for_the_next_with_the_same_key(place: World, attempt: str, tmp_path: Path) -> None:
    """One container serves all that want the same, one at a time; a failure costs a new one; nothing stays in the end."""
    made: list[Room] = []

    def furnish(session: Any) -> Room:
        made.append(session.room(spec(place), given=1 << 20))
        return made[-1]

    def use(rooms: Rooms, key: str, word: str) -> None:
        number = len(list(tmp_path.iterdir()))
        with rooms.lend(
            key, furnish, attempt_id=f"{attempt}.{number}", visibility="public", cancelled=lambda: False
        ) as room:
            run(room, word, tmp_path / str(number))

    with Rooms(place.engine, most=2) as rooms:
        for _ in range(3):
            use(rooms, "a", "one")
        assert len(made) == 1
        use(rooms, "b", "one")
        assert len(made) == 2
        use(rooms, "a", "fails")
        use(rooms, "a", "one")
        assert len(made) == 3
        failure = PlatformError("x")
        with (
            pytest.raises(PlatformError) as caught,
            rooms.lend("a", furnish, attempt_id="none", visibility="public", cancelled=lambda: False),
        ):
            raise failure
        assert caught.value is failure
        use(rooms, "a", "one")
        assert len(made) == 4
    if place.real:
        left = place.engine.clients.labelled(owner=None)  # type: ignore[attr-defined]
        assert not [labels for labels in left if labels.get("proctor.attempt", "").startswith(attempt)]


@pytest.mark.slow
def test_a_room_that_nobody_wants_is_closed_and_its_turn_ends(place: World, attempt: str) -> None:
    """Whoever waits for the other turn on the engine does not wait until all work of this process is done."""
    opened: list[str] = []
    with Rooms(place.engine) as rooms:
        with rooms.lend(
            "a",
            lambda session: session.room(spec(place), given=1000),
            attempt_id=attempt,
            visibility="public",
            cancelled=lambda: False,
        ) as room:
            assert room.usable
        begun = time.monotonic()
        if place.real:  # whose turns are tested in test_turns.py
            while list(place.engine.clients.labelled(attempt=attempt)):  # type: ignore[attr-defined]
                assert time.monotonic() - begun < IDLE + 100
                time.sleep(0.1)
        else:
            with place.engine.session(f"{attempt}.other", visibility="blinded"):
                opened.append("blinded")
            assert opened and IDLE / 2 < time.monotonic() - begun < IDLE + 100
