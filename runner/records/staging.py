"""Folders in which attempts and evaluations are written before they are sealed: named, locked and swept."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from runner.records.archive_lock import Held, hold, locked
from runner.records.files import on_disk
from schemas.files import make_private


@dataclass(frozen=True)
class Staging:
    """A folder being filled. It belongs to the process that began it; ``sweep`` leaves it alone until that dies.

    ``number`` is the attempt's (or the evaluation's) number, reserved when it was begun.
    """

    path: Path
    task: str
    run_id: str
    number: int
    lock: Held = field(repr=False, compare=False)

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

    @property
    def lock(self) -> str:
        """The name of its lock file, which is that of its number: a run's next attempt is begun once, whoever begins it."""
        return f"{self.sort}~{self.task}~{self.run_id}~{self.number}.lock"


class StagingFolders:
    """The staging folders below ``tmp``. Each has a lock file, held by the process that writes; whoever looks which are held, or
    removes what the dead left, holds the lock of the whole archive meanwhile."""

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp

    def lock(self) -> AbstractContextManager[None]:
        """The lock of the whole archive, to be held while others are looked at or removed. Raises E306."""
        return locked(self.tmp)

    def make(self, sort: str, task: str, run_id: str, number: int) -> Staging | None:
        """A new folder; None where a living process has one of that number. It costs the same however many there are. Raises E306."""
        staged = Staged(sort, task, run_id, number, secrets.token_hex(4))
        with on_disk("a run cannot be begun", self.tmp):
            held = self._hold(staged.lock)
            if held is None:
                with self.lock():  # nobody only looks now whether it is held
                    held = self._hold(staged.lock)
            if held is None:
                return None
            path = self.tmp / staged.name
            try:
                path.mkdir()
            except BaseException:
                held.remove()
                raise
        return Staging(path, task, run_id, number, held)

    def _hold(self, name: str) -> Held | None:
        try:
            return hold(self.tmp / name)
        except FileNotFoundError:
            make_private(self.tmp)
            return hold(self.tmp / name)

    def all(self) -> list[Staged]:
        """The folders that there are, by name."""
        if not self.tmp.is_dir():
            return []
        with os.scandir(self.tmp) as entries:
            names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
        parts = [name.split("~") for name in sorted(names) if name.count("~") == 4]
        return [Staged(s, t, run, int(n), x) for s, t, run, n, x in parts if n.isdecimal()]

    def live(self, sort: str) -> dict[str, int]:
        """Run id → number of the folders of a ``sort`` whose process lives."""
        if not self.tmp.is_dir():
            return {}
        with self.lock():
            found = [one for one in self.all() if one.sort == sort]
            return {one.run_id: one.number for one in found if self._is_live(one.lock)}

    def _is_live(self, lock: str) -> bool:
        """Whether the process that began this folder still holds its lock (the kernel frees it at any death)."""
        try:
            held = hold(self.tmp / lock, make=False)
        except FileNotFoundError:
            return False
        if held is None:
            return True
        held.release()
        return False

    def discard(self, staging: Staging) -> None:
        """Remove a folder that this process began, and give up its lock; also where it cannot be removed, which raises OSError."""
        try:
            self._remove(staging.path)
        finally:
            self.finish(staging)

    def _remove(self, path: Path) -> None:
        for folder, _, _ in os.walk(path):
            Path(folder).chmod(0o755)  # sealing may have been broken off with read-only folders
        shutil.rmtree(path, ignore_errors=True)

    def finish(self, staging: Staging) -> None:
        """Give up the lock of a folder that was moved to its place."""
        staging.lock.remove()

    def sweep(self, *, dry_run: bool = False) -> list[str]:
        """Remove folders and lock files whose process has died; returns the run ids. With ``dry_run`` nothing is removed."""
        swept: list[str] = []
        if not self.tmp.is_dir():
            return swept
        with self.lock():
            for staged in self.all():
                if not self._is_live(staged.lock):
                    swept.append(staged.run_id)
                    if not dry_run:
                        self._remove(self.tmp / staged.name)
            for lock in () if dry_run else self.tmp.glob("*~*.lock"):
                if (held := hold(lock)) is not None:
                    held.remove()
        return swept
