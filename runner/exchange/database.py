"""The small databases of work and of the front: each a file of SQLite, or tables in a schema of its own in PostgreSQL.

One text of SQL serves both: ``?`` for values, ``ON CONFLICT``, ``rowid`` for the order in which rows came, ``DOUBLE PRECISION``. A
database is made, and brought up to date, by a list of changes: the first makes its tables, each later one is one more.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from schemas.files import make_private

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

    def __init__(self, cursor: Any) -> None:
        self.rowcount: int = cursor.rowcount
        self._rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row; None where there is none."""
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""
        return self._rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows, one after the other."""
        return iter(self._rows)


class _Kind(Protocol):
    begin: str

    def connect(self) -> Any: ...
    def errors(self) -> type[Exception]: ...
    def told(self, error: Exception) -> DatabaseError: ...
    def check(self, connection: Any) -> None: ...
    def lost(self, connection: Any) -> bool: ...
    def run(self, connection: Any, text: str, values: Sequence[object]) -> Rows: ...
    def version(self, database: Database) -> int: ...
    def made(self, database: Database, version: int) -> None: ...


class Database:
    """An open database. ``with`` it is a transaction, alone with whoever else writes; a statement outside of one stands for itself.

    Args:
        at: The file, or the address of a server (``postgresql://…``).
        name: Of a server: the schema is that which comes first in the search path, and this name after it.

    Raises:
        DatabaseError: It cannot be used; from here on also by everything else that this object does.
    """

    def __init__(self, at: Path | str, name: str = "") -> None:
        self._kind: _Kind = _File(at) if isinstance(at, Path) else _Server(at, name)
        self.is_file = isinstance(at, Path)
        self._depth = 0
        self._connection = self._connected()

    def execute(self, text: str, values: Sequence[object] = ()) -> Rows:
        """Do what a statement says. Outside of a transaction a connection that was lost is made again once."""
        try:
            return self._kind.run(self._connection, text, values)
        except self._kind.errors() as error:
            if self._depth or not self._kind.lost(self._connection):
                raise self._kind.told(error) from error
        self._connection = self._connected()
        try:
            return self._kind.run(self._connection, text, values)
        except self._kind.errors() as error:
            raise self._kind.told(error) from error

    def follow(self, changes: Sequence[str]) -> int:
        """Do those of the changes that were not done yet; returns how many had been, which a newer program may have made more."""
        with self:
            done = self._kind.version(self)
            for change in changes[done:]:
                for statement in filter(str.strip, change.split(";")):
                    self.execute(statement)
            if done < len(changes):
                self._kind.made(self, len(changes))
        return done

    def close(self) -> None:
        """Close it."""
        with suppress(self._kind.errors()):
            self._connection.close()

    def __enter__(self) -> Database:
        """Begin a transaction, or be a part of the one that was begun."""
        if not self._depth:
            try:
                self.execute(self._kind.begin)
                self._kind.check(self._connection)
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
        self._depth = 1  # what is lost now is not done once more by a connection of its own
        try:
            self.execute("COMMIT")
        except BaseException:
            self._undo()
            raise
        finally:
            self._depth = 0

    def _undo(self) -> None:
        with suppress(self._kind.errors()):
            self._connection.execute("ROLLBACK")

    def _connected(self) -> Any:
        try:
            return self._kind.connect()
        except self._kind.errors() as error:
            raise self._kind.told(error) from error


class _File:
    """A file of SQLite, for its owner alone. What is erased is overwritten."""

    begin = "BEGIN IMMEDIATE"

    def __init__(self, path: Path) -> None:
        self._path = path

    def connect(self) -> sqlite3.Connection:
        try:
            make_private(self._path.parent)
            self._path.touch(0o600)
            self._opened = self._path.stat()
        except OSError as error:
            raise DatabaseError(f"{self._path}: {error.strerror}") from error
        connection = sqlite3.connect(
            self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def errors(self) -> type[Exception]:
        return sqlite3.Error

    def told(self, error: Exception) -> DatabaseError:
        none = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        return DatabaseError(f"{self._path}: {error}", damaged=none)

    def check(self, connection: Any) -> None:
        """Within a transaction: raise DatabaseError where the file was moved away since it was opened."""
        if not self._path.exists() or not os.path.samestat(self._path.stat(), self._opened):
            raise DatabaseError(f"{self._path} is another file now than the one that was opened")

    def lost(self, connection: Any) -> bool:
        return False

    def run(self, connection: Any, text: str, values: Sequence[object]) -> Rows:
        return Rows(connection.execute(text, values))

    def version(self, database: Database) -> int:
        return int((database.execute("PRAGMA user_version").fetchone() or (0,))[0])

    def made(self, database: Database, version: int) -> None:
        database.execute(f"PRAGMA user_version = {version}")


class _Server:
    """A schema of a database of PostgreSQL."""

    begin = "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('proctor small ' || current_schema(), 0))"

    def __init__(self, url: str, name: str) -> None:
        if find_spec("psycopg") is None:
            raise DatabaseError("its driver is not installed: pip install 'proctor-ir[postgres]'")
        rest = url.partition("://")[2]
        if (
            re.split("[/?]", rest, maxsplit=1)[0].count("@") > 1
        ):  # a part of a password would be taken for a host
            raise DatabaseError(
                "the address of the database cannot be read: write each @ of a password as %40"
            )
        self._url, self._name = f"postgresql://{rest}", name

    def connect(self) -> Any:
        import psycopg

        try:
            found = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=CONNECTING,
                application_name="proctor",
                prepare_threshold=None,
                **_ALIVE,
            )
        except (
            psycopg.ProgrammingError
        ) as error:  # what it says of an address may hold a part of the password
            raise DatabaseError("the address of the database cannot be read") from error
        try:
            # Whoever vanished in the middle of a transaction lets its lock go within a minute.
            found.execute(
                f"SET lock_timeout = '{PATIENCE}s'; SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; "
                "SET tcp_keepalives_count = 3"
            )
            with found.transaction():
                found.execute("SELECT pg_advisory_xact_lock(hashtextextended('proctor schemas', 0))")
                query = (
                    "SELECT s, quote_ident(s), to_regnamespace(quote_ident(s)) IS NOT NULL "
                    "FROM (SELECT current_schema() || '_' || %s) AS one (s)"
                )
                schema, quoted, there = found.execute(query, (self._name,)).fetchone() or (None, None, False)
                if schema is None:
                    raise DatabaseError("the first schema of the search path of its database is not there")
                if not there:
                    found.execute(f"CREATE SCHEMA {quoted}".encode())
            found.execute(f"SET search_path TO {quoted}".encode())
        except BaseException:
            found.close()
            raise
        return found

    def errors(self) -> type[Exception]:
        import psycopg

        return psycopg.Error

    def told(self, error: Exception) -> DatabaseError:
        return DatabaseError(" ".join(str(error).split()))

    def check(self, connection: Any) -> None:
        pass

    def lost(self, connection: Any) -> bool:
        return bool(connection.closed)

    def run(self, connection: Any, text: str, values: Sequence[object]) -> Rows:
        # Texts are compared byte by byte, as SQLite does, whatever collation the server has.
        if text.lstrip().startswith(("CREATE TABLE", "ALTER TABLE")):
            text = text.replace(" TEXT", ' TEXT COLLATE "C"')
        if not values:  # as it stands, also several statements at once
            return Rows(connection.execute(text))
        return Rows(connection.execute(text.replace("%", "%%").replace("?", "%s"), values))

    def version(self, database: Database) -> int:
        database.execute("CREATE TABLE IF NOT EXISTS version (number INTEGER NOT NULL)")
        return int((database.execute("SELECT number FROM version").fetchone() or (0,))[0])

    def made(self, database: Database, version: int) -> None:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        for (name,) in database.execute(query):
            # SQLite has it unasked. It stands behind the columns of before: whoever adds a column names the columns in INSERTs.
            database.execute(
                f"ALTER TABLE {name} ADD COLUMN IF NOT EXISTS rowid BIGINT GENERATED ALWAYS AS IDENTITY"
            )
        database.execute("DELETE FROM version")
        database.execute("INSERT INTO version VALUES (?)", (version,))


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
    query = (
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    )
    with source, target:
        for name, made in file.execute(query):
            columns = ", ".join(row[1] for row in file.execute(f"PRAGMA table_info({name})"))
            order = "" if "WITHOUT ROWID" in made else " ORDER BY rowid"
            for row in source.execute(f"SELECT {columns} FROM {name}{order}"):  # noqa: S608  (our own tables)
                marks = ", ".join("?" * len(row))
                target.execute(f"INSERT INTO {name} ({columns}) VALUES ({marks}) ON CONFLICT DO NOTHING", row)  # noqa: S608
