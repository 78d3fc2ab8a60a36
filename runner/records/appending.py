"""Lines that are appended to a file as a whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from runner.model.errors import PlatformError
from runner.records.archive_lock import exclusive
from runner.records.files import on_disk
from schemas.files import sync_folder

WHAT = "the event log cannot be written"


@dataclass
class Addition:
    """Lines that are appended to an open file of ``size`` bytes. They stay if ``kept`` is set, although the block raised."""

    descriptor: int
    size: int
    kept: bool = False

    def remove(self) -> None:
        """Take the lines back."""
        os.ftruncate(self.descriptor, self.size)
        with suppress(OSError):  # no reader sees the lines any more; only a crash can bring them back
            os.fsync(self.descriptor)


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Hold the lock of the file at ``path``, whose folder is made. Raises E306 after so many ``seconds``."""
    path = path.with_name(f"{path.name}.lock")

    def refused() -> PlatformError:
        why = f"Another process has held {path} for {seconds:g} s."
        fix = "wait for the other command, or end it"
        return PlatformError("the event log is locked", why=why, fix=fix, code="E306")

    with ExitStack() as lock:
        with on_disk(WHAT, path):
            lock.enter_context(exclusive(path, seconds, refused))
        yield


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Open the file for appending, which is made if it is missing; links are not followed. Raises E306."""
    with on_disk(WHAT, path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def added(descriptor: int, path: Path, lines: bytes) -> Iterator[Addition]:
    """Append ``lines`` to an open file for the block, and wait until they are on the disk.

    They are taken back if the disk refuses a part of them, or if the block raises and did not keep them. Raises E306.
    """
    addition = Addition(descriptor, os.fstat(descriptor).st_size)
    try:
        with on_disk(WHAT, path):
            if os.write(descriptor, lines) != len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
            if addition.size == 0:
                sync_folder(path.parent)
        yield addition
    except BaseException:
        if not addition.kept:
            addition.remove()
        raise
