"""The front's own database: what of sessions that ended is left in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from runner.exchange.access import Token
from runner.model.clock import FixedClock
from runner.web.sessions import Sessions


def everything(folder: Path) -> bytes:
    """The bytes of the database, its journals and what else lies beside it."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_the_key_of_a_session_that_ended_is_in_no_byte(tmp_path: Path) -> None:
    tokens = [Token.new() for _ in range(200)]
    with closing(Sessions(tmp_path)) as sessions:
        secrets = [sessions.begin(one.id, one.key) for one in tokens]
        assert tokens[7].key.encode() in everything(tmp_path), "of who is signed in it is there"
        for secret in secrets[:-1]:
            sessions.end(secret)
        left = everything(tmp_path)
        assert not [one.id for one in tokens[:-1] if one.key.encode() in left]
        assert tokens[-1].key.encode() in left and sessions.get(secrets[-1]) is not None


def test_what_a_version_before_left_goes_when_the_front_starts(tmp_path: Path) -> None:
    key = Token.new().key
    with closing(Sessions(tmp_path)) as sessions:
        sessions.begin("0" * 12, key)
    with closing(sqlite3.connect(tmp_path / "front.sqlite")) as old, old:
        old.execute("PRAGMA secure_delete = OFF")
        old.execute("DELETE FROM sessions")
    assert key.encode() in everything(tmp_path)
    with closing(Sessions(tmp_path)):
        assert key.encode() not in everything(tmp_path)


def test_a_session_lasts_as_long_as_it_should_whatever_the_clock_was(tmp_path: Path) -> None:
    clock, token = FixedClock(datetime(2031, 1, 1, tzinfo=UTC)), Token.new()
    with closing(Sessions(tmp_path, clock)) as sessions:
        now = sessions.begin(token.id, token.key)
        clock.at += timedelta(days=365)
        ahead = sessions.begin(token.id, token.key)
        assert sessions.get(now) is None and sessions.get(ahead) is not None
        clock.at -= timedelta(minutes=5)
        assert sessions.get(ahead) is not None, "clocks are corrected now and then"
        clock.at -= timedelta(days=364)
        assert sessions.get(ahead) is None, "it would last a year"
        assert sessions.get(sessions.begin(token.id, token.key)) is not None
