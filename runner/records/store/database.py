"""The database as such: its engine, what it remembers of the event log, and its errors in words for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from runner.model.config import Config
from runner.model.errors import PlatformError
from runner.records.events import Position
from runner.records.store.postgres import DRIVER, PostgreSQL
from runner.records.store.sqlite import SQLite
from schemas import show

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

# The shape of the tables and the rules by which events become rows. Count up when either changes: a store of another number
# is made anew when it is opened.
RULES = "30"
Backend = SQLite | PostgreSQL
_BACKENDS: Mapping[str, Backend] = {"sqlite": SQLite(), "postgresql": PostgreSQL()}
_DRIVERS = ("sqlite", "sqlite+pysqlite", "postgresql", DRIVER)


def database_url(config: Config) -> str:
    """Where the store of this data directory is, as SQLAlchemy names it."""
    return config.database_url or f"sqlite:///{config.database}"


@dataclass(frozen=True)
class Recorded:
    """What a database says of itself, without being opened as a store.

    ``state``: ``none`` (there is no store), ``unusable`` (``why``), ``other`` (filled by other ``rules`` than :data:`RULES`),
    or ``usable``. ``position`` is how far the log was when it was filled last; ``prefix``: see :meth:`Store.check`.
    """

    state: Literal["none", "unusable", "other", "usable"]
    position: Position = field(default_factory=Position)
    prefix: str | None = None
    why: str = ""
    rules: str = ""


def read_recorded(config: Config) -> Recorded:
    """What the database of this data directory says of itself; no table is changed, and nothing raised."""
    try:
        if not is_there(config):
            return Recorded("none")
        engine = make_engine(database_url(config))
        try:
            with reading(engine) as connection:
                return recorded(connection)
        finally:
            engine.dispose()
    except (PlatformError, ValueError, TypeError) as error:
        return Recorded("unusable", why=error.why if isinstance(error, PlatformError) else str(error))


def recorded(connection: Connection) -> Recorded:
    """What the database of a connection says of itself."""
    from sqlalchemy import inspect

    if not inspect(connection).has_table("meta"):
        return Recorded("none")
    values: dict[str, str] = dict(map(tuple, connection.exec_driver_sql("SELECT key, value FROM meta")))
    text, rules = values.get("position"), values.get("rules", "")
    position = Position(**json.loads(text)) if text else Position()
    return Recorded("usable" if rules == RULES else "other", position, values.get("prefix"), rules=rules)


def make_engine(url: str) -> Engine:
    """The SQLAlchemy engine of a database, with the settings that its kind needs.

    Raises E306 for an address that is none of a database that the store can be kept in, or whose driver is not installed.
    """
    from sqlalchemy.exc import ArgumentError

    parsed = parse(url)
    try:
        return _BACKENDS[parsed.get_backend_name()].engine(parsed)
    except (ArgumentError, ImportError, ValueError) as error:
        raise _no_database(url, error) from error


def parse(url: str) -> URL:
    """An address in its parts. Raises E306 for one of no database that the store can be kept in."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(
            url.replace("postgres://", "postgresql://", 1) if url.startswith("postgres://") else url
        )
    except (ArgumentError, ValueError) as error:
        raise _no_database(url, error) from error
    if parsed.drivername not in _DRIVERS:
        raise _no_database(url, None)
    # SQLAlchemy ends the password at the first @: errors of the driver would name what is left of it as the host.
    if parsed.password is not None and "@" in url.partition("://")[2].partition(":")[2].partition("@")[2]:
        raise _unusable(
            "It has more than one @: nobody can tell where its password ends.",
            "write each @ of the password as %40; RUNNER_DATABASE (in proctor.yaml: database) is as in docs/how-to/postgres.md",
        )
    return parsed


def is_there(config: Config) -> bool:
    """Whether there may be a store of this data directory; of a server nobody is asked. Raises E306 for an address of none."""
    if not config.database_url:
        return config.database.exists()
    parsed = parse(config.database_url)
    return _BACKENDS[parsed.get_backend_name()].exists(parsed)


def of(engine: Engine | Connection) -> Backend:
    """What is particular about the database of an engine or connection."""
    return _BACKENDS[engine.dialect.name]


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection that sees one unchanging state of the database."""
    with (
        errors(engine),
        engine.connect().execution_options(**of(engine).reading) as connection,
        connection.begin(),
    ):
        yield connection


def _no_database(url: str, error: Exception | None) -> PlatformError:
    """The error for an address that leads to no database. The address may hold a password: only its scheme is named."""
    scheme = show(url.partition(":")[0], 40) if "://" in url else ""
    fix = "write RUNNER_DATABASE (in proctor.yaml: database) as postgresql://user@host/name, or leave it out for SQLite in the data directory"
    if isinstance(error, ImportError):
        why = f"{scheme} needs the Python package psycopg, which is not installed."
        fix = "install it where runner is installed: pip install 'proctor-ir[postgres]'"
    elif error is None:
        why = f"The store is kept in PostgreSQL or SQLite; {scheme} is neither, or another driver than psycopg's."
    else:
        why = (
            f"SQLAlchemy cannot use this address of {scheme}."
            if scheme
            else "It is no address of SQLAlchemy."
        )
    return _unusable(why, fix)


def _unusable(why: str, fix: str) -> PlatformError:
    what = "the database that RUNNER_DATABASE names cannot be used"
    return PlatformError(what, why=why, fix=fix, code="E306")


def remember(connection: Connection, position: Position, prefix: str) -> None:
    """Note down how far the store is, the SHA-256 of the log until there, and by which rules it was filled."""
    from runner.records.store.tables import meta

    text = json.dumps({"seq": position.seq, "hash": position.hash, "offset": position.offset})
    values = {"position": text, "prefix": prefix, "rules": RULES}
    connection.execute(meta.delete().where(meta.c.key.in_(tuple(values))))
    connection.execute(meta.insert(), [{"key": key, "value": value} for key, value in values.items()])


@contextmanager
def errors(engine: Engine) -> Iterator[None]:
    """Errors of the database as E306; a violated key stays what it is (it is handled where it can happen)."""
    from sqlalchemy.exc import DatabaseError, IntegrityError, InterfaceError

    try:
        yield
    except IntegrityError:
        raise
    except (DatabaseError, InterfaceError) as error:
        raise of(engine).unusable(error.orig or error, engine) from error
