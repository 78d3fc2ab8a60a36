"""The database as such: its engine, what it remembers of the event log, and its errors in words for people."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from runner.model.config import Config
from runner.model.errors import PlatformError, disk_error
from runner.records.events import Position
from schemas import show

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

# The shape of the tables and the rules by which events become rows. Count up when either changes: a store of another number
# is made anew when it is opened.
RULES = "28"
BUSY_SECONDS = 30


def database_url(config: Config) -> str:
    """Where the store of this data directory is, as SQLAlchemy names it."""
    return config.database_url or f"sqlite:///{config.database}"


@dataclass(frozen=True)
class Recorded:
    """What a database says of itself, without being opened as a store.

    ``state``: ``none`` (there is no database), ``unusable`` (``why``), ``other`` (filled by another version of this
    program), or ``usable``. ``position`` is how far the log was when it was filled last; ``prefix``: see :meth:`Store.check`.
    """

    state: Literal["none", "unusable", "other", "usable"]
    position: Position = field(default_factory=Position)
    prefix: str | None = None
    why: str = ""


def read_recorded(config: Config) -> Recorded:
    """What the database of this data directory says of itself; nothing in it is changed, and nothing raised."""
    url = database_url(config)
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        return Recorded("none")
    engine = make_engine(url)
    try:
        with errors(engine), engine.connect() as connection, connection.begin():
            rules = rules_of(connection)
            if rules is None:
                return Recorded("none")
            state: Literal["usable", "other"] = "usable" if rules == RULES else "other"
            return Recorded(state, position_of(connection), prefix_of(connection))
    except (PlatformError, ValueError, TypeError) as error:
        return Recorded("unusable", why=error.why if isinstance(error, PlatformError) else str(error))
    finally:
        engine.dispose()


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Turn the write-ahead log on; a file system without shared memory keeps its journal.

    SQLite does not wait as ``busy_timeout`` says when two connections turn it on in a new database at the same moment: one of
    them is told at once that the database is locked. So we wait here. Raises sqlite3.OperationalError after ``BUSY_SECONDS``.
    """
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def make_engine(url: str) -> Engine:
    """The SQLAlchemy engine of a database, with the settings that SQLite needs.

    Raises E306 for an address that SQLAlchemy does not read or whose driver is not installed.
    """
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import ArgumentError

    try:
        engine = create_engine(url)
    except (ArgumentError, ModuleNotFoundError, ValueError) as error:
        raise _no_driver(url, error) from error
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "connect")
        def on_connect(connection: Any, _: object) -> None:
            connection.isolation_level = None  # BEGIN is ours, below
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
            cursor.execute("PRAGMA foreign_keys = ON")
            _write_ahead(cursor)
            cursor.execute("PRAGMA synchronous = NORMAL")  # the log is the truth: a lost tail is replayed
            cursor.close()

        @event.listens_for(engine, "begin")
        def on_begin(connection: Connection) -> None:
            writes = connection.get_execution_options().get("write")
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _no_driver(url: str, error: Exception) -> PlatformError:
    """The error for an address that leads to no database. The address may hold a password: only its scheme is named."""
    scheme = show(url.partition(":")[0], 40) if "://" in url else ""
    if isinstance(error, ModuleNotFoundError):
        why = f"{scheme} needs the Python package {show(error.name or '', 40)}, which is not installed."
        fix = f"install it where runner is installed: pip install {show(error.name or '', 40)}"
    else:
        why = (
            f"SQLAlchemy cannot use this address of {scheme}."
            if scheme
            else "It is no address of SQLAlchemy."
        )
        fix = "write RUNNER_DATABASE (in proctor.yaml: database) as sqlite:////folder/file or postgresql+psycopg://user:password@host/name"
    return PlatformError(
        "the database that RUNNER_DATABASE names cannot be used", why=why, fix=fix, code="E306"
    )


