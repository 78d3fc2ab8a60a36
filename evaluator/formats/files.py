"""Opening files that a participant may have planted, and organiser's files that may be compressed."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

GZIP = b"\x1f\x8b"


class Unreadable(Exception):
    """The file is missing or not a regular file. The text says what it is instead."""


class TooLarge(Exception):
    """More bytes than allowed came out of the file (after decompression)."""


class Damaged(Exception):
    """The gzip stream is broken or ends too early."""


def open_regular(path: str | Path, *, follow: bool = False) -> BinaryIO:
    """Open a regular file for reading, unbuffered; never waits for a pipe, and follows no link unless told to.

    Raises :class:`Unreadable` for everything else.
    """
    try:
        nofollow = 0 if follow else os.O_NOFOLLOW
        fd = os.open(path, os.O_RDONLY | nofollow | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Unreadable("it does not exist") from None
    except OSError as error:
        if Path(path).is_symlink():
            raise Unreadable("it is a link") from None
        raise Unreadable(error.strerror.lower() if error.strerror else "it cannot be opened") from None
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        names = ((stat.S_ISDIR, "folder"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"))
        kind = next((name for test, name in names if test(mode)), "device")
        raise Unreadable(f"it is a {kind}, not a regular file")
    return os.fdopen(fd, "rb", buffering=0)


class Source:
    """The bytes of one file, decompressed if it starts like gzip, never more than ``max_bytes``.

    ``size`` is the size on disk; ``read(n)`` returns up to ``n`` bytes, and b"" at the end.
    """

    def __init__(self, path: str | Path, max_bytes: int | None = None, *, follow: bool = False) -> None:
        self.path = path
        self._file = open_regular(path, follow=follow)
        self.size = os.fstat(self._file.fileno()).st_size
        self._left = max_bytes
        head = self._file.read(2)
        self._file.seek(0)
        self.gzip = head == GZIP
        self._read: Callable[[int], bytes]
        if self.gzip:
            import gzip

            # GzipFile's own reader is given a raw file; 1 MiB steps keep the memory of a bomb flat.
            self._read = gzip.GzipFile(fileobj=self._file, mode="rb").read
        else:
            self._read = self._file.read

    def read(self, n: int) -> bytes:
        """Return up to ``n`` bytes. Raises :class:`TooLarge` or :class:`Damaged`."""
        try:
            data = self._read(n)
        except (OSError, EOFError, zlib.error) as error:
            if not self.gzip:
                raise
            raise Damaged(str(error)) from None
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise TooLarge
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_all(path: str | Path, max_bytes: int | None = None, *, follow: bool = False) -> bytes:
    """Return all bytes of a plain or gzip file. Raises :class:`Unreadable`, :class:`TooLarge`, :class:`Damaged`."""
    with Source(path, max_bytes, follow=follow) as source:
        parts = []
        while part := source.read(1 << 22):
            parts.append(part)
        return b"".join(parts)
