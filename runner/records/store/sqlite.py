"""The store in a file of SQLite: in WAL mode, with transactions that we begin ourselves."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from runner.model.errors import PlatformError, disk_error
from schemas.files import make_private

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

# Who is alone at a database: whoever plans and records runs, and the work process, for as long as it decides requests.
Role = Literal["coordinator", "runner work"]
# The objects of a schema, by kind and name, each with its definition.
Objects = Mapping[tuple[str, str], str]
BUSY_SECONDS = 30  # how long somebody waits for whoever else writes


class SQLite:
    """The default: a file in the data directory.

    ``reading``, ``supposing`` and ``writing`` are SQLAlchemy's options of a connection: whatever is read sees one unchanging state; what is
    supposed is rolled back, and may make temporary tables; whoever writes is alone at it.
    """

    reading: Mapping[str, Any] = {"begin": "BEGIN"}
    supposing: Mapping[str, Any] = {"begin": "BEGIN"}
    writing: Mapping[str, Any] = {"begin": "BEGIN IMMEDIATE"}

    def engine(self, url: URL) -> Engine:
        """The engine of a file; its folder is made. Raises E306 when it cannot be."""
        from sqlalchemy import create_engine, event

        if url.database:
            _make_folder(Path(url.database).parent)
        engine = create_engine(url)

        @event.listens_for(engine, "connect")
        def on_connect(connection: Any, _: object) -> None:
            connection.isolation_level = None  # BEGIN is ours, below
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
            cursor.execute("PRAGMA foreign_keys = ON")
            if cursor.execute("PRAGMA journal_mode").fetchone() == ("delete",):
                _write_ahead(str(url.database))
                cursor.execute("PRAGMA schema_version").fetchone()  # so that this connection sees it, too
            cursor.execute("PRAGMA synchronous = NORMAL")  # the log is the truth: a lost tail is replayed
            cursor.close()

        @event.listens_for(engine, "begin")
        def on_begin(connection: Connection) -> None:
            connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))

        return engine

    def writes_beside_readers(self, connection: Connection) -> bool:
        """In WAL mode, which a file system without shared memory does not have."""
        return connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"

    def exists(self, url: URL) -> bool:
        """Whether the file is there."""
        return Path(url.database or "").exists()

    def schema(self, connection: Connection) -> str:
        """SQLite's own name for what is not temporary."""
        return "main"

    def objects(self, engine: Engine) -> tuple[Objects, Objects]:
        """Return the objects of a new store, made in memory, and those of the file."""
        from sqlalchemy import create_engine

        from runner.records.store.tables import metadata

        fresh = create_engine("sqlite://")
        try:
            metadata.create_all(fresh)
            with fresh.connect() as new, engine.connect() as connection:
                return _objects(new), _objects(connection)
        finally:
            fresh.dispose()

    @contextmanager
    def anew(self, connection: Connection) -> Iterator[None]:
        """New tables in the place of the old ones, which readers see until the transaction has ended."""
        from sqlalchemy import MetaData

        from runner.records.store.tables import OURS, metadata

        found = MetaData()
        found.reflect(connection, only=lambda name, _: name in OURS)
        found.drop_all(connection)
        metadata.create_all(connection)
        yield

    def is_rolled_back(self, error: BaseException) -> bool:
        """True for every error of SQLite: it does not wait for the disk at a commit, so none comes after it."""
        return isinstance(getattr(error, "orig", None), sqlite3.Error)

    def unusable(self, error: BaseException, engine: Engine | None) -> PlatformError:
        """SQLite says "disk I/O error" of a full disk and "unable to open database file" of a folder that cannot be written:
        what is so is looked up."""
        return _unusable(error, engine.url.database if engine is not None else None)

    @contextmanager
    def alone(self, engine: Engine, role: Role) -> Iterator[int]:
        """The lock file beside the database is enough: no other machine can write here."""
        yield 0

    def check(self, connection: Connection, role: Role, number: int) -> None:
        """Nothing: a lock file is not lost."""


def _objects(connection: Connection) -> Objects:
    """Return what a schema holds, with its SQL. Names that begin with ``sqlite_`` are reserved by SQLite."""
    rows = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master")
    return {
        (kind, name): " ".join((text or "").split())
        for kind, name, text in rows
        if not name.startswith("sqlite_")
    }


def _unusable(error: BaseException, file: str | None) -> PlatformError:
    what, code = "the store cannot be used", getattr(error, "sqlite_errorcode", 0) & 0xFF
    if file and code in _OF_THE_DISK:
        found = errno.ENOSPC if code == sqlite3.SQLITE_FULL else _refusal(Path(file))
        if found:
            return disk_error(what, OSError(found, str(error)), Path(file).parent)
    fix = "runner doctor looks at the data directory; runner store rebuild makes the store again"
    return PlatformError(what, why=f"{error}.", fix=fix, code="E306")


def replace_file(fresh: Path, target: Path) -> None:
    """Copy ``fresh`` over ``target`` in one transaction, so that open readers and WAL files stay right.

    Renaming would leave the old WAL next to the new file, to be played into it. Only a target that SQLite
    itself refuses is taken out of the way by renaming. Raises E306.
    """
    try:
        source, old = sqlite3.connect(fresh), sqlite3.connect(target, timeout=BUSY_SECONDS)
        try:
            source.backup(old)
        finally:
            source.close()
            old.close()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise SQLite().unusable(error, None) from error
        remove_file(target)
        fresh.replace(target)


def remove_file(path: Path) -> None:
    """Remove a database with what SQLite keeps beside it; none need be there."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


_turning_on = threading.Lock()


def _write_ahead(database: str) -> None:
    """Turn the write-ahead log on in a new database; a file system without shared memory keeps its journal.

    SQLite does not wait as ``busy_timeout`` says when two connections turn it on at the same moment: one of them is told at once that the
    database is locked. So we wait here, each time with a connection that knows nothing of the last time: where two threads tried again with
    theirs, the file stayed locked now and then. Raises sqlite3.OperationalError after ``BUSY_SECONDS``.
    """
    end = time.monotonic() + BUSY_SECONDS
    with _turning_on:
        while True:
            with closing(sqlite3.connect(database, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
                try:
                    connection.execute("PRAGMA journal_mode = WAL").fetchall()
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                        raise
                else:
                    return
            time.sleep(0.01)


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


def _make_folder(folder: Path) -> None:
    try:
        make_private(folder)
    except OSError as error:
        raise disk_error("the store cannot be used", error) from error
