"""Folders of data files: listing them strictly, telling whether a path stays inside, and giving them an identity."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import schemas
from runner.model.errors import RunnerError
from schemas.files import file_sha256, settled

# What the evaluator's checker keeps beside a collection, so that it is found faster the next time: no data.
_KEPT = (".jsonl.index", ".jsonl.gz.index")
MOST_PACKED = 256 << 20  # bytes of a compressed archive that is looked through
_HASHES: dict[tuple[str, int, int, int], str] = {}


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file; remembered while its size, inode and time of change stay the same."""
    info = path.stat()
    key = (str(path), info.st_size, info.st_ino, info.st_mtime_ns)
    found = _HASHES.get(key) or file_sha256(path)
    if settled(info):
        _HASHES[key] = found
    return found


Content = tuple[int, str]  # bytes without compression, and their SHA-256 (hex)
_PACKED: dict[tuple[tuple[str, int, int, int], int], Looked] = {}
# What tar and zip files, and what unpacks them, raise for bytes that are none.
_DAMAGED = (
    EOFError,
    ValueError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
)
_CLOSED = (
    (b"\x28\xb5\x2f\xfd", "Zstandard"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "RAR"),
    (b"\x04\x22\x4d\x18", "LZ4"),
    (b"\x1f\x9d", "compress"),
)


def unpacked(path: Path) -> Content:
    """The content of a file, without the compression (gzip, bzip2, xz) that it may have."""
    digest, size = hashlib.sha256(), 0
    try:
        if (opened := _opener(path)) is not None:
            with opened() as file:
                while piece := file.read(1 << 20):
                    digest.update(piece)
                    size += len(piece)
            return size, digest.hexdigest()
    except (OSError, _Closed, *_DAMAGED):  # damaged: as it is
        pass
    return path.stat().st_size, file_digest(path)


@dataclass(frozen=True)
class Looked:
    """What was found in a file: contents that have one of the sizes, and why there may be others (empty: there are none)."""

    contents: tuple[Content, ...]
    closed: str = ""


def contents(path: Path, sizes: Set[int]) -> list[Content]:
    """The contents of a file that :func:`look_into` finds."""
    return list(look_into(path, sizes).contents)


def look_into(path: Path, sizes: Set[int]) -> Looked:
    """The contents of a file that have one of these ``sizes``: as it is, without its compression, and those in an archive, each
    also without its own compression.

    Of what is packed no more than the greatest of ``sizes`` is read; a compressed tar archive of more than
    :data:`MOST_PACKED` bytes is not opened, and no archive in an archive. Remembered while the file stays the same.
    """
    info, most = path.stat(), max(sizes, default=0)
    if not most:
        return Looked(())
    found = ((info.st_size, file_digest(path)),) if info.st_size in sizes else ()
    key = ((str(path), info.st_size, info.st_ino, info.st_mtime_ns), hash(frozenset(sizes)))
    packed = _PACKED.get(key) or _packed(path, sizes)
    if settled(info):
        _PACKED[key] = packed
    return Looked(found + packed.contents, packed.closed)


def _packed(path: Path, sizes: Set[int]) -> Looked:
    found: list[Content] = []
    try:
        opened = _opener(path)
        if opened is not None:
            with opened() as file:
                found += _hashed(file, sizes)
        for content in (*_zipped(path, sizes), *_tarred(path, opened, sizes)):
            found.append(content)
    except _Closed as closed:
        return Looked(tuple(found), str(closed))
    except OSError as error:
        if error.errno is not None:  # of the disk; those of damaged files have none
            raise
        return Looked(tuple(found), "it is damaged")
    except (*_DAMAGED, RuntimeError, NotImplementedError) as error:
        under = "password" in str(error)
        return Looked(
            tuple(found), "it is under a password" if under else "it is damaged, or packed in another way"
        )
    return Looked(tuple(found))


class _Closed(Exception):
    """Why something cannot be looked into."""


def _module(head: bytes) -> Any:
    """What unpacks a file that begins so; None for one that is not compressed. Raises _Closed."""
    for magic, module in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ\0", lzma)):
        if head.startswith(magic):
            return module
    for magic, name in _CLOSED:
        if head.startswith(magic):
            raise _Closed(f"{name} is not opened")
    return None


