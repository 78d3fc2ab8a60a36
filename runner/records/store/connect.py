"""Open the store: connect, make it anew when it is needed, check that it stands where the event log stands, catch up.

In a file of SQLite by default, or in PostgreSQL (``RUNNER_DATABASE``). A store that is up to date opens with one query and one
pass over the event log, whose SHA-256 it remembers. A store that was filled by other rules is filled again in one transaction.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.model.config import Config
from runner.model.errors import PlatformError
from runner.records.archive import RunArchive
from runner.records.events import Event, EventLog, Position
from runner.records.store import database
from runner.records.store.sqlite import Role, remove_file, replace_file

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

    from sqlalchemy import Connection, Engine, RootTransaction

    from runner.model.config import Person


class Refused(PlatformError):
    """The tables cannot hold what was to be recorded, or the archive does not hold what it names: nothing was written down."""


class Store:
    """The store and the two things it is made from. Use :func:`open_store`."""

    def __init__(self, engine: Engine, log: EventLog, archive: RunArchive) -> None:
        self.engine, self.log, self.archive = engine, log, archive
        self._backend = database.of(engine)
        self._read: tuple[int, Hash] | None = None  # how much of the log was hashed, and its state then
        self._fence: tuple[Role, int] | None = None  # of whose this store is, and the fencing number

    def asked_for(self, person: Person, request: str) -> Store:
        """The same store for what ``person`` asked for on the web: events name both (:meth:`EventLog.asked_for`)."""
        asked = Store(self.engine, self.log.asked_for(person, request), self.archive)
        asked.fenced_as(self)
        return asked

    def fenced_as(self, other: Store) -> None:
        """Have what this store commits refused whenever what ``other`` commits is (see :meth:`coordinating`)."""
        self._fence = other._fence

    def commit(self, type: str, data: Mapping[str, Any], *, actor: str) -> Event:
        """Append an event to the log and apply it: the one way to record that something happened.

        Args:
            type: One of :data:`runner.records.events.TYPES`.
            data: What the type asks for (see :mod:`runner.records.store.apply`).
            actor: Who did it.

        Returns:
            The event, which is on the disk.

        Raises:
            Refused: E307, when the tables cannot hold it, or the archive does not hold what it names; nothing is appended.
            PlatformError: E307, when log and store contradict each other (nothing is appended to a log that was cut); E306,
                when log or database cannot be written.
        """
        return self.commit_all([(type, data)], actor=actor)[0]

    def commit_all(self, said: Sequence[tuple[str, Mapping[str, Any]]], *, actor: str) -> list[Event]:
        """As :meth:`commit` of each in turn (type and data), in one transaction, with one write to the log.

        They are applied before they are written, so that the log holds nothing that the store cannot take, and taken back from the
        log if the database refuses them after that. What a killed process had written and not applied for good is caught up with.
        """
        from runner.records.store.apply import apply_all

        with self._begun(self._backend.writing) as (connection, transaction):
            position = self._checked(connection)

            def suppose(events: Sequence[Event]) -> None:
                nonlocal position
                position = self._follow(connection, position)
                try:
                    apply_all(connection, events, self.archive)
                except PlatformError as error:
                    raise _refused(error) from error

            with self.log.appending(said, actor=actor, before=suppose) as (events, addition):
                *_, (_, reached) = islice(self.log.after(position), len(events))
                self._remember(connection, reached)
                addition.kept = True  # an interrupt may come after the database has committed
                try:
                    transaction.commit()
                except BaseException as error:
                    with ExitStack() as last:
                        last.callback(connection.invalidate)  # nothing of the transaction stays open
                        if self._backend.is_rolled_back(error):
                            addition.remove()  # before another process can write, which would apply the events
                    raise
        return events

    def head(self) -> Position:
        """The position up to which the store knows the log: what a receipt names as the last known head."""
        with self.read() as connection:
            return database.recorded(connection).position

    def catch_up(self) -> Position:
        """Apply every event that the store does not know yet; returns the position reached."""
        with self.write() as connection:
            return self._follow(connection, self._checked(connection))

    def _checked(self, connection: Connection) -> Position:
        """How far the store is, whose log was looked at. Raises E307 as :meth:`check`; E306, when another has taken over."""
        if self._fence is not None:
            database.of(connection).check(connection, *self._fence)
        known = database.recorded(connection)
        self.check(known.position, known.prefix)
        return known.position

    def _follow(self, connection: Connection, start: Position) -> Position:
        """Apply every event behind ``start``; returns the position reached."""
        from runner.records.store.apply import apply

        position = start
        for event, behind in self.log.after(start):
            apply(connection, event, self.archive)
            position = behind
        if position != start:
            self._remember(connection, position)
        return position

    def _remember(self, connection: Connection, position: Position) -> None:
        """Note down that the store is as far as ``position``."""
        database.remember(connection, position, self._hashed(position.offset).hexdigest())

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
        with self.write() as connection, self._backend.anew(connection):
            for event, behind in self.log.after(Position()):
                apply(connection, event, self.archive)
                met = met or (behind.seq, behind.hash) == (known.seq, known.hash)
                position = behind
            if not met:
                raise ahead(self.log, known)
            self._read = None
            self._remember(connection, position)
        return position

    def check(self, position: Position, prefix: str | None) -> None:
        """Raise E307 unless the log begins with the very bytes from which the store was filled up to ``position``.

        ``prefix`` is their SHA-256 as the store remembers it (None: it remembers nothing).
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
        with database.reading(self.engine) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A connection in a transaction that took the write lock at its start."""
        with self._begun(self._backend.writing) as (connection, _):
            yield connection

    @contextmanager
    def supposing(self, change: Callable[[Connection], None], *, alone: bool = True) -> Iterator[Store]:
        """The store as it would be after ``change``, for questions only: nothing of it is kept.

        Nobody else writes meanwhile; with ``alone`` False others do, and ``change`` may make temporary things only.
        """
        options = self._backend.writing if alone else self._backend.supposing
        with self._begun(options) as (connection, transaction):
            change(connection)
            yield _Supposed(self, connection)
            transaction.rollback()

    @contextmanager
    def _begun(self, options: Mapping[str, Any]) -> Iterator[tuple[Connection, RootTransaction]]:
        with (
            database.errors(self.engine),
            self.engine.connect().execution_options(**options) as connection,
            connection.begin() as transaction,
        ):
            yield connection, transaction

    @contextmanager
    def coordinating(self, role: Role = "coordinator") -> Iterator[None]:
        """Be the only one in a role at the database; what this store commits meanwhile is refused once another has taken over.

        Raises E306 when another one is.
        """
        with database.errors(self.engine), self._backend.alone(self.engine, role) as number:
            self._fence = role, number
            try:
                yield
            finally:
                self._fence = None

    def writes_beside_readers(self) -> bool:
        """Whether somebody can write to the store while another reads it."""
        with self.read() as connection:
            return database.of(connection).writes_beside_readers(connection)

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
    store = Store(database.make_engine(url), EventLog.of(config), RunArchive(config.archive))
    try:
        with store.read() as connection:
            known = database.recorded(connection)
        if known.rules.isdigit() and int(known.rules) > int(database.RULES):
            raise PlatformError(
                "the store was written by another version of this program",
                why=f"It has the number {known.rules}; this program knows {database.RULES}.",
                fix="use the newer program, or runner store rebuild with this one",
                code="E306",
            )
        if not accept_loss:
            store.check(known.position, known.prefix)
            if not known.position.seq:
                check_complete(config, store.log)
        if known.state != "usable" or accept_loss:
            store.replay(Position() if accept_loss else known.position)
        elif _log_size(config.events) != known.position.offset:
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
    url = database.parse(database.database_url(config))
    if url.get_backend_name() != "sqlite":
        with Store(
            database.make_engine(database.database_url(config)), log, RunArchive(config.archive)
        ) as store:
            return store.replay()
    target = Path(url.database or "")
    fresh = target.with_name(f"{target.name}.rebuild-{os.getpid()}")
    remove_file(fresh)
    try:
        with (
            open_store(config, url=f"sqlite:///{fresh}", accept_loss=True) as store,
            store.read() as connection,
        ):
            position = database.recorded(connection).position
        replace_file(fresh, target)
    finally:
        remove_file(fresh)
    return position


def ahead(log: EventLog, position: Position) -> PlatformError:
    """The error for a log that does not hold what the store was made from."""
    return PlatformError(
        "the store knows more than the event log",
        why=f"It was filled up to event {position.seq} ({position.hash[:16]}), and {log.path} does not hold that (any more).",
        fix="restore events.jsonl from a backup, or give up what is lost with runner store rebuild --accept-loss",
        code="E307",
    )


def _refused(error: PlatformError) -> PlatformError:
    """The error for an event that was not written down because it could not be applied; others (E306) stay what they are."""
    if error.code != "E307":
        return error
    why = f"{error.why} Nothing of it was written down."
    fix = "see what it names in the archive: runner store verify says what is damaged there"
    return Refused("what was to be recorded cannot be", why=why, fix=fix, code="E307")


def _log_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
