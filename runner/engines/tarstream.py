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