def _opener(path: Path) -> Callable[[], Any] | None:
    """How a compressed file is opened; None for another one. Raises _Closed."""
    with path.open("rb") as file:
        module = _module(file.read(6))
    return None if module is None else partial(module.open, path)


def _hashed(file: Any, sizes: Set[int]) -> list[Content]:
    """The content of a stream, where it has one of these sizes; of a longer one the rest is not read."""
    digest, size, most = hashlib.sha256(), 0, max(sizes)
    while size <= most and (piece := file.read(1 << 20)):
        digest.update(piece)
        size += len(piece)
    return [(size, digest.hexdigest())] if size in sizes else []


def _member(file: Any, size: int, sizes: Set[int]) -> list[Content]:
    """The content of a member of an archive, as it is or without its compression."""
    module = _module(file.peek(6)[:6])
    if module is not None:
        with module.open(file) as inner:
            return _hashed(inner, sizes)
    return _hashed(file, sizes) if size in sizes else []


def _zipped(path: Path, sizes: Set[int]) -> Iterator[Content]:
    """The files in a zip file that have one of these sizes."""
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                with archive.open(member) as data:
                    yield from _member(data, member.file_size, sizes)


def _tarred(path: Path, opened: Callable[[], Any] | None, sizes: Set[int]) -> Iterator[Content]:
    """The files in a tar archive, compressed or not, that have one of these sizes."""
    with path.open("rb") if opened is None else opened() as file:
        if file.read(262)[257:] != b"ustar":
            return
        if opened and path.stat().st_size > MOST_PACKED:
            raise _Closed("it is a compressed archive of more than 256 MiB")
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:" if opened is None else "r|") as archive:
            for member in archive:
                if member.isreg() and (data := archive.extractfile(member)) is not None:
                    with data:
                        yield from _member(data, member.size, sizes)


def folder_files(folder: Path) -> list[tuple[PurePosixPath, Path]]:
    """The regular files below ``folder`` with their relative names, sorted, but for indexes of the checker. Raises E402.

    Links and special files are refused, not skipped: a file that silently goes missing is worse.
    """
    if not folder.is_dir():
        what = f"the folder {schemas.show(folder.name)} is missing"
        why = f"{schemas.show(str(folder), 200)} does not exist."
        fix = "fetch or make the data (see the task's README), or set RUNNER_PRIVATE"
        raise RunnerError("E402", what, why=why, fix=fix)
    return sorted(_walk(folder, PurePosixPath()), key=lambda pair: str(pair[0]))


def _walk(folder: Path, relative: PurePosixPath) -> Iterator[tuple[PurePosixPath, Path]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                yield from _walk(folder / entry.name, relative / entry.name)
            elif stat.S_ISREG(mode) and entry.name.endswith(_KEPT):
                continue
            elif stat.S_ISREG(mode):
                yield relative / entry.name, folder / entry.name
            else:
                what = f"{schemas.show(entry.name)} is not a regular file"
                why = f"{schemas.show(str(folder), 200)} holds a link or a special file."
                raise RunnerError("E402", what, why=why, fix="replace it by the file itself")


def files_digest(files: Sequence[tuple[PurePosixPath, Path]]) -> str:
    """SHA-256 (hex) over the names and contents of files, whatever their order, dates and owners."""
    return schemas.digest({str(name): file_digest(path) for name, path in files})


def inside(base: Path, relative: str) -> Path | None:
    """``base / relative`` when that stays inside ``base`` also through links and ``..``, else None."""
    if relative.startswith(("/", "~")) or "\\" in relative or "\0" in relative:
        return None
    try:
        stays = (base / relative).resolve().is_relative_to(base.resolve())
    except (OSError, RuntimeError, ValueError):  # link loops, names too long
        return None
    return base / relative if stays else None


def within(path: Path, base: Path) -> bool:
    """Whether ``path`` is ``base`` or below it, links followed."""
    try:
        return path.resolve().is_relative_to(base.resolve())
    except (OSError, RuntimeError):
        return False
