"""How often somebody may: buckets in memory, bounded, by address and by token. They may be lost, and fill up again by themselves.

A bucket holds so many calls and is filled at an even rate; who finds it empty is told in how many seconds to come again. Right
tokens are never refused because others tried wrong ones: only what was refused counts against a token's id.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
