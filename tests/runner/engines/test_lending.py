"""Rooms that are lent, beside what both engines show in tests/contracts/test_staying_rooms.py."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from runner.engines.lending import Rooms
from runner.model.errors import PlatformError
from runner.model.task import Visibility


class Sessions:
    """An engine whose sessions say when they are opened and closed; closing ``stuck`` fails."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, str]] = []
        self.closed: list[str] = []

    @contextmanager
    def session(self, attempt_id: str, *, visibility: Visibility, **_: Any) -> Iterator[Any]:
        self.opened.append((attempt_id, visibility))
        yield SimpleNamespace(room=SimpleNamespace(usable=True))
        self.closed.append(attempt_id)
        if attempt_id == "stuck":
            raise PlatformError("a container cannot be removed")


def room_of(session: Any) -> Any:
    return session.room


def lent(rooms: Rooms, key: str, name: str, visibility: Visibility = "public", room: Any = room_of) -> Any:
    return rooms.lend(key, room, attempt_id=name, visibility=visibility, cancelled=lambda: False)


@pytest.mark.parametrize("order", [("stuck", "fine"), ("fine", "stuck")])
def test_one_that_cannot_be_closed_does_not_keep_the_others(order: tuple[str, str]) -> None:
    """Their containers, user ids and turns would stay until this process ends."""
    engine = Sessions()
    with pytest.raises(PlatformError), Rooms(engine, most=2) as rooms, ExitStack() as both:  # type: ignore[arg-type]
        for name in order:
            both.enter_context(lent(rooms, name, name))
    assert sorted(engine.closed) == ["fine", "stuck"]


def test_blinded_and_public_runs_share_no_room_whatever_their_data_are() -> None:
    """A room holds the turn on the engine, and has its mark, of one visibility only."""
    engine = Sessions()
    with Rooms(engine, most=2) as rooms:  # type: ignore[arg-type]
        for name, visibility in (("a", "public"), ("b", "blinded"), ("c", "public")):
            with lent(rooms, "same data", name, visibility):  # type: ignore[arg-type]
                pass
    assert engine.opened == [("a", "public"), ("b", "blinded")]


def test_a_room_of_before_that_cannot_be_closed_costs_no_evaluation() -> None:
    engine = Sessions()
    with Rooms(engine, most=1) as rooms:  # type: ignore[arg-type]
        with lent(rooms, "key", "stuck") as room:
            pass
        room.usable = False  # while it was free: it grew too old
        with lent(rooms, "key", "second"):
            pass
        with lent(rooms, "other", "third"):  # the second makes place for it
            pass
    assert engine.opened == [("stuck", "public"), ("second", "public"), ("third", "public")]
    assert sorted(engine.closed) == ["second", "stuck", "third"]


def begun(rooms: Rooms, key: str, name: str, room: Any = room_of) -> None:
    rooms.ahead(key, room, attempt_id=name, visibility="public", cancelled=lambda: False)


def test_a_room_made_ahead_is_that_of_whoever_asks_first_and_waited_for() -> None:
    engine, go = Sessions(), threading.Event()

    def slow(session: Any) -> Any:
        assert go.wait(60)
        return session.room

    with Rooms(engine, most=2) as rooms:  # type: ignore[arg-type]
        begun(rooms, "key", "ahead", room=slow)
        with lent(rooms, "other", "not of this key"), lent(rooms, "key", "not blinded", "blinded"):
            go.set()
        with lent(rooms, "key", "asked"), lent(rooms, "key", "second"):
            pass
    names = ["ahead", "not blinded", "not of this key", "second"]
    assert sorted(name for name, _ in engine.opened) == sorted(engine.closed) == names


def test_a_room_made_ahead_that_nobody_asks_for_is_closed() -> None:
    engine, go = Sessions(), threading.Event()

    def slow(session: Any) -> Any:
        go.set()
        return session.room

    with Rooms(engine) as rooms:  # type: ignore[arg-type]
        begun(rooms, "key", "ahead", room=slow)
        assert go.wait(60)  # it is being made when all are closed
    assert engine.closed == ["ahead"]


def test_where_no_room_can_be_made_ahead_whoever_asks_finds_out_why() -> None:
    engine = Sessions()

    def fails(session: Any) -> Any:
        raise PlatformError("room-17")

    with Rooms(engine) as rooms:  # type: ignore[arg-type]
        begun(rooms, "key", "ahead", room=fails)
        with pytest.raises(PlatformError) as error, lent(rooms, "key", "asked", room=fails):
            pass
        assert error.value.what == "room-17"
        assert [name for name, _ in engine.opened] == ["ahead", "asked"]


@pytest.mark.parametrize("kind", [threading.Thread, threading.Timer])
def test_where_no_thread_can_be_had_nobody_waits_and_nothing_stays(
    kind: type[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither that of a room made ahead, nor the clock that closes a free one: both are had without."""
    real, engine = threading.Thread.start, Sessions()

    def starts(thread: threading.Thread) -> None:
        if type(thread) is kind and thread is not user:
            raise RuntimeError("can't start new thread")
        real(thread)

    def use() -> None:
        with Rooms(engine, most=2) as rooms:  # type: ignore[arg-type]
            begun(rooms, "key", "ahead")
            with lent(rooms, "key", "asked"):
                pass
            begun(rooms, "other", "nobody asks")
        with Rooms(engine, aside=True) as rooms, lent(rooms, "key", "used up") as room:  # type: ignore[arg-type]
            room.usable = False

    user = threading.Thread(target=use, daemon=True)
    monkeypatch.setattr(threading.Thread, "start", starts)
    user.start()
    user.join(60)
    assert not user.is_alive()
    opened = [name for name, _ in engine.opened]
    assert opened and sorted(engine.closed) == sorted(opened)
    assert "used up" in opened
    assert ("nobody asks" in opened) == (kind is threading.Timer)
