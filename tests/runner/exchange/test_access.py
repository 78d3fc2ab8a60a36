"""Tokens: what is published of them opens nothing, and proves nothing."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from runner.exchange.access import FILE, Access, Grant, Token, prove, proven, verifier


def grant(token: Token) -> Grant:
    return Grant(token.id, verifier(token.key), "a-" + "1" * 16, "team", "alpha", ("read", "hand-in"))


def test_a_token_opens_what_it_was_given_until_it_is_taken_away(tmp_path: Path) -> None:
    token, other = Token.new(), Token.new()
    assert Access.read(tmp_path).grant(token) is None
    Access({token.id: grant(token)}).write(tmp_path)
    assert Access.read(tmp_path).grant(token) == grant(token)
    assert Access.read(tmp_path).grant(Token(token.id, other.secret)) is None
    assert Access.read(tmp_path).grant(other) is None
    Access({}).write(tmp_path)
    assert Access.read(tmp_path).grant(token) is None


def test_what_is_published_holds_neither_secret_nor_key(tmp_path: Path) -> None:
    token = Token.new()
    Access({token.id: grant(token)}).write(tmp_path)
    text = (tmp_path / FILE).read_text()
    assert token.secret not in text and token.key not in text and token.secret not in repr(token)
    published = json.loads(text)["grants"][0]["verifier"]
    message = {"task": "mini"}
    assert proven(token.key, message, prove(token.key, message))
    assert not proven(token.key, message, prove(published, message)), "a verifier signs nothing"
    assert not proven(token.key, {"task": "other"}, prove(token.key, message))


def test_a_token_is_read_as_it_is_shown_and_nothing_else_is_one() -> None:
    token = Token.new()
    assert Token.read(f" {token}\n") == token
    for text in ("", "proctor_", str(token)[:-1], f"{token}x", str(token).upper(), "proctor_zz_" + "a" * 43):
        assert Token.read(text) is None


def test_a_damaged_list_lets_nobody_in(tmp_path: Path) -> None:
    token = Token.new()
    Access({token.id: grant(token)}).write(tmp_path)
    good = (tmp_path / FILE).read_text()
    for bad in ("", "{}", good[:-2], good.replace('"team":"alpha"', '"team":7')):
        (tmp_path / FILE).write_text(bad)
        assert Access.read(tmp_path).grant(token) is None


def test_a_file_replaced_within_the_same_tick_of_the_clock_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Linux 6.13 a file's time has steps of 4 to 10 ms, and a new file may get the old inode."""
    at, seen = time.time_ns(), list[str]()
    monkeypatch.setattr(time, "time_ns", lambda: at + 1_000_000)
    for account in ("a-" + "1" * 16, "a-" + "2" * 16):
        Access({"a" * 12: Grant("a" * 12, "b" * 64, account, "team", "alpha", ("read",))}).write(tmp_path)
        kept = tmp_path / "kept"  # always the same inode
        kept.write_bytes((tmp_path / FILE).read_bytes())
        (tmp_path / FILE).unlink()
        (tmp_path / FILE).hardlink_to(kept)
        os.utime(kept, ns=(at, at))
        seen += [grant.account for grant in Access.read(tmp_path).grants.values()]
    assert seen == ["a-" + "1" * 16, "a-" + "2" * 16]
