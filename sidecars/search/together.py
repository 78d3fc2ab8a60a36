"""Looking for the neighbours that several requests want at a time: whoever comes while a matrix is read goes with the next reading."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import islice

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


class Together:
    """The neighbours in one collection. One thread at a time reads, for all that wait; nobody waits for others to come.

    ``working`` is held by who calls, and given back while it waits: as many as it lets in work on something else then.
    """

    def __init__(self, collection: Collection, working: threading.Semaphore) -> None:
        self._collection, self.working = collection, working
        self._reading = threading.Lock()
        self._waiting: list[_Wish] = []
        self._list = threading.Lock()  # of those that wait

    def neighbours(self, searches: Iterable[Search]) -> Known:
        """The neighbours that the first of some searches want, as many as are worth their memory; see :func:`parts_of`."""
        wish = _Wish(parts_of(searches, TOGETHER))
        if not wish.parts:
            return {}
        with self._list:
            self._waiting.append(wish)
        self.working.release()
        try:
            while wish.found is None and wish.error is None:
                with self._reading:
                    if wish.found is None and wish.error is None:
                        self._look()
        finally:
            self.working.acquire()
        if wish.error is not None:
            raise wish.error
        return wish.found or {}

    def _look(self) -> None:
        """Look for what those that have waited longest want, and tell them. An error is each one's own."""
        with self._list:
            sizes, many = 0, 0
            for wish in self._waiting:
                sizes += len(wish.parts)
                if many and sizes > TOGETHER:
                    break
                many += 1
            some, self._waiting = list(islice(self._waiting, many)), self._waiting[many:]
        try:
            found = nearest_to_each(self._collection, [part for wish in some for part in wish.parts])
        except BaseException as error:  # noqa: BLE001 (whoever waits has to hear of it)
            for wish in some:
                wish.error = error
            return
        for wish in some:
            wish.found = found
