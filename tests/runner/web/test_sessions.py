"""The front's own database: what of sessions that ended is left in it."""

from __future__ import annotations

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
