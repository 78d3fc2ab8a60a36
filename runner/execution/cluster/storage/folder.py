"""A store that is a folder, here or mounted: nothing in it leads anywhere else, whoever may write there.

Each folder on the way to a file is opened in the one before it and none through a link, so that who exchanges one for a link meanwhile
gains nothing, either.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from fsspec import AbstractFileSystem

from runner.execution.cluster.storage.delivery import another

_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC
_WAY = os.O_PATH | _FOLDER  # which who may not list it can go through, too
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # nobody waits at a pipe


class Folder(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """The file system of what is below ``root``, which itself may be a link. Paths are absolute. Raises OSError."""

    protocol = ("file", "local")
    cachable = False
    root_marker = "/"

    def __init__(self, root: str) -> None:
        super().__init__()
        self._root = root

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What is in a folder: the facts of :meth:`info`, or paths alone."""
        found = []
        with self._folder(self._parts(path)) as at:
            listed = os.open(".", os.O_RDONLY | _FOLDER, dir_fd=at)
            try:
                with os.scandir(listed) as entries:
                    for entry in entries:
                        with suppress(FileNotFoundError):  # removed meanwhile
                            found.append(_facts(f"{path}/{entry.name}", entry.stat(follow_symlinks=False)))
            finally:
                os.close(listed)
        return found if detail else [one["name"] for one in found]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Name, size, time and type of what is there; a link is of the type "other"."""
        with self._in(path) as (at, name):
            return _facts(path, os.stat(name, dir_fd=at, follow_symlinks=False))

    def modified(self, path: str) -> datetime:
        """When it was changed."""
        return datetime.fromtimestamp(self.info(path)["mtime"], UTC)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Make a folder, and those above it; one that is there stays."""
        Path(self._root).mkdir(parents=True, exist_ok=True)
        with self._folder(self._parts(path), make=True):
            pass

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        """Give a file its place, and what was there, a link too, is no more."""
        *above, new = self._parts(path2)
        with self._in(path1) as (at, name), self._folder(above) as to:
            os.rename(name, new, src_dir_fd=at, dst_dir_fd=to)

    def rm(self, path: str, recursive: bool = False, **_: Any) -> None:
        """Remove a folder with all that is in it, or a file; of a link that alone."""
        with self._in(path) as (at, name):
            if recursive and stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=at)
            else:
                os.unlink(name, dir_fd=at)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> IO[bytes]:
        file = self._descriptor(path, _READ if mode == "rb" else _NEW)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise another(path)
        return os.fdopen(file, mode)

    def _descriptor(self, path: str, flags: int) -> int:
        with self._in(path) as (at, name):
            return os.open(name, flags, 0o666, dir_fd=at)

    def _parts(self, path: str) -> list[str]:
        # As PurePosixPath.relative_to does, which takes some tenths of a millisecond for all that one run asks.
        root, below = f"{self._root.rstrip('/')}/", f"{path}/"
        if not below.startswith(root):
            raise OSError(errno.EINVAL, "it is not in the store", path)
        parts = [part for part in below[len(root) :].split("/") if part not in ("", ".")]
        if ".." in parts:
            raise OSError(errno.EINVAL, "it leads out of the store", path)
        return parts

    @contextmanager
    def _in(self, path: str) -> Iterator[tuple[int, str]]:
        """The open folder that a path lies in, and its name there."""
        *above, name = self._parts(path) or (".",)
        with self._folder(above) as at:
            yield at, name

    @contextmanager
    def _folder(self, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """An open folder below the root."""
        at = os.open(self._root, _WAY)
        try:
            for part in parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=at)
                try:
                    below = os.open(part, _WAY | os.O_NOFOLLOW, dir_fd=at)
                except NotADirectoryError:
                    raise OSError(errno.ELOOP, "a link or a file where a folder should be", part) from None
                os.close(at)
                at = below
            yield at
        finally:
            os.close(at)


def _facts(path: str, facts: os.stat_result) -> dict[str, Any]:
    kind = "directory" if stat.S_ISDIR(facts.st_mode) else "file" if stat.S_ISREG(facts.st_mode) else "other"
    return {"name": path, "size": facts.st_size, "type": kind, "mtime": facts.st_mtime}
