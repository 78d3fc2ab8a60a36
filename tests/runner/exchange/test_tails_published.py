"""Files of logs that grow: written as a whole, read only where they are what they should be, and removed unless they are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.exchange import tails
from runner.exchange.published import Published, Publisher, file_of
from runner.exchange.tails import Tail


def test_what_was_written_is_read_and_anything_else_is_not(tmp_path: Path) -> None:
    name = tails.new_name()
    assert tails.read(tmp_path, name) == Tail()
    long = Tail(1 << 40, '"\\' * (tails.MOST // 2))
    for tail in (Tail(), Tail(7, "text\n\u00e9"), long, Tail(0, "\U0001f642" * tails.MOST)):
        tails.write(tmp_path, name, tail)
        assert tails.read(tmp_path, name) == tail
    number = b'{"first": 0, "text": 1, "schema_version": 1}'
    for wrong in (b"", b"[]", b"{", number, b"[" * 100_000, b"x" * (1 << 20)):
        tails.place(tmp_path, name).write_bytes(wrong)
        assert tails.read(tmp_path, name) == Tail()
    with pytest.raises(ValueError):
        tails.place(tmp_path, "../access")
    assert tails.read(tmp_path, "../access") == Tail()


def test_what_nothing_names_any_more_is_removed(tmp_path: Path) -> None:
    named, other = tails.new_name(), tails.new_name()
    for name in (named, other):
        tails.write(tmp_path, name, Tail(0, "text"))
    tails.keep(tmp_path, {named})
    assert [path.stem for path in (tmp_path / "tails").iterdir()] == [named]


def test_publishing_goes_on_where_the_object_of_a_log_is_damaged(tmp_path: Path) -> None:
    to, name = Publisher(tmp_path), tails.new_name()
    tail = to.object("tails/run", "tail", "run", {"file": name})
    file_of(tmp_path, tail.data).write_bytes(b"{}")
    assert to.publish({"public": [], "team:alpha": [tail]})
    assert tails.named([Published(tmp_path).view("team:alpha")]) == set()
