"""When a request counts as arrived: what a front says, within what can have been."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runner.model.clock import FixedClock, stamp
from runner.work.arrivals import OLDEST, SLACK, Arrivals, difference

NOW = datetime(2031, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def looks(home: Path, at: datetime) -> Arrivals:
    return Arrivals(home, FixedClock(at).now)


def test_an_honest_clock_is_believed_to_the_second(tmp_path: Path) -> None:
    looks(tmp_path, NOW - 10 * SECOND).look([])
    arrivals = looks(tmp_path, NOW)
    arrivals.look(["a"])
    for back in (0, 1, 10, 299):
        assert arrivals.counts("a", stamp(NOW - back * SECOND), "x") == NOW - back * SECOND


def test_nothing_arrives_later_than_it_was_seen_or_earlier_than_it_can_have_been_there(
    tmp_path: Path,
) -> None:
    """Work looked at 11:59:50 and it was not there; it is at 12:00:00. Between lies what a front may say."""
    last = NOW - 10 * SECOND
    looks(tmp_path, last).look([])
    arrivals = looks(tmp_path, NOW)
    arrivals.look(["a"])
    for said, counts in (
        (NOW + SECOND, NOW),
        (NOW + timedelta(days=300), NOW),
        (last - SLACK, last - SLACK),
        (last - SLACK - SECOND, last - SLACK),
        (NOW - timedelta(days=13), last - SLACK),
        (NOW - OLDEST - SECOND, NOW),
    ):
        assert arrivals.counts("a", stamp(said), "x") == counts, said
    assert arrivals.counts("a", "no time", "x") == NOW


def test_while_nobody_looked_the_front_is_believed_since_the_last_look(tmp_path: Path) -> None:
    looks(tmp_path, NOW - timedelta(hours=3)).look([])
    arrivals = looks(tmp_path, NOW)
    arrivals.look(["a"])
    assert arrivals.counts("a", stamp(NOW - timedelta(hours=2)), "x") == NOW - timedelta(hours=2)
    assert arrivals.counts("a", stamp(NOW - timedelta(hours=4)), "x") == NOW - timedelta(hours=3) - SLACK
    first = looks(tmp_path / "new", NOW)
    (tmp_path / "new").mkdir()
    first.look(["a"])
    assert first.counts("a", stamp(NOW - timedelta(days=13)), "x") == NOW - timedelta(days=13), (
        "nobody ever looked"
    )


def test_what_waits_keeps_its_bounds_over_a_restart(tmp_path: Path) -> None:
    looks(tmp_path, NOW - timedelta(hours=1)).look([])
    looks(tmp_path, NOW - timedelta(minutes=59)).look(["a"])
    for minutes in (58, 30, 0):
        looks(tmp_path, NOW - timedelta(minutes=minutes)).look(["a"])
    late = looks(tmp_path, NOW)
    assert late.counts("a", stamp(NOW - timedelta(minutes=60)), "x") == NOW - timedelta(minutes=60)
    assert late.counts("a", stamp(NOW), "x") == NOW - timedelta(minutes=59), "not later than it was seen"
    late.look([])
    assert looks(tmp_path, NOW).counts("a", stamp(NOW), "x") == NOW


def test_another_thing_under_an_id_that_was_seen_came_now(tmp_path: Path) -> None:
    """A front that puts something there in time, and the real thing later."""
    looks(tmp_path, NOW - timedelta(hours=2)).look([])
    early = looks(tmp_path, NOW - timedelta(hours=1))
    early.look(["a"])
    said = stamp(NOW - timedelta(hours=1))
    assert early.counts("a", said, "x") == NOW - timedelta(hours=1)
    early.look(["a"])
    for digest, counts in (("x", NOW - timedelta(hours=1)), ("y", NOW), ("x", NOW)):
        later = looks(tmp_path, NOW)
        later.look(["a"])
        assert later.counts("a", said, digest) == counts
        later.look(["a"])


def test_the_clock_of_this_machine_set_back_takes_nothing_from_anybody(tmp_path: Path) -> None:
    looks(tmp_path, NOW + timedelta(hours=1)).look([])
    arrivals = looks(tmp_path, NOW)
    arrivals.look(["a"])
    assert arrivals.counts("a", stamp(NOW - 2 * SECOND), "x") == NOW - 2 * SECOND
    assert arrivals.counts("a", stamp(NOW + timedelta(hours=1)), "x") == NOW


def test_what_was_brought_from_elsewhere_may_have_waited_there(tmp_path: Path) -> None:
    Arrivals(tmp_path, FixedClock(NOW - 10 * SECOND).now, brought=True).look([])
    arrivals = Arrivals(tmp_path, FixedClock(NOW).now, brought=True)
    arrivals.look(["a"])
    assert arrivals.counts("a", stamp(NOW - timedelta(hours=1)), "x") == NOW - timedelta(hours=1)
    assert arrivals.counts("a", stamp(NOW + timedelta(hours=1)), "x") == NOW


@pytest.mark.parametrize("text", ["", "{", "7", '{"last": 7, "between": {}}', '{"last": "x", "between": []}'])
def test_a_damaged_file_is_as_if_nobody_had_looked(tmp_path: Path, text: str) -> None:
    (tmp_path / "inbox-looks.json").write_text(text)
    arrivals = looks(tmp_path, NOW)
    arrivals.look(["a"])
    assert arrivals.counts("a", stamp(NOW - timedelta(days=1)), "x") == NOW - timedelta(days=1)


def test_a_difference_is_said_in_words() -> None:
    assert difference(NOW, stamp(NOW)) == ""
    assert "90 s later" in difference(NOW, stamp(NOW + 90 * SECOND))
    assert "90 s earlier" in difference(NOW, stamp(NOW - 90 * SECOND))
    assert difference(NOW, "?")
