"""What leaves an output volume: regular files with expected names, capped, and nothing else.

The archive stream comes from the engine, its content from a participant: links, pipes, devices, folders, odd
names, sparse files of a terabyte. Nothing is ever extracted by name; every accepted byte is written by us to
a file that did not exist before.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

from runner.engines.tarstream import Chunks, TooMuch
from runner.engines.text import printable
from runner.model.container import Collected

NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
MAX_REFUSED = 50
CHUNK = 1 << 20


class CappedReader(Chunks):
    """A file over chunks that raises :class:`TooMuch` instead of giving more than ``cap`` bytes; ``left`` of it are not read yet."""

    def __init__(self, chunks: Iterable[bytes], cap: int) -> None:
        super().__init__(iter(chunks))
        self.left = cap

    def more(self) -> bytes:
        """The next bytes. Raises :class:`TooMuch` when the cap is passed."""
        if self.left < 0:
            raise TooMuch
        chunk = super().more()
        self.left -= len(chunk)
        # What fits is given first: the files in it are taken.
        return chunk if self.left >= 0 else chunk[: self.left] or self.more()


def collect(
    chunks: Iterable[bytes],
    dest: Path,
    *,
    allowed: Callable[[str], bool],
    max_bytes: int,
    max_files: int,
    max_stream: int,
    full: bool = False,
) -> Collected:
    """Write the accepted files of a tar stream under ``dest`` (which must exist) and say what was refused.

    ``max_bytes`` bounds all accepted files together, ``max_stream`` the whole stream with what is refused in
    it. The first directory of every name (the folder that was asked for) is dropped.
    """
    files: list[str] = []
    refused: list[tuple[str, str]] = []
    seen: set[str] = set()
    folders: set[str] = set()
    total = 0

    def refuse(name: str, reason: str) -> None:
        if len(refused) < MAX_REFUSED:
            refused.append((printable(name), reason))
        elif len(refused) == MAX_REFUSED:
            refused.append(("…", "more entries were refused"))

    source = CappedReader(chunks, max_stream)
    try:
        with tarfile.open(fileobj=source, mode="r|", errors="surrogateescape") as tar:
            for entry in tar:
                name = entry.name.partition("/")[2]
                if not name and entry.isdir():
                    continue  # the folder itself
                if name.partition("/")[0] in folders:
                    continue  # refused with its folder
                if entry.isdir():
                    folders.add(name)
                reason = _reason(entry, name, seen, allowed)
                if not reason and len(files) >= max_files:
                    reason = f"more than {max_files} files"
                if not reason and total + entry.size > max_bytes:
                    reason = f"larger than what is left of {max_bytes} bytes"
                if reason:
                    refuse(name, reason)
                    continue
                seen.add(name)
                data = tar.extractfile(entry)
                assert data is not None  # it is a regular file
                _write(dest / name, data)
                files.append(name)
                total += entry.size
    except TooMuch:
        refuse("(the rest)", f"the output directory reads as more than {max_stream} bytes")
    except (tarfile.TarError, UnicodeError, ValueError, EOFError) as error:
        # Only names and attributes chosen by the software can bring the reader here.
        refuse("(the rest)", f"the output directory cannot be read: {printable(str(error))}")
    for name in seen - set(files):  # half written when the stream broke off
        (dest / name).unlink(missing_ok=True)
    return Collected(tuple(files), tuple(refused), total, full)


def _reason(entry: tarfile.TarInfo, name: str, seen: set[str], allowed: Callable[[str], bool]) -> str:
    """Why an entry is not taken; empty when it is."""
    if entry.isdir():
        return "a folder"
    if entry.issym():
        return "a symbolic link"
    if entry.islnk():
        return "a hard link"
    if not entry.isreg():
        return "not a regular file"
    if not NAME.fullmatch(name) or name in (".", ".."):
        return "not a file name that is accepted"
    if name in seen:
        return "twice in the output directory"
    return "" if allowed(name) else "not a file that the task asks for"


def _write(path: Path, data: io.BufferedIOBase | tarfile.ExFileObject | object) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o644), "wb") as out:
        while chunk := data.read(CHUNK):  # type: ignore[union-attr]
            out.write(chunk)
