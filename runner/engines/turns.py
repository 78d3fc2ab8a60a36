"""Blinded and public runs take turns on an engine: never both at once, and nothing cached is carried over.

What a system reads stays in the memory of the engine's machine, and a later system can find out which pages are
cached. A system that reads page *i* of a file when bit *i* of the hidden inputs is 1 leaves a message for its next
run on public data, whose output its team may read. Hence two rules, kept by :class:`Turns` for every session of every
process that uses the same engine:

1. sessions of one visibility share the engine; sessions of the other wait until they have ended;
2. a blinded session marks the engine before it starts anything. The first public session that finds the mark has the
   machine's caches emptied, and checks that this worked, before it starts anything.

The kernel chooses TCP source ports with a table that all network namespaces share. A blinded system with a loopback
interface can write into it, and a public one can read it until the kernel changes the key, every ten seconds. Hence:

3. a public session starts at least :data:`LOOPBACK_SECONDS` after a blinded one with a loopback has ended.

The start of a public session would tell when the blinded one before it ended. Hence:

4. the first public session after a blinded one starts on a full minute (:data:`START_GRID_SECONDS`), whether it waited
   at the engine or not. The mark stays until then.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.engines.base import Cancelled
from runner.model.config import EngineFor
from runner.model.errors import PlatformError
from runner.model.task import Visibility

TURN = "proctor.turn"  # the label that says on data of which visibility something runs
POLL = 0.25  # seconds between looks at who else is there
LOOPBACK_SECONDS = 12.0  # Linux: EPHEMERAL_PORT_SHUFFLE_PERIOD is 10 s, and time stamps are cut to seconds
START_GRID_SECONDS = 60.0


class Board:
    """What all processes that use one engine can see of each other there, and the emptying of its caches.

    As it stands nobody but this process uses the engine, and there are no caches.
    """

    def __init__(self) -> None:
        self._announced: dict[str, Visibility] = {}
        self._mark = False
        self._loopback_at: float | None = None

    def announce(self, visibility: Visibility, attempt_id: str) -> None:
        """Say, where everybody sees it, that an attempt is about to run."""
        self._announced[attempt_id] = visibility

    def withdraw(self, attempt_id: str) -> None:
        """Take back what was announced, after removing whatever of the attempt is still there."""
        self._announced.pop(attempt_id, None)

    def present(self, visibility: Visibility) -> list[str]:
        """The attempts of that visibility that may run now; leftovers of dead processes are removed first."""
        return sorted(name for name, kind in self._announced.copy().items() if kind == visibility)

    def mark(self) -> None:
        """Remember, until :meth:`unmark` and whatever dies meanwhile, that caches know of a blinded run."""
        self._mark = True

    def marked(self) -> bool:
        """Whether they do."""
        return self._mark

    def unmark(self) -> None:
        """They do not any more."""
        self._mark = False

    def record_loopback(self) -> None:
        """Record that a blinded container with a loopback runs, or has just been removed."""
        self._loopback_at = time.monotonic()

    def seconds_since_loopback(self) -> float | None:
        """Return the seconds since the last :meth:`record_loopback` on this kernel; None if there was none."""
        return None if self._loopback_at is None else time.monotonic() - self._loopback_at

    def evict(self) -> None:
        """Empty the caches of the engine's machine and see that it worked. Raises E311 when it did not."""


