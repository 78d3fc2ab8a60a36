"""Limits of the requests that are decided in a day, by sender.

The front has limits of its own, but it may be in an attacker's hands. Each decided request leaves an event for ever, so
the coordinator counts again: of each team, of each other account, and of all people without an account.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from runner.exchange.inbox import Refused, Request
from runner.model.clock import stamp
from runner.model.errors import RunnerError
from runner.work.handlers import HANDLERS

DAY_SECONDS = 86_400.0
LIMITS: Mapping[str, int] = {
    "submissions": 500,  # requests of a team with a file
    "other": 200,  # other requests of a team
    "staff": 2_000,  # requests of an organiser, assistant or assessor, who may review many runs
    "register": 1_000,  # of people without an account
    "identity": 1_000,  # of people who sign in by a provider
}
# More requests than the limit are answered, without an event, with the time from which requests are decided again; so many
# times the limit. Answers are files that stay: further requests get none.
UNKNOWN_ANSWERS = 10


@dataclass(frozen=True)
class Sender:
    """The requests that are counted together. ``name`` is empty for people without an account."""

    name: str
    group: str

    @classmethod
    def identify(cls, team: str | None, account: str, kind: str) -> Sender:
        """Return the sender of a request of that kind."""
        handler = HANDLERS.get(kind)
        if handler is not None and handler.strangers:
            return cls("", kind)
        if team is None:
            return cls(account, "staff")
        return cls(team, "submissions" if handler is not None and handler.takes_file else "other")


class DailyCounter:
    """Counts requests by sender, each once, for a day."""

    def __init__(self) -> None:
        self._times: dict[Sender, dict[str, float]] = defaultdict(dict)  # request ids, oldest first

    def add(self, sender: Sender, id: str, limit: int, *, age: float = 0.0) -> bool:
        """Count a request that came ``age`` seconds ago. False if ``limit`` others came in the last day."""
        times = self._times[sender]
        last_day = time.monotonic() - DAY_SECONDS
        while times and times[oldest := next(iter(times))] < last_day:
            del times[oldest]
        if id not in times:
            if len(times) >= limit:
                return False
            times[id] = time.monotonic() - age
        return True

    def wait_seconds(self, sender: Sender) -> float:
        """Return the seconds until the oldest request of a sender no longer counts."""
        oldest = next(iter(self._times[sender].values()), time.monotonic())
        return max(0.0, oldest + DAY_SECONDS - time.monotonic())


class DailyLimits:
    """The limits of all senders. ``limits`` is by the group of the sender."""

    def __init__(self, limits: Mapping[str, int] = LIMITS) -> None:
        self._limits = limits
        self._decided, self._answered = DailyCounter(), DailyCounter()

    def note(self, team: str | None, account: str, kind: str, id: str, age: float) -> None:
        """Count a request that was decided ``age`` seconds ago."""
        if age < DAY_SECONDS:
            sender = Sender.identify(team, account, kind)
            self._decided.add(sender, id, self._limits[sender.group], age=max(0.0, age))

    def refusal(self, request: Request, now: datetime) -> RunnerError | None:
        """Count a request. Return E106 if the limit of its sender is reached.

        Raises:
            Refused: The sender got enough of such answers.
        """
        sender = Sender.identify(request.team, request.account, request.kind)
        limit = self._limits[sender.group]
        if self._decided.add(sender, request.id, limit):
            return None
        if not self._answered.add(sender, request.id, limit if sender.name else UNKNOWN_ANSWERS * limit):
            raise Refused("too many requests of its sender came in a day")
        counted = {"register": "registrations", "identity": "sign-ins by a provider"}
        requests = counted.get(sender.group, "requests of your account")
        what = f"the limit of {limit} {requests} in 24 hours is reached"
        again = stamp(now + timedelta(seconds=self._decided.wait_seconds(sender) + 1))
        return RunnerError("E106", what, fix=f"come again after {again}")
