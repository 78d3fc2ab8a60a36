"""Accounts, members and tokens: the third primary record beside archive and events, owned by work.

One SQLite database, ``accounts.sqlite`` in the data directory, readable for its owner alone. It is a record of its own so
that what is known of a person can be erased: events, archive and published things name accounts by opaque ids only
(``a-`` and 16 hex digits) and teams by their names. Tokens are kept as keys and never in the clear
(:mod:`runner.exchange.access`); whoever changes anything here publishes what tokens open anew (:func:`publish_access`),
so that revoking works at once, also while work is down.

What people said of themselves (:mod:`runner.work.people`) are tables of their own, named by ``account``. A change of tables is one
more row of :data:`_TABLES`: databases of before get the rows that they lack.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from runner.exchange.access import Access, Grant, Role, Token, verifier
from runner.model.clock import Clock, SystemClock, stamp
from runner.model.config import Config
from runner.model.errors import PlatformError, RunnerError, disk_error, no_such
from runner.model.names import BASELINES, check_apart, check_name
from runner.work.people import TABLES as PEOPLE
from runner.work.people import People

SCOPES: dict[Role, tuple[str, ...]] = {
    "organiser": ("read", "manage"),
    "assistant": ("read",),
    "team": ("read", "hand-in"),
    "assessor": ("read",),
}
_TABLES = (
    """
CREATE TABLE accounts (id TEXT PRIMARY KEY, role TEXT NOT NULL, team TEXT, created TEXT NOT NULL, closed TEXT);
CREATE TABLE tokens (id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts (id), key TEXT NOT NULL,
                     scopes TEXT NOT NULL, created TEXT NOT NULL, revoked TEXT);
