"""What a host keeps of the artefact store: contents by digest, verified whenever they are used, bounded in size."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runner.execution.cluster.storage.grants import Store
from runner.model.errors import PlatformError, disk_error
from runner.records.contents import Content
from runner.records.files import file_sha256


class Cache:
    """The contents in ``folder``, of at most ``most`` bytes besides those that are in use. Used by several threads of one process.

    Raises E306 where the folder cannot be used.
    """

    def __init__(self, folder: Path, artefacts: Store, most: int) -> None:
        self.folder, self._artefacts, self._most = folder, artefacts, most
        self._used: Counter[str] = Counter()
        self._fetching: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for part in folder.glob("*.part"):
                _remove(part)
        except OSError as error:
            raise self._unusable(error) from error

    @contextmanager
    def using(self, content: Content, store: Store | None = None) -> Iterator[Path]:
        """The file of a content, which stays as long as the context lasts. One that was damaged or cannot be read is fetched again, from
        another ``store`` than the usual one where it is given.

        Raises E306 when the disk is full or what cannot be read cannot be removed either, and E313.
        """
        with self._lock:
            self._used[content.sha256] += 1
            fetching = self._fetching[content.sha256]
        try:
            with fetching:  # once, for all who want it now
                path = self._file(content, store or self._artefacts)
            yield path
        finally:
            with self._lock:
                self._used[content.sha256] -= 1

    def size(self) -> int:
        """How many bytes are kept."""
        return sum(size for _, size, _ in self._kept())

    def _kept(self) -> list[tuple[float, int, Path]]:
        """When each file was used, its size, and where it is; what goes meanwhile, or cannot be looked at, is left out."""
        found = []
        for path in self.folder.iterdir():
            with suppress(OSError):
                facts = path.lstat()
                found.append((facts.st_mtime, facts.st_size, path))
        return found

    def _file(self, content: Content, store: Store) -> Path:
        path = self.folder / content.sha256
        try:
            if _verified(path, content):
                os.utime(path)
                return path
            if path.is_symlink() or not path.is_file():  # a file is replaced, in one step
                _remove(path)
            self._make_room(content.size)
            part = path.with_name(f"{content.sha256}.{secrets.token_hex(4)}.part")
            store.fetch(content, part)
            part.replace(path)
        except OSError as error:
            raise self._unusable(error) from error
        return path

    def _unusable(self, error: OSError) -> PlatformError:
        return disk_error(f"{self.folder}, the cache of this host, cannot be used", error, self.folder)

    def _make_room(self, wanted: int) -> None:
        """Remove what was used longest ago until there is room."""
        with self._lock:
            kept = sorted(self._kept())
            left = sum(size for _, size, _ in kept) + wanted - self._most
            for _, size, path in kept:
                if left > 0 and not self._used[path.name.partition(".")[0]]:
                    left -= size
                    _remove(path)


def _verified(path: Path, content: Content) -> bool:
    """Whether the content itself lies there; what cannot be read is none."""
    try:
        return path.is_file() and file_sha256(path) == content.sha256
    except (OSError, PlatformError):
        return False


def _remove(path: Path) -> None:
    """Remove what lies there, of a link that alone; it need not be there. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
