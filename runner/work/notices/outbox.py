"""What was told to whom, and what is still to be sent: a database that survives restarts.

A notice is marked before it is sent. Killed while it sends, work does not know whether it came: it is not sent again, for
nobody is told twice. Receivers are ids (``hook:ID``, ``mail:organisers``, ``mail:team:NAME``), never addresses: these stay where
they can be erased.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import closing
from datetime import datetime, timedelta

from runner.exchange.database import Database, moved
from runner.model.clock import stamp
from runner.model.config import Config
from runner.work.notices.due import ADMITTED, Notice

FILE = "notices.sqlite"
PAUSES = tuple(timedelta(minutes=m) for m in (1, 5, 30, 120))  # after a try that failed; then it is given up
_NEW_TOO = ("deadline", ADMITTED)  # of these those are told who were named only now
_TABLES = (
    """
CREATE TABLE IF NOT EXISTS receivers (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS notices (receiver TEXT NOT NULL, key TEXT NOT NULL, about TEXT NOT NULL, team TEXT NOT NULL,
                                    text TEXT NOT NULL, path TEXT NOT NULL, state TEXT NOT NULL, tries INTEGER NOT NULL,
                                    due TEXT NOT NULL, PRIMARY KEY (receiver, key));
""",
)


class Outbox:
    """The open database."""

    def __init__(self, config: Config) -> None:
        self._db = Database(config.database_url or config.home / FILE, "notices")
        if not config.database_url or not moved(config.home / FILE, self._db, _TABLES, more=True):
            self._db.follow(_TABLES)
        with self._db:  # whoever was at it was killed
            self._db.execute("UPDATE notices SET state = 'unknown' WHERE state = 'trying'")

    def add(
        self, receiver: str, found: Iterable[Notice], now: datetime, wanted: Collection[str] | None = None
    ) -> None:
        """Have notices sent that this receiver was not told, of what is ``wanted`` (None: all). Nobody is told what happened before they
        were named, or wanted it; of a deadline they are, and that they were let in."""
        with self._db:
            query = "INSERT INTO receivers VALUES (?) ON CONFLICT DO NOTHING"
            new = self._db.execute(query, (receiver,)).rowcount == 1
            for one in found:
                wants = wanted is None or one.about in wanted
                if one.about in _NEW_TOO and not wants:
                    continue
                state = "waiting" if wants and (one.about in _NEW_TOO or not new) else "before"
                row = (receiver, one.key, one.about, one.team, one.text, one.path, state, stamp(now))
                query = "INSERT INTO notices VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING"
                self._db.execute(query, row)

    def next(self, now: datetime) -> tuple[str, Notice] | None:
        """The notice that is to be sent now, and to whom: marked as being sent; None where there is none."""
        query = """SELECT receiver, key, about, team, text, path FROM notices WHERE state = 'waiting' AND due <= ?
                   ORDER BY due, key LIMIT 1"""
        row = self._db.execute(query, (stamp(now),)).fetchone()
        if row is None:
            return None
        with self._db:
            self._set("trying", row[0], row[1])
        return row[0], Notice(*row[1:])

    def sent(self, receiver: str, key: str) -> None:
        """It was sent."""
        with self._db:
            self._set("sent", receiver, key)

    def drop(self, receiver: str, key: str) -> None:
        """It is not to be sent any more."""
        with self._db:
            self._set("dropped", receiver, key)

    def failed(self, receiver: str, key: str, now: datetime) -> bool:
        """It surely did not come; whether it is tried again."""
        query = "SELECT tries FROM notices WHERE receiver = ? AND key = ?"
        (tries,) = next(iter(self._db.execute(query, (receiver, key))))
        with self._db:
            if tries >= len(PAUSES):
                self._set("dropped", receiver, key)
                return False
            query = "UPDATE notices SET state = 'waiting', tries = ?, due = ? WHERE receiver = ? AND key = ?"
            self._db.execute(query, (tries + 1, stamp(now + PAUSES[tries]), receiver, key))
        return True

    def forget(self, team: str) -> None:
        """Forget what a team was told, and that it was."""
        with self._db:
            receiver = f"mail:team:{team}"
            self._db.execute("DELETE FROM notices WHERE receiver = ? OR team = ?", (receiver, team))
            self._db.execute("DELETE FROM receivers WHERE id = ?", (receiver,))

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def _set(self, state: str, receiver: str, key: str) -> None:
        self._db.execute(
            "UPDATE notices SET state = ? WHERE receiver = ? AND key = ?", (state, receiver, key)
        )


def forget_team(config: Config, team: str) -> None:
    """Forget what a team was told, where anybody was told anything. Raises DatabaseError."""
    if config.database_url or (config.home / FILE).exists():
        with closing(Outbox(config)) as outbox:
            outbox.forget(team)
