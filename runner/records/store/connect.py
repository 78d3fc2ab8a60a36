"""Open the store: connect, make it anew when it is needed, check that it stands where the event log stands, catch up.

SQLite in WAL mode by default (``RUNNER_DATABASE`` names another SQLAlchemy URL). A store that is up to date
opens with one query and one pass over the bytes of the event log, whose SHA-256 it remembers (about a millisecond for
a thousand events). One that was filled by other rules, or has other tables, is made anew in one transaction.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.model.config import Config
from runner.model.errors import PlatformError
from runner.records.archive import RunArchive
from runner.records.events import Event, EventLog, Position
from runner.records.store import database

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

    from sqlalchemy import Connection, Engine

    from runner.model.config import Person


class Store:
    """The store and the two things it is made from. Use :func:`open_store`."""

    def __init__(self, engine: Engine, log: EventLog, archive: RunArchive) -> None:
        self.engine = engine
        self.log = log
        self.archive = archive
        self._read: tuple[int, Hash] | None = None  # how much of the log was hashed, and its state then

    def asked_for(self, person: Person, request: str) -> Store:
        """The same store for what ``person`` asked for on the web: events name both (:meth:`EventLog.asked_for`)."""
        return Store(self.engine, self.log.asked_for(person, request), self.archive)

    def commit(self, type: str, data: Mapping[str, Any], *, actor: str) -> Event:
        """Append an event to the log and apply it: the one way to record that something happened.

        Args:
            type: One of :data:`runner.records.events.TYPES`.
            data: What the type asks for (see :mod:`runner.records.store.apply`).
            actor: Who did it.

        Returns:
            The event, which is on the disk.

        Raises:
            PlatformError: E307, when log and store contradict each other (nothing is appended to a log that was cut), or the
                archive does not hold what the event names; E306, when log or database cannot be written.
        """
        with self.read() as connection:
            position, prefix = database.position_of(connection), database.prefix_of(connection)
        self.check(position, prefix)
        event = self.log.append(type, data, actor=actor)
        self.apply(event)
        return event

    def apply(self, event: Event) -> None:
        """Bring the store up to ``event``, which is in the log already. Applying twice changes nothing.

        Raises E307 when the archive does not hold what the event names.
        """
        if self.catch_up().seq < event.seq:
            raise PlatformError("the event is not in the log", why=f"event {event.seq}", code="E307")

    def head(self) -> Position:
        """The position up to which the store knows the log: what a receipt names as the last known head."""
        with self.read() as connection:
            return database.position_of(connection)

    def catch_up(self) -> Position:
        """Apply every event that the store does not know yet; returns the position reached."""
        from runner.records.store.apply import apply

        with self.write() as connection:
            position = start = database.position_of(connection)
            self.check(start, database.prefix_of(connection))
            for event, behind in self.log.after(start):
                apply(connection, event, self.archive)
                position = behind
            if position != start:
                database.remember(connection, position, self._hashed(position.offset).hexdigest())
        return position

    def replay(self, known: Position = Position()) -> Position:
        """Make the tables anew and fill them from the first event, in one transaction.

        Args:
            known: Up to where the log was known before.

        Returns:
            The position reached.

        Raises:
            PlatformError: E307, when the log does not hold the event at ``known``.
        """
        from runner.records.store.apply import apply

        position, met = Position(), not known.seq
        with self.write() as connection:
            database.make_tables(connection)
            for event, behind in self.log.after(Position()):
                apply(connection, event, self.archive)
                met = met or (behind.seq, behind.hash) == (known.seq, known.hash)
                position = behind
            if not met:
                raise ahead(self.log, known)
            self._read = None
            database.remember(connection, position, self._hashed(position.offset).hexdigest())
        return position

    def check(self, position: Position, prefix: str | None) -> None:
        """Raise E307 unless the log begins with the very bytes from which the store was filled up to ``position``.

        ``prefix`` is their SHA-256 as the store remembers it (None: of a store of before; nothing is looked at).
        """
        if _log_size(self.log.path) < position.offset:
            raise ahead(self.log, position)
        if prefix is None or self._hashed(position.offset).hexdigest() == prefix:
            return
        self._read = None
        for _ in self.log:  # says which line it is, if the chain is broken
            pass
        raise PlatformError(
            "the event log is not the one that the store was made from",
            why=f"{self.log.path} was written anew: its chain is whole, and before event {position.seq} it is another.",
            fix="restore events.jsonl from a backup; runner store verify lists what contradicts it",
            code="E307",
        )

    def _hashed(self, offset: int) -> Hash:
        """The state of SHA-256 over the first ``offset`` bytes of the log. What this object read once it does not read again."""
        done, digest = self._read or (0, hashlib.sha256())
        if done > offset:
            done, digest = 0, hashlib.sha256()
        digest = digest.copy()
        self.log.feed(digest, done, offset)
        self._read = offset, digest
        return digest

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one unchanging state of the store."""
        with database.errors(self.engine), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A connection in a transaction that took the write lock at its start."""
        with (
            database.errors(self.engine),
            self.engine.connect().execution_options(write=True) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def supposing(self, change: Callable[[Connection], None], *, alone: bool = True) -> Iterator[Store]:
        """The store as it would be after ``change``, for questions only: nothing of it is kept.

        Nobody else writes meanwhile; with ``alone`` False others do, and ``change`` may make temporary things only.
        """
        with (
            database.errors(self.engine),
            self.engine.connect().execution_options(write=alone) as connection,
            connection.begin() as transaction,
        ):
            change(connection)
            yield _Supposed(self, connection)
            transaction.rollback()

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Supposed(Store):
    """A store that reads through one connection, and sees what that one has changed."""

    def __init__(self, store: Store, connection: Connection) -> None:
        super().__init__(store.engine, store.log, store.archive)
        self._connection = connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        yield self._connection


def open_store(config: Config, *, url: str | None = None, accept_loss: bool = False) -> Store:
    """The store of this data directory, made if it is missing or of another version, checked against the log and caught up.

    Args:
        config: Whose data directory.
        url: Another database than that of ``config``, as SQLAlchemy names it.
        accept_loss: Whether a log that holds less than is known to have been there is taken as it is.

    Raises:
        PlatformError: E306, when the database cannot be used; E307, when log or archive are damaged, or the log holds less
            than is known to have been there.
    """
    from runner.records.store.history import check_complete

    if url is None:
        url = database.database_url(config)
    if url.startswith("sqlite:///"):
        _make_folder(Path(url.removeprefix("sqlite:///")).parent)
    store = Store(database.make_engine(url), EventLog.of(config), RunArchive(config.archive))
    try:
        with store.read() as connection:
            position, prefix, rules = Position(), None, database.rules_of(connection)
            if rules is not None:
                position, prefix = database.position_of(connection), database.prefix_of(connection)
        if rules and rules.isdigit() and int(rules) > int(database.RULES):
            raise PlatformError(
                "the store was written by another version of this program",
                why=f"It has the number {rules}; this program knows {database.RULES}.",
                fix="use the newer program, or runner store rebuild with this one",
                code="E306",
            )
        if not accept_loss:
            store.check(position, prefix)
            if not position.seq:
                check_complete(config, store.log)
        if rules != database.RULES or accept_loss:
            store.replay(Position() if accept_loss else position)
        elif _log_size(config.events) != position.offset:
            store.catch_up()
    except BaseException:
        store.close()
        raise
    return store


def rebuild(config: Config, *, accept_loss: bool = False) -> Position:
    """Make the store again from log and archive, next to the old one, and put it in its place at once.

    The old store serves readers until then, also when it is damaged. Returns how far the log went. Raises E307 when the
    log holds less than the old store, a frozen round or the archive knew of; ``accept_loss`` writes that down in the log
    instead, and goes on with what is left.
    """
    from runner.records.store.history import accepted, check_complete, lost

    log, last = EventLog.of(config), database.read_recorded(config).position
    gone = lost(config, log, last) if accept_loss else []
    if not accept_loss:
        check_complete(config, log, last)
    if gone:
        log.append("loss-accepted", accepted(gone), actor="organiser")
    url = config.database_url
    if url and not url.startswith("sqlite"):
        with open_store(config, accept_loss=True) as store:
            return store.replay()
    target = Path(url.removeprefix("sqlite:///")) if url else config.database
    _make_folder(target.parent)
    fresh = target.with_name(f"{target.name}.rebuild-{os.getpid()}")
    _unlink(fresh)
    try:
        with (
            open_store(config, url=f"sqlite:///{fresh}", accept_loss=True) as store,
            store.read() as connection,
        ):
            position = database.position_of(connection)
        _swap(fresh, target)
    finally:
        _unlink(fresh)
    return position


def _swap(fresh: Path, target: Path) -> None:
    """Copy ``fresh`` over ``target`` in one transaction, so that open readers and WAL files stay right.

    Renaming would leave the old WAL next to the new file, to be played into it. Only a target that SQLite
    itself refuses is taken out of the way by renaming.
    """
    try:
        source, old = sqlite3.connect(fresh), sqlite3.connect(target, timeout=database.BUSY_SECONDS)
        try:
            source.backup(old)
        finally:
            source.close()
            old.close()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise database.unusable(error, target) from error
        _unlink(target)
        fresh.replace(target)


def _unlink(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def ahead(log: EventLog, position: Position) -> PlatformError:
    """The error for a log that does not hold what the store was made from."""
    return PlatformError(
        "the store knows more than the event log",
        why=f"It was filled up to event {position.seq} ({position.hash[:16]}), and {log.path} does not hold that (any more).",
        fix="restore events.jsonl from a backup, or give up what is lost with runner store rebuild --accept-loss",
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
        raise database.unusable(error) from error
