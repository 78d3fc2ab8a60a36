"""What work attends to in the middle of a publishing, which may take minutes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from runner.work.requests import Requests

ANEW = 3  # publishings in a row that are begun anew since something was taken away


class Ended(Exception):
    """A publishing ends in its middle: what people see stays as it was."""


class Between:
    """What a publishing calls again and again: every ``tick`` seconds it attends to what does not wait.

    It ends when work does, and to be begun anew when something was taken away, which it would show: :data:`ANEW` times in a row at most. What fails
    is no failure of what is published: it is raised after that.
    """

    def __init__(
        self,
        tick: float,
        stop: threading.Event,
        attend: Callable[[], None],
        alive: Callable[[], None],
        requests: Requests,
    ) -> None:
        self._tick, self._stop, self._attend, self._alive, self._requests = (
            tick,
            stop,
            attend,
            alive,
            requests,
        )
        self._times, self._spent = 0, 0.0
        self._held: Exception | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a publishing."""
        self._began = self._last = time.monotonic()
        self._held, self.anew = None, False

    def end(self) -> float:
        """End it; returns how many seconds it took, with what was begun anew before it: none yet where it is to be begun anew itself.

        Raises what failed meanwhile.
        """
        spent = self._spent + time.monotonic() - self._began
        self._times, self._spent = (self._times + 1, spent) if self.anew else (0, 0.0)
        if self._held is not None:
            raise self._held
        return 0.0 if self.anew else spent

    def __call__(self) -> None:
        """Raises :class:`Ended`."""
        if self._stop.is_set():
            raise Ended
        if time.monotonic() - self._last < self._tick:
            return
        before = self._requests.taken_away
        try:
            (self._alive if self._held or self._times >= ANEW else self._attend)()
        except Exception as error:  # noqa: BLE001  (raised after the publishing)
            self._held = self._held or error
        self._last = time.monotonic()
        if self._requests.taken_away > before:
            self.anew = True
            raise Ended
