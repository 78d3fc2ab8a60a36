"""The lock of an archive: one at a time among threads and processes, and threads wait without asking again and again."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any

import pytest
from filelock import Timeout

from runner.records import archive_lock
from runner.records.archive_lock import hold, locked


def test_one_thread_at_a_time_without_sleeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(10):
            with locked(tmp_path):
                inside += 1
                most = max(most, inside)
                threading.Event().wait(0.001)  # whoever may come in does
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == 1
    assert not slept


def test_a_thread_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_lock, "PATIENCE", 0.1)
    held, go = threading.Event(), threading.Event()
    other = threading.Thread(target=keep, args=(tmp_path, held, go))
    other.start()
    assert held.wait(60)
    try:
        with pytest.raises(Timeout), locked(tmp_path):
            pass
    finally:
        go.set()
        other.join(60)
    with locked(tmp_path):
        pass  # whoever gave up holds nothing


def keep(tmp: Path, held: threading.Event, go: threading.Event) -> None:
    with locked(tmp):
        held.set()
        go.wait(60)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_another_process_is_waited_for(tmp_path: Path, start: str) -> None:
    context: Any = multiprocessing.get_context(start)
    held, go = context.Event(), context.Event()
    with locked(tmp_path):
        pass  # a child that is forked now inherits what this process has opened
    other = context.Process(target=keep, args=(tmp_path, held, go))
    other.start()
    assert held.wait(60)
    waiting = threading.Event()

    def work() -> None:
        with locked(tmp_path):
            waiting.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert not waiting.wait(0.3)
    go.set()
    assert waiting.wait(60)
    thread.join(60)
    other.join(60)


def test_a_lock_that_is_given_up_twice_takes_no_other_with_it(tmp_path: Path) -> None:
    first = hold(tmp_path / "a")
    assert first is not None
    first.release()
    second = hold(tmp_path / "b")
    assert second is not None and second.descriptor == first.descriptor  # the lowest that is free
    first.release()
    first.remove()
    assert (tmp_path / "a").exists() and hold(tmp_path / "b") is None
    second.remove()
    assert not (tmp_path / "b").exists()
