"""How often somebody may, and how much of a team may be there at a time.

How often: buckets in memory, bounded, by address and by token. They may be lost, and fill up again by themselves.

A bucket holds so many calls and is filled at an even rate; who finds it empty is told in how many seconds to come again. Right
tokens are never refused because others tried wrong ones: only what was refused counts against a token's id.

How much: :class:`Room` alone counts it, for what is refused and for what a team is told.

Numbers in requests are read here, too, within their bounds.
"""

from __future__ import annotations

import ipaddress
import math
import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from runner.exchange.inbox import Inbox, Ready, Refused, Request, answered, id_of
from runner.model.limits import GIB, in_units
from runner.web.uploads import Uploads

HAND_INS = ("run-file", "software")  # kinds of requests that hand something in
# Requests of people who have no account yet, by kind: how all of a kind are called together, which is no name of a team.
STRANGE = {
    "register": "registrations of people without an account",
    "identity": "sign-ins by a provider",
}
NOBODY = ""  # whose registration it is, for the front's own notes
_ALL = 10_000_000  # of the inbox everything is counted
MOST = 20_000  # buckets that are kept; of more, those that were asked longest ago are forgotten
MAX_DIGITS = 18  # the number fits into 64 bits, and int() takes no time
_DIGITS = re.compile(rf"[0-9]{{1,{MAX_DIGITS}}}")


@dataclass(frozen=True)
class Rate:
    """``burst`` calls at once, and then ``each`` second so many."""

    burst: float
    each: float


STRANGERS = Rate(100, 1.0)  # by address: what people send who are not signed in, and wrong tokens
WRONG = Rate(10, 0.1)  # by id of a token: wrong secrets of it
REGISTERING = Rate(10, 1 / 60)  # by address: registrations that are taken
SENDING = Rate(300, 5.0)  # by token: what is sent with it
# By team and kind of request, of what hands nothing in: each leaves an event, an answer and a line of the front's for ever.
ASKING = Rate(100, 1 / 60)


@dataclass(frozen=True)
class Waiting:
    """What of a team may wait to be decided at a time, and how many files it may be sending in forms (each is held on the disk of
    the front until it is whole); ``strangers``: the registrations of all people without an account, and as many sign-ins by a provider."""

    requests: int = 100  # hand-ins
    size: int = 48 * GIB  # bytes of their files
    others: int = 100  # requests of other kinds
    strangers: int = 500
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
        return f"{self._shown(self.used)} of {self._shown(self.most)}"

    @property
    def free(self) -> str:
        """How much may still come: ``14 of 16``; empty where nothing may."""
        left = self.most - self.used
        return f"{self._shown(left)} of {self._shown(self.most)}" if left > 0 else ""

    def _shown(self, count: int) -> str:
        return in_units(count) if self.unit == "bytes" else str(count)


class NoRoom(Exception):
    """A request that is not taken now; the text says which bound it is, and ``wait`` in how many seconds to come again."""

    def __init__(self, why: str, wait: int = 60) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass(frozen=True)
class _Kept:
    """What counts of a request in the inbox: whose it is, whether it hands something in, and the bytes of its file."""

    who: str
    hands_in: bool
    size: int

    @classmethod
    def of(cls, request: Request) -> _Kept:
        return cls(_whose(request), request.kind in HAND_INS, request.size)


