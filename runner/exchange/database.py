"""The small databases of work and of the front: each a file of SQLite, or tables in a schema of its own in PostgreSQL.

One text of SQL serves both: ``?`` for values, ``ON CONFLICT``, ``rowid`` for the order in which rows came, ``DOUBLE PRECISION``. A
database is made, and brought up to date, by a list of changes: the first makes its tables, each later one is one more.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.files import make_private

if TYPE_CHECKING:
    from sqlalchemy import CursorResult, Engine

PATIENCE = 30  # seconds that somebody waits for whoever else writes
# A server that vanished is noticed within a minute: seconds, and of the last milliseconds.
_ALIVE: dict[str, Any] = {
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 40_000,
}
CONNECTING = 10  # seconds that a server has to answer
# Files that an address may name for the driver: who closes files to itself leaves these open.
FILES = ("passfile", "sslrootcert", "sslcert", "sslkey", "sslcrl")


class DatabaseError(Exception):
    """A database cannot be used, or refuses something; the text holds no password. ``damaged`` is a file that is no database."""

    def __init__(self, text: str, *, damaged: bool = False) -> None:
        super().__init__(text)
        self.damaged = damaged


class Rows:
    """What a statement gave: rows as tuples, all of them at once; ``rowcount`` is how many it changed."""

    def __init__(self, result: CursorResult[Any]) -> None:
        self.rowcount = result.rowcount
        self._rows: list[tuple[Any, ...]] = [*map(tuple, result)] if result.returns_rows else []

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row; None where there is none."""
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""
        return self._rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows, one after the other."""
        return iter(self._rows)


_UNREADABLE = "the address of the database cannot be read"
_BEGIN = "BEGIN IMMEDIATE"
_BEGIN_AT_SERVER = (
    "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('proctor small ' || current_schema(), 0))"
)


class Database:
    """An open database. ``with`` it is a transaction, alone with whoever else writes; a statement outside of one stands for itself.

    Args:
        at: The file, or the address of a server (``postgresql://…``).
        name: Of a server: the schema is that which comes first in the search path, and this name after it.

    Raises:
        DatabaseError: It cannot be used; from here on also by everything else that this object does.
    """

    def __init__(self, at: Path | str, name: str = "") -> None:
        self._file, self._depth = at if isinstance(at, Path) else None, 0
        engine = _file_engine(at) if isinstance(at, Path) else _server_engine(at, name)
        self._opened = None if self._file is None else self._file.stat()
        with self._errors():
            self._connection = engine.connect()

    @property
    def is_file(self) -> bool:
        """Whether it is a file of SQLite."""
        return self._file is not None

    def execute(self, text: str, values: Sequence[object] = ()) -> Rows:
        """Do what a statement says. Outside of a transaction a connection that was lost is made again once."""
        from sqlalchemy.exc import DBAPIError

        if not self.is_file:
            # Texts are compared byte by byte, as SQLite does, whatever collation the server has.
            if text.lstrip().startswith(("CREATE TABLE", "ALTER TABLE")):
                text = text.replace(" TEXT", ' TEXT COLLATE "C"')
            text = text.replace("%", "%%").replace("?", "%s")
        with self._errors():
            try:
                return Rows(self._connection.exec_driver_sql(text, tuple(values)))
            except DBAPIError as error:
                if self._depth or not error.connection_invalidated:
                    raise
            self._connection.rollback()
            return Rows(self._connection.exec_driver_sql(text, tuple(values)))

    def follow(self, changes: Sequence[str]) -> int:
        """Do those of the changes that were not done yet; returns how many had been, which a newer program may have made more."""
        with self:
            self.execute(
                "CREATE TABLE IF NOT EXISTS version (one INTEGER PRIMARY KEY, number INTEGER NOT NULL)"
            )
            done = int((self.execute("SELECT number FROM version").fetchone() or (0,))[0])
            for change in changes[done:]:
                for statement in filter(str.strip, change.split(";")):
                    self.execute(statement)
            if done < len(changes):
                if not self.is_file:
                    self._number_rows()
                query = "INSERT INTO version VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET number = excluded.number"
                self.execute(query, (len(changes),))
        return done

    def _number_rows(self) -> None:
        """Give the tables at a server a ``rowid``, which SQLite's have. It is the last column: INSERTs that follow a new one name theirs."""
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_name <> 'version'"
        for (name,) in self.execute(query):
            self.execute(
                f"ALTER TABLE {name} ADD COLUMN IF NOT EXISTS rowid BIGINT GENERATED ALWAYS AS IDENTITY"
            )

    def close(self) -> None:
        """Close it."""
        from sqlalchemy.exc import DBAPIError

        with suppress(DBAPIError):
            self._connection.close()

    def __enter__(self) -> Database:
        """Begin a transaction, or be a part of the one that was begun."""
        if not self._depth:
            try:
                self.execute(_BEGIN if self.is_file else _BEGIN_AT_SERVER)
                self._check_file()
            except BaseException:
                self._undo()  # it may have begun, and wait for its lock
                raise
        self._depth += 1
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """End it: what was done stays, unless something went wrong."""
        self._depth -= 1
        if self._depth:
            return
        if kind is not None:
            self._undo()
            return
        try:
            with self._errors():
                self._connection.commit()
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        from sqlalchemy.exc import DBAPIError

        with suppress(DBAPIError):
            self._connection.rollback()

    def _check_file(self) -> None:
        """Raise DatabaseError where the file was moved away since it was opened."""
        if self._file is None or self._opened is None:
            return
        if not self._file.exists() or not os.path.samestat(self._file.stat(), self._opened):
            raise DatabaseError(f"{self._file} is another file now than the one that was opened")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from sqlalchemy.exc import DBAPIError, ProgrammingError

        try:
            yield
        except DBAPIError as error:
            text = " ".join(str(error.orig).split())
            if self._file is not None:
                damaged = not isinstance(error.orig, sqlite3.OperationalError)
                raise DatabaseError(f"{self._file}: {text}", damaged=damaged) from error
            if isinstance(error, ProgrammingError) and getattr(error.orig, "sqlstate", None) is None:
                text = _UNREADABLE  # what the driver says of an address may hold a part of the password
            raise DatabaseError(text) from error


def _file_engine(path: Path) -> Engine:
    """The engine of a file of SQLite, for its owner alone. What is erased is overwritten."""
    from sqlalchemy import URL, NullPool, create_engine, event

    try:
        make_private(path.parent)
        path.touch(0o600)
    except OSError as error:
        raise DatabaseError(f"{path}: {error.strerror}") from error
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args={"timeout": PATIENCE},
    )

    @event.listens_for(engine, "connect")
    def on_connect(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")

    return engine


def _server_engine(address: str, name: str) -> Engine:
    """The engine of a schema of a database of PostgreSQL."""
    from sqlalchemy import NullPool, create_engine, event, make_url
    from sqlalchemy.exc import ArgumentError

    if find_spec("psycopg") is None:
        raise DatabaseError("its driver is not installed: pip install 'proctor-ir[postgres]'")
    rest = address.partition("://")[2]
    # With a second @ a part of a password would be taken for a host.
    if re.split("[/?]", rest, maxsplit=1)[0].count("@") > 1:
        raise DatabaseError(f"{_UNREADABLE}: write each @ of a password as %40")
    try:
        url = make_url(f"postgresql+psycopg://{rest}")
    except (ArgumentError, ValueError) as error:
        raise DatabaseError(_UNREADABLE) from error
    engine = create_engine(
        url,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args={
            "connect_timeout": CONNECTING,
            "application_name": "proctor",
            "prepare_threshold": None,
            **_ALIVE,
        },
    )

    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _: object) -> None:
        # Whoever vanished in the middle of a transaction lets its lock go within a minute.
        connection.execute(
            f"SET lock_timeout = '{PATIENCE}s'; SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; "
            "SET tcp_keepalives_count = 3"
        )
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('proctor schemas', 0))")
            query = (
                "SELECT s, quote_ident(s), to_regnamespace(quote_ident(s)) IS NOT NULL "
                "FROM (SELECT current_schema() || '_' || %s) AS one (s)"
            )
            schema, quoted, there = connection.execute(query, (name,)).fetchone()
            if schema is None:
                raise DatabaseError("the first schema of the search path of its database is not there")
            if not there:
                connection.execute(f"CREATE SCHEMA {quoted}")
        connection.execute(f"SET search_path TO {quoted}")

    return engine


