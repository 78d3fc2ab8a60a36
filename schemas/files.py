"""Writing files and folders so that each appears as a whole or not at all, and the hash of a file.

What is being written stands under a name of its own beside its target, in the same file system, and is renamed when
it is complete. Whatever goes wrong before that, it is removed and the target is what it was.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

TICKS = 50_000_000  # nanoseconds: several ticks of any clock that files get their times from
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NAME_BYTES = 80  # of the target's name in that of its unfinished version: names have 255 bytes at most


def file_sha256(source: Path | BinaryIO) -> str:
    """SHA-256 (hex) of a file, or of what is left in an open one; read in pieces. Raises OSError."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]  # typeshed asks for readinto


def make_private(folder: Path) -> None:
    """Make a folder and its missing parents, each for its owner alone, whatever the umask. Existing folders keep their mode.

    :meth:`pathlib.Path.mkdir` gives missing parents the mode of the umask, so that a data directory could be read by everybody.

    Raises:
        OSError: A folder cannot be made, or a file has its name.
    """
    if folder.is_dir():
        return
    if not folder.parent.exists():
        make_private(folder.parent)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise


def settled(facts: os.stat_result) -> bool:
    """Whether whoever changes that file or folder from now on gives it another time than it has in ``facts``.

    Two changes within a tick of the clock of files (4 to 10 ms on Linux before 6.13) have the same time. What is remembered by its time is
    looked at again if it was not settled.
    """
    return abs(time.time_ns() - facts.st_mtime_ns) > TICKS


def sync_folder(folder: Path, *, mode: int | None = None) -> None:
    """Wait until the names in ``folder`` are on the disk, which has that ``mode`` then, where one is given. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if mode is not None:
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def settle(paths: Iterable[Path | str]) -> None:
    """Wait until the content of each file and folder is on the disk, one after the other. Links are not followed. Raises OSError."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def atomic_path(target: Path, *, mode: int | None = None) -> Iterator[Path]:
    """The path of an empty file beside ``target`` that takes its place when the block ends without an exception.

    Without ``mode`` a file that is replaced keeps its own, and a new one has what the umask leaves of 0666. Until it
    is complete, only its owner can read it, unless it is new and has no ``mode``. Raises OSError when it cannot be
    written; the folder has to be there.
    """
    if mode is None:
        with contextlib.suppress(FileNotFoundError):
            mode = target.stat().st_mode & 0o777
    part = target.with_name(f".{_short(target)}.{secrets.token_hex(4)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    os.close(os.open(part, flags, 0o666 if mode is None else 0o600))
    try:
        yield part
        if mode is not None:
            part.chmod(mode)
        part.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            error.filename = str(target)  # a write does not say in which file it failed
        raise


@contextmanager
def atomic_file(target: Path, *, mode: int | None = None, sync: bool = False) -> Iterator[BinaryIO]:
    """A binary file to write, which takes the place of ``target`` when the block ends: see :func:`atomic_path`.

    With ``sync`` it is on the disk, name included, when this returns.
    """
    with atomic_path(target, mode=mode) as part, part.open("wb") as file:
        yield file
        if sync:
            file.flush()
            os.fsync(file.fileno())
    if sync:
        sync_folder(target.parent)


def once(target: Path, make: Callable[[], bytes]) -> bytes:
    """The bytes of a file, which has what ``make`` gives when it is not there: readable for its owner alone, on the disk as a whole, name included.

    Of two processes that make it at once, both have what the first made: a secret that was used is not replaced. Raises OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        if target.stat().st_nlink > 1:
            # Whoever made it is at it still, or was killed: its name may not be on the disk.
            sync_folder(target.parent)
            _sweep_parts(target)
        return target.read_bytes()
    part = target.with_name(f".{_short(target)}.{secrets.token_hex(4)}.part")
    try:
        with os.fdopen(
            os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
        ) as file:
            file.write(make())
            file.flush()
            os.fsync(file.fileno())
        # Another may have been first, and may have removed ours.
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            _name_once(part, target)
        sync_folder(target.parent)  # before it has one name alone
    finally:
        part.unlink(missing_ok=True)
    _sweep_parts(target)
    return target.read_bytes()


def _name_once(part: Path, target: Path) -> None:
    """Give a file its name, unless there is one of that name. Raises OSError."""
    try:
        os.link(part, target)
        return
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
    import fcntl

    # The file system has no hard links: whoever makes a secret in this folder comes this way.
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if not target.exists():
            part.rename(target)
    finally:
        os.close(folder)


def _sweep_parts(target: Path) -> None:
    """Remove what unfinished versions of a file that is there were left by processes that were killed; what one that is at it has, it does not need."""
    ours = re.compile(rf"\.{re.escape(_short(target))}\.[0-9a-f]{{8}}\.part")
    with contextlib.suppress(OSError):
        for path in target.parent.iterdir():
            if ours.fullmatch(path.name):
                path.unlink(missing_ok=True)


@contextmanager
def scratch_folder(parent: Path, name: str = "new") -> Iterator[Path]:
    """A new folder ``.<name>-…`` in ``parent``, for its owner only; removed at the end unless it was renamed."""
    folder = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def atomic_folder(target: Path, *, mode: int = 0o755, replace: bool = False) -> Iterator[Path]:
    """A new folder beside ``target`` that takes its place when the block ends without an exception.

    Missing parents are made. An empty folder at ``target`` gives way; one that holds something only with ``replace``.
    Raises OSError when it cannot be written or ``target`` does not give way.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(target.parent, _short(target)) as folder:
        yield folder
        folder.chmod(mode)
        put_in_place(folder, target, replace=replace)


def put_in_place(folder: Path, target: Path, *, replace: bool = False) -> None:
    """Rename ``folder`` to ``target``, as :func:`atomic_folder` does at its end. Raises OSError."""
    if not replace:
        if target.is_dir():
            target.rmdir()
        folder.rename(target)
        return
    # A folder that holds something cannot be renamed over: the old one steps aside first, and back if need be. It
    # stays in its parent, since a folder that is read-only cannot be moved into another.
    old = target.with_name(f".{_short(target)}-{secrets.token_hex(4)}.old")
    with contextlib.suppress(FileNotFoundError):
        target.rename(old)
    try:
        folder.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _short(target: Path) -> str:
    return os.fsdecode(os.fsencode(target.name)[:_NAME_BYTES])
