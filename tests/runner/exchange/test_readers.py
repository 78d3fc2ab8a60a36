"""Which logs somebody reads: noted by the front again and again, forgotten by work, and never more than names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.exchange.readers import FRESH, MOST, RENEW, Readers, read_now
from runner.exchange.tails import new_name


def test_who_reads_is_noted_while_they_do(tmp_path: Path) -> None:
    now = [100.0]
    inbox, one, other = tmp_path / "inbox", new_name(), new_name()
    readers, note = Readers(inbox, lambda: now[0]), inbox / "readers"
    assert read_now(inbox) == frozenset()
    readers.read(one)
    first = note.stat().st_ino
    readers.read(one)
    assert read_now(inbox) == {one} and note.stat().st_ino == first, "not for each look"
    readers.read(other)
    assert read_now(inbox) == {one, other}, "who is new is noted at once"
    now[0] += RENEW
    readers.read(other)
    assert read_now(inbox) == {other}, "who went away is forgotten"
    past = note.stat().st_mtime - FRESH - 60
    os.utime(note, (past, past))
    assert read_now(inbox) == frozenset()


def test_what_a_front_notes_is_names_or_nothing(tmp_path: Path) -> None:
    note, name = tmp_path / "readers", new_name()
    note.write_text(f"../../etc\n{name}\n{name.upper()}x\n\0\n" + "0" * 32)
    assert read_now(tmp_path) == {name, "0" * 32}
    note.write_text("".join(f"{n:032x}\n" for n in range(5 * MOST)))
    assert len(read_now(tmp_path)) == MOST
    note.write_bytes(os.urandom(100_000))
    read_now(tmp_path)
    note.unlink()
    note.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text(name)
    assert read_now(tmp_path) == frozenset()
    note.unlink()
    os.mkfifo(note)
    assert read_now(tmp_path) == frozenset()


def test_a_disk_that_refuses_it_stops_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inbox").write_text("where the folder should be")
    Readers(tmp_path / "inbox").read(new_name())
    assert read_now(tmp_path / "inbox") == frozenset()
