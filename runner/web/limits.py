"""How often somebody may, and how much of a team may be there at a time.

How often: buckets in memory, bounded, by address and by token. They may be lost, and fill up again by themselves.

A bucket holds so many calls and is filled at an even rate; who finds it empty is told in how many seconds to come again. Right
tokens are never refused because others tried wrong ones: only what was refused counts against a token's id.

How much: :class:`Room` alone counts it, for what is refused and for what a team is told.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from runner.exchange.inbox import Inbox, answered
from runner.model.limits import GIB, in_units
from runner.web.uploads import Uploads

if TYPE_CHECKING:
    from runner.web.sessions import Sessions

_KNOWN = 1000  # of the requests of a team, the newest that are looked at
MOST = 20_000  # buckets that are kept; of more, those that were asked longest ago are forgotten


@dataclass(frozen=True)
class Rate:
    """``burst`` calls at once, and then ``each`` second so many."""

    burst: float
    each: float


STRANGERS = Rate(100, 1.0)  # by address: what people send who are not signed in, and wrong tokens
WRONG = Rate(10, 0.1)  # by id of a token: wrong secrets of it
REGISTERING = Rate(10, 1 / 60)  # by address: registrations that are taken
SENDING = Rate(300, 5.0)  # by token: what is sent with it


@dataclass(frozen=True)
class Waiting:
    """What of a team may wait to be decided at a time, and how many files it may be sending in forms (each is held on the disk of
    the front until it is whole)."""

    requests: int = 100
    size: int = 48 * GIB  # bytes of their files
    forms: int = 4


class Limits:
    """All buckets. ``now`` gives seconds that never go back."""

    def __init__(self, *, most: int = MOST, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now = most, now
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def take(self, kind: str, who: str, rate: Rate) -> int:
        """Take one call of somebody; 0 when they had it, or else the seconds until there is one."""
        now = self._now()
        left, then = self._buckets.pop((kind, who), (rate.burst, now))
        left = min(rate.burst, left + (now - then) * rate.each)
        good = left >= 1
        self._buckets[kind, who] = (left - 1 if good else left, now)
        while len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0 if good else math.ceil((1 - left) / rate.each)

    def __len__(self) -> int:
        return len(self._buckets)


@dataclass(frozen=True)
class Bound:
    """What of a team may be there at a time: ``used`` of at ``most`` so many, in ``unit`` (bytes, or a count)."""

    id: str
    says: str
    used: int
    most: int
    unit: Literal["bytes", "count"]

    @property
    def words(self) -> str:
        """``2 of 16``, ``1.5 GiB of 48 GiB``."""
        shown = in_units if self.unit == "bytes" else str
        return f"{shown(self.used)} of {shown(self.most)}"


class Room:
    """What each team has on its way and waiting. ``forms`` counts the files that teams are sending in forms."""

    def __init__(
        self, sessions: Sessions, published: Path, inbox: Inbox, uploads: Uploads, most: Waiting
    ) -> None:
        self._sessions, self._published, self._inbox, self._uploads = sessions, published, inbox, uploads
        self._most = most
        self.forms: Counter[str | None] = Counter()

    def waiting(self, team: str | None) -> tuple[int, int]:
        """How many hand-ins of a team wait to be decided, and the bytes of their files. Raises OSError."""
        there = {id for _, id in self._inbox.waiting()}
        if not there:
            return 0, 0
        known = self._sessions.noted(team, most=_KNOWN)
        sizes = [
            one["size"] or 0 for one in known if one["id"] in there and not self._decided(team, one["id"])
        ]
        return len(sizes), sum(sizes)

    def bounds(self, team: str) -> Iterator[Bound]:
        """Every bound of a team. Raises OSError."""
        most, of = self._most, self._uploads.bounds
        (requests, size), uploads = self.waiting(team), self._uploads.of(team)
        announced = sum(one.size for one in uploads)
        yield Bound("waiting", "hand-ins that wait to be decided", requests, most.requests, "count")
        yield Bound("waiting-bytes", "their files", size, most.size, "bytes")
        yield Bound("forms", "files on their way in forms", self.forms[team], most.forms, "count")
        yield Bound("uploads", "uploads that are not handed in", len(uploads), of.open, "count")
        yield Bound("uploads-bytes", "what was announced of them", announced, of.team, "bytes")
        largest = max((one.size for one in uploads), default=0)
        yield Bound("upload-bytes", "the largest of them", largest, of.each, "bytes")

    def _decided(self, team: str | None, id: str) -> bool:
        found = answered(self._published, id)
        return found is not None and found.get("team") == team


def address(peer: str | None, forwarded: Sequence[str], proxies: frozenset[str]) -> str:
    """By which address somebody comes: the last one that no proxy of ours has.

    Args:
        peer: The other end of the connection; None where it has no address.
        forwarded: The headers ``X-Forwarded-For``, believed only when ``peer`` is a proxy of ours.
        proxies: The addresses of those.

    Returns:
        The address; of IPv6 the network of 64 bits, of which one machine has all.
    """
    found = peer or "local"
    if found in proxies:
        for text in reversed(",".join(forwarded).split(",")):
            one = _plain(text.strip())
            if one is None:
                break
            found = one
            if found not in proxies:
                break
    return _network(found)


def _plain(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def _network(text: str) -> str:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(found, ipaddress.IPv4Address):
        return text
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