def make_tables(connection: Connection) -> None:
    """Make the tables anew and empty, in the transaction of ``connection``; tables that are not the store's stay."""
    from sqlalchemy import MetaData

    from runner.records.store.tables import metadata

    ours = {*metadata.tables, "alembic_version"}  # the last one is of earlier versions
    found = MetaData()
    found.reflect(connection, only=lambda name, _: name in ours)
    found.drop_all(connection)
    metadata.create_all(connection)


def position_of(connection: Connection) -> Position:
    """How far the log was when the store was filled last."""
    value = _remembered(connection, "position")
    return Position(**json.loads(value)) if value else Position()


def rules_of(connection: Connection) -> str | None:
    """The rules by which the store was filled (see :data:`RULES`); empty when it does not say, None without a store."""
    from sqlalchemy import inspect

    return (_remembered(connection, "rules") or "") if inspect(connection).has_table("meta") else None


def prefix_of(connection: Connection) -> str | None:
    """SHA-256 of the bytes of the log up to the position; None in a store of before."""
    return _remembered(connection, "prefix")


def _remembered(connection: Connection, key: str) -> str | None:
    from sqlalchemy import select

    from runner.records.store.tables import meta

    return connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar()


def remember(connection: Connection, position: Position, prefix: str) -> None:
    """Note down how far the store is, the SHA-256 of the log until there, and by which rules it was filled."""
    from runner.records.store.tables import meta

    text = json.dumps({"seq": position.seq, "hash": position.hash, "offset": position.offset})
    values = {"position": text, "prefix": prefix, "rules": RULES}
    connection.execute(meta.delete().where(meta.c.key.in_(tuple(values))))
    connection.execute(meta.insert(), [{"key": key, "value": value} for key, value in values.items()])


@contextmanager
def errors(engine: Engine | None = None) -> Iterator[None]:
    """Errors of the database as E306; a violated key stays what it is (it is handled where it can happen).

    ``engine``: whose; where its file lies says what is wrong.
    """
    from sqlalchemy.exc import DatabaseError, IntegrityError

    try:
        yield
    except IntegrityError:
        raise
    except DatabaseError as error:
        local = engine is not None and engine.dialect.name == "sqlite" and engine.url.database
        raise unusable(error.orig or error, Path(str(local)) if local else None) from error


def unusable(error: BaseException, database: Path | None = None) -> PlatformError:
    """The error (E306) for a database that cannot be used; ``database`` is the file of one of SQLite.

    SQLite says "disk I/O error" of a full disk and "unable to open database file" of a folder that cannot be written: what is
    so is looked up.
    """
    what = "the store cannot be used"
    if isinstance(error, OSError):
        return disk_error(what, error)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if database is not None and code in _OF_THE_DISK:
        found = errno.ENOSPC if code == sqlite3.SQLITE_FULL else _refusal(database)
        if found:
            return disk_error(what, OSError(found, str(error)), database.parent)
    why, fix = (
        f"{error}.",
        "runner doctor looks at the data directory; runner store rebuild makes the store again",
    )
    return PlatformError(what, why=why, fix=fix, code="E306")


_OF_THE_DISK = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
)
_LEAST = 256 * 1024  # bytes that SQLite needs beside a small database


def _refusal(database: Path) -> int:
    """Why a file cannot be written, as an ``errno``; 0 when it seems that it can."""
    folder = next(path for path in database.parents if path.exists())
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        return error.errno or 0
    if disk.f_flag & os.ST_RDONLY:
        return errno.EROFS
    files = [path for path in database.parent.glob(f"{database.name}*") if path.is_file()]
    if not os.access(folder, os.W_OK | os.X_OK) or not all(os.access(path, os.W_OK) for path in files):
        return errno.EACCES
    if disk.f_bavail * disk.f_frsize < _LEAST or (disk.f_files and not disk.f_favail):
        return errno.ENOSPC
    return 0
