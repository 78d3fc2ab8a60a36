"""The requests in the inbox that cannot be decided now, and when each is tried again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runner.exchange.database import DatabaseError
from runner.model.errors import RunnerError
from runner.work.checks import Slot

RETRY_SECONDS = 60.0  # until the second try; doubled after each failure
MAX_RETRY_SECONDS = 3600.0
MAX_INTERNAL_ERRORS = 5  # of one request; then it is refused
INTERNAL = "E308"


@dataclass
class Pending:
    """A request that waits: for its job in ``slot``, or until ``due`` (seconds of the monotonic clock)."""

    name: str
    slot: Slot | None = None
    due: float = 0.0
    failures: int = 0
    internal_errors: int = 0
    reason: str = ""  # of the last failure


class PendingRequests:
    """The requests that wait, by id."""

    def __init__(self) -> None:
        self._by_id: dict[str, Pending] = {}

    def keep(self, exists: Callable[[str], bool], *slots: Slot | None) -> None:
        """Drop the requests whose folder does not exist any more, and their jobs in ``slots``."""
        self._by_id = {id: one for id, one in self._by_id.items() if exists(one.name)}
        for slot in slots:
            if slot is not None:
                slot.keep(self._by_id.__contains__)

    def wait(self, id: str, name: str, slot: Slot) -> None:
        """Note that a request waits for its job."""
        pending = self._by_id.setdefault(id, Pending(name))
        pending.name, pending.slot, pending.due = name, slot, 0.0

    def fail(self, id: str, name: str, error: Exception, reason: str) -> Pending | None:
        """Note that the platform failed at a request.

        Returns:
            The request, if ``reason`` is another one than before.
        """
        pending = self._by_id.setdefault(id, Pending(name))
        is_new = reason != pending.reason
        pending.name, pending.reason = name, reason
        self._drop_job(id, pending)
        seconds = min(MAX_RETRY_SECONDS, RETRY_SECONDS * 2.0 ** min(pending.failures, 20))
        pending.due = time.monotonic() + seconds
        pending.failures += 1
        pending.internal_errors += is_internal(error)
        return pending if is_new else None

    def has_failed(self, id: str) -> bool:
        """True if a request had so many internal errors that it is refused."""
        return id in self._by_id and self._by_id[id].internal_errors >= MAX_INTERNAL_ERRORS

    def forget(self, id: str) -> None:
        """Drop a request that was decided."""
        if (pending := self._by_id.pop(id, None)) is not None:
            self._drop_job(id, pending)

    def ignore(self, id: str, name: str) -> None:
        """Never try a request again: it is decided, and cannot be removed."""
        self._by_id[id] = Pending(name, due=math.inf)

    def is_idle(self, id: str) -> bool:
        """True if a request waits for its job, or for the next try."""
        pending = self._by_id.get(id)
        return pending is not None and (pending.slot is not None or pending.due > time.monotonic())

    def ready(self, *slots: Slot | None) -> Iterator[tuple[str, str]]:
        """Yield name and id of each request whose job is finished, or is the next one."""
        for slot in slots:
            for id in slot.ready() if slot is not None else ():
                if id in self._by_id:
                    yield self._by_id[id].name, id

    def _drop_job(self, id: str, pending: Pending) -> None:
        if pending.slot is not None:
            pending.slot.forget(id)
            pending.slot = None


def is_internal(error: Exception) -> bool:
    """True if an error is a defect of this program, and not of its disk, engine or database."""
    if isinstance(error, RunnerError):
        return error.code == INTERNAL
    is_operational = type(error).__name__ == "OperationalError"  # of sqlite3 and of psycopg
    return not (is_operational or isinstance(error, OSError | MemoryError | DatabaseError))
