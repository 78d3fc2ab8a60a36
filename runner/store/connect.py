"""Open the store: connect, migrate when it is needed, catch up with the event log.

SQLite in WAL mode by default (``RUNNER_DATABASE`` names another SQLAlchemy URL). A store that is up to date
opens with one query; alembic is imported only when there is something to migrate.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.archive import RunArchive
from runner.config import Config
from runner.errors import PlatformError
from runner.events import Event, EventLog, Position
from runner.store.migrations import HEAD

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

# The rules by which events become rows. When they change without a new shape of the tables, count up: a
# store that was filled by other rules is filled anew when it is opened.
RULES = "2"
BUSY_SECONDS = 30


class Store:
    """The store and the two things it is made from. Use :func:`open_store`."""

    def __init__(self, engine: Engine, log: EventLog, archive: RunArchive) -> None:
        self.engine = engine
        self.log = log
        self.archive = archive

    def commit(self, type: str, data: Mapping[str, Any], *, actor: str) -> Event:
        """Append an event to the log and apply it: the one way to record that something happened."""
        event = self.log.append(type, data, actor=actor)
        self.apply(event)
        return event

    def apply(self, event: Event) -> None:
        """Bring the store up to ``event``, which is in the log already. Applying twice changes nothing.

        Raises E307 when the archive does not hold what the event names.
        """
        if self.catch_up().seq < event.seq:
            raise PlatformError("the event is not in the log", why=f"event {event.seq}", code="E307")

    def catch_up(self) -> Position:
        """Apply every event that the store does not know yet; returns the position reached."""
        from runner.store.apply import apply

        with self.write() as connection:
            position = start = _position(connection)
            for event, behind in self.log.after(start):
                apply(connection, event, self.archive)
                position = behind
            if position != start:
                _remember(connection, position)
        return position

    def replay(self) -> Position:
        """Empty the store and fill it again from the first event, in one transaction."""
        from runner.store.apply import apply
        from runner.store.tables import metadata

        position = Position()
        with self.write() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(table.delete())
            for event, behind in self.log.after(Position()):
                apply(connection, event, self.archive)
                position = behind
            _remember(connection, position)
        return position

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one unchanging state of the store."""
        with _errors(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A connection in a transaction that took the write lock at its start."""
        with (
            _errors(),
            self.engine.connect().execution_options(write=True) as connection,
            connection.begin(),
        ):
            yield connection

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def open_store(config: Config, *, url: str | None = None) -> Store:
    """The store of this data directory, made if it is missing, migrated and caught up.

    Raises E306 when the database cannot be used, E307 when log or archive are damaged.
    """
    if url is None:
        url = os.environ.get("RUNNER_DATABASE") or f"sqlite:///{config.database}"
    if url.startswith("sqlite:///"):
        _make_folder(Path(url.removeprefix("sqlite:///")).parent)
    store = Store(_engine(url), EventLog(config.events), RunArchive(config.archive))
    try:
        with store.read() as connection:
            revision = _revision(connection)
            position, rules = (
                (_position(connection), _rules(connection)) if revision == HEAD else (Position(), "")
            )
        if revision != HEAD:
            _migrate(store, config)
        if rules != RULES:
            store.replay()
        else:
            _check_ahead(store, position)
            if _log_size(config.events) != position.offset:
                store.catch_up()
    except BaseException:
        store.close()
        raise
    return store


def rebuild(config: Config) -> Position:
    """Make the store again from log and archive, beside the old one, and put it in its place at once.

    The old store serves readers until then, also when it is damaged. Returns how far the log went.
    """
    url = os.environ.get("RUNNER_DATABASE")
    if url and not url.startswith("sqlite"):
        with open_store(config) as store:
            return store.replay()
    target = Path(url.removeprefix("sqlite:///")) if url else config.database
    _make_folder(target.parent)
    fresh = target.with_name(f"{target.name}.rebuild-{os.getpid()}")
    _unlink(fresh)
    try:
        with open_store(config, url=f"sqlite:///{fresh}") as store, store.read() as connection:
            position = _position(connection)
        _swap(fresh, target)
    finally:
        _unlink(fresh)
    return position


def _swap(fresh: Path, target: Path) -> None:
    """Copy ``fresh`` over ``target`` in one transaction, so that open readers and WAL files stay right.

    Renaming would leave the old WAL beside the new file, to be played into it. Only a target that SQLite
    itself refuses is taken out of the way by renaming.
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
            raise _unusable(error) from error
        _unlink(target)
        fresh.replace(target)


def _unlink(database: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)


def _engine(url: str) -> Engine:
    from sqlalchemy import create_engine, event

    engine = create_engine(url)
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "connect")
        def on_connect(connection: Any, _: object) -> None:
            connection.isolation_level = None  # BEGIN is ours, below
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
            cursor.execute("PRAGMA foreign_keys = ON")
            cursor.execute(
                "PRAGMA journal_mode = WAL"
            )  # a file system without shared memory keeps its journal
            cursor.execute("PRAGMA synchronous = NORMAL")  # the log is the truth: a lost tail is replayed
            cursor.close()

        @event.listens_for(engine, "begin")
        def on_begin(connection: Connection) -> None:
            writes = connection.get_execution_options().get("write")
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _revision(connection: Connection) -> str | None:
    from sqlalchemy import inspect, text

    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _migrate(store: Store, config: Config) -> None:
    """Bring the tables to their newest shape; the rows are filled in again afterwards, being derived."""
    from alembic import command
    from alembic.config import Config as AlembicConfig
    from alembic.script import ScriptDirectory
    from filelock import FileLock
    from sqlalchemy import text

    settings = AlembicConfig()
    settings.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    _make_folder(config.locks)
    with FileLock(config.locks / "migrate.lock", timeout=600), store.write() as connection:
        revision = _revision(connection)
        if revision == HEAD:
            return
        if revision is not None and revision not in {
            s.revision for s in ScriptDirectory.from_config(settings).walk_revisions()
        }:
            raise PlatformError(
                "the store was written by another version of this program",
                why=f"Its tables are at step {revision!r}; this program knows steps up to {HEAD!r}.",
                fix="use the newer program, or runner store rebuild with this one",
                code="E306",
            )
        settings.attributes["connection"] = connection
        command.upgrade(settings, "head")
        connection.execute(text("DELETE FROM meta WHERE key = 'rules'"))


