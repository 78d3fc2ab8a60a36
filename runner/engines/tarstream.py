"""Tar archives written as a stream, so that no file has to fit in memory or be copied first; and streams as files."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Self

from runner.model.errors import PlatformError

CHUNK = 1 << 20
BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
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
    yield END


def anew(folders: Mapping[str, int], files: Mapping[str, Path | bytes], *, uid: int) -> Iterator[bytes]:
    """A tar archive that makes ``folders`` (name: mode) anew and empty for ``uid``, and puts ``files`` into them.

    An engine that unpacks it removes a folder, with all that is in it, to put the file of that name in its place.
    """
    for name, mode in folders.items():
        yield header(name)
        yield header(name, kind=tarfile.DIRTYPE, mode=mode, uid=uid)
    yield from stream(sorted(files.items()), uid=uid, folders=folders)


class TooMuch(Exception):
    """The stream is longer than its cap."""


class _Entry(tarfile.TarInfo):
    """An entry of an archive. A damaged header is never taken for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return the entry of a header. Raises tarfile.ReadError if it is damaged or missing."""
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == BLOCK and not any(buf):
                raise  # the end
            raise tarfile.ReadError(str(error)) from error


class _Archive(tarfile.TarFile):
    """An archive that does not hold its entries in memory: there may be millions."""

    tarinfo = _Entry
    members: list[tarfile.TarInfo]

    def next(self) -> tarfile.TarInfo | None:
        """Return the next entry, None at the end."""
        entry = super().next()
        self.members.clear()
        return entry


@contextmanager
def engine_archive(file: Chunks) -> Iterator[tarfile.TarFile]:
    """Open an archive that an engine sends.

    Raises:
        PlatformError: The archive is damaged, or ends early.
    """
    try:
        with _Archive.open(fileobj=file, mode="r|", errors="surrogateescape") as archive:
            yield archive
    except (tarfile.TarError, UnicodeError) as error:
        raise PlatformError(
            "a folder of an image cannot be read", why=f"The engine sent a damaged archive: {error}"
        ) from error


def readable(
    chunks: Iterable[bytes], place: str, needed: Iterable[PurePosixPath], max_bytes: int
) -> Generator[bytes, None, int]:
    """Yield the same files, folders and links below a folder, owned by root and readable for everybody.

    Devices, pipes and set-user-id bits are left out. The end of the archive is left to the caller.

    Args:
        chunks: The archive of a folder, as an engine sends it.
        place: The name of the folder in the new archive.
        needed: Folders in it, relative to it, that are made if they are missing.
        max_bytes: The size of all files together, with 4 KiB for each entry.

    Returns:
        The rest of ``max_bytes``.

    Raises:
        TooMuch: The content is larger than ``max_bytes``.
        PlatformError: The archive is damaged.
    """
    chunks = iter(chunks)
    missing = dict.fromkeys(needed)
    left_out: set[str] = set()
    yield header(place, kind=tarfile.DIRTYPE, mode=0o755)
    with engine_archive(Chunks(chunks)) as source:
        for entry in source:
            max_bytes -= entry.size + PER_ENTRY
            if max_bytes < 0:
                raise TooMuch
            if (path := _copied_path(entry, left_out)) is None:
                continue
            missing.pop(path, None)
            if entry.islnk():
                entry.linkname = f"{place}/{_inner_path(entry.linkname)}"
            yield _opened_to_all(entry, f"{place}/{path}")
            if entry.isreg():
                file = source.extractfile(entry)
                assert file is not None
                while chunk := file.read(CHUNK):
                    yield chunk
                yield padding(entry.size)
    for _ in chunks:  # an engine holds the container until its answer is read
        pass
    for path in missing:
        for folder in (*reversed(path.parents[:-1]), path):
            yield header(f"{place}/{folder}", kind=tarfile.DIRTYPE, mode=0o777)
    return max_bytes


def _copied_path(entry: tarfile.TarInfo, left_out: set[str]) -> PurePosixPath | None:
    """Return the path of an entry that :func:`readable` copies, or None.

    Special files, whose names are added to ``left_out``, are not copied, nor further names of them.
    """
    path = _inner_path(entry.name)
    if path is not None and entry.islnk():
        target = _inner_path(entry.linkname)
        return None if target is None or str(target) in left_out else path
    if path is not None and not (entry.isreg() or entry.isdir() or entry.issym()):
        left_out.add(str(path))
        return None
    return path


def _inner_path(name: str) -> PurePosixPath | None:
    """Return the path of an entry below the folder of its archive, None for the folder itself and for others."""
    path = PurePosixPath(name)
    return None if ".." in path.parts or path.is_absolute() or not path.parts else path


def _opened_to_all(entry: tarfile.TarInfo, name: str) -> bytes:
    """Return the header of an entry as :func:`readable` gives it on."""
    executable = entry.isdir() or entry.mode & 0o111
    entry.name, entry.mode = name, entry.mode & 0o777 | (0o555 if executable else 0o444)
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