class Turns:
    """Who may run on one engine now. ``gate`` is a lock file that all processes of this machine's user share.

    ``engine_for`` is what the organiser said of the engine (RUNNER_ENGINE_FOR): ``both`` keeps the two rules,
    ``public`` and ``blinded`` also refuse the other kind, ``both-without-eviction`` keeps none of them and only
    marks, so that a process that does keep them knows.
    """

    def __init__(
        self,
        board: Board,
        gate: Callable[[], Path],
        engine_for: EngineFor = "both",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.board, self.engine_for, self.tell = board, engine_for, tell
        self._gate = gate
        self._proved = False  # whether this process has seen that the engine's caches can be emptied
        self._thread = threading.local()

    @contextmanager
    def take(
        self,
        visibility: Visibility,
        attempt_id: str,
        cancelled: Callable[[], bool] | None = None,
        *,
        building: bool = False,
        stays: bool = False,
    ) -> Iterator[None]:
        """Wait until sessions of ``visibility`` may run, and let no others start while the context lasts.

        Args:
            visibility: the visibility of the data of the session.
            attempt_id: the id under which the session is announced.
            cancelled: is asked while the session waits.
            building: an image is built; every engine may do that.
            stays: the context is not bound to this thread: the thread may take other turns, and another thread may end it.

        Raises:
            Cancelled: ``cancelled`` returned true.
            PlatformError: E311, the engine is not for that visibility or its caches cannot be emptied.
            ValueError: inside a context of the other visibility (it would wait for itself), or of any with ``stays``.
        """
        if self.engine_for in ("public", "blinded") and visibility != self.engine_for and not building:
            raise not_for(visibility, self.engine_for)
        if self.engine_for == "both-without-eviction":
            if visibility == "blinded":
                self.board.mark()
            yield
            return
        outer: Visibility | None = getattr(self._thread, "turn", None)
        if outer is not None:
            if outer != visibility or stays:
                raise ValueError(f"a {visibility} turn inside a {outer} one")
            yield
            return
        self._enter(visibility, attempt_id, cancelled or (lambda: False))
        if not stays:
            self._thread.turn = visibility
        try:
            yield
        finally:
            if not stays:
                self._thread.turn = None
            self.board.withdraw(attempt_id)

    def labels(self, visibility: Visibility) -> dict[str, str]:
        """What everything of a session is labelled with, so that those who keep the rules see it."""
        return {} if self.engine_for == "both-without-eviction" else {TURN: visibility}

    def _enter(self, visibility: Visibility, attempt_id: str, cancelled: Callable[[], bool]) -> None:
        """Announce, then look: of two that do so at the same time, on whatever machines, at least one sees the other.

        Whoever waits keeps the gate, so that those who come later, of either kind, do not overtake.
        """
        other: Visibility = "public" if visibility == "blinded" else "blinded"
        waited = False
        with self._through_the_gate(cancelled):
            while True:
                try:
                    self.board.announce(visibility, attempt_id)
                    if not (present := self.board.present(other)):
                        if visibility == "blinded":
                            self._mark()
                        else:
                            self._clean(cancelled)
                        return
                except BaseException:
                    self.board.withdraw(attempt_id)
                    raise
                self.board.withdraw(attempt_id)
                if not waited:
                    self.tell(
                        f"waiting for {len(present)} {other} runs on this engine: blinded and public runs take turns"
                    )
                    waited = True
                _pause(cancelled)

    @contextmanager
    def _through_the_gate(self, cancelled: Callable[[], bool]) -> Iterator[None]:
        from filelock import FileLock, Timeout

        lock = FileLock(self._gate(), thread_local=False)
        while True:
            try:
                lock.acquire(timeout=POLL)
                break
            except Timeout:
                _give_up(cancelled)
        try:
            yield
        finally:
            lock.release()

    def _mark(self) -> None:
        """Mark the engine for a blinded session. Raises E311 if its caches cannot be emptied."""
        if self.engine_for == "both" and not self._proved and not self.board.marked():
            # An engine that could not be cleaned afterwards takes no blinded run in the first place.
            self.board.evict()
            self._proved = True
        self.board.mark()

    def _clean(self, cancelled: Callable[[], bool]) -> None:
        """Keep rules 2 to 4 for a public session. If it is cancelled, the mark stays for the next one."""
        marked = self.board.marked()
        if marked:
            self.tell("emptying the caches of the engine's machine: a blinded run came before")
            self.board.evict()
            self._proved = True
        since = self.board.seconds_since_loopback()
        remaining = 0.0 if since is None else min(LOOPBACK_SECONDS - since, LOOPBACK_SECONDS)
        if marked or remaining > 0:
            seconds = seconds_to_grid(time.time(), max(remaining, 0.0))
            self.tell(
                f"waiting {math.ceil(seconds)} s: public runs start on the full minute after blinded ones"
            )
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0:
                _give_up(cancelled)
                time.sleep(min(left, POLL))
        if marked:
            self.board.unmark()


def seconds_to_grid(now: float, least: float) -> float:
    """Return the seconds from ``now`` (a Unix time) to the first point of the start grid at least ``least`` seconds away."""
    return math.ceil((now + least) / START_GRID_SECONDS) * START_GRID_SECONDS - now


def _pause(cancelled: Callable[[], bool]) -> None:
    _give_up(cancelled)
    time.sleep(POLL)


def _give_up(cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise Cancelled


def not_for(visibility: Visibility, engine_for: str) -> PlatformError:
    """E311 for a run that the organiser keeps away from this engine."""
    return PlatformError(
        f"this engine is not for runs on {visibility} data",
        why=f"RUNNER_ENGINE_FOR is {engine_for}.",
        fix="set DOCKER_HOST to the engine for them, or RUNNER_ENGINE_FOR to both",
        code="E311",
    )


def cannot_evict(why: str) -> PlatformError:
    """E311 for an engine whose caches cannot be emptied."""
    return PlatformError(
        "blinded and public runs cannot be kept apart on this engine",
        why=f"Its caches could not be emptied: {why}. A later run could read there what an earlier one saw.",
        fix="use one engine for blinded runs and another for public ones (RUNNER_ENGINE_FOR=blinded, =public); "
        "docs/how-to/two-engines.md has this and how to accept the risk",
        code="E311",
    )
