"""Memory volumes of an engine on this machine, read and filled where it mounted them.

Asking the engine to pack or unpack files costs as much as half a container: it starts a process of its own each time. So
where the engine's files are this machine's, and ours to reach, they are opened here. What lies in them is hostile: no
name in them is ever followed, only what was opened is read, and nothing runs any more that could change it meanwhile.
"""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from runner.engines import moving
from runner.engines.docker.client import Clients
from runner.engines.tarstream import BLOCK, CHUNK, checked, padding

DEPTH = 16  # folders in one another that are removed here; more are left to the engine
FILES = 64  # files that are read here; where there are more they are left to the engine
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


@contextmanager
def mounted(clients: Clients, volume: str, inodes: int) -> Iterator[int | None]:
    """The open folder of a memory volume that was made for ``inodes`` files; None where it is not mounted within our sight."""
    with clients.calling("looking for a volume of a session") as api:
        point = str(api.inspect_volume(volume).get("Mountpoint") or "")
    # An engine elsewhere may speak of a place that something else has here.
    folder = _opened(point, inodes) if volume in Path(point).parts else None
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


@contextmanager
def plain_files(folder: int) -> Iterator[Mapping[str, int] | None]:
    """The opened files of an open folder, by name, until the context ends: what is left by software that means no harm.

    None where there is anything but a few regular files with one name each, or one that cannot be read: an engine's archive has the
    content of folders, too, and what it says of links depends on their order, so such a folder is left to the engine.
    """
    files: dict[str, int] = {}
    try:
        yield files if _all_opened(folder, files) else None
    finally:
        for file in files.values():
            os.close(file)


def _all_opened(folder: int, files: dict[str, int]) -> bool:
    try:
        names = sorted(os.listdir(folder))
        for name in names[: FILES + 1]:
            # Looked at before it is opened: to open a device does something.
            if not _is_plain(os.stat(name, dir_fd=folder, follow_symlinks=False)):
                return False
            files[name] = os.open(name, FILE, dir_fd=folder)
        return len(names) <= FILES and all(_is_plain(os.fstat(file)) for file in files.values())
    except OSError:
        return False


def _is_plain(facts: os.stat_result) -> bool:
    return stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1


def packed(files: Mapping[str, int]) -> Iterator[bytes]:
    """These opened files as the tar archive that an engine makes of a folder with them. Raises ValueError for one that became shorter."""
    for name, file in files.items():
        entry = tarfile.TarInfo(f"./{name}")
        entry.size = os.fstat(file).st_size
        yield entry.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")
        missing = entry.size
        while missing:
            chunk = os.read(file, min(CHUNK, missing))
            if not chunk:
                raise ValueError("it changed while it was read")
            missing -= len(chunk)
            yield chunk
        yield padding(entry.size)
    yield b"\0" * (2 * BLOCK)


def anew(
    folder: int,
    folders: Mapping[str, int],
    files: Mapping[str, Path | bytes],
    *,
    uid: int,
    stall: float = moving.STALL,
    seconds: float,
) -> None:
    """Do in an open folder what an engine does that unpacks :func:`runner.engines.tarstream.anew` there; ``uid`` as this machine counts.

    Raises OSError where it cannot be done here: the engine may find a way. Raises :class:`PlatformError` where nothing can be read of
    the files for ``stall`` seconds, or not all of them in ``seconds``.
    """
    for name, mode in folders.items():
        _remove(folder, name, DEPTH)
        _make(folder, name, mode, uid)
    made = set(folders)
    read = moving.moving(_pieces(files), "copying files into a room", stall=stall, seconds=seconds)
    with closing(read) as pieces:
        for name, content in groupby(pieces, itemgetter(0)):
            for parent in reversed(checked(name).parents[:-1]):
                if str(parent) not in made:
                    made.add(str(parent))
                    _make(folder, str(parent), 0o555, uid)
            with os.fdopen(os.open(name, NEW, 0o400, dir_fd=folder), "wb") as file:
                for _, piece in content:
                    file.write(piece)
                os.fchown(file.fileno(), uid, uid)
                os.fchmod(file.fileno(), 0o444)
                file.flush()
                os.utime(file.fileno(), (0, 0))  # as in the archive: it says nothing of when it was evaluated


def _pieces(files: Mapping[str, Path | bytes]) -> Iterator[tuple[str, bytes]]:
    """What is in these files, in the order of their names: at least one piece of each. The disk that they are on may hang."""
    for name, content in sorted(files.items()):
        if isinstance(content, bytes):
            yield name, content
            continue
        yield name, b""
        with content.open("rb") as source:
            while piece := source.read(CHUNK):
                yield name, piece


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
