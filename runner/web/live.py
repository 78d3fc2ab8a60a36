"""Pages that follow: one watcher of what was published wakes all streams, and a stream says that a page changed, nothing more.

A stream carries the entity tag of its page for its visitor, and the page is fetched again like any other: nothing is
decided here, and nobody learns more, or earlier, than by loading the page. The tag is made of what the page shows, without
times and counters.

The page of a run that goes on also shows the end of its log, to those who may read it. Its stream brings what comes (events ``log``). Each
such stream looks for itself whether there is more, and wakes no other: nobody else can tell that a log grows. Work is told which are read
(:mod:`runner.exchange.readers`).
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from runner.exchange import tails
from runner.exchange.tails import Tail
from schemas.files import settled

LOOK = 0.5  # seconds between two looks of the watcher
HEARTBEAT = (
    15.0  # seconds without an event until a stream says that it is there, and who listens is looked at again
)
MOST_LOGS = 256  # of logs that grow, the last that were read
RETRY = 5000  # milliseconds until a browser opens a stream anew that was cut


@dataclass(frozen=True)
class Bounds:
    """How many streams may be open: in ``all``, of visitors without an account together, and of ``each`` account.

    Those without an account cannot be told apart (behind a proxy or a university's router all have one address); they never
    take the places of those who have one.
    """

    all: int = 1000
    public: int = 800
    each: int = 10


class Live:
    """The watcher and the open streams.

    Args:
        published: The folder that is watched.
        notes: How many requests the front has taken: its own part of what pages show.
        ending: Whether the server is about to end; then streams do.
        bounds: How many streams may be open.
        reads: Told again and again the name of a log that somebody reads.
    """

    def __init__(
        self,
        published: Path,
        notes: Callable[[], int],
        ending: Callable[[], bool] = lambda: False,
        bounds: Bounds | None = None,
        reads: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._published, self._notes, self._ending, self._reads = published, notes, ending, reads
        self.bounds = bounds or Bounds()
        self._open: Counter[str | None] = Counter()
        self._logs: dict[str, tuple[object, Tail | None]] = {}
        self._tags: dict[tuple[str, str], str] = {}
        self._stamp: tuple[object, ...] = ()
        self._settled = True  # whether a change after the last look shows in the times of that look
        self._news = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None

    def free(self, account: str | None) -> bool:
        """Whether an account (None: somebody without one) may open one more stream."""
        most = self.bounds.public if account is None else self.bounds.each
        return self._open[account] < most and self._open.total() < self.bounds.all

    @contextmanager
    def place(self, account: str | None) -> Iterator[None]:
        """Count a stream of an account as open while the block lasts, and watch for it."""
        self._open[account] += 1
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield
        finally:
            self._open[account] -= 1
            self._open += Counter()  # accounts without a stream are forgotten

    def tag(self, audience: str, page: str, make: Callable[[], str | None]) -> str | None:
        """The tag of a page, made once for all who look at it until something changes.

        Nothing is kept of pages that are not there: strangers may ask for any.
        """
        self._look()
        key = (audience, page)
        if key not in self._tags and (made := make()) is not None:
            self._tags[key] = made
        return self._tags.get(key)

    def log(self, name: str) -> Tail | None:
        """The end of a log that grows, by the name of its file: read once for all who look at it until it is replaced."""
        self._reads(name)
        version = tails.version(self._published, name)
        known = self._logs.get(name)
        if known is None or known[0] != version:
            while len(self._logs) >= MOST_LOGS:
                del self._logs[next(iter(self._logs))]
            known = self._logs[name] = (version, tails.read(self._published, name) if version else None)
        return known[1]

    async def stream(
        self,
        last: str,
        tag: Callable[[], str | None],
        log: Callable[[], str | None] = lambda: None,
        place: int = 0,
    ) -> AsyncIterator[str]:
        """Events of one page, until it is not there any more for who listens.

        Args:
            last: The tag that the listener has.
            tag: Looks again who listens, and gives the tag of the page for them; None ends the stream: the
                page is gone, or is not theirs any more.
            log: Gives the name of the log that grows on the page, for who listens; None where there is none.
            place: How many characters of it the listener has.
        """
        growing = _Growing(self.log, place)
        yield f"retry: {RETRY}\n\n"
        while not self._ending():
            news = self._news  # before looking: what comes after it is not missed
            if (now := tag()) is None:
                yield "event: page\ndata: gone\n\n"
                return
            if now != last:
                yield f"id: {now}\nevent: page\ndata: {now}\n\n"
                last = now
            else:
                yield ":\n\n"
            async for event in growing.until(news, log()):
                yield event

    async def _watch(self) -> None:
        """Wake the streams whenever something was published or taken, as long as there are any."""
        while self._open.total() and not self._ending():
            await asyncio.sleep(LOOK)
            self._look()
        self._wake()

    def _look(self) -> None:
        names = ("current.json", "answers", "access.json")
        found = [_facts(self._published / name) for name in names]
        stamp = (*(facts and (facts.st_ino, facts.st_mtime_ns) for facts in found), self._notes())
        whole = all(facts is None or settled(facts) for facts in found)
        if stamp != self._stamp or (whole and not self._settled):
            self._stamp = stamp
            self._tags.clear()
            self._wake()
        self._settled = whole

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class _Growing:
    """The log of one stream: its listener has its first ``place`` characters."""

    def __init__(self, log: Callable[[str], Tail | None], place: int) -> None:
        self._log, self._place = log, place
        self._shown: Tail | None = None

    async def until(self, news: asyncio.Event, name: str | None) -> AsyncIterator[str]:
        """Events with what comes of the log of that name, until there is news, or for a :data:`HEARTBEAT`."""
        clock = asyncio.get_running_loop()
        end = clock.time() + HEARTBEAT
        while (left := end - clock.time()) > 0:
            if name is not None and (event := self._event(name)):
                yield event
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), left if name is None else min(left, tails.EVERY))
                return

    def _event(self, name: str) -> str:
        """What came since the last event; empty for nothing."""
        now = self._log(name)
        if now is None or now is self._shown:
            return ""
        self._shown, new = now, now.since(self._place)
        self._place = now.end
        data = {"first": new.first, "end": new.end, "text": new.text}
        return f"event: log\ndata: {json.dumps(data, ensure_ascii=False)}\n\n" if new.text else ""


def _facts(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