class Room:
    """What each team has on its way and waiting, and the only way into the inbox. ``forms`` counts the files that teams are sending in forms.

    What waits is what lies in the inbox: of teams by team, of others who are signed in by account, of strangers together, those who
    register apart from those who sign in by a provider. Hand-ins and other requests have a bound each, so that a team whose hand-ins wait can still withdraw one, and replace a token.
    """

    def __init__(
        self, published: Path, inbox: Inbox, uploads: Uploads, most: Waiting, limits: Limits | None = None
    ) -> None:
        self._published, self._inbox, self._uploads, self._most = published, inbox, uploads, most
        self._limits = Limits() if limits is None else limits
        self._lock = threading.Lock()
        self._known: dict[str, _Kept] = {}  # by name, of what lies in the inbox
        self._coming: dict[str, _Kept] = {}  # by id, what is being put there
        self.forms: Counter[str | None] = Counter()

    def put(self, request: Request, key: str, payload: BinaryIO | Ready | None = None) -> Request:
        """Put a request into the inbox, where it has room; one that waits there already is not put there again.

        Args:
            request: The wish.
            key: Of the token that its sender signed in with.
            payload: As :meth:`Inbox.put` takes it.

        Returns:
            The request as it was written.

        Raises:
            NoRoom: So many wait, or were sent, that it is not taken.
            Refused: It is larger than work would take.
            OSError: The disk refused it.
        """
        mine = _Kept.of(request)
        with self._lock:
            if request.id in self._coming or any(name.endswith(request.id) for name in self._look()):
                return request
            self._check(mine)
            if not mine.hands_in and request.team and (wait := self._sent_often(request)):
                raise NoRoom(f"Your team asked for this very often: try again in {wait} seconds.", wait)
            self._coming[request.id] = mine
        try:
            return self._inbox.put(request, key, payload)
        finally:
            with self._lock:
                self._coming.pop(request.id, None)

    def check(self, team: str | None) -> None:
        """Raise NoRoom where a hand-in of a team has none, before it is sent; OSError."""
        with self._lock:
            self._look()
            self._check(_Kept(str(team), True, 0))

    def waiting(self, team: str, *, hand_ins: bool = True) -> tuple[int, int]:
        """How many hand-ins (or other requests) of a team wait to be decided, and the bytes of their files. Raises OSError."""
        with self._lock:
            self._look()
            return self._waiting(team, hand_ins)

    def bounds(self, team: str) -> Iterator[Bound]:
        """Every bound of a team. Raises OSError."""
        most, of = self._most, self._uploads.bounds
        (requests, size), uploads = self.waiting(team), self._uploads.of(team)
        others, _ = self.waiting(team, hand_ins=False)
        announced = sum(one.size for one in uploads)
        yield Bound("waiting", "hand-ins that wait to be decided", requests, most.requests, "count")
        yield Bound("waiting-bytes", "their files", size, most.size, "bytes")
        yield Bound("waiting-others", "other requests that wait to be decided", others, most.others, "count")
        yield Bound("forms", "files on their way in forms", self.forms[team], most.forms, "count")
        yield Bound("uploads", "uploads that are not handed in", len(uploads), of.open, "count")
        yield Bound("uploads-bytes", "what was announced of them", announced, of.team, "bytes")
        largest = max((one.size for one in uploads), default=0)
        yield Bound("upload-bytes", "the largest of them", largest, of.each, "bytes")

    def _look(self) -> Iterable[str]:
        """The names of what lies in the inbox, of which it is known now what counts."""
        there = [name for name, _ in self._inbox.waiting(_ALL)]
        found = {name: self._known.get(name) or self._read(name) for name in there}
        self._known = {name: one for name, one in found.items() if one is not None}
        return there

    def _read(self, name: str) -> _Kept | None:
        try:
            return _Kept.of(self._inbox.read(name))
        except (Refused, OSError):  # work has taken it just now
            return None

    def _check(self, mine: _Kept) -> None:
        """Raise NoRoom where another such request has none."""
        most, (count, size) = self._most, self._waiting(mine.who, mine.hands_in)
        if mine.who in STRANGE.values():
            bound, what = most.strangers, mine.who
        elif mine.hands_in:
            bound, what = most.requests, "hand-ins of your team"
        else:
            bound, what = most.others, "requests of yours"
        if count >= bound:
            raise NoRoom(f"{bound} {what} wait to be looked at: send the next when some are decided.")
        if mine.hands_in and size >= most.size:
            why = f"Hand-ins of {in_units(size)} of your team wait to be looked at"
            raise NoRoom(f"{why}: send the next when some are decided.")

    def _waiting(self, who: str, hand_ins: bool) -> tuple[int, int]:
        found = [
            one.size
            for name, one in self._known.items()
            if (one.who, one.hands_in) == (who, hand_ins)
            and id_of(name) not in self._coming
            and answered(self._published, id_of(name)) is None
        ]
        found += [one.size for one in self._coming.values() if (one.who, one.hands_in) == (who, hand_ins)]
        return len(found), sum(found)

    def _sent_often(self, request: Request) -> int:
        return self._limits.take(f"asking {request.kind}", str(request.team), ASKING)


def _whose(request: Request) -> str:
    """Whose a request is: a team's, an account's (no name of a team has a blank), or one of :data:`STRANGE`."""
    return STRANGE.get(request.kind) or request.team or f"account {request.account}"


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


def whole_number(text: str, least: int = 0, most: int = 10**MAX_DIGITS - 1) -> int | None:
    """Return the whole number that a text is; None for any other text, and outside the bounds.

    Only the ASCII digits count: ``int()`` also takes signs, blanks, underscores and the digits of other scripts, and raises
    ValueError above 4,300 digits.

    Args:
        text: From a query, a header, a path or a form.
        least: The smallest number.
        most: The largest number.
    """
    if not _DIGITS.fullmatch(text):
        return None
    number = int(text)
    return number if least <= number <= most else None


def content_length(headers: Mapping[str, str]) -> int:
    """Return the length of a body as the head of the request announces it; 0 where it does not."""
    return whole_number(headers.get("content-length", "")) or 0
