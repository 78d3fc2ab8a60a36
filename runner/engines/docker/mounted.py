"""Memory volumes of an engine on this machine, read and filled where it mounted them.

Asking the engine to pack or unpack files costs as much as half a container: it starts a process of its own each time. So
where the engine's files are this machine's, and ours to reach, they are opened here. What lies in them is hostile: no
name in them is ever followed, only what was opened is read, and nothing runs any more that could change it meanwhile.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from runner.engines.docker.client import Clients
from runner.engines.tarstream import BLOCK, CHUNK, checked, padding

DEPTH = 16  # folders in one another that are removed here; more are left to the engine
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


@contextmanager
def mounted(clients: Clients, volume: str, inodes: int) -> Iterator[int | None]:
    """The open folder of a memory volume that was made for ``inodes`` files; None where it is not mounted within our sight."""
    with clients.calling("looking for a volume of a session") as api:
        point = str(api.inspect_volume(volume).get("Mountpoint") or "")
    folder = _opened(point, inodes) if point else None
    try:
        yield folder
    finally:
        if folder is not None:
            os.close(folder)


def _opened(point: str, inodes: int) -> int | None:
    try:
        if not os.path.ismount(point):
            return None
        folder = os.open(point, FOLDER)
    except OSError:
        return None
    if os.fstatvfs(folder).f_files == inodes:
        return folder
    os.close(folder)
    return None


def left(folder: int) -> tuple[int, int]:
    """How many bytes and files still fit into the volume of an open folder."""
    facts = os.fstatvfs(folder)
    return facts.f_bavail * facts.f_frsize, facts.f_favail


def packed(folder: int) -> Iterator[bytes]:
    """What is in an open folder, as the tar archive that an engine makes of it, but without what is in folders in it.

    Raises ValueError for a file that cannot be read as it is.
    """
    seen: set[int] = set()
    for name in sorted(os.listdir(folder)):
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISSOCK(facts.st_mode):
            continue  # as an engine does
        entry = tarfile.TarInfo(f"./{name}")
        entry.type = _kind(facts.st_mode)
        if entry.type == tarfile.REGTYPE and facts.st_ino in seen:
            entry.type = tarfile.LNKTYPE
        if entry.type == tarfile.REGTYPE:
            if facts.st_nlink > 1:
                seen.add(facts.st_ino)
            yield from _content(folder, name, entry)
        else:
            yield entry.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")
    yield b"\0" * (2 * BLOCK)


def _kind(mode: int) -> bytes:
    for holds, kind in (
        (stat.S_ISREG, tarfile.REGTYPE),
        (stat.S_ISDIR, tarfile.DIRTYPE),
        (stat.S_ISLNK, tarfile.SYMTYPE),
    ):
        if holds(mode):
            return kind
    return tarfile.FIFOTYPE  # nothing else is taken, whatever it is


def _content(folder: int, name: str, entry: tarfile.TarInfo) -> Iterator[bytes]:
    with os.fdopen(os.open(name, FILE, dir_fd=folder), "rb", buffering=0) as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise ValueError("it changed while it was read")
        entry.size = facts.st_size
        yield entry.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")
        missing = entry.size
        while missing:
            chunk = file.read(min(CHUNK, missing))
            if not chunk:
                raise ValueError("it changed while it was read")
            missing -= len(chunk)
            yield chunk
    yield padding(entry.size)


def anew(folder: int, folders: Mapping[str, int], files: Mapping[str, Path | bytes], *, uid: int) -> None:
    """Do in an open folder what an engine does that unpacks :func:`runner.engines.tarstream.anew` there; ``uid`` as this machine counts.

    Raises OSError where it cannot be done here: the engine may find a way.
    """
    for name, mode in folders.items():
        _remove(folder, name, DEPTH)
        _make(folder, name, mode, uid)
    made = set(folders)
    for name, content in sorted(files.items()):
        pure = checked(name)
        for parent in reversed(pure.parents[:-1]):
            if str(parent) not in made:
                made.add(str(parent))
                _make(folder, str(parent), 0o555, uid)
        with os.fdopen(os.open(name, NEW, 0o400, dir_fd=folder), "wb") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                with content.open("rb") as source:
                    shutil.copyfileobj(source, file, CHUNK)
            os.fchown(file.fileno(), uid, uid)
            os.fchmod(file.fileno(), 0o444)


def _make(folder: int, name: str, mode: int, uid: int) -> None:
    os.mkdir(name, 0o700, dir_fd=folder)
    os.chown(name, uid, uid, dir_fd=folder, follow_symlinks=False)
    os.chmod(name, mode, dir_fd=folder)  # it is ours: nothing runs that could have put another in its place


def _remove(folder: int, name: str, depth: int) -> None:
    """Remove what has this name, if anything, with what is in it. Raises OSError beyond ``depth`` folders in one another."""
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            return
    except FileNotFoundError:
        return
    if not depth:
        raise OSError("too many folders in one another")
    inner = os.open(name, FOLDER, dir_fd=folder)
    try:
        for other in os.listdir(inner):  # noqa: PTH208 (an open folder has no path)
            _remove(inner, other, depth - 1)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)
