"""A folder as a build context: what ``.dockerignore`` leaves, links as links, the same bytes for the same files."""

from __future__ import annotations

import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from runner.engines.text import printable
from runner.model.errors import RunnerError
from runner.model.limits import GIB

MAX_CONTEXT = 8 * GIB


@contextmanager
def pack(folder: Path, dockerfile: str) -> Iterator[IO[bytes]]:
    """A temporary tar archive of the folder, rewound.

    Raises E202 when the Dockerfile (also through links) or a file of the context lies outside, E203 when the
    Dockerfile is missing or the context is too large.
    """
    inside(folder, dockerfile)
    with tempfile.TemporaryFile() as archive:
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
            size = 0
            for name in _names(folder, dockerfile):
                size += _add(tar, folder / name, name)
                if size > MAX_CONTEXT:
                    raise RunnerError(
                        "E203",
                        "the build context is too large",
                        why=f"{printable(str(folder))} holds more than {MAX_CONTEXT} bytes.",
                        fix="name what the build does not need in .dockerignore",
                    )
        archive.seek(0)
        yield archive


def inside(folder: Path, dockerfile: str) -> None:
    """Raise unless ``dockerfile`` is a regular file of ``folder``, also with all links followed."""
    named, path = Path(dockerfile), folder / dockerfile
    if named.is_absolute() or ".." in named.parts or not path.resolve().is_relative_to(folder.resolve()):
        raise RunnerError(
            "E202",
            "the Dockerfile leaves the folder",
            why=f"{printable(dockerfile)} does not lie inside {printable(str(folder))}.",
            fix="move the Dockerfile into the folder",
        )
    if not path.is_file():
        raise RunnerError(
            "E203",
            "there is no Dockerfile",
            why=f"{printable(str(path))} is missing.",
            fix="write a Dockerfile there, or name the right one",
        )


def _names(folder: Path, dockerfile: str) -> list[str]:
    from docker.utils import exclude_paths

    ignore = folder / ".dockerignore"
    patterns: list[str] = []
    if ignore.is_file():
        lines = (
            line.strip() for line in ignore.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        )
        patterns = [line for line in lines if line and not line.startswith("#")]
    names = set(exclude_paths(str(folder.absolute()), patterns, dockerfile=dockerfile))
    # A negated pattern may keep a file whose folder is left out.
    parents = {str(parent) for name in names for parent in Path(name).parents}
    return sorted((names | parents) - {".", ""})


def _add(tar: tarfile.TarFile, path: Path, name: str) -> int:
    """Add a file, folder or link; returns the bytes that it takes. Times and owners stay out: equal files, equal bytes."""
    facts, info = path.lstat(), tarfile.TarInfo(name)
    if stat.S_ISLNK(facts.st_mode):
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
        tar.addfile(info)
    elif stat.S_ISDIR(facts.st_mode):
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
    elif stat.S_ISREG(facts.st_mode):  # sockets and pipes have no place in an image
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            with os.fdopen(os.open(path, flags), "rb") as file:
                info.size = os.fstat(file.fileno()).st_size
                info.mode = 0o755 if facts.st_mode & 0o111 else 0o644
                tar.addfile(info, file)
        except OSError as error:
            why = f"{printable(name)} cannot be read, or changed meanwhile: {printable(str(error))}"
            raise RunnerError("E203", "the build context cannot be packed", why=why) from error
    return info.size + tarfile.BLOCKSIZE
