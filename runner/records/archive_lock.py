"""The lock of a whole archive, to be held while folders and contents are made, moved or removed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from runner.records.files import on_disk

if TYPE_CHECKING:
    from filelock import BaseFileLock

PATIENCE = 60  # seconds for which another thread is waited for, and then another process


@contextmanager
def locked(tmp: Path) -> Iterator[None]:
    """Hold the lock of the archive whose folder of unfinished things is ``tmp``, which is made.

    Threads of this process wait for each other and then for other processes: a lock file is asked for again and again, so that several
    that asked at once would sleep while nobody has it. Raises E306 where the disk fails, and filelock.Timeout.
    """
    from filelock import Timeout

    with on_disk("the archive cannot be written"):
        tmp.mkdir(parents=True, exist_ok=True)
    turn, file = _of(tmp)
    if not turn.acquire(timeout=PATIENCE):
        raise Timeout(file.lock_file)
    try:
        with file:
            yield
    finally:
        turn.release()


@cache
def _of(tmp: Path) -> tuple[threading.Lock, BaseFileLock]:
    from filelock import FileLock

    return threading.Lock(), FileLock(tmp / ".lock", timeout=PATIENCE, thread_local=False)


os.register_at_fork(after_in_child=_of.cache_clear)  # another thread may have held them