def at_server(address: str) -> bool:
    """Whether an address is that of a server that can hold such a database."""
    return address.partition("+")[0].partition(":")[0] in ("postgresql", "postgres")


def files_of(address: str) -> list[Path]:
    """The files that are named in the address of a server, and those in which its driver looks for passwords and certificates."""
    from urllib.parse import parse_qs, urlsplit

    found = parse_qs(urlsplit(address).query)
    named = [Path(one) for name in FILES for one in found.get(name, [])]
    usual = [Path.home() / ".pgpass", Path.home() / ".postgresql"]
    return [path for path in (*named, *usual) if path.exists()]


def moved(file: Path, database: Database, changes: Sequence[str], *, more: bool = False) -> bool:
    """Put what a file holds into the database at a server that takes its place, and remove the file; False where there is none.

    Who waits for the file meanwhile finds it gone. ``more``: what the database has already stays as it is, else it must be new.

    Raises:
        DatabaseError: One of them cannot be used, or the database has rows already.
    """
    if not file.exists():
        return False
    before = Database(file)
    try:
        before.follow(changes)
        with before:
            with database:
                if database.follow(changes) and not more:
                    raise DatabaseError(
                        f"{file} is there, and the database that is named holds the same, too"
                    )
                copied(before, database)
            file.unlink()
    finally:
        before.close()
    return True


def copied(source: Database, target: Database) -> None:
    """Put all rows of a database into another of the same changes; one of the two is a file. What the other has already stays."""
    file = next(one for one in (source, target) if one.is_file)
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'version' ORDER BY rowid"
    with source, target:
        for name, made in file.execute(query):
            columns = ", ".join(row[1] for row in file.execute(f"PRAGMA table_info({name})"))
            order = "" if "WITHOUT ROWID" in made else " ORDER BY rowid"
            for row in source.execute(f"SELECT {columns} FROM {name}{order}"):  # noqa: S608  (our own tables)
                marks = ", ".join("?" * len(row))
                target.execute(f"INSERT INTO {name} ({columns}) VALUES ({marks}) ON CONFLICT DO NOTHING", row)  # noqa: S608
