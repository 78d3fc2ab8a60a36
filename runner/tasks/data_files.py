"""Folders of data files: listing them strictly, telling whether a path stays inside, and giving them an identity."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import closing
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import schemas
from runner.model.errors import RunnerError
from schemas.files import file_sha256

# What the evaluator's checker keeps beside a collection, so that it is found faster the next time: no data.
_KEPT = (".jsonl.index", ".jsonl.gz.index")
MOST_PACKED = 256 << 20  # bytes of a compressed archive that is looked through
_HASHES: dict[tuple[str, int, int, int], str] = {}


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file; remembered while its size, inode and time of change stay the same."""
    info = path.stat()
    key = (str(path), info.st_size, info.st_ino, info.st_mtime_ns)
    if key not in _HASHES:
        _HASHES[key] = file_sha256(path)
    return _HASHES[key]


Content = tuple[int, str]  # bytes without compression, and their SHA-256 (hex)
_PACKED: dict[tuple[tuple[str, int, int, int], int], list[Content]] = {}


def unpacked(path: Path) -> Content:
    """The content of a file, without the compression (gzip, bzip2, xz) that it may have."""
    opened = _opener(path)
    size = path.stat().st_size
    found = None if opened is None else _hashed(opened, None)
    return (size, file_digest(path)) if found is None else found


def contents(path: Path, sizes: Set[int]) -> list[Content]:
    """The contents of a file that have one of these ``sizes``: as it is, without its compression, and those in an archive.

    Of what is packed no more than the greatest of ``sizes`` is read; a compressed tar archive of more than
    :data:`MOST_PACKED` bytes is not opened. Remembered while the file stays the same.
    """
    info, most = path.stat(), max(sizes, default=0)
    found = [(info.st_size, file_digest(path))] if info.st_size in sizes else []
    if not most:
        return found
    key = ((str(path), info.st_size, info.st_ino, info.st_mtime_ns), hash(frozenset(sizes)))
    if key not in _PACKED:
        opened = _opener(path)
        packed = [] if opened is None else [_hashed(opened, most)]
        _PACKED[key] = [
            *(one for one in packed if one and one[0] in sizes),
            *_zipped(path, sizes),
            *_tarred(path, opened, sizes),
        ]
    return found + _PACKED[key]


def _opener(path: Path) -> Callable[[], Any] | None:
    """How a compressed file is opened; None for another one."""
    with path.open("rb") as file:
        head = file.read(6)
    for magic, module in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ\0", lzma)):
        if head.startswith(magic):
            return partial(module.open, path)
    return None


def _hashed(opened: Callable[[], Any], most: int | None) -> Content | None:
    """What comes out of a compressed file; None when that is more than ``most`` bytes, or the file is damaged."""
    digest, size = hashlib.sha256(), 0
    try:
        with opened() as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
                size += len(piece)
                if most is not None and size > most:
                    return None
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return None
    return size, digest.hexdigest()


def _zipped(path: Path, sizes: Set[int]) -> Iterator[Content]:
    """The files in a zip file that have one of these sizes."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"PK\x03\x04":
                return
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.file_size in sizes and (
                    found := _hashed(partial(archive.open, member), member.file_size)
                ):
                    yield found
    except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile):  # damaged, or under a password
        return


def _tarred(path: Path, opened: Callable[[], Any] | None, sizes: Set[int]) -> Iterator[Content]:
    """The files in a tar archive, compressed or not, that have one of these sizes."""
    try:
        with path.open("rb") if opened is None else opened() as file:
            if file.read(262)[257:] != b"ustar" or (opened and path.stat().st_size > MOST_PACKED):
                return
            file.seek(0)
            with tarfile.open(fileobj=file, mode="r:" if opened is None else "r|") as archive:
                for member in archive:
                    data = archive.extractfile(member) if member.isreg() and member.size in sizes else None
                    if data is not None and (found := _hashed(partial(closing, data), member.size)):
                        yield found
    except (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError):
        return


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
