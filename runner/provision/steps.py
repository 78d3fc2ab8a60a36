"""What a set-up says of itself: each step as it begins and ends, how far a long one is, and how much was downloaded."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_FETCHED = re.compile(r"(?:Downloading .*\(|Fetched )(\d[\d.,]*) ?([kMG]?)i?B\b")  # pip; apt
_STEP = re.compile(r"Step (\d+)/(\d+) ")  # of a build
_COLLECTED = re.compile(r"Collecting ")  # by pip
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


class Step:
    """One step that is under way: give :meth:`heard` each line that its tool prints.

    ``total`` is how many packages a step with pip fetches; a build says itself how many parts it has, which are so
    different that they tell nothing of the time left.
    """

    def __init__(self, name: str, total: int = 0) -> None:
        self.name, self.total = name, total
        self.started = time.monotonic()
        self.downloaded = 0.0  # bytes
        self._done, self._even = 0, total > 0

    def heard(self, line: str) -> None:
        """Take in one line of a tool's output."""
        if found := _FETCHED.search(line):
            self.downloaded += float(found[1].replace(",", "")) * _UNITS[found[2]]
        if found := _STEP.match(line):
            self._done, self.total = int(found[1]) - 1, int(found[2])
        elif _COLLECTED.match(line):
            self._done += 1

    def said(self) -> str:
        """How far it is, for people: seconds, parts, megabytes, and the time left where the parts tell."""
        seconds = time.monotonic() - self.started
        words = [f"{seconds:.0f} s"]
        if self.total and self._done:
            words.append(f"part {min(self._done, self.total)} of {self.total}")
        words += [megabytes(self.downloaded)] if self.downloaded >= 1e6 else []
        if self._even and 0 < self._done < self.total:
            words.append(f"about {seconds * (self.total - self._done) / self._done:.0f} s left")
        return f"{self.name}: {', '.join(words)}"


class Steps:
    """The steps of a set-up, which may overlap; itself a function that says a line.

    After ``quiet`` seconds of silence those that are under way are named.
    ``downloaded`` is what the steps fetched that are over, in bytes, ``steps`` their number.
    """

    def __init__(self, say: Callable[[str], None] = lambda _: None, *, quiet: float = 10.0) -> None:
        self._say, self._quiet, self._lock = say, quiet, threading.RLock()
        self._running: list[Step] = []
        self._spoke = self.started = time.monotonic()
        self._over = threading.Event()
        self.downloaded, self.steps = 0.0, 0

    @classmethod
    def of(cls, say: Callable[[str], None]) -> Steps:
        """``say`` itself where it is one, else one that says its lines there."""
        return say if isinstance(say, Steps) else cls(say)

    def __call__(self, line: str) -> None:
        """Say a line."""
        with self._lock:
            self._spoke = time.monotonic()
            self._say(line)

    @contextmanager
    def step(self, name: str, *, total: int = 0, note: str = "") -> Iterator[Step]:
        """A step under way: said when it begins, with ``note``, and when it ended well."""
        step = Step(name, total)
        self(f"{name}{f' ({note})' if note else ''} …")
        with self._lock:
            self._running.append(step)
            if len(self._running) == 1:
                self._over.clear()
                threading.Thread(target=self._remind, args=(self._over,), daemon=True).start()
        try:
            yield step
            took = time.monotonic() - step.started
            size = f", {megabytes(step.downloaded)} downloaded" if step.downloaded >= 1e6 else ""
            self(f"{name}: done in {took:.0f} s{size}")
        finally:
            with self._lock:
                self._running.remove(step)
                self.downloaded, self.steps = self.downloaded + step.downloaded, self.steps + 1
                if not self._running:
                    self._over.set()
                    self._over = threading.Event()

    def _remind(self, over: threading.Event) -> None:
        """Name what is under way whenever nothing was said for a while."""
        while not over.wait(self._quiet / 20):
            with self._lock:
                if self._running and time.monotonic() - self._spoke >= self._quiet:
                    self("; ".join(step.said() for step in self._running))


def every(seconds: float = 10.0) -> Callable[[Callable[[str], None], str, float, float | None], None]:
    """What says at most so often how much of a download there is: ``(say, name, done, total)``, amounts in bytes."""
    begun = spoke = time.monotonic()
    first: float | None = None

    def due(say: Callable[[str], None], name: str, done: float, total: float | None) -> None:
        nonlocal spoke, first
        now = time.monotonic()
        first = done if first is None else first  # what was there before tells nothing of the speed
        if now - spoke < seconds:
            return
        spoke, fresh = now, done - first
        said = f"{name}: {megabytes(done)}"
        if total:
            left = (total - done) * (now - begun) / fresh if fresh > 0 else 0
            said += f" of {megabytes(total)}" + (f", about {left:.0f} s left" if left else "")
        say(said)

    return due


def megabytes(size: float) -> str:
    """A number of bytes, for people: ``12 MB``, ``1.4 GB``."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
