"""Waiting until files and folders are on the disk: each by itself, or for many threads that wait at once by one call for all of them.

A run is sealed with a dozen files and folders. Where hundreds of slots end runs at once, waiting for each by itself is most of what sealing
costs, for this process and for the disk. Then all that is waited for goes to the disk together (``syncfs``), with whatever else was written to
that file system, so it is done only where several threads wait: one run on a laptop does not wait for what its containers write.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

SEVERAL = 3  # threads that wait at once, from which on all of the file system is written
# File systems of which ``syncfs`` says what ``fsync`` of each file would: local ones that were looked at. Linux tells of pages that
# could not be written since 5.8.
_KNOWN, _SINCE = frozenset({"ext4", "xfs"}), (5, 8)


def settle(paths: Sequence[Path | str]) -> None:
    """Wait until what is in the files and folders at ``paths``, all in one file system, is on the disk. Raises OSError."""
    if paths:
        group_of(Path(paths[-1]).stat().st_dev).wait(paths)


@dataclass(eq=False)
class Asked:
    """What a thread waits for; ``woken`` is released when it is done, or it is that thread's turn to do it."""

    paths: Sequence[Path | str]
    woken: threading.Lock = field(default_factory=threading.Lock)
    done: bool = False
    error: OSError | None = None

    def __post_init__(self) -> None:
        self.woken.acquire()


class Group:
    """The threads that wait for a file system: one at a time does what all wait for that have come by then."""

    def __init__(self, whole: Callable[[Path], None] | None) -> None:
        self.whole = whole  # writes all of the file system; None: each is written by itself, beside others
        self.leader: Asked | None = None  # whose turn it is
        self.waiting, self._lock = list[Asked](), threading.Lock()

    def wait(self, paths: Sequence[Path | str]) -> None:
        """See :func:`settle`."""
        if self.whole is None:
            each(paths)
            return
        own = Asked(paths)
        with self._lock:
            self.waiting.append(own)
            if self.leader is None:
                self._hand_on()
        try:
            own.woken.acquire()
        except BaseException:  # interrupted: nobody waits for this thread
            with self._lock:
                if own in self.waiting:
                    self.waiting.remove(own)
                elif own is self.leader:
                    self._hand_on()
            raise
        if not own.done:
            self._lead(own)
        if own.error is not None:
            raise OSError(own.error.errno, own.error.strerror, own.error.filename) from own.error

    def _hand_on(self) -> None:
        """Have the one that waits longest do it next. With the lock held."""
        self.leader = self.waiting.pop(0) if self.waiting else None
        if self.leader is not None:
            self.leader.woken.release()

    def _lead(self, own: Asked) -> None:
        with self._lock:
            together, self.waiting = [own, *self.waiting], []
        try:
            self._write(together)
        finally:
            with self._lock:
                # Those that nothing was done for because this thread was interrupted wait on.
                self.waiting = [one for one in together[1:] if not one.done] + self.waiting
                for one in together[1:]:
                    if one.done:
                        one.woken.release()
                self._hand_on()

    def _write(self, together: Sequence[Asked]) -> None:
        assert self.whole is not None
        if len(together) < SEVERAL:
            for one in together:
                try:
                    each(one.paths)
                except OSError as error:
                    one.error = error
                one.done = True
            return
        failed = None
        try:
            self.whole(Path(together[0].paths[-1]))
        except OSError as error:
            failed = error
        for one in together:
            one.error, one.done = failed, True


def each(paths: Sequence[Path | str]) -> None:
    """Wait for one file or folder after the other. Raises OSError."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@cache
def group_of(device: int) -> Group:
    """The threads that wait for the file system of a device number."""
    return Group(syncfs() if file_system(device) in _KNOWN and _release() >= _SINCE else None)


def file_system(device: int) -> str:
    """The type of the mounted file system that has a device number; empty where nothing says so."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            before, _, behind = line.partition(" - ")
            if before.split()[2] == f"{os.major(device)}:{os.minor(device)}":
                return behind.split()[0]
    return ""


def _release() -> tuple[int, ...]:
    """The first two numbers of the kernel's version; none of any other system than Linux."""
    found = re.match(r"(\d+)\.(\d+)", os.uname().release) if os.uname().sysname == "Linux" else None
    return tuple(map(int, found.groups())) if found else ()


def syncfs() -> Callable[[Path], None] | None:
    """A function that writes all of the file system that a folder is in, and raises OSError; None where the C library has none."""
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None:
        return None

    def whole(folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if call(descriptor):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
        finally:
            os.close(descriptor)

    return whole


# In a process that was forked nobody leads whom its threads would wait for.
os.register_at_fork(after_in_child=group_of.cache_clear)
