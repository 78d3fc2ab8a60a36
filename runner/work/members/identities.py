"""Who at a provider of OpenID Connect is which account: tied by the organiser, one person at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runner.exchange.database import Database
from runner.model.errors import RunnerError

TABLES = """
CREATE TABLE identities (issuer TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL,
                         account TEXT NOT NULL REFERENCES accounts (id), PRIMARY KEY (issuer, kind, value));
"""


@dataclass(frozen=True)
class Identity:
    """Somebody at a provider (``issuer``): by ``kind`` (``subject`` or ``mail``) and its value."""

    issuer: str
    kind: str
    value: str


class Identities:
    """All of them. Values are personal data, and are erased with their account."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, account: str) -> list[Identity]:
        """By what an account is tied."""
        query = "SELECT issuer, kind, value FROM identities WHERE account = ? ORDER BY rowid"
        return [Identity(*row) for row in self._db.execute(query, (account,))]

    def tie(self, account: str, one: Identity) -> None:
        """Tie somebody to an account. Raises E101 when they are another's."""
        known = self.account(one.issuer, [(one.kind, one.value)])
        if known not in (None, account):
            fix = f"runner account untie {known} first"
            raise RunnerError("E101", f"that {one.kind} is tied to another account", fix=fix)
        with self._db:
            row = (one.issuer, one.kind, one.value, account)
            self._db.execute("INSERT INTO identities VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", row)

    def untie(self, account: str) -> bool:
        """Tie nobody to an account any more; whether anybody was."""
        with self._db:
            return self._db.execute("DELETE FROM identities WHERE account = ?", (account,)).rowcount > 0

    def account(self, issuer: str, who: Iterable[tuple[str, str]]) -> str | None:
        """The account that somebody is tied to by the first of these that is known: kind and value; None for none."""
        query = "SELECT account FROM identities WHERE issuer = ? AND kind = ? AND value = ?"
        found = (self._db.execute(query, (issuer, *one)).fetchone() for one in who)
        return next((str(row[0]) for row in found if row is not None), None)
