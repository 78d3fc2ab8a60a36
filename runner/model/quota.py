"""How much a team may hand in: what its submissions cost, what is left, and when the next one is free."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.model.task import Quota


# So many submissions that failed on the first cases count as one failure: each used a little of the machine.
FIRST_CASES = 4


@dataclass(frozen=True)
class Charge:
    """One submission as a quota sees it: when it was received, whether it has a score, whether it failed by its own fault,
    (``first``: on the first cases of a dataset, and nowhere else) and whether a run of it waits or is executed."""

    received: datetime
    scored: bool = False
    failed: bool = False
    first: bool = False
    open: bool = False


@dataclass(frozen=True)
class QuotaUse:
    """A team's quota for a task or a dataset: ``used`` for good, ``open`` for submissions that may still cost, ``left``.

    ``today`` counts those received on the day of the question (UTC), ``waiting`` those that wait or run, ``forgiven`` the
    failures that cost nothing, ``first`` the submissions that failed on the first cases.
    A bound that is None is none.
    """

    limit: int
    used: int
    open: int
    per_day: int | None = None
    today: int = 0
    at_once: int | None = None
    waiting: int = 0
    failures: int = 0
    forgiven: int = 0
    first: int = 0
    tomorrow: datetime | None = None  # when the next day begins, in UTC

    @property
    def left_today(self) -> int:
        """How many more may be handed in on this day, by the bound of the day alone."""
        return self.limit if self.per_day is None else max(0, self.per_day - self.today)

    @property
    def left_at_once(self) -> int:
        """How many more may wait or run, by that bound alone."""
        return self.limit if self.at_once is None else max(0, self.at_once - self.waiting)

    @property
    def left_in_all(self) -> int:
        """How many more may be handed in ever."""
        return max(0, self.limit - self.used - self.open)

    @property
    def left(self) -> int:
        """How many more may be handed in now."""
        return min(self.left_in_all, self.left_today, self.left_at_once)

    def after(self, more: int) -> QuotaUse:
        """The quota were ``more`` submissions received now."""
        waiting = self.waiting + more
        return replace(self, open=self.open + more, today=self.today + more, waiting=waiting)

    @property
    def says(self) -> str:
        """What is used and left, for people."""
        waiting = f", {self.open:,} still open" if self.open else ""
        texts = [f"{self.used:,} used{waiting}"]
        if self.per_day is not None:
            texts.append(f"{self.left_today:,} of {self.per_day:,} left today")
        if self.at_once is not None:
            texts.append(f"{self.waiting:,} of {self.at_once:,} wait or run")
        if self.failures:
            texts.append(f"{self.forgiven:,} of {self.failures:,} failures cost nothing")
        if self.first:
            texts.append(f"{self.first:,} failed on the first cases ({FIRST_CASES} count as one failure)")
        return "; ".join(texts)

    @property
    def next_free(self) -> str:
        """When the next submission may be handed in, as the end of a sentence; empty when now, or never by itself."""
        if self.left or not self.left_in_all:
            return ""
        found = [f"at {self.tomorrow:%Y-%m-%d %H:%M} UTC"] if not self.left_today and self.tomorrow else []
        if not self.left_at_once:
            found.append("once one that waits or runs is settled")
        return " and ".join(found) if self.per_day != 0 and self.at_once != 0 else ""

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        facts = {name: value for name, value in vars(self).items() if name != "tomorrow"}
        return {**facts, "left": self.left, "next_free": self.next_free}


def use(quota: Quota, team: str, extra: int, charges: Iterable[Charge], now: datetime) -> QuotaUse:
    """What ``team`` has used of a quota.

    A submission costs once it is scored or has failed by its own fault; the first failures cost nothing, as many as the quota
    forgives. Of those that failed on the first cases alone every fourth is such a failure. One that may still cost is open, so
    that nobody hands in more by being quick. The day is that of UTC.

    Args:
        quota: The rules.
        team: Whose it is: it may have a number of its own.
        extra: How many more submissions it was given by events.
        charges: Its submissions, in the order of registration.
        now: When it is asked.
    """
    used = open_ = today = waiting = forgiven = first = 0
    day = now.astimezone(UTC).date()
    for charge in charges:
        waiting += charge.open
        still = charge.open and not charge.scored and not (charge.failed and not quota.failures)
        failed = charge.failed
        if charge.first and not (still or charge.scored or failed):
            first += 1
            failed = first % FIRST_CASES == 0
        if not still and failed and not charge.scored and forgiven < quota.failures:
            forgiven += 1
            continue
        costs = charge.scored or failed or still
        used, open_ = used + (costs and not still), open_ + still
        today += costs and charge.received.astimezone(UTC).date() == day
    return QuotaUse(
        quota.teams.get(team, quota.submissions) + extra,
        used,
        open_,
        quota.per_day,
        today,
        quota.at_once,
        waiting,
        quota.failures,
        forgiven,
        first,
        datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1),
    )