CREATE INDEX tokens_of ON tokens (account);
""",
    PEOPLE,
)
VERSION = len(_TABLES)


@dataclass(frozen=True)
class Account:
    """Somebody who may sign in. ``team`` is set for the role ``team``; ``closed`` says when nothing was open to it any more.
    ``tokens`` are the ids of those that are not revoked."""

    id: str
    role: Role
    team: str | None
    created: str
    closed: str | None
    tokens: tuple[str, ...]


class Accounts:
    """The open accounts of a data directory; :func:`open_accounts` makes one."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._db, self._clock = connection, clock
        self.people = People(connection)

    def all(self) -> list[Account]:
        """Every account, in the order in which they were made."""
        rows = self._db.execute(
            "SELECT id, role, team, created, closed FROM accounts ORDER BY rowid"
        ).fetchall()
        return [Account(i, role, team, made, end, self._tokens(i)) for i, role, team, made, end in rows]

    def teams(self) -> list[str]:
        """The teams that have an open account, by name."""
        return sorted({one.team for one in self.all() if one.team is not None and one.closed is None})

    def of_team(self, team: str) -> Account:
        """The account of a team. Raises E102."""
        known = {one.team: one for one in self.all() if one.team is not None}
        if team not in known:
            raise no_such(
                "team", team, known, why="Nobody has an account for it.", fix=f"runner team add {team}"
            )
        return known[team]

    def named(self, text: str) -> Account:
        """The account of that id, or of the team of that name. Raises E102."""
        found = next((one for one in self.all() if text in (one.id, one.team)), None)
        if found is None:
            known = [one.id for one in self.all()]
            raise no_such("account", text, known, fix="runner account list names them")
        return found

    def add(self, role: Role, team: str | None = None, *, teams: Sequence[str] = ()) -> tuple[Account, Token]:
        """Make an account and its first token, which is shown now or never.

        Args:
            role: What the account is.
            team: Of which team, for the role ``team``.
            teams: Names of teams that there are without an account, which a new one must not look like.

        Raises:
            RunnerError: E208 for what is no name, or is the organiser's; E215 for one like another team's; E101 when the
                team has an account.
        """
        if team is not None:
            check_name("team", team)
            if team == BASELINES:
                raise RunnerError("E208", f"{BASELINES} are the organiser's", fix="choose another name")
            with_account = [one.team for one in self.all() if one.team is not None]
            if team in with_account:
                fix = f"runner team rotate {team} makes a new token"
                raise RunnerError("E101", f"the team {team} has an account", fix=fix)
            check_apart("team", team, [*with_account, *teams])
        account = "a-" + secrets.token_hex(8)
        with self._db:
            self._db.execute(
                "INSERT INTO accounts VALUES (?, ?, ?, ?, NULL)", (account, role, team, self._now())
            )
            token = self._token(account, role)
        return self._account(account), token

    def rotate(self, account: Account) -> Token:
        """A new token in the place of all others of an account. Raises E101 for one that is closed."""
        if account.closed is not None:
            raise RunnerError("E101", f"the account of {account.team or account.role} is closed")
        with self._db:
            self._revoke(account)
            return self._token(account.id, account.role)

    def close(self, account: Account) -> bool:
        """Close an account: its tokens open nothing any more. False when it was closed already."""
        with self._db:
            self._revoke(account)
            query = "UPDATE accounts SET closed = ? WHERE id = ? AND closed IS NULL"
            return self._db.execute(query, (self._now(), account.id)).rowcount == 1

    def erase(self, account: Account, *, keep_name: bool) -> None:
        """Close an account and erase all that is known of the people behind it; ``keep_name`` keeps the name of its team."""
        self.close(account)
        with self._db:
            self._db.execute("DELETE FROM tokens WHERE account = ?", (account.id,))
            if not keep_name:
                self._db.execute("UPDATE accounts SET team = NULL WHERE id = ?", (account.id,))
        self.people.erase(account.id)

    def known(self, account: str, token: str) -> tuple[Account, str] | None:
        """The account that a request names and the key of its token, also of one that was revoked; None where there is none."""
        query = "SELECT key FROM tokens WHERE id = ? AND account = ?"
        row = self._db.execute(query, (token, account)).fetchone()
        return None if row is None else (self._account(account), row[0])

    def check(self, account: Account, token: str, scope: str) -> None:
        """Raise E103 unless an account may do with this token what ``scope`` says, now."""
        query = """SELECT t.scopes FROM tokens t JOIN accounts a ON a.id = t.account
                   WHERE t.id = ? AND a.id = ? AND t.revoked IS NULL AND a.closed IS NULL"""
        row = self._db.execute(query, (token, account.id)).fetchone()
        if row is None or scope not in row[0].split():
            what = (
                "the token opens nothing any more" if row is None else f"the token is not for this ({scope})"
            )
            why = "It was replaced or revoked, or the account was closed." if row is None else ""
            raise RunnerError(
                "E103", what, why=why, fix="sign in with the token that holds now, and send it again"
            )

    def access(self) -> Access:
        """What the tokens open that are not revoked."""
        query = """SELECT t.id, t.key, a.id, a.role, a.team, t.scopes FROM tokens t JOIN accounts a ON a.id = t.account
                   WHERE t.revoked IS NULL AND a.closed IS NULL"""
        rows = self._db.execute(query)
        return Access(
            {r[0]: Grant(r[0], verifier(r[1]), r[2], r[3], r[4], tuple(r[5].split())) for r in rows}
        )

    def _account(self, id: str) -> Account:
        return next(one for one in self.all() if one.id == id)

    def _tokens(self, account: str) -> tuple[str, ...]:
        query = "SELECT id FROM tokens WHERE account = ? AND revoked IS NULL ORDER BY rowid"
        return tuple(row[0] for row in self._db.execute(query, (account,)))

    def _token(self, account: str, role: Role) -> Token:
        token = Token.new()
        row = (token.id, account, token.key, " ".join(SCOPES[role]), self._now())
        self._db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, NULL)", row)
        return token

    def _revoke(self, account: Account) -> None:
        query = "UPDATE tokens SET revoked = ? WHERE account = ? AND revoked IS NULL"
        self._db.execute(query, (self._now(), account.id))

    def _now(self) -> str:
        return stamp(self._clock.now())


@contextmanager
def open_accounts(config: Config, *, clock: Clock | None = None) -> Iterator[Accounts]:
    """The accounts of a data directory; the database is made when it is not there.

    Raises PlatformError E306 when it cannot be used, or is of a newer version than this program.
    """
    path = config.home / "accounts.sqlite"
    try:
        _make(path)
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")  # what is erased is overwritten
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                for tables in _TABLES[version:]:
                    for statement in filter(str.strip, tables.split(";")):
                        connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {max(version, VERSION)}")
            if version > VERSION:
                why = f"{path} was written by a newer version of this program."
                raise PlatformError(
                    "the accounts cannot be read", why=why, fix="use that version", code="E306"
                )
            yield Accounts(connection, clock or SystemClock())
    except sqlite3.Error as error:
        why, fix = f"{path}: {error}.", "restore it from a backup, or have its owner give it to you"
        raise PlatformError("the accounts cannot be used", why=why, fix=fix, code="E306") from error
    except OSError as error:
        raise disk_error("the accounts cannot be used", error, path) from error


def publish_access(config: Config, accounts: Accounts) -> None:
    """Publish what tokens open, at once: what is revoked opens nothing from now on. Raises OSError."""
    accounts.access().write(config.published)


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
