"""Dates with their zones: what is read, what is refused, and the last moment that counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.model.dates import DateError, parse


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("2024-05-17 23:59 AoE", "2024-05-18 11:59"),
        ("2024-05-17 23:59 aoe", "2024-05-18 11:59"),
        ("2024-05-17 23:59 UTC-12", "2024-05-18 11:59"),
        ("2024-05-17 23:59 UTC", "2024-05-17 23:59"),
        ("2024-05-17T23:59Z", "2024-05-17 23:59"),
        ("2024-05-17T23:59:00Z", "2024-05-17 23:59:00"),
        ("2024-05-17 23:59 CEST", "2024-05-17 21:59"),
        ("2024-05-17 23:59 CET", "2024-05-17 22:59"),
        ("2024-05-17 23:59 +02:00", "2024-05-17 21:59"),
        ("2024-05-17 23:59+0530", "2024-05-17 18:29"),
        ("2024-05-17 23:59 Europe/Berlin", "2024-05-17 21:59"),
        ("2024-01-17 23:59 Europe/Berlin", "2024-01-17 22:59"),
        ("2024-12-31 23:59 AoE", "2025-01-01 11:59"),
        ("2024-02-29 12:00:01 PST", "2024-02-29 20:00:01"),
        ("2024-10-27 02:30 CEST", "2024-10-27 00:30"),
    ],
)
def test_what_is_read(text: str, begins: str) -> None:
    assert parse(text).at == utc(begins)


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-17 23:59",  # the zone is missing
        "2024-05-17",
        "2024-05-17 AoE",
        "2024-05-17 24:00 UTC",
        "2024-05-17 23:60 UTC",
        "2024-05-17 23:59:60 UTC",
        "2023-02-29 12:00 UTC",
        "17.5.2024 23:59 UTC",
        "2024-05-17 23:59 IST",  # several zones have this name
        "2024-05-17 23:59 CST",
        "2024-05-17 23:59 Mars/Olympus",
        "2024-05-17 23:59 ../../etc/passwd",
        "2024-05-17 23:59 +25:00",
        "2024-05-17 23:59:30.5 UTC",
        "0001-01-01 00:00 +14:00",
        "9999-12-31 23:59 AoE",
        "2024-03-31 02:30 Europe/Berlin",  # the clocks skip this hour
        "2024-10-27 02:30 Europe/Berlin",  # this hour comes twice
        "",
    ],
)
def test_other_texts_are_refused_with_a_fix(text: str) -> None:
    with pytest.raises(DateError) as caught:
        parse(text)
    assert caught.value.what and caught.value.fix


@pytest.mark.parametrize(
    ("text", "last", "after"),
    [
        ("2024-05-17 23:59 AoE", "2024-05-18 11:59:59.999999", "2024-05-18 12:00:00"),
        ("2024-05-17 23:59:00 AoE", "2024-05-18 11:59:00.999999", "2024-05-18 11:59:01"),
    ],
)
def test_a_deadline_admits_its_whole_minute_or_second(text: str, last: str, after: str) -> None:
    assert parse(text).admits(utc("2024-05-18 11:59:00")) and parse(text).admits(utc(last))
    assert not parse(text).admits(utc(after))


def test_an_opening_begins_at_its_first_moment() -> None:
    opens = parse("2024-03-04 00:00 CET")
    assert not opens.began(utc("2024-03-03 22:59:59.999999"))
    assert opens.began(utc("2024-03-03 23:00:00"))


def test_it_is_shown_in_its_own_zone_in_utc_and_here() -> None:
    berlin = timezone(timedelta(hours=2), "CEST")
    deadline = parse("2024-05-17 23:59 AoE")
    assert deadline.says(berlin) == "2024-05-17 23:59 AoE (2024-05-18 11:59 UTC, 2024-05-18 13:59 CEST here)"
    assert deadline.says(UTC) == "2024-05-17 23:59 AoE (2024-05-18 11:59 UTC here)"
    assert parse("2024-05-17 23:59 UTC").says(UTC) == "2024-05-17 23:59 UTC"
    assert parse("2024-05-17 23:59:30 UTC").own == "2024-05-17 23:59:30 UTC"


@given(st.text(max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    try:
        moment = parse(text)
    except DateError as error:
        assert error.what and error.fix
    else:
        assert moment.end > moment.at


@given(
    st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(9989, 1, 1)),
    st.integers(-12 * 4, 14 * 4),
)
def test_offsets_are_taken_off(wall: datetime, quarters: int) -> None:
    away = timedelta(minutes=15 * quarters)
    hours, minutes = divmod(abs(15 * quarters), 60)
    text = f"{wall:%Y-%m-%d %H:%M} {'-' if quarters < 0 else '+'}{hours:02}:{minutes:02}"
    wanted = wall.replace(second=0, microsecond=0, tzinfo=UTC) - away
    assert parse(text).at == wanted
    assert parse(parse(text).own) == parse(text)
