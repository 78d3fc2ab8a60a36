"""Dates of a shared task, each with the zone it was announced in.

A date is written as ``2024-05-17 23:59 AoE``: day, time, zone. The zone is never guessed. What is written to
the minute means the whole minute: a deadline at 23:59 admits what is received before the next minute begins.
What is written to the second means that second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo

EXAMPLE = "2024-05-17 23:59 AoE"
ZONES_FIX = "add one of: AoE, UTC, CET, CEST, EST, EDT, PST, PDT, +02:00, or a name such as Europe/Berlin"

# Abbreviations that mean one offset everywhere (hours from UTC). AoE is "anywhere on Earth", UTC-12.
_FIXED: dict[str, float] = {
    "AOE": -12,
    "UTC": 0,
    "GMT": 0,
    "Z": 0,
    "WET": 0,
    "WEST": 1,
    "CET": 1,
    "CEST": 2,
    "EET": 2,
    "EEST": 3,
    "EST": -5,
    "EDT": -4,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
    "JST": 9,
    "AEST": 10,
    "AEDT": 11,
    "NZST": 12,
    "NZDT": 13,
}
# Abbreviations that mean several zones of the world.
_AMBIGUOUS = {"CST", "CDT", "IST", "BST", "AST", "ADT", "SST", "GST", "ECT", "AMT", "MT", "ET", "CT", "PT"}
_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T]+([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?)?\s*(\S.*)?", re.ASCII
)
_OFFSET = re.compile(r"(?:UTC|GMT)?\s?([+-])([0-9]{1,2})(?::?([0-5][0-9]))?", re.ASCII | re.IGNORECASE)
_NAMED = re.compile(r"[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2}", re.ASCII)


class DateError(ValueError):
    """A text is no date: ``what`` is wrong with it and how to ``fix`` it."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix


@dataclass(frozen=True, order=True)
class ZonedTime:
    """A date as it was announced. Ordered by the instant it begins; ``seconds`` is how long it lasts (60 or 1)."""

    at: datetime  # in UTC
    seconds: int = 60
    zone: tzinfo = field(default=UTC, compare=False)
    label: str = field(default="UTC", compare=False)  # the zone as it was written

    @property
    def end(self) -> datetime:
        """The first instant after it, in UTC: what is received then is too late."""
        return self.at + timedelta(seconds=self.seconds)

    def admits(self, now: datetime) -> bool:
        """Whether what is received ``now`` keeps this deadline."""
        return now < self.end

    def began(self, now: datetime) -> bool:
        """Whether this date has come, as an opening."""
        return now >= self.at

    @property
    def own(self) -> str:
        """The date in the zone it was announced in, such as ``2024-05-17 23:59 AoE``."""
        return f"{self._in(self.zone)} {self.label}"

    @property
    def utc(self) -> str:
        """The date in UTC."""
        return f"{self._in(UTC)} UTC"

    def local(self, zone: tzinfo | None = None) -> str:
        """The date in this machine's zone (or ``zone``), with its name."""
        local = self.at.astimezone(zone)
        name = local.tzname() or ""
        return f"{self._in(local.tzinfo or UTC)} {name}".strip()

    def says(self, zone: tzinfo | None = None) -> str:
        """The date for people: in its own zone, in UTC and in local time, each where it differs."""
        here = self.local(zone)
        texts = [text for text in (self.utc, here) if text != self.own]
        rest = ", ".join(f"{text} here" if text == here else text for text in dict.fromkeys(texts))
        return f"{self.own} ({rest})" if rest else self.own

    def _in(self, zone: tzinfo) -> str:
        return self.at.astimezone(zone).strftime(f"%Y-%m-%d %H:%M{':%S' if self.seconds == 1 else ''}")


def parse(text: str) -> ZonedTime:
    """The date written as ``text``. Raises :class:`DateError` when it is none, or when its zone is missing or unclear."""
    found = _DATE.fullmatch(text.strip())
    if not found:
        raise DateError("this is not a date", f"write day, time and zone, such as {EXAMPLE}")
    year, month, day, hour, minute, second, zone = found.groups()
    if hour is None:
        raise DateError("the time of day is missing", f"write it to the minute, such as {EXAMPLE}")
    if not zone:
        raise DateError("the zone is missing", ZONES_FIX)
    if not 1970 <= int(year) <= 9990:
        raise DateError("the year is out of range", f"such as {EXAMPLE}")
    try:
        numbers = (int(year), int(month), int(day), int(hour), int(minute), int(second or 0))
        naive = datetime(*numbers)  # noqa: DTZ001 - the zone is found by the name beside it, below
    except ValueError as error:
        fix = (
            "midnight at the end of a day is 23:59 or 00:00 of the next"
            if hour == "24"
            else f"such as {EXAMPLE}"
        )
        raise DateError(f"there is no such date: {error}", fix) from None
    where, label = _zone(zone.strip())
    return ZonedTime(_instant(naive, where), 1 if second else 60, where, label)


def _zone(text: str) -> tuple[tzinfo, str]:
    upper = text.upper()
    if upper in _FIXED:
        label = {"AOE": "AoE", "Z": "UTC"}.get(upper, upper)
        return (UTC if _FIXED[upper] == 0 else timezone(timedelta(hours=_FIXED[upper]), label)), label
    if offset := _OFFSET.fullmatch(text):
        sign, hours, minutes = offset.groups()
        away = timedelta(hours=int(hours), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
        if abs(away) > timedelta(hours=14):
            raise DateError("no zone is that far from UTC", ZONES_FIX)
        label = f"UTC{sign}{int(hours):02}:{minutes or '00'}"
        return timezone(away, label), label
    if upper in _AMBIGUOUS:
        raise DateError(
            f"{upper} means several zones",
            "write the offset, such as +01:00, or a name such as Europe/Berlin",
        )
    if _NAMED.fullmatch(text):
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            return ZoneInfo(text), text
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise DateError("the zone is not known", ZONES_FIX)


def _instant(naive: datetime, zone: tzinfo) -> datetime:
    """The instant of a wall-clock time in UTC; a time that clocks skip or show twice is refused."""
    first, second = (naive.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first != second:
        # In a gap the earlier fold has the smaller offset, so that going there and back gives another time.
        skipped = first.astimezone(zone).replace(tzinfo=None) != naive
        what = "is skipped" if skipped else "comes twice"
        raise DateError(
            f"this time {what} there, when the clocks change",
            "write it in UTC or with an offset such as +02:00",
        )
    return first
