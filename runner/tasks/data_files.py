"""Folders of data files: listing them strictly, telling whether a path stays inside, and giving them an identity."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import schemas
from runner.model.errors import RunnerError
from schemas.files import file_sha256

_HASHES: dict[tuple[str, int, int, int], str] = {}


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file; remembered while its size, inode and time of change stay the same."""
    info = path.stat()
    key = (str(path), info.st_size, info.st_ino, info.st_mtime_ns)
    if key not in _HASHES:
        _HASHES[key] = file_sha256(path)
    return _HASHES[key]


def folder_files(folder: Path) -> list[tuple[PurePosixPath, Path]]:
    """The regular files below ``folder`` with their relative names, sorted. Raises E402.

    Links and special files are refused, not skipped: a file that silently goes missing is worse.
    """
    if not folder.is_dir():
        what = f"the folder {schemas.show(folder.name)} is missing"
        why = f"{schemas.show(str(folder), 200)} does not exist."
        fix = "fetch or make the data (see the task's README), or set RUNNER_TRUTHS"
        raise RunnerError("E402", what, why=why, fix=fix)
    return sorted(_walk(folder, PurePosixPath()), key=lambda pair: str(pair[0]))


def _walk(folder: Path, relative: PurePosixPath) -> Iterator[tuple[PurePosixPath, Path]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                yield from _walk(folder / entry.name, relative / entry.name)
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
