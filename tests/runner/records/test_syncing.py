"""Threads that wait for the disk at once wait together, and each is told what became of its own."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.records import syncing


class Disk:
    """Writes of a whole file system that wait until they may go on."""

    def __init__(self, fails: BaseException | None = None) -> None:
        self.calls, self._fails = 0, fails
        self.begun, self.go_on = threading.Event(), threading.Event()

    def each(self, paths: object) -> None:
        """In the place of what is done for a thread that came alone: the others come meanwhile."""
        self.begun.set()
        assert self.go_on.wait(60)

    def whole(self, _: Path) -> None:
        """In the place of ``syncfs``."""
        self.calls += 1
        if self._fails is not None:
            raise self._fails


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[[Disk], None]:
    """Have a disk do what is done for one thread."""
    return lambda disk: monkeypatch.setattr(syncing, "each", disk.each)


def _together(disk: Disk, number: int, path: Path) -> list[Future[None]]:
    """One thread that came first, and so many that wait until it is done; returns what becomes of these."""
    group = syncing.Group(disk.whole)
    with ThreadPoolExecutor(number + 1) as threads:
        first = threads.submit(group.wait, [path])
        assert disk.begun.wait(60)
        others = [threads.submit(group.wait, [path]) for _ in range(number)]
        while len(group.waiting) < number:
            pass
        disk.go_on.set()
        first.exception(60)
    assert group.leader is None and not group.waiting
    return others


def test_waiting_threads_are_synced_together(alone: Callable[[Disk], None], tmp_path: Path) -> None:
    alone(disk := Disk())
    assert [one.exception(60) for one in _together(disk, 20, tmp_path)] == [None] * 20
    assert disk.calls == 1


def test_all_waiting_threads_get_the_disk_error(alone: Callable[[Disk], None], tmp_path: Path) -> None:
    alone(disk := Disk(OSError(errno.EIO, "lost", "x")))
    for one in _together(disk, 5, tmp_path):
        error = one.exception(60)
        assert isinstance(error, OSError) and error.errno == errno.EIO


def test_whoever_is_interrupted_leaves_nobody_waiting(alone: Callable[[Disk], None], tmp_path: Path) -> None:
    alone(disk := Disk(KeyboardInterrupt()))
    found = [one.exception(60) for one in _together(disk, 5, tmp_path)]
    # Each leads once, as the one before it was interrupted; the last two are too few for all of it.
    assert [type(one) for one in found].count(KeyboardInterrupt) == disk.calls == 3
    assert found.count(None) == 2


def test_one_alone_waits_for_its_own_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    synced, fsync = list[str](), os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda n: (synced.append(os.readlink(f"/proc/self/fd/{n}")), fsync(n))[1]
    )
    disk = Disk()
    syncing.Group(disk.whole).wait([tmp_path / "file", tmp_path])
    assert synced == [str(tmp_path / "file"), str(tmp_path)] and disk.calls == 0
    with pytest.raises(FileNotFoundError):
        syncing.Group(disk.whole).wait([tmp_path / "none"])


def test_unknown_file_systems_sync_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncing, "file_system", lambda _: "fuse.x")
    syncing.group_of.cache_clear()
    try:
        assert syncing.group_of(tmp_path.stat().st_dev).whole is None
        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(lambda _: syncing.settle([tmp_path]), range(32))) == [None] * 32
    finally:
        syncing.group_of.cache_clear()


def test_the_file_system_is_the_one_that_is_mounted_there(tmp_path: Path) -> None:
    assert syncing.file_system(Path("/proc").stat().st_dev) == "proc"
    assert syncing.file_system(0) == ""
    whole = syncing.syncfs()
    assert whole is not None
    whole(tmp_path)
    with pytest.raises(FileNotFoundError):
        whole(tmp_path / "none")


def test_an_interrupted_wait_blocks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Cut:
        """A lock at which a thread is interrupted the second time."""

        times = 0

        def acquire(self) -> None:
            self.times += 1
            if self.times > 1:
                raise KeyboardInterrupt

        def release(self) -> None:
            """Nothing waits."""

    group, asked = syncing.Group(Disk().whole), syncing.Asked
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(syncing, "Asked", lambda paths: asked(paths, Cut()))  # type: ignore[arg-type]
        group.wait([tmp_path])
    assert group.leader is None and not group.waiting
    group.wait([tmp_path])
