"""Tar archives written as a stream, so that no file has to fit in memory or be copied first; and streams as files."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from runner.model.errors import PlatformError

CHUNK = 1 << 20
BLOCK = tarfile.BLOCKSIZE
PER_ENTRY = 4096  # bytes that a file, folder or link takes on a disk besides its content


@lru_cache(maxsize=256)  # those of folders, and of files of one name and size, come again with each run
def header(
    name: str, *, size: int = 0, kind: bytes = tarfile.REGTYPE, mode: int = 0o444, uid: int = 0
) -> bytes:
    """The header of one entry: time 0 and numeric owners only, so that equal content gives equal bytes."""
    info = tarfile.TarInfo(name)
    info.size, info.type, info.mode, info.uid, info.gid = size, kind, mode, uid, uid
    return info.tobuf(tarfile.PAX_FORMAT)


def padding(size: int) -> bytes:
    """The zero bytes that fill up the last block of a file of ``size`` bytes."""
    return b"\0" * (-size % BLOCK)


def stream(
    files: Iterable[tuple[str, Path | bytes]], *, uid: int = 0, folders: Iterable[str] = ()
) -> Iterator[bytes]:
    """A tar archive of read-only files, with the directories they need before them, but for ``folders``.

    Raises :class:`PlatformError` when a file cannot be read, or shrinks or grows meanwhile (an OSError would
    be taken for a broken connection by the library that sends the stream).
    """
    made = set(folders)
    for name, content in files:
        pure = checked(name)
        for parent in reversed(pure.parents[:-1]):
            if str(parent) not in made:
                made.add(str(parent))
                yield header(str(parent), kind=tarfile.DIRTYPE, mode=0o555, uid=uid)
        if isinstance(content, bytes):
            yield header(str(pure), size=len(content), uid=uid)
            yield content
            yield padding(len(content))
        else:
            try:
                yield from _file(str(pure), content, uid)
            except OSError as error:
                raise PlatformError(f"{content.name} cannot be read", why=str(error)) from error
    yield b"\0" * (2 * BLOCK)


def anew(folders: Mapping[str, int], files: Mapping[str, Path | bytes], *, uid: int) -> Iterator[bytes]:
    """A tar archive that makes ``folders`` (name: mode) anew and empty for ``uid``, and puts ``files`` into them.

    An engine that unpacks it removes a folder, with all that is in it, to put the file of that name in its place.
    """
    for name, mode in folders.items():
        yield header(name)
        yield header(name, kind=tarfile.DIRTYPE, mode=mode, uid=uid)
    yield from stream(sorted(files.items()), uid=uid, folders=folders)


def readable(chunks: Iterable[bytes], without: Iterable[PurePosixPath], max_bytes: int) -> Iterator[bytes]:
    """Yield a tar archive of the same files, folders and links, owned by root and readable for everybody.

    Devices, pipes and set-user-id bits are left out.

    Args:
        chunks: The archive of a folder, as an engine gives it.
        without: Folders in it, relative to it, that become empty.
        max_bytes: The size of all files together, with 4 KiB for each entry.

    Raises:
        ValueError: The content is larger than ``max_bytes``, or the archive is damaged.
    """
    empty = dict.fromkeys(without, False)
    try:
        with tarfile.open(fileobj=Chunks(iter(chunks)), mode="r|", errors="surrogateescape") as source:
            for entry in source:
                path = PurePosixPath(*(part for part in PurePosixPath(entry.name).parts if part != "."))
                if ".." in path.parts or path.is_absolute() or any(p in empty for p in path.parents):
                    continue
                if not path.parts or not (entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()):
                    continue
                max_bytes -= entry.size + PER_ENTRY
                if max_bytes < 0:
                    raise ValueError("it is too large")
                empty.update({path: True} if path in empty else {})
                yield _opened_to_all(entry, str(path))
                if entry.isreg():
                    file = source.extractfile(entry)
                    assert file is not None
                    while chunk := file.read(CHUNK):
                        yield chunk
                    yield padding(entry.size)
    except (tarfile.TarError, UnicodeError) as error:
        raise ValueError("its files cannot be read") from error
    for path in [path for path, is_there in empty.items() if not is_there]:
        for folder in (*reversed(path.parents[:-1]), path):
            yield header(str(folder), kind=tarfile.DIRTYPE, mode=0o777)
    yield b"\0" * (2 * BLOCK)


def _opened_to_all(entry: tarfile.TarInfo, name: str) -> bytes:
    """Return the header of an entry as :func:`readable` gives it on."""
    executable = entry.isdir() or entry.mode & 0o111
    entry.name, entry.mode = name, entry.mode & 0o777 | (0o555 if executable else 0o444)
    if entry.islnk():
        entry.linkname = str(PurePosixPath(entry.linkname))
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.pax_headers = {}
    return entry.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")


def checked(name: str) -> PurePosixPath:
    """``name`` as a relative path that stays inside, written in the one way there is; ValueError otherwise."""
    pure = PurePosixPath(name)
    if pure.is_absolute() or not pure.parts or ".." in pure.parts or "\0" in name or str(pure) != name:
        raise ValueError(f"not a relative path inside the folder: {name!r}")
    return pure


def _file(name: str, path: Path, uid: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        yield header(name, size=size, uid=uid)
        left = size
        while left:
            chunk = file.read(min(CHUNK, left))
            if not chunk:
                break
            left -= len(chunk)
            yield chunk
        if left or file.read(1):
            raise PlatformError(
                f"{path.name} changed while it was copied", why=f"{path} was {size} bytes before."
            )
    yield padding(size)


class Chunks(io.RawIOBase):
    """A readable file over chunks; a read may give fewer bytes than it was asked for. ``hash`` is of all that was read."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.chunks = chunks
        self._rest = b""
        self.hash = hashlib.sha256()

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` with the next bytes; returns how many, 0 at the end."""
        if not self._rest:
            self._rest = self.more()
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self.hash.update(self._rest[:size])
        self._rest = self._rest[size:]
        return size

    def more(self) -> bytes:
        """The next chunk that is not empty; empty at the end."""
        return next(filter(None, self.chunks), b"")
