"""The software's side of a run: is it ready, is there still time, and one question at a time."""

from __future__ import annotations

import asyncio
import time

from sidecars.driver.config import Config
from sidecars.peer import Failure, Peer

POLL = 0.2  # seconds between looks whether the server listens
GONE = 3.0  # seconds in which the end of its container has to become known after the server went


class Software:
    """The server under test, seen through the relay. The clock of the run starts with the object."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.peer = Peer(config.software, f"127.0.0.1:{config.port}")
        self.started = time.monotonic()

    def left(self) -> float:
        """Seconds until the end of the run."""
        return self.config.deadline_seconds - (time.monotonic() - self.started)

    def has_ended(self) -> bool:
        """Whether the software's container has ended."""
        return self.config.ended.exists()

    async def ready(self) -> float | None:
        """Wait until it listens. Milliseconds that it took; None when it ended or its time was over before."""
        limit = min(self.config.ready_seconds, self.left())
        while True:
            # Its end is looked at first: what is listening when the container has ended is not the software.
            if self.has_ended():
                return None
            if await self.peer.accepts():
                return (time.monotonic() - self.started) * 1000
            if time.monotonic() - self.started >= limit:
                return None
            await asyncio.sleep(POLL)

    def over(self) -> Failure | None:
        """Why it is not asked any more: it has ended, or the run's time is over."""
        if self.has_ended():
            return Failure("server-ended", "the server has ended before")
        if self.left() <= 0:
            return _run_limit()
        return None

    async def ask(self, path: str, body: bytes) -> bytes:
        """One request within the limits of an answer. Raises :class:`Failure`."""
        if over := self.over():
            raise over
        left, limit = self.left(), self.config.answer_seconds
        try:
            return await self.peer.ask(
                "POST", path, body, seconds=min(left, limit), max_bytes=self.config.answer_bytes
            )
        except Failure as failure:
            if failure.kind == "timeout" and left < limit:
                raise _run_limit() from None
            if failure.kind == "connection" and await self._gone():
                raise Failure("server-ended", "the server ended while it was asked") from None
            raise

    async def _gone(self) -> bool:
        """Whether a broken connection was the end of the server, which becomes known a little later."""
        if self.has_ended():
            return True
        if await self.peer.accepts(0.1):
            return False
        until = time.monotonic() + GONE
        while time.monotonic() < until:
            if self.has_ended():
                return True
            await asyncio.sleep(POLL / 2)
        return False


def _run_limit() -> Failure:
    return Failure("run-limit", "the time of the whole run was over")
