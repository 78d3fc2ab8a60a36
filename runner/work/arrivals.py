"""When requests can have arrived, by what work saw of the inbox itself.

A front says when the last byte of a request was there. Its clock may be wrong, it may have been set back, and a front that was
taken over lies. What work knows: the request was not in the inbox when work looked the time before, and it is there now. So
no arrival counts that is later than the first look that found it, nor more than :data:`SLACK` earlier than the last that did
not: for so long a front may be at what it does between the last byte and the inbox. While work was down
nobody looked; then only the last look before bounds it. The looks are kept in a file of the data directory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

from runner.model.clock import stamp
from schemas.files import atomic_file

SLACK = timedelta(minutes=5)
OLDEST = timedelta(days=14)  # an arrival further back counts in no case
EVERY = timedelta(seconds=5)  # how often it is written that somebody looked
FILE = "inbox-looks.json"


def moment(text: str) -> datetime:
    """The time that a stamp is. Raises ValueError."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


class Arrivals:
    """The looks of one data directory. ``now`` gives the time; ``brought``: what is in its inbox was brought from a front on another machine, where it
    may have waited; then the looks say nothing about when it came."""

    def __init__(self, home: Path, now: Callable[[], datetime], *, brought: bool = False) -> None:
        self._file, self._now, self._brought = home / FILE, now, brought
        self._last: datetime | None = None
        self._between: dict[
            str, tuple[str, str, str]
        ] = {}  # by id: not before, not after, and digest of what it asks
        self._written, self._changed = datetime.fromtimestamp(0, UTC), False
        try:
            data = json.loads(self._file.read_bytes())
            self._last = moment(data["last"])
            self._between = {str(id): (str(a), str(b), str(c)) for id, (a, b, c) in data["between"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass  # nobody looked yet, or nobody knows

    def set_back(self) -> timedelta:
        """How far the clock of this machine is behind the last look: it was set back since, if that is much."""
        return max(timedelta(0), self._last - self._now()) if self._last is not None else timedelta(0)

    def look(self, waiting: Collection[str]) -> None:
        """Note which requests, by their ids, are in the inbox now. Raises OSError when that cannot be kept."""
        now = self._now()
        first = now - OLDEST
        if (
            self._last is not None and not self._brought
        ):  # min: the clock of this machine may have been set back
            first = max(first, min(self._last, now) - SLACK)
        found = {id: self._between.get(id, (stamp(first), stamp(now), "")) for id in waiting}
        changed = self._changed or found.keys() != self._between.keys()
        self._last, self._between = now, found
        if changed or now - self._written >= EVERY or now < self._written:
            with atomic_file(self._file, mode=0o600) as file:
                file.write(json.dumps({"last": stamp(now), "between": found}).encode())
            self._written, self._changed = now, False

    def counts(self, id: str, said: str, digest: str) -> datetime:
        """When a request arrived, as it counts: what the front ``said``, within what can have been.

        ``digest`` is of all that it asks: what is another thing now under an id that was seen before came now.
        """
        now = self._now()
        first, last, known = self._between.get(id, (stamp(now - OLDEST), stamp(now), ""))
        if known and known != digest:
            first = last = stamp(now)
        if known != digest:
            self._between[id] = (first, last, digest)
            self._changed = True
        try:
            at = moment(said)
        except ValueError:
            return min(moment(last), now)
        believed = at >= now - OLDEST
        return min(max(at, moment(first)), moment(last), now) if believed else min(moment(last), now)


def difference(counted: datetime, said: str) -> str:
    """In words how far what the front said is from what counts; empty where it is the same."""
    try:
        seconds = round((moment(said) - counted.replace(microsecond=0)).total_seconds())
    except ValueError:
        return "what the front said is no time"
    return (
        f"the front said {said}, {abs(seconds)} s {'later' if seconds > 0 else 'earlier'}" if seconds else ""
    )
