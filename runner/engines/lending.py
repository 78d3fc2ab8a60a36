"""A pool of rooms: one run after another is evaluated in the same room, and unused rooms are closed after a moment.

A room holds its turn on the engine (see :mod:`runner.engines.turns`), so an unused one delays sessions of the other
visibility, in this process or another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

from runner.engines.base import Engine, Room
from runner.model.errors import PlatformError
from runner.model.task import Visibility

IDLE = 2.0  # seconds that an unused room stays open


@dataclass(eq=False)
class _Lent:
    """A room with the session that it belongs to, and the timer that closes it while it is unused."""

    key: Hashable
    room: Room
    session: ExitStack
    timer: threading.Timer | None = None

    def close(self) -> None:
        """Close the session. The engine's ``reap`` removes what cannot be removed now."""
        with suppress(PlatformError):
            self.session.close()


class Rooms:
    """The rooms of one engine, at most ``most`` of them unused. Leave it as a context to close those."""

    def __init__(self, engine: Engine, most: int = 1) -> None:
        self._engine, self._most = engine, most
        self._unused: list[_Lent] = []
        self._timers: set[threading.Timer] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close all unused rooms, and wait for those that a timer closes. Raises PlatformError if one cannot be closed."""
        with self._lock:
            unused, self._unused = self._unused, []
        with ExitStack() as steps:  # each is done whatever another one raises
            for lent in unused:
                steps.callback(lent.session.close)
                if lent.timer is not None:
                    lent.timer.cancel()
        for timer in list(self._timers):
            timer.join()

    @contextmanager
    def lend(
        self,
        key: Hashable,
        furnish: Callable[[Any], Room],
        *,
        attempt_id: str,
        visibility: Visibility,
        cancelled: Callable[[], bool] | None,
    ) -> Iterator[Room]:
        """Acquire a usable room, and release it at the end: an unused one of the same ``key``, or one that ``furnish`` starts.

        Args:
            key: what all runs of a room have in common besides ``visibility``: image, data, limits.
            furnish: starts a room in a new session.
            attempt_id: the name of that session, as for :meth:`runner.engines.base.Engine.session`.
            visibility: see there.
            cancelled: see there.

        Raises:
            Cancelled, PlatformError: see there.
        """
        key = (visibility, key)  # data may be the same: a room holds the turn of one visibility only
        lent = self._acquire(key)
        if lent is None:
            session = self._engine.session(
                attempt_id,
                labels={"role": "evaluator"},
                visibility=visibility,
                cancelled=cancelled,
                stays=True,
            )
            with ExitStack() as stack:
                room = furnish(stack.enter_context(session))
                lent = _Lent(key, room, stack.pop_all())
        with lent.session as stack:
            yield lent.room
            if lent.room.usable:
                lent.session = stack.pop_all()
                self._release(lent)

    def _acquire(self, key: Hashable) -> _Lent | None:
        """Return an unused room of this key that is still usable; close those that are not."""
        while True:
            with self._lock:
                lent = next((lent for lent in self._unused if lent.key == key), None)
                if lent is None:
                    return None
                self._unused.remove(lent)
            if lent.timer is not None:
                lent.timer.cancel()
            if lent.room.usable:
                return lent
            lent.close()

    def _release(self, lent: _Lent) -> None:
        """Add a room to the unused ones, and close the oldest of them if there are too many."""
        lent.timer = threading.Timer(IDLE, self._expire, (lent,))
        lent.timer.daemon = True
        with self._lock:
            try:
                lent.timer.start()
            except (RuntimeError, MemoryError):  # the machine has no thread left to close it later
                surplus = [lent]
            else:
                self._timers = {timer for timer in self._timers if timer.is_alive()} | {lent.timer}
                self._unused.append(lent)
                surplus, self._unused = self._unused[: -self._most], self._unused[-self._most :]
        for old in surplus:
            if old.timer is not None:
                old.timer.cancel()
            old.close()

    def _expire(self, lent: _Lent) -> None:
        """Close a room that is still unused."""
        with self._lock:
            if lent not in self._unused:
                return
            self._unused.remove(lent)
        lent.close()
