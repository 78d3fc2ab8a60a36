"""A disk of few bytes, which can be filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class SmallDisk:
    """A file system in memory, mounted on ``path``."""

    path: Path

    @property
    def _filler(self) -> Path:
        return self.path / ".filler"

    def fill(self) -> None:
        """Leave no byte and no file."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass

    def leave(self, size: int) -> None:
        """Fill the disk except for ``size`` bytes."""
        self.fill()
        os.truncate(self._filler, self._filler.stat().st_size - size)

    def free(self) -> None:
        """Give back what was filled."""
        self._filler.unlink()


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """A file that nobody can write or remove meanwhile, not even root."""
    _mount("--bind", str(path), str(path))
    try:
        _mount("-o", "remount,bind,ro", str(path))
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@contextmanager
def small_disk(path: Path, mebibytes: int) -> Iterator[SmallDisk]:
    """A disk of that size on a folder, which is made; away with all that is on it at the end."""
    path.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={mebibytes}m,mode=0755", "tmpfs", str(path))
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def _mount(*words: str) -> None:
    if os.getuid() != 0:
        pytest.fail("only root can mount something: run this test as root", pytrace=False)
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = f"nothing can be mounted here, which this test needs: {done.stderr}"
        pytest.fail(why, pytrace=False)
