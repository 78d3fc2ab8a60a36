"""Accounts and their tokens, and one-time links, which are tokens that ask for a token and open nothing else. Kept as keys (:mod:`runner.exchange.access`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from runner.exchange.access import LINK, Access, Grant, Role, Token, verifier
from runner.exchange.database import Database
from runner.model.clock import Clock, stamp
from runner.model.errors import RunnerError

SCOPES: dict[Role, tuple[str, ...]] = {
    "organiser": ("read", "manage"),
    "assistant": ("read", "manage"),
    "team": ("read", "hand-in", "manage"),
    "assessor": ("read", "manage"),
}
MOST_LENT = 5  # tokens of signing in at a provider
MOST_TOKENS = 20  # of an account at a time
TABLES = """
CREATE TABLE tokens (id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts (id), key TEXT NOT NULL,
                     scopes TEXT NOT NULL, created TEXT NOT NULL, revoked TEXT);
CREATE INDEX tokens_of ON tokens (account);
"""
EXPIRING = "ALTER TABLE tokens ADD COLUMN expires TEXT"


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


class Tokens:
    """The tokens in the database of accounts. Whoever changes any publishes anew what they open."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db, self._clock = database, clock

    def of(self, account: str) -> tuple[str, ...]:
        """The ids of the tokens and links of an account that open something, the oldest first."""
        query = "SELECT id FROM tokens WHERE account = ? AND revoked IS NULL AND (expires IS NULL OR expires >= ?) ORDER BY rowid"
        return tuple(row[0] for row in self._db.execute(query, (account, self._now())))

    def has(self, token: str) -> bool:
        """Whether there is a token of that id, or was."""
        return self._db.execute("SELECT 1 FROM tokens WHERE id = ?", (token,)).fetchone() is not None

    def key(self, account: str, token: str) -> str | None:
        """The key of a token of an account, also of one that was revoked; None where there is none."""
        query = "SELECT key FROM tokens WHERE id = ? AND account = ?"
        row = self._db.execute(query, (token, account)).fetchone()
        return None if row is None else str(row[0])

    def new(self, account: str, role: Role) -> Token:
        """A new token of an account, in the transaction of the caller."""
        token = Token.new()
        self.insert(account, token.id, token.key, SCOPES[role])
        return token

    def insert(
        self, account: str, token: str, key: str, scopes: Iterable[str], expires: str | None = None
    ) -> None:
        """Note a token, in the transaction of the caller."""
        row = (token, account, key, " ".join(scopes), self._now(), expires)
        self._db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, NULL, ?)", row)

    def revoke(self, account: Account) -> None:
        """Revoke all of an account, in the transaction of the caller."""
        query = "UPDATE tokens SET revoked = ? WHERE account = ? AND revoked IS NULL"
        self._db.execute(query, (self._now(), account.id))

    def erase(self, account: Account) -> None:
        """Forget all of an account, in the transaction of the caller."""
        self._db.execute("DELETE FROM tokens WHERE account = ?", (account.id,))

    def rotate(self, account: Account) -> Token:
        """A new token in the place of all others of an account. Raises E101 for one that is closed."""
        if account.closed is not None:
            raise RunnerError("E101", f"the account of {account.team or account.role} is closed")
        with self._db:
            self.revoke(account)
            return self.new(account.id, account.role)

    def link(self, account: Account, lasts: timedelta) -> tuple[Token, str]:
        """A one-time link, as a token that asks for a token and opens nothing else, and until when (UTC). Raises E101."""
        self._check_room(account)
        token, until = Token.new(), stamp(self._clock.now() + lasts)
        with self._db:
            self.insert(account.id, token.id, token.key, (LINK,), until)
        return token, until

    def put(
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
            self.insert(account.id, token, key, SCOPES[account.role] if linked else scopes, until)
        return True

    def lend(self, account: Account, token: str, key: str, lasts: timedelta) -> bool:
        """Note a token for a while, of somebody who signed in at a provider; False when it is there, or was. The account keeps
        :data:`MOST_LENT` of these, the newest. Raises E103 for an account that is closed."""
        if account.closed is not None:
            raise RunnerError("E103", "the account is closed", fix="ask the organiser")
        with self._db:
            if self.has(token):
                return False
            self.insert(account.id, token, key, SCOPES[account.role], stamp(self._clock.now() + lasts))
            self._take_back(account, MOST_LENT)
        return True

    def take_back(self, account: Account) -> None:
        """Revoke every token that was lent to an account."""
        with self._db:
            self._take_back(account, 0)

    def _take_back(self, account: Account, keep: int) -> None:
        query = """SELECT id FROM tokens WHERE account = ? AND revoked IS NULL AND expires IS NOT NULL AND scopes <> ?
                   ORDER BY rowid DESC"""
        for (id,) in self._db.execute(query, (account.id, LINK)).fetchall()[keep:]:
            self._db.execute("UPDATE tokens SET revoked = ? WHERE id = ?", (self._now(), id))

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
        row = self._db.execute(query, (token, account.id)).fetchone()
        return row is not None and scope in row[0].split()

    def _until(self, token: str) -> str | None:
        row = self._db.execute("SELECT expires FROM tokens WHERE id = ?", (token,)).fetchone()
        return None if row is None else row[0]

    def _check_room(self, account: Account) -> None:
        if len(self.of(account.id)) >= MOST_TOKENS:
            fix = "runner account rotate takes all away but a new one"
            raise RunnerError("E101", f"an account has at most {MOST_TOKENS} tokens and links", fix=fix)

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

    def _now(self) -> str:
        return stamp(self._clock.now())
