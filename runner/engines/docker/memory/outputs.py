"""Fresh output volumes for attempts that come one after another, and one keeper for all of them.

A memory volume lives as long as a container that has it runs, and starting such a keeper takes the engine as long as starting a
software. So a keeper is started with several volumes that are empty, and each attempt is given one of them that nobody had
before and nobody has afterwards: nothing is used again but our own container, which no software can see.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from runner.engines.base import Volume
from runner.model.limits import MIB

MOST, GROWTH = 8, 4  # volumes of one keeper, and how many times those of one whose volumes were all wanted
LITTLE = (
    16 * MIB
)  # what a volume may still hold when the next one is given away: it lies in memory until the keeper ends
LIFETIME = (
    120.0  # seconds in which they are given away: whoever waits for the turn on the engine waits no longer
)


class Outputs:
    """The volumes that are ``left``, each with its path in ``keeper``, and the user ids whose they are.

    ``wanted`` is told that the last one is given away (True), or that some are never: somebody left much in his, or nobody came (False).
    """

    def __init__(
        self, left: list[tuple[Volume, str, str]], uids: tuple[int, int], wanted: Callable[[bool], None]
    ) -> None:
        self.uid, self.sidecar_uid = uids
        self._left, self._wanted = left, wanted
        self._sound, self._since = True, time.monotonic()

    @property
    def usable(self) -> bool:
        """Whether a volume is left, they are not old, and the last one given away was brought back nearly empty."""
        return self._sound and bool(self._left) and time.monotonic() - self._since < LIFETIME

    def take(self) -> tuple[Volume, str, str]:
        """A volume that nobody had before, its keeper, and its path there."""
        self._sound = False  # until it is known what became of it
        found = self._left.pop()
        if not self._left:
            self._wanted(True)
        return found

    def seen(self, used: int) -> None:
        """Whoever took the last one has fetched from it what it wanted; ``used`` bytes are still in it."""
        self._sound = used <= LITTLE
        if not self._sound:
            self._wanted(False)

    def close(self) -> None:
        """The keeper ends."""
        if self._left:
            self._wanted(False)
