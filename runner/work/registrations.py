"""Registrations that wait for the organiser: what a stranger said, until it is approved (then it is an account) or refused (then it goes)."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from runner.model.errors import RunnerError, no_such

TABLES = """
CREATE TABLE registrations (account TEXT PRIMARY KEY, request TEXT NOT NULL, token TEXT NOT NULL, key TEXT NOT NULL,
                            arrival TEXT NOT NULL, said TEXT NOT NULL);
CREATE TABLE terms (account TEXT NOT NULL REFERENCES accounts (id), task TEXT NOT NULL, version TEXT NOT NULL,
                    sha256 TEXT NOT NULL, accepted TEXT NOT NULL, purpose TEXT NOT NULL);
"""
MOST = 500  # that wait at a time: more are not taken


@dataclass(frozen=True)
class Registration:
    """What somebody asked to be: ``account`` and ``token`` are ids that the front made up, ``key`` is the token's, ``arrival`` when it
    came (UTC). ``terms`` are version and SHA-256 of what was accepted; both empty where the task has none."""

    account: str
    request: str
    token: str
    key: str
    arrival: str
    task: str
    team: str
    contact: str = ""
    affiliation: str = ""
    members: tuple[str, ...] = ()
    purpose: str = ""
    terms: tuple[str, str] = ("", "")


_SAID = ("task", "team", "contact", "affiliation", "members", "purpose", "terms")


class Registrations:
    """Those that wait."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def waiting(self) -> list[Registration]:
        """All of them, in the order in which they came."""
        rows = self._db.execute(
            "SELECT account, request, token, key, arrival, said FROM registrations ORDER BY rowid"
        )
        return [_read(*row) for row in rows]

    def named(self, text: str) -> Registration:
        """The one of that account id, or the only one of that team. Raises E102."""
        there = self.waiting()
        found = [one for one in there if text in (one.account, one.team)]
        if len(found) != 1:
            why = "Several that wait are called so." if found else "Nobody of that name waits."
            known = [one.account for one in there]
            raise no_such(
                "registration", text, known, why=why, fix="runner team waiting names them by their ids"
            )
        return found[0]

    def put(self, one: Registration) -> None:
        """Have a registration wait; the same once. Raises E101 when too many do."""
        there = {known.account for known in self.waiting()}
        if one.account not in there and len(there) >= MOST:
            raise RunnerError("E101", "too many registrations wait", fix="try again in some days")
        said = json.dumps({name: getattr(one, name) for name in _SAID})
        row = (one.account, one.request, one.token, one.key, one.arrival, said)
        with self._db:
            self._db.execute("INSERT OR IGNORE INTO registrations VALUES (?, ?, ?, ?, ?, ?)", row)

    def remove(self, account: str) -> None:
        """Erase what was said in one."""
        with self._db:
            self._db.execute("DELETE FROM registrations WHERE account = ?", (account,))

    def accepted(self, one: Registration) -> None:
        """Note for an account which terms were accepted, when, and for what it wants the data."""
        row = (one.account, one.task, *one.terms, one.arrival, one.purpose)
        with self._db:
            self._db.execute("DELETE FROM terms WHERE account = ? AND task = ?", (one.account, one.task))
            self._db.execute("INSERT INTO terms VALUES (?, ?, ?, ?, ?, ?)", row)

    def terms_of(self, account: str) -> list[dict[str, str]]:
        """What an account accepted: task, version, sha256, accepted (UTC), purpose."""
        names = ("task", "version", "sha256", "accepted", "purpose")
        query = "SELECT task, version, sha256, accepted, purpose FROM terms WHERE account = ? ORDER BY rowid"
        return [dict(zip(names, row, strict=True)) for row in self._db.execute(query, (account,))]


def _read(account: str, request: str, token: str, key: str, arrival: str, said: str) -> Registration:
    data = json.loads(said)
    lists = {"members": tuple(data["members"]), "terms": tuple(data["terms"])}
    return Registration(account, request, token, key, arrival, **{**data, **lists})
