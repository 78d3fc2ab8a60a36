"""The only place that asks what time it is, so that tests can hold the clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol

STAMP = "%Y-%m-%dT%H:%M:%SZ"  # ISO 8601 with whole seconds, in UTC


class Clock(Protocol):
    """Something that knows the time."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """The time now, in UTC."""
        return datetime.now(UTC)


class FixedClock:
    """A clock that stands where it was set, for tests."""

    def __init__(self, at: datetime) -> None:
        self.at = at.astimezone(UTC)

    def now(self) -> datetime:
        """The time at which the clock stands, in UTC."""
        return self.at


def stamp(at: datetime) -> str:
    """``at`` in UTC as ISO 8601 with whole seconds and a ``Z``."""
    return at.astimezone(UTC).strftime(STAMP)
