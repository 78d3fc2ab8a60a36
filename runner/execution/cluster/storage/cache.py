"""What a host keeps of the artefact store: contents by digest, verified whenever they are used, bounded in size."""

from __future__ import annotations

import os
import secrets
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runner.execution.cluster.storage.grants import Store
from runner.model.errors import disk_error
from runner.records.contents import Content
from runner.records.files import file_sha256


class Cache:
    """The contents in ``folder``, of at most ``most`` bytes besides those that are in use. Used by several threads of one process."""

    def __init__(self, folder: Path, artefacts: Store, most: int) -> None:
        self.folder, self._artefacts, self._most = folder, artefacts, most
        self._used: Counter[str] = Counter()
        self._fetching: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob("*.part"):
            part.unlink()

    @contextmanager
    def using(self, content: Content, store: Store | None = None) -> Iterator[Path]:
        """The file of a content, which stays as long as the context lasts. One that was damaged is fetched again, from another
        ``store`` than the usual one where it is given.

        Raises E306 when the disk is full, and E313.
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
        """When each file was used, its size, and where it is; what goes meanwhile is left out."""
        found = []
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):
                facts = path.stat()
                found.append((facts.st_mtime, facts.st_size, path))
        return found

    def _file(self, content: Content, store: Store) -> Path:
        path = self.folder / content.sha256
        try:
            if path.is_file() and file_sha256(path) == content.sha256:
                os.utime(path)
                return path
            self._make_room(content.size)
            part = path.with_name(f"{content.sha256}.{secrets.token_hex(4)}.part")
            store.fetch(content, part)
            part.replace(path)
        except OSError as error:
            raise disk_error("the cache of this host cannot be used", error) from error
        return path

    def _make_room(self, wanted: int) -> None:
        """Remove what was used longest ago until there is room."""
        with self._lock:
            kept = sorted(self._kept())
            left = sum(size for _, size, _ in kept) + wanted - self._most
            for _, size, path in kept:
                if left > 0 and not self._used[path.name.partition(".")[0]]:
                    left -= size
                    path.unlink(missing_ok=True)
