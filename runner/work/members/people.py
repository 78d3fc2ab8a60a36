"""What people said of themselves: members, contact and affiliation of an account. Personal data stand here and nowhere else of ours,
so that they can be erased: events, archive and published things know accounts by opaque ids only."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from runner.exchange.database import Database
from runner.model.errors import RunnerError, no_such
from runner.model.names import display_problem

TABLES = """
CREATE TABLE people (account TEXT PRIMARY KEY REFERENCES accounts (id), contact TEXT NOT NULL, affiliation TEXT NOT NULL);
CREATE TABLE members (id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts (id), name TEXT NOT NULL);
"""
WANTED = "CREATE TABLE wanted (account TEXT PRIMARY KEY REFERENCES accounts (id), about TEXT NOT NULL);"
_PUT = """INSERT INTO people VALUES (?, ?, ?)
          ON CONFLICT (account) DO UPDATE SET contact = excluded.contact, affiliation = excluded.affiliation"""
MOST = 50  # members of an account


@dataclass(frozen=True)
class Member:
    """A person of an account, by an opaque id (``m-`` and 16 hex digits)."""

    id: str
    name: str


@dataclass(frozen=True)
class Known:
    """What is known of the people behind an account: empty where nothing is."""

    contact: str = ""
    affiliation: str = ""
    members: tuple[Member, ...] = ()


class People:
    """The personal data of all accounts."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, account: str) -> Known:
        """What is known of the people of an account."""
        query = "SELECT contact, affiliation FROM people WHERE account = ?"
        contact, affiliation = self._db.execute(query, (account,)).fetchone() or ("", "")
        found = self._db.execute("SELECT id, name FROM members WHERE account = ? ORDER BY rowid", (account,))
        return Known(contact, affiliation, tuple(Member(*one) for one in found))

    def put(
        self,
        account: str,
        *,
        contact: str | None = None,
        affiliation: str | None = None,
        members: Sequence[str] | None = None,
    ) -> None:
        """Note what was said; None leaves what is there. Members keep their ids as long as their names stay.

        Raises RunnerError E101 for a text that does not print, or is too long; nothing is noted then.
        """
        check_said(contact, affiliation, members)
        known = self.of(account)
        with self._db:
            told = (
                known.contact if contact is None else contact,
                known.affiliation if affiliation is None else affiliation,
            )
            row = (account, *told)
            self._db.execute(_PUT, row)
            if members is not None:
                ids = {one.name: one.id for one in known.members}
                self._db.execute("DELETE FROM members WHERE account = ?", (account,))
                for name in dict.fromkeys(members):
                    row = (ids.get(name) or f"m-{secrets.token_hex(8)}", account, name)
                    self._db.execute("INSERT INTO members VALUES (?, ?, ?)", row)

    def want(self, account: str, about: Sequence[str]) -> None:
        """Note what an account wants to be told by mail: words of notices.yaml, none for nothing."""
        with self._db:
            query = (
                "INSERT INTO wanted VALUES (?, ?) ON CONFLICT (account) DO UPDATE SET about = excluded.about"
            )
            self._db.execute(query, (account, " ".join(about)))

    def wants(self, account: str) -> tuple[str, ...] | None:
        """What an account wants to be told; None where it never said."""
        row = self._db.execute("SELECT about FROM wanted WHERE account = ?", (account,)).fetchone()
        return None if row is None else tuple(row[0].split())

    def all_wants(self) -> list[tuple[str, str]]:
        """The same of all accounts that said something, to see whether anything changed."""
        return self._db.execute("SELECT account, about FROM wanted ORDER BY account").fetchall()

    def erase(self, account: str) -> None:
        """Erase all that is known of the people of an account."""
        with self._db:
            for table in ("people", "members", "terms", "acceptances", "wanted"):
                self._db.execute(f"DELETE FROM {table} WHERE account = ?", (account,))  # noqa: S608

    def erase_member(self, account: str, member: str) -> None:
        """Erase one person of an account. Raises E102."""
        known = [one.id for one in self.of(account).members]
        if member not in known:
            raise no_such("member", member, known, of=account, fix="runner account list --people names them")
        with self._db:
            self._db.execute("DELETE FROM members WHERE id = ?", (member,))


def check_said(contact: str | None, affiliation: str | None, members: Sequence[str] | None) -> None:
    """Raise E101 for what nobody can be called, or be reached by."""
    said = [("contact", contact), ("affiliation", affiliation), *(("member", one) for one in members or ())]
    for what, text in said:
        if text and (problem := display_problem(text)):
            raise RunnerError("E101", f"the {what} {problem}", fix="write plain text on one line")
    if members is not None and (len(members) > MOST or not all(members)):
        raise RunnerError("E101", f"an account has at most {MOST} members, each with a name")
