"""The front's own database: sessions, and which requests it has taken. It may be lost: then people sign in again."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.exchange.database import Database, DatabaseError
from runner.exchange.inbox import Request
from runner.exchange.receipts import KEY, Signer
from runner.model.clock import Clock, SystemClock
from schemas.files import make_private

FILE = "front.sqlite"
LASTS = 12 * 3600.0  # seconds
AHEAD = 3600.0  # seconds by which a clock may have been set back since somebody signed in
_TABLES = (
    """
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, token TEXT NOT NULL, key TEXT NOT NULL, form TEXT NOT NULL,
                                     ends DOUBLE PRECISION NOT NULL);
CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, team TEXT, arrival TEXT NOT NULL, sha256 TEXT, size BIGINT,
                                     what TEXT NOT NULL, receipt TEXT);
CREATE TABLE IF NOT EXISTS replaced (token TEXT PRIMARY KEY, request TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS secret (one INTEGER PRIMARY KEY CHECK (one = 1), bytes BYTEA NOT NULL);
""",
)


@dataclass(frozen=True)
class Session:
    """Somebody who signed in with the token of that id. ``form`` has to come with everything that they send."""

    token: str
    key: str
    form: str

    def sent_by(self, form: str) -> bool:
        """Whether a form was given out in this session."""
        return hmac.compare_digest(self.form.encode(), form.encode())


class Sessions:
    """Sessions by a secret that only the cookie holds; the database has its hash. ``signer`` signs what arrives, with the key
    that is kept beside it."""

    def __init__(self, folder: Path, clock: Clock | None = None, server: str | None = None) -> None:
        """Open them in a file of ``folder``, or in a database of their own at the address of a ``server``. Raises DatabaseError."""
        self._clock = clock or SystemClock()
        make_private(folder)
        self._lock = threading.Lock()
        self._unwritten: dict[str, tuple[Any, ...]] = {}  # notes that the disk refused, by id
        try:
            self._db = _opened(server or folder / FILE)
        except DatabaseError as error:
            if not error.damaged:  # the disk, or rights
                raise
            for one in folder.glob(f"{FILE}*"):  # it is none: people sign in again
                one.unlink()
            self._db = _opened(folder / FILE)
        self.signer = Signer.load(folder / KEY)
        with self._db:
            query = "INSERT INTO secret VALUES (1, ?) ON CONFLICT DO NOTHING"
            self._db.execute(query, (secrets.token_bytes(32),))
        self._secret = next(bytes(one) for (one,) in self._db.execute("SELECT bytes FROM secret"))

    def seed(self, form: str, *said: str) -> bytes:
        """What is drawn for a form that was sent: the same when it is sent again, and guessed by nobody who has not the form."""
        return hmac.digest(self._secret, json.dumps([form, *said]).encode(), "sha256")

    @staticmethod
    def named(what: str, seed: bytes) -> str:
        """An id of 32 digits for ``what`` of a seed: others see it, and learn no bit of the seed, nor of the token that it draws."""
        return hashlib.sha256(b"proctor " + what.encode() + b"\0" + seed).hexdigest()[:32]

    def begin(self, token: str, key: str) -> str:
        """A new session, always with a new secret: one that was planted before is worth nothing. Returns the secret."""
        secret = secrets.token_urlsafe(32)
        row = (_hashed(secret), token, key, secrets.token_urlsafe(24), self._now() + LASTS)
        with self._lock, self._db:
            self._db.execute("DELETE FROM sessions WHERE ends < ?", (self._now(),))
            self._db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", row)
        return secret

    def get(self, secret: str) -> Session | None:
        """The session of a cookie; None when there is none, it is over, or by this clock begins in the future: it was ahead then, and a session
        of that time would last too long."""
        if not secret:
            return None  # most readers have no cookie, and wait for no lock
        query = "SELECT token, key, form FROM sessions WHERE id = ? AND ends > ? AND ends <= ?"
        with self._lock:
            now = self._now()
            row = self._db.execute(query, (_hashed(secret), now, now + LASTS + AHEAD)).fetchone()
        return Session(*row) if row else None

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def end(self, secret: str) -> None:
        """End a session."""
        with self._lock, self._db:
            self._db.execute("DELETE FROM sessions WHERE id = ?", (_hashed(secret),))

    def note(self, request: Request, what: str, receipt: Mapping[str, Any] | None) -> None:
        """Remember a request that was taken, to show it until it is answered; with the signed part of its receipt, if there is one.

        It is taken all the same when this disk is full: the note stays in memory until the disk takes it.
        """
        with self._lock:
            self._unwritten[request.id] = (
                request.id,
                request.team,
                request.arrival,
                request.sha256,
                request.size,
                what,
                None if receipt is None else json.dumps(receipt),
            )
            self._write_notes()

    def _write_notes(self) -> None:
        """Write the notes that are in memory only, if the disk takes them."""
        with suppress(DatabaseError):
            for id, row in list(self._unwritten.items()):
                self._write(id, row)
                del self._unwritten[id]

    def _write(self, id: str, row: tuple[Any, ...]) -> None:
        with self._db:
            self._db.execute("DELETE FROM requests WHERE id = ?", (id,))
            query = "INSERT INTO requests (id, team, arrival, sha256, size, what, receipt) VALUES (?, ?, ?, ?, ?, ?, ?)"
            self._db.execute(query, row)

    def noted(self, team: str | None, id: str = "", most: int = 100) -> list[dict[str, Any]]:
        """The requests of a team that were taken, the newest first, at most ``most``; or only the one of that id."""
        query = """SELECT id, arrival, sha256, size, what, receipt FROM requests WHERE coalesce(team, '') = ? AND (? = '' OR id = ?)
                   ORDER BY rowid DESC LIMIT ?"""
        with self._lock:
            self._write_notes()
            unwritten = [
                row
                for row in reversed(self._unwritten.values())
                if (row[1] or "") == (team or "") and id in ("", row[0])
            ]
            rows = [(row[0], *row[2:]) for row in unwritten]
            rows += self._db.execute(query, (team or "", id, id, most)).fetchall()
        names = ("id", "arrival", "sha256", "size", "what", "receipt")
        found = [dict(zip(names, row, strict=True)) for row in rows[:most]]
        return [{**one, "receipt": json.loads(one["receipt"]) if one["receipt"] else None} for one in found]

    def noted_ids(self) -> set[str]:
        """Return the ids of all requests that were noted."""
        with self._lock:
            return {str(id) for (id,) in self._db.execute("SELECT id FROM requests")} | {*self._unwritten}

    def replace(self, token: str, request: str) -> None:
        """Remember that a request replaces a token: it opens nothing here from now on, also before work has decided."""
        with self._lock, self._db:
            query = "INSERT INTO replaced VALUES (?, ?) ON CONFLICT (token) DO UPDATE SET request = excluded.request"
            self._db.execute(query, (token, request))

    def replaced_by(self, token: str) -> str | None:
        """The id of the request that replaces a token; None for one that nothing does."""
        with self._lock:
            row = self._db.execute("SELECT request FROM replaced WHERE token = ?", (token,)).fetchone()
        return str(row[0]) if row else None

    def close(self) -> None:
        """Close the database."""
        self._db.close()


def _opened(at: Path | str) -> Database:
    """The database, with its tables. Raises DatabaseError."""
    found = Database(at, "front")
    try:
        found.follow(_TABLES)
    except BaseException:
        found.close()
        raise
    return found


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
