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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from runner.exchange.access import LINK, Access, Grant, Role, Token, verifier
from runner.model.clock import Clock, SystemClock, stamp
from runner.model.config import Config
from runner.model.errors import PlatformError, RunnerError, disk_error, no_such
from runner.model.names import BASELINES, check_apart, check_name
from runner.work.identities import TABLES as IDENTITIES
from runner.work.identities import Identities
from runner.work.people import TABLES as PEOPLE
from runner.work.people import WANTED, People
from runner.work.registrations import ACCEPTANCES, LET_IN, Registrations
from runner.work.registrations import TABLES as REGISTRATIONS
from runner.work.uses import TABLES as USES
from runner.work.uses import Uses

SCOPES: dict[Role, tuple[str, ...]] = {
    "organiser": ("read", "manage"),
    "assistant": ("read", "manage"),
    "team": ("read", "hand-in", "manage"),
    "assessor": ("read", "manage"),
}
MOST_LENT = 5  # tokens of signing in at a provider
MOST_TOKENS = 20  # of an account at a time
_TABLES = (
    """
CREATE TABLE accounts (id TEXT PRIMARY KEY, role TEXT NOT NULL, team TEXT, created TEXT NOT NULL, closed TEXT);
CREATE TABLE tokens (id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts (id), key TEXT NOT NULL,
                     scopes TEXT NOT NULL, created TEXT NOT NULL, revoked TEXT);
CREATE INDEX tokens_of ON tokens (account);
""",
    PEOPLE,
    "ALTER TABLE tokens ADD COLUMN expires TEXT",
    REGISTRATIONS,
    IDENTITIES,
    USES,
    *(WANTED, LET_IN, ACCEPTANCES),
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
        self.registrations = Registrations(connection)
        self.identities = Identities(connection)
        self.uses = Uses(connection)

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
        there = {one.team: one for one in self.all()} | {one.id: one for one in self.all()}
        found = there.get(text)  # a team that is called as an id is meant by its own
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
            self._check_team(team, teams)
        account = "a-" + secrets.token_hex(8)
        with self._db:
            self._db.execute(
                "INSERT INTO accounts VALUES (?, ?, ?, ?, NULL)", (account, role, team, self._now())
            )
            token = self._token(account, role)
        return self._account(account), token

    def admit(self, account: str, team: str, token: str, key: str, *, teams: Sequence[str] = ()) -> Account:
        """Make the account of a team that registered, with the ids and the token that it was shown. As :meth:`add`; E101 also for
        a token that there is already."""
        self._check_team(team, teams)
        with self._db:
            if self._db.execute("SELECT 1 FROM tokens WHERE id = ?", (token,)).fetchone():
                raise RunnerError("E101", "that token is another's", fix="register anew")
            row = (account, "team", team, self._now())
            self._db.execute("INSERT INTO accounts VALUES (?, ?, ?, ?, NULL)", row)
            self._insert(account, token, key, SCOPES["team"])
        return self._account(account)

    def has(self, account: str) -> bool:
        """Whether there is an account of that id."""
        return any(one.id == account for one in self.all())

    def _check_team(self, team: str, teams: Sequence[str]) -> None:
        check_name("team", team)
        if team == BASELINES:
            raise RunnerError("E208", f"{BASELINES} are the organiser's", fix="choose another name")
        with_account = [one.team for one in self.all() if one.team is not None]
        if team in with_account:
            fix = f"runner team rotate {team} makes a new token"
            raise RunnerError("E101", f"the team {team} has an account", fix=fix)
        check_apart("team", team, [*with_account, *teams])

    def rotate(self, account: Account) -> Token:
        """A new token in the place of all others of an account. Raises E101 for one that is closed."""
        if account.closed is not None:
            raise RunnerError("E101", f"the account of {account.team or account.role} is closed")
        with self._db:
            self._revoke(account)
            return self._token(account.id, account.role)

    def link(self, account: Account, lasts: timedelta) -> tuple[Token, str]:
        """A one-time link, as a token that asks for a token and opens nothing else, and until when (UTC). Raises E101."""
        self._check_room(account)
        token, until = Token.new(), stamp(self._clock.now() + lasts)
        with self._db:
            self._insert(account.id, token.id, token.key, (LINK,), until)
        return token, until

    def put_token(
        self,
        account: Account,
        by: str,
        at: datetime,
        token: str,
        key: str,
        scopes: Sequence[str],
        replaces: bool,
    ) -> bool:
        """Note a token that its owner had made; one that is there already changes nothing.

        Args:
            account: Whose it is.
            by: Id of the token or link that asked for it; a link is used up by it.
            at: When it was asked for.
            token: Its id.
            key: Its key.
            scopes: What may be done with it; with a link all that the account may. It ends when the token ends that asked.
            replaces: Whether the token that asked opens nothing from now on.

        Returns:
            Whether it was not there before.

        Raises:
            RunnerError: E103 when that token may not ask for it, or the link is used or over; E101 for too many tokens.
        """
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            there = self._db.execute("SELECT account, key FROM tokens WHERE id = ?", (token,)).fetchone()
            if there == (account.id, key):
                return False
            if there is not None:
                raise RunnerError("E101", "that token is another's", fix="ask for a new one")
            linked = self._is_link(account, by, at)
            if not linked:
                self.check(account, by, "manage", at)
                if any(not self._may(account, by, scope) for scope in scopes):
                    raise RunnerError(
                        "E103", "a token gives no more than it has", fix="leave out what it has not"
                    )
            if linked or replaces:
                now = (self._now(), by)
                self._db.execute("UPDATE tokens SET revoked = ? WHERE id = ?", now)
            self._check_room(account)
            until = None if linked else self._until(by)  # what was lent gives nothing that stays
            self._insert(account.id, token, key, SCOPES[account.role] if linked else scopes, until)
        return True

    def lend(self, account: Account, token: str, key: str, lasts: timedelta) -> bool:
        """Note a token for a while, of somebody who signed in at a provider; False when it is there, or was. The account keeps
        :data:`MOST_LENT` of these, the newest. Raises E103 for an account that is closed."""
        if account.closed is not None:
            raise RunnerError("E103", "the account is closed", fix="ask the organiser")
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            if self._db.execute("SELECT 1 FROM tokens WHERE id = ?", (token,)).fetchone():
                return False
            self._insert(account.id, token, key, SCOPES[account.role], stamp(self._clock.now() + lasts))
            self._take_back(account, MOST_LENT)
        return True

    def take_back(self, account: Account) -> None:
        """Revoke every token that was lent to an account."""
        with self._db:
            self._take_back(account, 0)

    def _take_back(self, account: Account, keep: int) -> None:
        lent = """SELECT id FROM tokens WHERE account = ? AND revoked IS NULL AND expires IS NOT NULL AND scopes <> ?
                  ORDER BY rowid DESC LIMIT -1 OFFSET ?"""
        query = f"UPDATE tokens SET revoked = ? WHERE id IN ({lent})"  # noqa: S608  (no text of anybody's)
        self._db.execute(query, (self._now(), account.id, LINK, keep))

    def _is_link(self, account: Account, by: str, at: datetime) -> bool:
        """Whether ``by`` is a link, which may be used then. Raises E103 when it may not."""
        query = "SELECT scopes, expires, revoked FROM tokens WHERE id = ? AND account = ?"
        scopes, expires, revoked = self._db.execute(query, (by, account.id)).fetchone() or ("", None, None)
        if scopes != LINK:
            return False
        if account.closed is not None or revoked is not None or stamp(at) > (expires or ""):
            fix = "ask the organiser for a new one"
            raise RunnerError("E103", "the link was used before, or is over", fix=fix)
        return True

    def _may(self, account: Account, token: str, scope: str) -> bool:
        query = "SELECT scopes FROM tokens WHERE id = ? AND account = ?"
        return scope in self._db.execute(query, (token, account.id)).fetchone()[0].split()

    def _until(self, token: str) -> str | None:
        until: str | None = self._db.execute("SELECT expires FROM tokens WHERE id = ?", (token,)).fetchone()[
            0
        ]
        return until

    def _check_room(self, account: Account) -> None:
        if len(self._tokens(account.id)) >= MOST_TOKENS:
            fix = "runner account rotate takes all away but a new one"
            raise RunnerError("E101", f"an account has at most {MOST_TOKENS} tokens and links", fix=fix)

    def close(self, account: Account) -> bool:
        """Close an account: its tokens open nothing any more. False when it was closed already."""
        with self._db:
            self._revoke(account)
            query = "UPDATE accounts SET closed = ? WHERE id = ? AND closed IS NULL"
            return self._db.execute(query, (self._now(), account.id)).rowcount == 1

    def reopen(self, account: Account) -> bool:
        """Open an account again: tokens of before stay revoked, new ones can be made. False when it was open. Raises E101 for one whose name was erased."""
        if account.role == "team" and account.team is None:
            raise RunnerError("E101", f"{account.id} was erased", fix="runner team add makes an account")
        with self._db:
            query = "UPDATE accounts SET closed = NULL WHERE id = ? AND closed IS NOT NULL"
            return self._db.execute(query, (account.id,)).rowcount == 1

    def erase(self, account: Account, *, keep_name: bool) -> None:
        """Close an account and erase all that is known of the people behind it; ``keep_name`` keeps the name of its team."""
        self.close(account)
        self.uses.erase(account.id)
        with self._db:
            self._db.execute("DELETE FROM tokens WHERE account = ?", (account.id,))
            if not keep_name:
                self._db.execute("UPDATE accounts SET team = NULL WHERE id = ?", (account.id,))
        self.identities.untie(account.id)
        self.people.erase(account.id)

    def known(self, account: str, token: str) -> tuple[Account, str] | None:
        """The account that a request names and the key of its token, also of one that was revoked; None where there is none."""
        query = "SELECT key FROM tokens WHERE id = ? AND account = ?"
        row = self._db.execute(query, (token, account)).fetchone()
        return None if row is None else (self._account(account), row[0])

    def check(self, account: Account, token: str, scope: str, at: datetime | None = None) -> None:
        """Raise E103 unless an account may do with this token what ``scope`` says: one that was taken away may nothing, one whose time
        is over may what was asked for before then (``at``; None: now)."""
        query = """SELECT t.scopes FROM tokens t JOIN accounts a ON a.id = t.account
                   WHERE t.id = ? AND a.id = ? AND t.revoked IS NULL AND a.closed IS NULL
                   AND (t.expires IS NULL OR t.expires >= ?)"""
        row = self._db.execute(query, (token, account.id, stamp(at or self._clock.now()))).fetchone()
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
        query = """SELECT t.id, t.key, a.id, a.role, a.team, t.scopes, t.expires FROM tokens t JOIN accounts a ON a.id = t.account
                   WHERE t.revoked IS NULL AND a.closed IS NULL AND (t.expires IS NULL OR t.expires >= ?)"""
        rows = self._db.execute(query, (self._now(),))
        return Access(
            {r[0]: Grant(r[0], verifier(r[1]), r[2], r[3], r[4], tuple(r[5].split()), r[6]) for r in rows}
        )

    def _account(self, id: str) -> Account:
        return next(one for one in self.all() if one.id == id)

    def _tokens(self, account: str) -> tuple[str, ...]:
        query = "SELECT id FROM tokens WHERE account = ? AND revoked IS NULL AND (expires IS NULL OR expires >= ?) ORDER BY rowid"
        return tuple(row[0] for row in self._db.execute(query, (account, self._now())))

    def _token(self, account: str, role: Role) -> Token:
        token = Token.new()
        self._insert(account, token.id, token.key, SCOPES[role])
        return token

    def _insert(
        self, account: str, token: str, key: str, scopes: Iterable[str], expires: str | None = None
    ) -> None:
        row = (token, account, key, " ".join(scopes), self._now(), expires)
        self._db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, NULL, ?)", row)

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
