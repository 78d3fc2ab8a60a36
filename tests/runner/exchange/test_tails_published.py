"""Files of logs that grow: written as a whole, read only where they are what they should be, and swept once nothing names them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runner.exchange import tails
from runner.exchange.published import KEPT_SECONDS, Published, Publisher, file_of, sweep
from runner.exchange.tails import Tail


def test_what_was_written_is_read_and_anything_else_is_not(tmp_path: Path) -> None:
    name = tails.new_name()
    assert tails.read(tmp_path, name) is None and tails.version(tmp_path, name) is None
    long = Tail(1 << 40, '"\\' * (tails.MOST // 2))
    for tail in (Tail(), Tail(7, "text\n\u00e9"), long, Tail(0, "\U0001f642" * tails.MOST)):
        tails.write(tmp_path, name, tail)
        assert tails.read(tmp_path, name) == tail
    number = b'{"first": 0, "text": 1, "schema_version": 1}'
    for wrong in (b"", b"[]", b"{", number, b"[" * 100_000, b"x" * (1 << 20)):
        tails.place(tmp_path, name).write_bytes(wrong)
        assert tails.read(tmp_path, name) is None
    with pytest.raises(ValueError):
        tails.place(tmp_path, "../access")
    assert tails.read(tmp_path, "../access") is None


def test_somebody_gets_what_came_since() -> None:
    tail = Tail(10, "0123456789")
    assert tail.since(15) == Tail(15, "56789") and tail.since(20) == Tail(20, "")
    assert tail.since(3) == tail, "what is not there any more is left out"
    assert tail.since(21) == tail, "it has begun anew"


def test_what_nothing_names_any_more_is_swept(tmp_path: Path) -> None:
    to, named, other, young = Publisher(tmp_path), *(tails.new_name() for _ in range(3))
    for name in (named, other, young):
        tails.write(tmp_path, name, Tail(0, "text"))
    for name in (named, other):
        os.utime(tails.place(tmp_path, name), (time.time() - 2 * KEPT_SECONDS,) * 2)
    to.publish({"public": [], "team:alpha": [to.object("tails/run", "tail", "run", {"file": named})]})
    sweep(tmp_path)
    assert {path.stem for path in (tmp_path / "tails").iterdir()} == {named, young}


def test_publishing_goes_on_where_the_object_of_a_log_is_damaged(tmp_path: Path) -> None:
    to, name = Publisher(tmp_path), tails.new_name()
    tail = to.object("tails/run", "tail", "run", {"file": name})
    file_of(tmp_path, tail.data).write_bytes(b"{}")
    assert to.publish({"public": [], "team:alpha": [tail]})
    assert tails.named([Published(tmp_path).view("team:alpha")]) == set()
