"""Locks of an archive: of the whole, to be held while others are looked at or removed, and of single things.

All are locks of the kernel on files (flock), which end with the process that holds them, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from runner.records.files import on_disk
from schemas.files import make_private

if TYPE_CHECKING:
    from filelock import BaseFileLock

    from runner.model.errors import PlatformError

WORK_LOCK = "work.lock"  # of the work process, in the folder of locks
COORDINATOR_LOCK = "coordinator.lock"  # of the process that runs and evaluates
PATIENCE = 60  # seconds for which another thread is waited for, and then another process
_held: set[Held] = set()  # what this process has open of locks


@dataclass(frozen=True, eq=False)  # each is another: the number of a descriptor is given again
class Held:
    """A lock that this process holds on the file at ``path``."""

    path: Path
    descriptor: int

    def release(self) -> None:
        """Give it up; the file stays. Nothing where that is done, or by a process that was forked from the one that holds it."""
        with suppress(KeyError):
            _held.remove(self)
            os.close(self.descriptor)

    def remove(self) -> None:
        """As :meth:`release`, and the file is removed. Raises OSError where it cannot be; the lock is given up then, too."""
        if self not in _held:
            return
        try:
            self.path.unlink(missing_ok=True)  # before: whoever has it open sees that it is another one
        finally:
            self.release()


def hold(path: Path, *, make: bool = True) -> Held | None:
    """Hold the lock on a file, which is made unless ``make`` is False; None where another holds it. Raises OSError."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if make else 0), 0o644)
        held = Held(path, descriptor)
        _held.add(held)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    return held
        except BlockingIOError:
            held.release()
            return None
        except BaseException:
            held.release()
            raise
        held.release()  # whoever held it has removed the file meanwhile


@contextmanager
def locked(tmp: Path) -> Iterator[None]:
    """Hold the lock of the archive whose folder of unfinished things is ``tmp``, which is made.

    Threads of this process wait for each other and then for other processes: those ask for it again and again, so that several threads
    that asked at once would sleep while nobody has it. Raises E306 where the disk fails, and filelock.Timeout.
    """
    from filelock import Timeout

    turn, waiting = _of(tmp)
    if not turn.acquire(timeout=PATIENCE):
        raise Timeout(waiting.lock_file)
    try:
        with on_disk("the archive cannot be written", tmp):
            try:
                held = hold(tmp / ".lock")
            except FileNotFoundError:
                make_private(tmp)
                held = hold(tmp / ".lock")
        if held is None:
            with waiting:
                yield
            return
        try:
            yield
        finally:
            held.release()
    finally:
        turn.release()


@contextmanager
def exclusive(path: Path, seconds: float, refused: Callable[[], PlatformError]) -> Iterator[None]:
    """Hold the lock file at ``path``, whose folder is made. Raises what ``refused`` returns after so many ``seconds``, and OSError."""
    from filelock import FileLock, Timeout

    make_private(path.parent)
    lock = FileLock(path, timeout=seconds)
    try:
        lock.acquire()
    except Timeout as error:
        raise refused() from error
    try:
        yield
    finally:
        lock.release()


def is_held(path: Path) -> bool:
    """Return True if a process holds this lock now; it may release it in the next moment."""
    from filelock import FileLock, Timeout

    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # of another user, or on a disk that cannot be written
        return False


@cache
def _of(tmp: Path) -> tuple[threading.Lock, BaseFileLock]:
    from filelock import FileLock

    return threading.Lock(), FileLock(tmp / ".lock", timeout=PATIENCE, thread_local=False)


def _forget() -> None:
    """In a process that was forked: another thread may have held turns, and what is locked is locked by the other process."""
    _of.cache_clear()
    for held in _held:
        with suppress(OSError):
            os.close(held.descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget)
