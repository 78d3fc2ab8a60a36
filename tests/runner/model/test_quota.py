"""Quotas at their edges: in all, on a day, at a time, and failures that cost nothing."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from runner.model.quota import Charge, QuotaUse, use
from runner.model.task import Quota

MIDNIGHT = datetime(2026, 5, 2, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def _use(quota: Quota, *charges: Charge, now: datetime = MIDNIGHT, extra: int = 0) -> QuotaUse:
    return use(quota, "alpha", extra, charges, now)


def test_a_day_is_that_of_utc_to_the_second() -> None:
    quota = Quota(per_day=1)
    last = Charge(MIDNIGHT - SECOND, scored=True)
    before = _use(quota, last, now=MIDNIGHT - SECOND)
    assert (before.left, before.left_in_all, before.next_free) == (0, 49, "at 2026-05-02 00:00 UTC")
    assert _use(quota, last).left == 1 and _use(quota, last).next_free == ""
    # A submission received at midnight is of the new day, until its last second.
    first = Charge(MIDNIGHT, open=True)
    assert _use(quota, first, now=MIDNIGHT + timedelta(days=1) - SECOND).left == 0
    assert _use(quota, first, now=MIDNIGHT + timedelta(days=1)).left == 1


def test_at_a_time_counts_what_waits_or_runs() -> None:
    quota = Quota(at_once=2)
    one = _use(quota, Charge(MIDNIGHT, open=True), Charge(MIDNIGHT, scored=True))
    assert (one.left, one.after(1).left) == (1, 0)
    assert one.after(1).next_free
    # One of whose runs another is still to be executed waits, though its place in all is used.
    assert _use(quota, *[Charge(MIDNIGHT, scored=True, open=True)] * 2).left == 0


def test_the_first_failures_cost_nothing_neither_in_all_nor_on_their_day() -> None:
    quota, failed = Quota(submissions=1, per_day=1, failures=2), Charge(MIDNIGHT, failed=True)
    assert (_use(quota, failed, failed).left, _use(quota, failed, failed).forgiven) == (1, 2)
    third = _use(quota, failed, failed, failed)
    assert (third.used, third.forgiven, third.left) == (1, 2, 0)
    # One that also has a score is no failure; one that may still get one is open.
    assert _use(quota, Charge(MIDNIGHT, scored=True, failed=True)).used == 1
    assert _use(quota, Charge(MIDNIGHT, failed=True, open=True)).open == 1
    assert _use(Quota(), Charge(MIDNIGHT, failed=True, open=True)).used == 1


def test_a_team_may_have_more_and_nothing_becomes_free_where_nothing_may() -> None:
    scored = Charge(MIDNIGHT, scored=True)
    assert _use(Quota(submissions=1, per_day=1, at_once=1), Charge(MIDNIGHT)).left == 1
    assert _use(Quota(submissions=1), scored, extra=1).left == 1
    assert _use(Quota(teams={"alpha": 3}), scored).limit == 3
    for quota in (Quota(submissions=1), Quota(per_day=0), Quota(at_once=0)):
        assert (_use(quota, scored).left, _use(quota, scored).next_free) == (0, "")


def test_all_counts_are_in_the_text() -> None:
    quota = Quota(per_day=3, at_once=2, failures=1)
    found = _use(quota, Charge(MIDNIGHT, open=True), Charge(MIDNIGHT, failed=True))
    assert re.findall(r"\d+", found.says) == ["0", "1", "2", "3", "1", "2", "1", "1"]


def test_four_that_failed_on_the_first_cases_are_one_failure() -> None:
    first, quota = Charge(MIDNIGHT, first=True), Quota(submissions=1, per_day=1)
    for number in range(1, 4):
        use = _use(quota, *[first] * number)
        assert (use.used, use.left, use.today) == (0, 1, 0)
    four = _use(quota, *[first] * 4)
    assert (four.used, four.left, four.today, four.first) == (1, 0, 1, 4)
    forgiving = _use(Quota(submissions=1, failures=1), *[first] * 8)
    assert (forgiving.used, forgiving.forgiven, forgiving.left) == (1, 1, 0)
    # What also failed or was scored elsewhere is no such submission; what may still be is open.
    assert _use(quota, Charge(MIDNIGHT, first=True, failed=True)).used == 1
    assert _use(quota, Charge(MIDNIGHT, first=True, scored=True)).first == 0
    assert _use(quota, Charge(MIDNIGHT, first=True, open=True)).open == 1
