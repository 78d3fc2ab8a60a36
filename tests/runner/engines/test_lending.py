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


def test_without_a_thread_a_room_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A room that no timer could close would hold its turn."""
    engine = Sessions()

    def fails(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fails)
    with Rooms(engine, most=2) as rooms:  # type: ignore[arg-type]
        for name in ("first", "second"):
            with lent(rooms, "key", name):
                pass
            assert engine.closed[-1] == name
    assert engine.closed == ["first", "second"]
