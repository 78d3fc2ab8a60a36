"""Registrations that wait for the organiser: what a stranger said, until it is approved (then it is an account) or refused (then it goes)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from runner.exchange.database import Database
from runner.model.calendar import calendar
from runner.model.clock import stamp
from runner.model.errors import RunnerError, no_such
from runner.model.task import Task

TABLES = """
CREATE TABLE registrations (account TEXT PRIMARY KEY, request TEXT NOT NULL, token TEXT NOT NULL, key TEXT NOT NULL,
                            arrival TEXT NOT NULL, said TEXT NOT NULL);
CREATE TABLE terms (account TEXT NOT NULL REFERENCES accounts (id), task TEXT NOT NULL, version TEXT NOT NULL,
                    sha256 TEXT NOT NULL, accepted TEXT NOT NULL, purpose TEXT NOT NULL);
"""
ACCEPTANCES = """
CREATE TABLE acceptances (account TEXT NOT NULL REFERENCES accounts (id), task TEXT NOT NULL, version TEXT NOT NULL,
                          sha256 TEXT NOT NULL, accepted TEXT NOT NULL, UNIQUE (account, task, version, sha256));
"""
LET_IN = "ALTER TABLE terms ADD COLUMN let_in TEXT"
DAY = timedelta(days=1)
MOST_SHOWN = 50  # of them on the console
NO_REGISTRATIONS: Mapping[str, Any] = {"waiting": [], "count": 0, "at_once": []}
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

    def __init__(self, database: Database) -> None:
        self._db = database

    def waiting(self) -> list[Registration]:
        """All of them, in the order in which they came."""
        rows = self._db.execute(
            "SELECT account, request, token, key, arrival, said FROM registrations ORDER BY rowid"
        )
        return [_read(*row) for row in rows]

    def named(self, text: str) -> Registration:
        """The one of that account id, or else the only one of that team: ids go before teams that are called as one. Raises E102."""
        there = self.waiting()
        found = [one for one in there if one.account == text] or [one for one in there if one.team == text]
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
            self._db.execute(
                "INSERT INTO registrations VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row
            )

    def remove(self, account: str) -> None:
        """Erase what was said in one."""
        with self._db:
            self._db.execute("DELETE FROM registrations WHERE account = ?", (account,))

    def last_day(self, task: str, now: datetime) -> list[str]:
        """When the teams registered for a task that were let in within the 24 hours before ``now`` (UTC), oldest first."""
        query = "SELECT accepted FROM terms WHERE task = ? AND accepted > ? ORDER BY accepted"
        return [at for (at,) in self._db.execute(query, (task, stamp(now - DAY)))]

    def shown(self, tasks: Iterable[Task], now: datetime) -> dict[str, Any]:
        """What the organiser's console says of them: without what people said, which stays beside work."""
        waiting = [
            {"account": one.account, "team": one.team, "task": one.task, "time": one.arrival}
            for one in self.waiting()
        ]
        found = [(task.id, rules) for task in tasks if (rules := calendar(task).registration) is not None]
        in_ = [
            {"task": id, "teams": len(self.last_day(id, now)), "of": rules.per_day}
            for id, rules in found
            if rules.approve == "at-once"
        ]
        return {"waiting": waiting[:MOST_SHOWN], "count": len(waiting), "at_once": in_}

    def accepted(self, one: Registration, let_in: str | None = None) -> None:
        """Note for an account which terms were accepted, when, and for what it wants the data; and when a person let it in (UTC)."""
        row = (one.account, one.task, *one.terms, one.arrival, one.purpose, let_in)
        with self._db:
            self._db.execute("DELETE FROM terms WHERE account = ? AND task = ?", (one.account, one.task))
            self._db.execute("INSERT INTO terms VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def let_in(self, since: datetime) -> list[tuple[str, str, str]]:
        """The open accounts that a person let in after ``since`` (UTC): account, team, task."""
        query = """SELECT a.id, a.team, t.task FROM terms t JOIN accounts a ON a.id = t.account
                   WHERE t.let_in > ? AND a.closed IS NULL AND a.team IS NOT NULL ORDER BY t.rowid"""
        return self._db.execute(query, (stamp(since),)).fetchall()

    def terms_of(self, account: str) -> list[dict[str, str]]:
        """What an account accepted: task, version, sha256, accepted (UTC), purpose."""
        names = ("task", "version", "sha256", "accepted", "purpose")
        query = """SELECT task, version, sha256, accepted, purpose FROM terms WHERE account = ?
                   UNION ALL SELECT task, version, sha256, accepted, '' FROM acceptances WHERE account = ? ORDER BY accepted"""
        return [dict(zip(names, row, strict=True)) for row in self._db.execute(query, (account, account))]

    def accept(self, account: str, task: str, terms: tuple[str, str], at: datetime) -> None:
        """Note that an account accepted terms (version and SHA-256) after it was let in; the same once."""
        row = (account, task, *terms, stamp(at))
        with self._db:
            self._db.execute("INSERT INTO acceptances VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row)

    def acceptances(self) -> dict[str, frozenset[tuple[str, str, str]]]:
        """What the teams with an open account accepted: task, version and SHA-256."""
        query = """SELECT a.team, t.task, t.version, t.sha256 FROM accounts a JOIN
                   (SELECT account, task, version, sha256 FROM terms
                    UNION SELECT account, task, version, sha256 FROM acceptances) t ON t.account = a.id
                   WHERE a.closed IS NULL AND a.team IS NOT NULL"""
        found: dict[str, set[tuple[str, str, str]]] = {}
        for team, *terms in self._db.execute(query):
            found.setdefault(team, set()).add((terms[0], terms[1], terms[2]))
        return {team: frozenset(found[team]) for team in sorted(found)}


def _read(account: str, request: str, token: str, key: str, arrival: str, said: str) -> Registration:
    data = json.loads(said)
    lists = {"members": tuple(data["members"]), "terms": tuple(data["terms"])}
    return Registration(account, request, token, key, arrival, **{**data, **lists})
