"""Asking again: which failures of an endpoint pass by themselves, how often they are tried, and after which pause."""

from __future__ import annotations

import email.utils
import sys
import time
from collections.abc import Mapping

from evaluator.findings import plain

PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds before the first retry; each next one is twice as long
LONGEST_WISH = 60.0  # seconds; an endpoint that wants a longer pause gets the usual one
CONNECT_SECONDS = 10.0  # for a connection; whoever does not take one by then is not there
CONNECT_TRIES = 3
TOLD_EVERY = 5.0  # seconds between lines about retries


class Patience:
    """How often a question is asked again, and what is said meanwhile. One for all questions of a client."""

    def __init__(self, who: str, retries: int) -> None:
        self.who, self.retries = who, retries
        self._told = float("-inf")

    def pause(
        self, tried: int, why: str, headers: Mapping[str, str], *, connecting: bool = False
    ) -> float | None:
        """Seconds to wait before the next try, after ``tried`` of them; None when it is given up.

        ``connecting``: nobody took the connection, which is tried :data:`CONNECT_TRIES` times at most.
        """
        most = min(self.retries + 1, CONNECT_TRIES) if connecting else self.retries + 1
        if tried >= most or headers.get("x-should-retry") == "false":
            return None
        wished = _wish(headers)
        seconds = wished if wished is not None else min(LONGEST_PAUSE, PAUSE * 2.0 ** (tried - 1))
        now = time.monotonic()
        if now - self._told >= TOLD_EVERY:
            self._told = now
            line = f"{self.who}: {plain(why, 120)}; asking again in {seconds:.1f} s ({tried} of {most} tries)"
            print(line, file=sys.stderr, flush=True)
        return seconds


def passing(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a refusal with this status may pass by itself."""
    return status in (408, 409, 429) or status >= 500 or headers.get("x-should-retry") == "true"


def _wish(headers: Mapping[str, str]) -> float | None:
    """The pause in seconds that an endpoint asks for, where it is a sensible one."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        else:
            seconds = float(headers["retry-after"])
    except KeyError:
        return None
    except ValueError:
        parsed = email.utils.parsedate_tz(headers.get("retry-after", ""))
        if parsed is None:
            return None
        try:
            seconds = email.utils.mktime_tz(parsed) - time.time()
        except (ValueError, OverflowError, OSError):
            return None
    return seconds if 0 < seconds <= LONGEST_WISH else None
