"""What organisers see of tokens: of which kind each is, until when it opens something, and when it was used last.

Used means that a request signed with it was decided by work: whoever only looks is seen by the front, whose word does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runner.exchange.access import LINK
from runner.exchange.database import Database

TABLES = "CREATE TABLE uses (token TEXT PRIMARY KEY, last TEXT NOT NULL);"
Kind = Literal["token", "link", "sign-in"]


@dataclass(frozen=True)
class TokenFacts:
    """A token that opens something, or a one-time link that nobody used, or a token of a sign-in at a provider. Times are UTC:
    when it was made, until when it holds (None: until it is taken away), when it signed something last (None: never)."""

    id: str
    kind: Kind
    scopes: tuple[str, ...]
    created: str
    until: str | None
    last_used: str | None


class Uses:
    """The tokens of all accounts, as organisers see them."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def note(self, token: str, at: str) -> None:
        """Note that a token signed a request that came then (UTC); what came before the last one changes nothing."""
        with self._db:
            query = """INSERT INTO uses VALUES (?, ?) ON CONFLICT (token) DO UPDATE SET last = excluded.last
                       WHERE excluded.last > uses.last"""
            self._db.execute(query, (token, at))

    def of(self, account: str, now: str) -> list[TokenFacts]:
        """The tokens of an account that hold now, oldest first."""
        query = """SELECT t.id, t.scopes, t.created, t.expires, u.last FROM tokens t LEFT JOIN uses u ON u.token = t.id
                   WHERE t.account = ? AND t.revoked IS NULL AND (t.expires IS NULL OR t.expires >= ?) ORDER BY t.rowid"""
        rows = self._db.execute(query, (account, now)).fetchall()
        return [
            TokenFacts(id, _kind(scopes, until), tuple(scopes.split()), made, until, last)
            for id, scopes, made, until, last in rows
        ]

    def erase(self, account: str) -> None:
        """Forget when the tokens of an account were used."""
        with self._db:
            query = "DELETE FROM uses WHERE token IN (SELECT id FROM tokens WHERE account = ?)"
            self._db.execute(query, (account,))


def _kind(scopes: str, until: str | None) -> Kind:
    return "link" if scopes == LINK else "token" if until is None else "sign-in"
