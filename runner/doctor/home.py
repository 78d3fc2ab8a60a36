"""Checks of settings and of the data directory: free space, database, the log of events, and the clock against it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from runner.doctor.checks import DRIFT, GIB, Check, caution, failed, passed
from runner.model.config import wide_mode, wide_mode_text, without_secrets
from runner.model.errors import PlatformError

if TYPE_CHECKING:
    from runner.model.config import Config

# Free bytes: what one image and its layers take; what a task takes.
LEAST, ENOUGH = 1 * GIB, 5 * GIB


def disk_check(name: str, folder: Path, fix: str) -> Check:
    """The space left where ``folder`` lies (or will lie)."""
    try:
        free = shutil.disk_usage(next(p for p in (folder, *folder.parents) if p.exists())).free
    except OSError as error:
        return failed(name, str(error), fix)
    said = f"{free / GIB:.1f} GiB free"
    if free >= ENOUGH:
        return passed(name, said)
    return failed(name, said, fix) if free < LEAST else caution(name, said, fix)


def mode_check(config: Config) -> Check:
    """Check that only the owner of the data directory may enter it."""
    name, mode = "mode of the data directory", wide_mode(config.home)
    if mode is None:
        return passed(name, "only its owner may enter it, or it is not made yet")
    return caution(name, wide_mode_text(mode), f"chmod 700 {shlex.quote(str(config.home))}")


def settings_checks(config: Config) -> list[Check]:
    """Every setting with its value and where it comes from; passwords in addresses are left out."""
    from runner.tasks.folders import private_root

    values = {
        "root": str(config.root),
        "home": str(config.home),
        "private": str(private_root(config)),
        "truths": str(config.truths or config.home / "truths"),
        "web": str(config.exchange),
        "base": config.base_image,
        "engine_for": config.engine_for,
        "news": config.news,
        "bases": ", ".join(config.bases),
        "registries": ", ".join(config.registries),
        "engine": config.engine or "the docker client's, or our own",
        "database": _shown(config.database_url) if config.database_url else "SQLite in the data directory",
        "cluster": config.cluster or "none: software is executed on this machine",
        "artefacts": config.artefacts or "none",
        "certificates": str(config.certificates or "none"),
        "blinded_artefacts": config.blinded_artefacts or "none of its own",
        "evaluation_cluster": config.evaluation_cluster or "none: runs are evaluated on this machine",
        "evaluation_artefacts": config.evaluation_artefacts or "none",
        "evaluation_certificates": str(config.evaluation_certificates or "none"),
        "store_credentials": str(config.store_credentials or "none"),
    }
    return [
        passed(f"setting {name}", f"{without_secrets(values[name])} ({origin})")
        for name, origin in config.origins
    ]


def _shown(url: str) -> str:
    """The address of a database: its scheme, host and name."""
    from sqlalchemy import URL

    from runner.records.store.database import parse

    try:
        at = parse(url)
    except PlatformError:
        return "an address that cannot be used"
    return URL.create(at.drivername, host=at.host, port=at.port, database=at.database).render_as_string()


def plots_checks(config: Config) -> list[Check]:
    """Where work publishes pages from here: whether it can draw their plots."""
    from runner.views.plots.drawing import INSTALL, PACKAGES

    if not config.published.exists():
        return []
    if missing := [one for one in PACKAGES if find_spec(one) is None]:
        return [caution("plots", f"{' and '.join(missing)} not installed: pages have no plots", INSTALL)]
    return [passed("plots", "the packages that draw them are here")]


def database_check(config: Config) -> Check:
    """Whether the database that is named can be used, or the data directory's file system can hold SQLite's, whose WAL needs
    working locks. Raises E306."""
    import sqlite3

    name = "database"
    if config.database_url:
        return _named_check(name, config.database_url)
    folder = next(p for p in (config.home, *config.home.parents) if p.exists())
    if not os.access(folder, os.W_OK):
        fix = "make it writable, or set RUNNER_HOME to another folder"
        return failed(name, f"{folder} cannot be written", fix)
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder) as scratch:
            path = Path(scratch) / "check.sqlite"
            with closing(sqlite3.connect(path)) as first, closing(sqlite3.connect(path, timeout=2)) as second:
                mode = first.execute("PRAGMA journal_mode=WAL").fetchone()[0]
                first.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
                rows = second.execute("SELECT count(*) FROM t").fetchone()[0]
    except (OSError, sqlite3.Error) as error:
        return failed(name, str(error), "set RUNNER_HOME to a folder on a local disk")
    if mode != "wal" or rows != 1:
        wrong, fix = (
            f"SQLite falls back to journal mode {mode}",
            "set RUNNER_HOME to a folder on a local disk",
        )
        return failed(name, wrong, f"{fix}, not a network share")
    return passed(name, "SQLite with a write-ahead log works in the data directory")


def _named_check(name: str, url: str) -> Check:
    """Whether the database of an address can be used, and has what a store needs. Raises E306."""
    from runner.records.store.database import make_engine, reading
    from runner.records.store.postgres import examine

    engine = make_engine(url)
    if engine.dialect.name == "sqlite":
        return passed(name, "another file of SQLite is named")
    try:
        with reading(engine) as connection:
            version, lacks = examine(connection)
    finally:
        engine.dispose()
    if lacks:
        fix = "CREATE DATABASE proctor OWNER the role of RUNNER_DATABASE ENCODING 'UTF8'; docs/how-to/postgres.md"
        return failed(name, "; ".join(lacks), fix)
    return passed(name, f"PostgreSQL {version} answers, and the role may make the store")


def records_check(config: Config) -> Check:
    """Whether the chain of the event log is whole and the database, if there is one, can be used.

    Files of the archive are not read: that takes long, and ``runner store verify`` does it. Raises E306 or E307.
    """
    from runner.records.events import EventLog
    from runner.records.store.connect import open_store
    from runner.records.store.database import read_recorded

    events = EventLog(config.events).end().seq
    if read_recorded(config).state != "none":
        with open_store(config):
            pass
    return passed("records", f"{events} events, unbroken; runner store verify also reads the archive")


def clock_check(config: Config, now: datetime) -> Check:
    """Whether time has gone forward since the last recorded event: deadlines hang on it."""
    fix, last = "set the clock (timedatectl set-ntp true)", _last_event_time(config.events)
    if last is not None and now < last - DRIFT:
        late = f"it is {now:%Y-%m-%d %H:%M} UTC here, before the last event ({last:%Y-%m-%d %H:%M})"
        return failed("clock", late, fix)
    if now.year < 2025:
        return failed("clock", f"it is {now:%Y-%m-%d} here", fix)
    return passed("clock", f"{now:%Y-%m-%d %H:%M} UTC" + (", after the last event" if last else ""))


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
