"""Looking for the neighbours that several requests want at a time: whoever comes while a matrix is read goes with the next reading."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

from sidecars.search.prepared import Collection
from sidecars.search.requests import Nearest, Search
from sidecars.search.searching import Known, nearest_to_each, parts_of

TOGETHER = 16  # vectors whose neighbours are looked for at once: 4 bytes a row and vector while that goes on


class _Wish:
    """What one request wants; then what was found, or why nothing was."""

    def __init__(self, parts: list[Nearest]) -> None:
        self.parts = parts
        self.found: Known | None = None
        self.error: BaseException | None = None
        self.woken = threading.Event()  # without an answer: to read itself


class Together:
    """The neighbours in one collection. One thread at a time reads, for all that wait; nobody waits for others to come.

    Each reads once, for itself and those that have waited longest, and gives the turn to the first that still waits.
    ``working`` is held by who calls, and given back while it waits: as many as it lets in work on something else then.
    """

    def __init__(self, collection: Collection, working: threading.Semaphore) -> None:
        self._collection, self.working = collection, working
        self._waiting: deque[_Wish] = deque()
        self._taken = False  # somebody reads, or was given the turn
        self._lock = threading.Lock()  # of the two

    def neighbours(self, searches: Iterable[Search]) -> Known:
        """The neighbours that the first of some searches want, as many as are worth their memory; see :func:`parts_of`."""
        wish = _Wish(parts_of(searches, TOGETHER))
        if not wish.parts:
            return {}
        with self._lock:
            waits, self._taken = self._taken, True
            if waits:
                self._waiting.append(wish)
        self.working.release()
        try:
            if waits:
                wish.woken.wait()
            if wish.found is None and wish.error is None:
                self._read(wish)
        finally:
            self.working.acquire()
        if wish.error is not None:
            raise wish.error
        return wish.found or {}

    def _read(self, own: _Wish) -> None:
        """Look for what is wanted, tell those that wait for it, and give the turn on. An error is each one's own."""
        some = [own]
        try:
            self._join(some)
            found = nearest_to_each(self._collection, [part for wish in some for part in wish.parts])
        except BaseException as error:  # noqa: BLE001 (whoever waits has to hear of it)
            for wish in some:
                wish.error = error
        else:
            for wish in some:
                wish.found = found
        finally:
            for wish in some:
                wish.woken.set()
            self._give_on()

    def _join(self, some: list[_Wish]) -> None:
        """Add those that have waited longest, as many as are looked for at once."""
        many = len(some[0].parts)
        with self._lock:
            while self._waiting and (many := many + len(self._waiting[0].parts)) <= TOGETHER:
                some.append(self._waiting.popleft())

    def _give_on(self) -> None:
        """It is the turn of the first that waits; of nobody where nobody does."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().woken.set()
            else:
                self._taken = False
