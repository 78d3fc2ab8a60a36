"""What the commands say on stderr: lines, findings, and a progress bar for people at a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluator.findings import Log

WIDTH = 30  # of the bar, in characters
EVERY = 0.1  # seconds


class Progress:
    """Counts to ``total`` (which may be an upper bound). Silent unless stderr is a terminal."""

    def __init__(self, total: int, what: str, *, shown: bool | None = None) -> None:
        self.total, self.what, self.done = total, what, 0
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._last = 0.0

    def tick(self) -> None:
        """One more."""
        self.done += 1
        now = time.monotonic()
        if self._shown and now - self._last >= EVERY:
            self._last = now
            self._draw()

    def _draw(self) -> None:
        share = min(1.0, self.done / self.total) if self.total else 1.0
        bar = "#" * round(share * WIDTH)
        sys.stderr.write(f"\r{self.what} [{bar:<{WIDTH}}] {self.done:,}/{self.total:,} at most ")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * (len(self.what) + WIDTH + 40) + "\r")
            sys.stderr.flush()


def say(text: str) -> None:
    """One line to stderr."""
    print(text, file=sys.stderr)


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it is not 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say_findings(log: Log) -> None:
    """The first findings of a file and their sum, if there are any."""
    if log.counts:
        say("\n".join([*log.lines_of(50), f"{log.file}: {log.summary()}"]))
