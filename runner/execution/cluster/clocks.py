"""Clocks of hosts that are off: what a record says of times is put on the coordinator's clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from runner.model.clock import STAMP, SystemClock, stamp

SKEW = timedelta(
    seconds=5
)  # clocks that differ by less are right: that much may lie between sending and hearing


class CoordinatorsTime:
    """The time of the coordinator, as a host knows it that heard at this moment that it was ``sent`` (seconds since 1970)."""

    def __init__(self, sent: float) -> None:
        self._sent, self._heard = datetime.fromtimestamp(sent, UTC), time.monotonic()
        ahead = SystemClock().now() - self._sent
        self._ahead = ahead if abs(ahead) > SKEW else timedelta(0)

    def dated(self, facts: dict[str, Any]) -> dict[str, Any]:
        """What is said of what was done since; where a part has ``started`` and ``finished``, these are by that time.

        Also a clock that was set meanwhile puts nothing before the order, after this moment, or an end before its start.
        """
        return {
            name: self._dated(part) if isinstance(part, dict) and part.get("started") else part
            for name, part in facts.items()
        }

    def _dated(self, record: dict[str, Any]) -> dict[str, Any]:
        least = self._sent - SKEW
        most = self._sent + timedelta(seconds=time.monotonic() - self._heard) + SKEW
        times = {}
        for key in ("started", "finished"):
            said = datetime.strptime(record[key], STAMP).replace(tzinfo=UTC) - self._ahead
            least = times[key] = min(max(said, least), most)
        return {**record, **{key: stamp(at) for key, at in times.items()}}
