"""Checks of the data directory: room, database, the log of events, and the clock against it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from runner.doctor.checks import DRIFT, GIB, Check, Status, one_line

if TYPE_CHECKING:
    from runner.model.config import Config

ROOM_FAIL, ROOM_CAUTION = (
    1 * GIB,
    5 * GIB,
)  # free bytes: what one image and its layers take; what a task takes


def disk_check(name: str, folder: Path, fix: str) -> Check:
    """The room left where ``folder`` lies (or will lie)."""
    try:
        free = shutil.disk_usage(next(p for p in (folder, *folder.parents) if p.exists())).free
    except OSError as error:
        return Check("FAIL", name, one_line(str(error)), fix)
    status: Status = "FAIL" if free < ROOM_FAIL else "CAUTION" if free < ROOM_CAUTION else "PASS"
    return Check(status, name, f"{free / GIB:.1f} GiB free", "" if status == "PASS" else fix)


def database_check(config: Config) -> Check:
    """Whether the data directory's file system can hold the database: SQLite's WAL needs working locks."""
    import sqlite3

    name = "database"
    if os.environ.get("RUNNER_DATABASE"):
        return Check("PASS", name, "RUNNER_DATABASE names one")
    folder = next(p for p in (config.home, *config.home.parents) if p.exists())
    if not os.access(folder, os.W_OK):
        return Check(
            "FAIL",
            name,
            f"{folder} cannot be written",
            "make it writable, or set RUNNER_HOME to another folder",
        )
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder) as scratch:
            path = Path(scratch) / "check.sqlite"
            first, second = sqlite3.connect(path, timeout=2), sqlite3.connect(path, timeout=2)
            try:
                mode = first.execute("PRAGMA journal_mode=WAL").fetchone()[0]
                first.execute("CREATE TABLE t (x)")
                first.execute("INSERT INTO t VALUES (1)")
                first.commit()
                rows = second.execute("SELECT count(*) FROM t").fetchone()[0]
            finally:
                first.close()
                second.close()
    except (OSError, sqlite3.Error) as error:
        return Check("FAIL", name, one_line(str(error)), "set RUNNER_HOME to a folder on a local disk")
    if mode != "wal" or rows != 1:
        return Check(
            "FAIL",
            name,
            f"SQLite falls back to journal mode {mode}",
            "set RUNNER_HOME to a folder on a local disk, not a network share",
        )
    return Check("PASS", name, "SQLite with a write-ahead log works in the data directory")


def records_check(config: Config) -> Check:
    """Whether the chain of the event log is whole and the database, if there is one, can be used.

    Files of the archive are not read: that takes long, and ``runner store verify`` does it. Raises E306 or E307.
    """
    from runner.records.events import EventLog
    from runner.records.store.connect import open_store

    events = EventLog(config.events).end().seq
    if config.database.exists():
        with open_store(config):
            pass
    return Check("PASS", "records", f"{events} events, unbroken; runner store verify also reads the archive")


def clock_check(config: Config, now: datetime) -> Check:
    """Whether time has gone forward since the last recorded event: deadlines hang on it."""
    last = _last_event_time(config.events)
    if last is not None and now < last - DRIFT:
        return Check(
            "FAIL",
            "clock",
            f"it is {now:%Y-%m-%d %H:%M} UTC here, before the last event ({last:%Y-%m-%d %H:%M})",
            "set the clock (timedatectl set-ntp true)",
        )
    if now.year < 2025:
        return Check(
            "FAIL", "clock", f"it is {now:%Y-%m-%d} here", "set the clock (timedatectl set-ntp true)"
        )
    return Check("PASS", "clock", f"{now:%Y-%m-%d %H:%M} UTC" + (", after the last event" if last else ""))


def _last_event_time(path: Path) -> datetime | None:
    """The time in the last whole line of the event log, None when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - 256 * 1024))
            lines = log.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            return datetime.fromisoformat(json.loads(line)["time"]).astimezone(UTC)
        except (ValueError, KeyError, TypeError):
            continue
    return None
