"""Rooms, and whatever else of an engine takes long to make, that are kept for those who come next: lent to one at a time, closed when nobody has wanted them for a moment.

A room holds its turn on the engine (see :mod:`runner.engines.turns`), so a free one must not stay for long: whoever waits
for the other turn, in this process or another, waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar

from runner.engines.base import Cancelled, Engine, Room
from runner.model.errors import PlatformError, RunnerError
from runner.model.task import Visibility

IDLE = 2.0  # seconds that a free room stays
AHEAD = 10.0  # seconds that one stays which was made while the software runs whose output it is for: that holds the turn as well


class Lent(Protocol):
    """What can be lent to one after another: a room, or output volumes."""

    @property
    def usable(self) -> bool:
        """Whether anybody may have it any more."""


_T = TypeVar("_T", bound=Lent)


@dataclass
class _Free(Generic[_T]):
    """A room that nobody uses, and until when it stays, by the steady clock."""

    key: Hashable
    room: _T
    stack: ExitStack
    until: float = 0.0


@dataclass
class _Ahead(Generic[_T]):
    """A room that is being made before anybody asked for it; ``made`` is set when it is there or could not be made."""

    key: Hashable
    made: threading.Event = field(default_factory=threading.Event)
    wanted: bool = False  # somebody waits for it
    found: _Free[_T] | None = None


class Lending(Generic[_T]):
    """The rooms (or others that are :class:`Lent`) of one engine. ``most`` bounds how many free ones there are; leave it as a context to close them all.

    ``aside``: whoever used one up does not wait until it is closed. Their sessions then need ids that never come again.
    """

    def __init__(self, engine: Engine, most: int = 1, *, aside: bool = False) -> None:
        self._engine, self._most, self._aside = engine, most, aside
        self._free: list[_Free[_T]] = []
        self._ahead: list[_Ahead[_T]] = []
        self._clocks: set[threading.Timer] = set()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._watching = False  # whether a clock closes what has been free for long
        self._wakes = 0.0  # when it looks again
        self._closing = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close all free rooms, and wait for those that are being made or closed."""
        self._closing = True
        with self._lock:
            ahead = list(self._ahead)
        for one in ahead:
            one.made.wait()
        with ExitStack() as all_of_them:  # also where one of them cannot be closed
            for free in self._take(lambda _: True):
                all_of_them.callback(free.stack.close)
        with self._lock:
            self._changed.notify_all()
            clocks = list(self._clocks)
        for clock in clocks:
            clock.join()

    @contextmanager
    def lend(
        self,
        key: Hashable,
        furnish: Callable[[Any], _T],
        *,
        attempt_id: str,
        visibility: Visibility,
        cancelled: Callable[[], bool] | None,
        role: str = "evaluator",
    ) -> Iterator[_T]:
        """A usable room that nobody else has meanwhile: a free one with the same ``key``, or one that ``furnish`` starts.

        Args:
            key: what all runs of a room have in common besides ``visibility``: image, data, limits.
            furnish: starts a room in a session of its own.
            attempt_id: the name of that session, as for :meth:`runner.engines.base.Engine.session`.
            visibility: see there.
            cancelled: see there.
            role: a label of that session.

        Raises:
            Cancelled, PlatformError: see there.
        """
        key = (visibility, key)  # data may be the same: a room still holds the turn of one visibility only
        found = next(iter(self._take(lambda free: free.key == key, 1)), None) or self._made_ahead(key)
        if found is not None and not found.room.usable:  # it has become too old
            with suppress(PlatformError):  # not this evaluation's failure: ``reap`` finds what is left
                found.stack.close()
            found = None
        if found is None:
            found = self._make(key, furnish, attempt_id, visibility, cancelled, role)
        with found.stack as stack:
            yield found.room
            if self._aside or found.room.usable:
                found.stack = stack.pop_all()
                self._keep(found, IDLE) if found.room.usable else self._end(found)

    def ahead(
        self,
        key: Hashable,
        furnish: Callable[[Any], _T],
        *,
        attempt_id: str,
        visibility: Visibility,
        cancelled: Callable[[], bool],
        role: str = "evaluator",
    ) -> None:
        """Begin to make a room for whoever asks next with this ``key``; the arguments are those of :meth:`lend`.

        Does not wait. One that nobody asks for is closed as any free one; where it cannot be made, who asks makes another.
        """
        one = _Ahead[_T]((visibility, key))

        def make() -> None:
            found = None
            try:
                stop = lambda: self._closing or cancelled()  # noqa: E731
                found = self._make(one.key, furnish, attempt_id, visibility, stop, role)
            except (Cancelled, RunnerError):
                pass  # whoever asks finds out why
            finally:
                self._made(one, found)

        with self._lock:
            self._ahead.append(one)
        if not _begins(threading.Thread(target=make, name="makes a room ahead", daemon=True)):
            self._made(one, None)

    def _made(self, one: _Ahead[_T], found: _Free[_T] | None) -> None:
        """Hand a room over to whoever waits for it, or have it be free; without one, who waits makes another."""
        try:
            with self._lock:
                self._ahead.remove(one)
                one.found = found
                kept = not one.wanted
            if found is not None and kept:
                self._keep(found, AHEAD)
        finally:
            one.made.set()

    def _made_ahead(self, key: Hashable) -> _Free[_T] | None:
        """The room that is being made for this key, waited for; None where there is none, or it could not be made."""
        with self._lock:
            one = next((one for one in self._ahead if one.key == key and not one.wanted), None)
            if one is None:
                return None
            one.wanted = True
        one.made.wait()
        return one.found

    def _make(
        self,
        key: Hashable,
        furnish: Callable[[Any], _T],
        attempt_id: str,
        visibility: Visibility,
        cancelled: Callable[[], bool] | None,
        role: str,
    ) -> _Free[_T]:
        with ExitStack() as stack:
            session = self._engine.session(
                attempt_id, labels={"role": role}, visibility=visibility, cancelled=cancelled, stays=True
            )
            found = _Free(key, furnish(stack.enter_context(session)), stack)
            found.stack = stack.pop_all()
        return found

    def _take(self, wanted: Callable[[_Free[_T]], bool], most: int | None = None) -> list[_Free[_T]]:
        """Free rooms, which are free no longer."""
        with self._lock:
            taken = [free for free in self._free if wanted(free)][:most]
            for free in taken:
                self._free.remove(free)
        return taken

    def _end(self, used: _Free[_T]) -> None:
        """Close one that nobody may have any more; whoever had it goes on meanwhile."""

        def close() -> None:
            # What cannot be removed now is found by the engine's ``reap``.
            with suppress(PlatformError):
                used.stack.close()

        with self._lock:
            begun = self._start(threading.Timer(0, close))
        if not begun:
            close()

    def _keep(self, free: _Free[_T], idle: float) -> None:
        """Have a room be free for a moment; the one that has been free for longest makes place for it."""
        with self._lock:
            free.until = time.monotonic() + idle
            self._free.append(free)
            # One that nobody would close makes place at once.
            too_many = self._free[: -self._most] if self._is_watched(free) else [free]
        for old in self._take(lambda other: any(other is one for one in too_many)):
            with suppress(PlatformError):
                old.stack.close()

    def _is_watched(self, free: _Free[_T]) -> bool:
        """Have what has been free for long be closed, by one clock for all; False where none can be started. With the lock held."""
        if not self._watching:
            clock = threading.Timer(0, self._watch)
            clock.daemon = True
            self._watching = self._start(clock)
        elif free.until < self._wakes:
            self._changed.notify_all()
        return self._watching

    def _watch(self) -> None:
        """Close what has been free for long, until nothing has been free for a moment."""
        try:
            while (old := self._to_close()) is not None:
                for free in old:
                    # What cannot be removed now is found by the engine's ``reap``.
                    with suppress(PlatformError):
                        free.stack.close()
        except BaseException:
            with self._lock:
                self._watching = False
            raise

    def _to_close(self) -> list[_Free[_T]] | None:
        """Wait for what has been free for long, which is not free any more then; None where nothing was free for a moment."""
        with self._lock:
            if not self._free:
                if not self._closing:
                    self._wakes = time.monotonic() + IDLE
                    self._changed.wait(IDLE)
                if not self._free:
                    self._watching = False
                    return None
            now = time.monotonic()
            old = [free for free in self._free if free.until <= now]
            self._free = [free for free in self._free if free.until > now]
            if not old and self._free:
                self._wakes = min(free.until for free in self._free)
                self._changed.wait(self._wakes - now)
            return old

    def _start(self, clock: threading.Timer) -> bool:
        """Start a clock, which is waited for at the end; False where it cannot be started. With the lock held."""
        if not _begins(clock):
            return False
        self._clocks = {other for other in self._clocks if other.is_alive()} | {clock}
        return True


def _begins(thread: threading.Thread) -> bool:
    """Start a thread; False where the machine has none left."""
    try:
        thread.start()
    except (RuntimeError, MemoryError):
        return False
    return True


Rooms = Lending[Room]
