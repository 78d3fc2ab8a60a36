"""Open, copy and delete files and folders of an untrusted user, without following a link."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

REFUSED_PREFIX = ".refused-"  # begins the names of folders that are to be deleted
_CHUNK = 1024 * 1024
_THEIRS = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.ELOOP,
    errno.ENXIO,
    errno.EISDIR,
)  # what the front did, not our machine


class Refused(Exception):
    """A request that is not one; the text says why, for work's log."""


@contextmanager
def open_folder(path: Path | str, inside: int | None = None) -> Iterator[int]:
    """Open a folder that is not a link. Raises Refused."""
    try:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, dir_fd=inside)
    except OSError as error:
        if error.errno not in _THEIRS:
            raise
        raise Refused(f"not a folder: {error.strerror}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_file(folder: int, name: str, most: int) -> Iterator[BinaryIO]:
    """A regular file of a folder, which has no other name and at most so many bytes. Raises Refused."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not stop us
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno not in _THEIRS:
            raise
        raise Refused(f"{name} cannot be opened: {error.strerror}") from None
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
        os.close(descriptor)
        raise Refused(f"{name} is not a regular file with one name")
    with os.fdopen(descriptor, "rb") as file:
        if facts.st_size > most:
            raise Refused(f"{name} has more than {most} bytes")
        yield file


def copy_file(source: BinaryIO, target: BinaryIO, most: int) -> tuple[str, int]:
    """Copy a file to its end, at most one byte more than ``most``; digest and size of what was copied, which is on the disk."""
    digest, size = hashlib.sha256(), 0
    while size <= most and (part := source.read(min(_CHUNK, most + 1 - size))):
        digest.update(part)
        target.write(part)
        size += len(part)
    if size > most:
        raise Refused(f"the payload has more than {most} bytes")
    target.flush()
    os.fsync(target.fileno())
    return digest.hexdigest(), size


def refused_name(name: str = "part") -> str:
    """Return a new name, for a folder that is to be deleted."""
    return f"{REFUSED_PREFIX}{name}-{secrets.token_hex(8)}"


def delete_folder(root: int, name: str, until: float) -> list[str]:
    """Delete a folder in ``root`` with its files. Return the names of the folders in it, which are in ``root`` now."""
    moved: list[str] = []
    with suppress(OSError, Refused):
        with open_folder(name, root) as folder, os.scandir(folder) as entries:
            for entry in entries:
                if time.monotonic() > until:
                    return moved
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        os.rename(entry.name, new := refused_name(), src_dir_fd=folder, dst_dir_fd=root)
                        moved.append(new)
                    else:
                        os.unlink(entry.name, dir_fd=folder)
        os.rmdir(name, dir_fd=root)
        return moved
    with suppress(OSError):  # it is not a folder
        os.unlink(name, dir_fd=root)
    return moved
