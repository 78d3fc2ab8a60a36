"""Whose containers are whose: the identity of this process, and user ids and processors that no two sandboxes share."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from runner.engines.base import Cancelled
from runner.engines.sandbox import FIRST_UID, NOBODY
from runner.model.errors import PlatformError

if TYPE_CHECKING:
    from filelock import BaseFileLock

MAX_SLOTS = 4000
FIRST_ROOM_UID = FIRST_UID + 2 * MAX_SLOTS  # after those of sidecars
_LOOK = 0.2  # seconds between looks at which processors are free
ROOM_PROGRAMS = 128  # that run in one room, each under a user id of its own


@cache
def boot_id() -> str:
    """Return the id that this machine's kernel got when it was started; empty if it cannot be read."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def _started(pid: int) -> str:
    """The start time of a process in clock ticks since boot; empty where that cannot be read."""
    with suppress(OSError, IndexError):
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return text.rpartition(")")[2].split()[19]
    return ""


def me() -> str:
    """This process, as it is written on everything it makes: host, boot, process id and its start time."""
    pid = os.getpid()
    return f"{socket.gethostname()}|{boot_id()}|{pid}|{_started(pid)}"


def alive(owner: str) -> bool:
    """Whether the process that wrote ``owner`` may still live. Unknown hosts count as alive."""
    parts = owner.split("|")
    if len(parts) != 4 or not parts[2].isdigit():
        return True
    host, boot, pid, started = parts
    if host != socket.gethostname():
        return True
    if boot != boot_id():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return not started or started == _started(int(pid))


def default_locks() -> Path:
    """A folder for locks that all processes of this user share, whatever project they work on."""
    return Path(tempfile.gettempdir()) / f"proctor-locks-{os.getuid()}"


def private_folder(path: Path) -> Path:
    """``path`` made (mode 0700) and checked to be ours. Raises E306."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PlatformError(
            "the folder for locks is not ours",
            why=f"{path} is a link or belongs to somebody else.",
            fix="remove it, or set TMPDIR to a folder of your own",
            code="E306",
        )
    return path


class _Number:
    """The lowest free number, which nobody else has until :meth:`release`; across processes, by files in ``locks``."""

    def __init__(self, locks: Path, name: str, numbers: range) -> None:
        """Take it. Raises E303 when all ``numbers`` are taken."""
        from filelock import FileLock, Timeout

        folder = private_folder(locks)
        for number in numbers:
            lock = FileLock(folder / f"{name}-{number}.lock", thread_local=False)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            self.number = number
            self._lock: BaseFileLock = lock
            return
        raise PlatformError("no user id is free for another sandbox", why=f"{len(numbers)} are in use.")

    def release(self) -> None:
        """Give it back."""
        self._lock.release()


class Processors:
    """Processors of a machine that no other pinned container has until :meth:`release`, across processes, by files."""

    def __init__(self, locks: Path, name: str, there: Sequence[int], count: int) -> None:
        self._folder, self._name, self._there, self._count = private_folder(locks), name, there, count
        self._locks: list[BaseFileLock] = []
        self.numbers: tuple[int, ...] = ()

    def take(self, cancelled: Callable[[], bool]) -> None:
        """Wait until enough of them are free and take them: all that are wanted, or none. Raises :class:`Cancelled`.

        Nobody holds a part of what it needs while it waits, so that two can never wait for each other.
        """
        while not self._taken():
            if cancelled():
                raise Cancelled
            time.sleep(_LOOK)

    def _taken(self) -> bool:
        from filelock import FileLock, Timeout

        found = []
        with FileLock(self._folder / f"{self._name}.lock", thread_local=False):
            for number in self._there:
                lock = FileLock(self._folder / f"{self._name}-{number}.lock", thread_local=False)
                try:
                    lock.acquire(timeout=0)
                except Timeout:
                    continue
                found.append(number)
                self._locks.append(lock)
                if len(found) == self._count:
                    self.numbers = tuple(found)
                    return True
            self.release()
        return False

    def release(self) -> None:
        """Give them back."""
        for lock in self._locks:
            lock.release()
        self._locks, self.numbers = [], ()


class Slot(_Number):
    """Two user ids that are ours alone until :meth:`release`, across processes (limits count by user id).

    ``uid`` is for softwares and evaluators, ``sidecar_uid`` for sidecars and gateways.
    """

    def __init__(self, locks: Path) -> None:
        """Take the lowest free id. Raises E303 when thousands are taken."""
        super().__init__(locks, "uid", range(FIRST_UID + 1, FIRST_UID + MAX_SLOTS))
        self.uid = self.number
        self.sidecar_uid = self.uid + MAX_SLOTS


class RoomUsers(_Number):
    """User ids for the programs of one room, ``left`` of them; nobody else has them until :meth:`release`."""

    def __init__(self, locks: Path) -> None:
        """Take the lowest free ones. Raises E303 when hundreds of rooms have them all."""
        super().__init__(locks, "room", range(FIRST_ROOM_UID, NOBODY - ROOM_PROGRAMS, ROOM_PROGRAMS))
        self.left = list(range(self.number, self.number + ROOM_PROGRAMS))
