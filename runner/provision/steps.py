"""Progress lines of a set-up: each step as it begins and ends, and every few seconds while it lasts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Steps:
    """The steps of a set-up, which may overlap. Call it to print a line.

    While a step lasts, its name is printed every ``quiet`` seconds.
    """

    def __init__(self, say: Callable[[str], None] = lambda _: None, *, quiet: float = 10.0) -> None:
        self._say, self._quiet = say, quiet

    @classmethod
    def of(cls, say: Callable[[str], None]) -> Steps:
        """Return ``say`` itself if it has steps, else one that prints its lines there."""
        return say if isinstance(say, Steps) else cls(say)

    def __call__(self, line: str) -> None:
        """Print a line."""
        self._say(line)

    @contextmanager
    def step(self, name: str, *, note: str = "") -> Iterator[None]:
        """Print that a step begins, with ``note``, and that it ended well."""
        begun, over = time.monotonic(), threading.Event()

        def remind() -> None:
            while not over.wait(self._quiet):
                self(f"{name}: {time.monotonic() - begun:.0f} s")

        self(f"{name}{f' ({note})' if note else ''} …")
        threading.Thread(target=remind, daemon=True).start()
        try:
            yield
            self(f"{name}: done in {time.monotonic() - begun:.0f} s")
        finally:
            over.set()
