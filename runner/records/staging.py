"""Folders in which attempts and evaluations are written before they are sealed: named, locked and swept."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runner.records.archive_lock import locked
from runner.records.files import on_disk

if TYPE_CHECKING:
    from filelock import BaseFileLock


@dataclass(frozen=True)
class Staging:
    """A folder being filled. It belongs to the process that began it; ``sweep`` leaves it alone until that dies.

    ``number`` is the attempt's (or the evaluation's) number, reserved when it was begun.
    """

    path: Path
    task: str
    run_id: str
    number: int
    lock: BaseFileLock = field(repr=False, compare=False)

    def __fspath__(self) -> str:
        return str(self.path)


class Staged(NamedTuple):
    """What the name of a staging folder says: ``sort`` is ``a`` for an attempt, ``e`` for an evaluation."""

    sort: str
    task: str
    run_id: str
    number: int
    token: str

    @property
    def name(self) -> str:
        """The folder's name."""
        return "~".join(map(str, self))


class StagingFolders:
    """The staging folders below ``tmp``. Each has a lock file of its name with ``.lock``, held by the process that writes."""

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp

    def lock(self) -> AbstractContextManager[None]:
        """The lock of the whole archive, to be held while folders are made, moved or removed. Raises E306."""
        return locked(self.tmp)

    def make(self, sort: str, task: str, run_id: str, number: int) -> Staging:
        """A new folder. Called under :meth:`lock`, so that nobody sweeps between the lock file and the folder. Raises E306."""
        from filelock import FileLock

        name = Staged(sort, task, run_id, number, secrets.token_hex(4)).name
        with on_disk("a run cannot be begun"):
            lock = FileLock(self.tmp / f"{name}.lock", timeout=0, thread_local=False)
            lock.acquire()
            path = self.tmp / name
            path.mkdir()
        return Staging(path, task, run_id, number, lock)

    def all(self, sort: str | None = None, run_id: str = "") -> list[Staged]:
        """The folders that there are, all or those of a ``sort`` or run, by name."""
        if not self.tmp.is_dir():
            return []
        part = f"~{run_id}~" if run_id else ""
        with os.scandir(self.tmp) as entries:
            names = [one.name for one in entries if part in one.name and one.is_dir(follow_symlinks=False)]
        parts = [name.split("~") for name in sorted(names) if name.count("~") == 4]
        known = [Staged(s, t, run, int(n), x) for s, t, run, n, x in parts if n.isdecimal()]
        return [staged for staged in known if sort in (None, staged.sort)]

    def is_live(self, name: str) -> bool:
        """Whether the process that began this folder still holds its lock (the kernel frees it at any death)."""
        from filelock import FileLock, Timeout

        probe = FileLock(self.tmp / f"{name}.lock", timeout=0)
        try:
            probe.acquire()
        except Timeout:
            return True
        probe.release()
        return False

    def remove(self, name: str) -> None:
        """Remove a folder with its lock file."""
        for folder, _, _ in os.walk(self.tmp / name):
            Path(folder).chmod(0o755)  # sealing may have been broken off with read-only folders
        shutil.rmtree(self.tmp / name, ignore_errors=True)
        (self.tmp / f"{name}.lock").unlink(missing_ok=True)

    def finish(self, staging: Staging) -> None:
        """Give up the lock of a folder that was moved to its place."""
        staging.lock.release(force=True)
        (self.tmp / f"{staging.path.name}.lock").unlink(missing_ok=True)

    def sweep(self, *, dry_run: bool = False) -> list[str]:
        """Remove folders and lock files whose process has died; returns the run ids. With ``dry_run`` nothing is removed."""
        swept: list[str] = []
        if not self.tmp.is_dir():
            return swept
        with self.lock():
            for staged in self.all():
                if not self.is_live(staged.name):
                    swept.append(staged.run_id)
                    if not dry_run:
                        self.remove(staged.name)
            for lock in () if dry_run else self.tmp.glob("*.lock"):
                if not (self.tmp / lock.stem).exists() and not self.is_live(lock.stem):
                    lock.unlink(missing_ok=True)
        return swept