def _position(connection: Connection) -> Position:
    from sqlalchemy import select

    from runner.store.tables import meta

    value = connection.execute(select(meta.c.value).where(meta.c.key == "position")).scalar()
    return Position(**json.loads(value)) if value else Position()


def _rules(connection: Connection) -> str | None:
    from sqlalchemy import select

    from runner.store.tables import meta

    return connection.execute(select(meta.c.value).where(meta.c.key == "rules")).scalar()


def _remember(connection: Connection, position: Position) -> None:
    from runner.store.tables import meta

    text = json.dumps({"seq": position.seq, "hash": position.hash, "offset": position.offset})
    connection.execute(meta.delete().where(meta.c.key.in_(("position", "rules"))))
    connection.execute(meta.insert(), [{"key": "position", "value": text}, {"key": "rules", "value": RULES}])


def _check_ahead(store: Store, position: Position) -> None:
    if _log_size(store.log.path) < position.offset:
        raise PlatformError(
            "the store knows more than the event log",
            why=f"It was filled up to event {position.seq}, and {store.log.path} ends before that.",
            fix="restore events.jsonl, or accept the loss with runner store rebuild",
            code="E307",
        )


def _log_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(error) from error


@contextmanager
def _errors() -> Iterator[None]:
    """Errors of the database as E306; a violated key stays what it is (it is handled where it can happen)."""
    from sqlalchemy.exc import DatabaseError, IntegrityError

    try:
        yield
    except IntegrityError:
        raise
    except DatabaseError as error:
        raise _unusable(error.orig or error) from error


def _unusable(error: BaseException) -> PlatformError:
    return PlatformError(
        "the store cannot be used",
        why=f"{error}.",
        fix="check the space and permissions of the data directory; runner store rebuild makes the store again",
        code="E306",
    )
