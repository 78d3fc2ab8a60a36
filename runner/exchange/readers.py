"""``inbox/readers``: which logs that grow somebody reads now. The front notes it, so that hosts are asked for no others.

The file has the names of logs (:mod:`runner.exchange.tails`), a line each, and is renewed while somebody reads; work forgets one that is
not. It is the word of who faces the street: names of which work knows nothing say nothing to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from runner.exchange.address import noted
from runner.exchange.tails import is_name
from schemas.files import atomic_file, make_private

FILE = "readers"
MOST = 1000  # names
RENEW = 5.0  # seconds after which the file is written anew while somebody reads
FRESH = 15.0  # seconds after which nobody reads what is in it


class Readers:
    """At the front, or at work for a front on another machine: who reads. For one thread."""

    def __init__(self, inbox: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._inbox, self._clock = inbox, clock
        self._read: dict[str, float] = {}  # when somebody read it the last time, by name
        self._noted = 0.0

    def read(self, name: str) -> None:
        """Note that somebody reads the log of that name now. Where the disk refuses it, logs of hosts grow on no page."""
        now = self._clock()
        known, self._read[name] = name in self._read, now
        if known and now < self._noted + RENEW:
            return
        self._read = dict([one for one in self._read.items() if now < one[1] + RENEW][-MOST:])
        self._noted = now
        with suppress(OSError):
            make_private(self._inbox.parent)
            self._inbox.mkdir(exist_ok=True)
            with atomic_file(self._inbox / FILE, mode=0o644) as file:
                file.write("".join(f"{one}\n" for one in self._read).encode())


def read_now(inbox: Path) -> frozenset[str]:
    """The names of the logs that somebody reads now."""
    with suppress(OSError):
        if abs(time.time() - (inbox / FILE).lstat().st_mtime) <= FRESH:
            lines = (noted(inbox / FILE, 40 * MOST) or b"").decode("latin-1").split("\n")
            return frozenset(filter(is_name, lines[:MOST]))
    return frozenset()
