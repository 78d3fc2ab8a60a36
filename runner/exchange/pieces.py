"""Large files in ``published/``: cut into pieces, each a file by its content as everything there, and read again as one.

So they cross to a front on another machine like the rest (a cut costs one piece), and nobody ever holds more than a block of one
in memory. The object of such a file (:data:`runner.exchange.published.FILE`) has as its data what :class:`Pieces` has.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from runner.exchange.published import KEPT_SECONDS, Damaged, Publisher, file_of
from schemas.files import atomic_path, file_sha256

PIECE = 32 * 1024 * 1024  # bytes of each but the last
BLOCK = 256 * 1024  # bytes that are read at once
MARGIN = 64 * 1024 * 1024  # bytes that stay free on the disk
_CHANGED = "it was changed while it was read"


@dataclass(frozen=True)
class Pieces:
    """A file of ``size`` bytes with this SHA-256, whose ``pieces`` (digests) have ``piece`` bytes each, the last one fewer."""

    size: int
    sha256: str
    piece: int
    pieces: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        return asdict(self)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Pieces:
        """What :meth:`as_dict` gave."""
        return cls(data["size"], data["sha256"], data["piece"], tuple(data["pieces"]))

    def check(self, root: Path, start: int, end: int) -> None:
        """Raise Damaged where a piece is missing that bytes ``start`` to ``end`` (not included) need, or has another size."""
        for n in range(start // self.piece, -(-end // self.piece)):
            wanted = min(self.piece, self.size - n * self.piece)
            try:
                size = file_of(root, self.pieces[n]).stat().st_size
            except OSError as error:
                raise Damaged(f"{self.pieces[n]}: {error.strerror}") from error
            if size != wanted:
                raise Damaged(f"{self.pieces[n]}: other content")

    def blocks(self, root: Path, start: int, end: int) -> Iterator[bytes]:
        """The bytes from ``start`` to ``end`` (not included), block by block. Raises Damaged: no block of a changed piece is given."""
        while start < end:
            n, at = divmod(start, self.piece)
            left = min(end - start, self.piece - at)
            with _whole(root, self.pieces[n]) as file:
                file.seek(at)
                while left and (block := file.read(min(BLOCK, left))):
                    left -= len(block)
                    start += len(block)
                    yield block
            if left:
                raise Damaged(f"{self.pieces[n]}: other content")


def keep(to: Publisher, path: Path, piece: int = PIECE) -> Pieces:
    """Put the content of a file there, in pieces; what is there already is not written again.

    Raises OSError; also when it changes while it is read, and where :data:`MARGIN` would not stay free. Nothing of it is left then.
    """
    before, whole, found = path.stat(), hashlib.sha256(), list[str]()
    size, touched, new = 0, time.monotonic(), list[Path]()
    try:
        with path.open("rb") as file:
            while part := _digest(file, piece, whole):
                digest, length = part
                place = to.place(digest)
                if place.is_file():
                    os.utime(place)
                else:
                    if shutil.disk_usage(to.root).free < before.st_size - size + MARGIN:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(to.root))
                    file.seek(size)
                    _write(file, place, length)
                    new.append(place)
                size += length
                found.append(digest)
                if time.monotonic() - touched > KEPT_SECONDS / 10:  # what no pointer names yet stays young
                    touched = time.monotonic()
                    for one in found:
                        os.utime(file_of(to.root, one))
        after = path.stat()
        if (size, after.st_mtime_ns, after.st_ino) != (before.st_size, before.st_mtime_ns, before.st_ino):
            raise OSError(None, _CHANGED, str(path))
    except BaseException:
        for place in new:
            place.unlink(missing_ok=True)
        raise
    return Pieces(size, whole.hexdigest(), piece, tuple(found))


def _digest(file: BinaryIO, most: int, whole: Any) -> tuple[str, int] | None:
    """The digest and bytes of the next piece of an open file, None at its end. ``whole`` is the hash of all."""
    digest, size = hashlib.sha256(), 0
    while size < most and (block := file.read(min(BLOCK, most - size))):
        size += len(block)
        digest.update(block)
        whole.update(block)
    return (digest.hexdigest(), size) if size else None


def _write(file: BinaryIO, place: Path, length: int) -> None:
    """Write the next bytes of an open file, which are those that the name of ``place`` says. Raises OSError."""
    digest = hashlib.sha256()
    with atomic_path(place, mode=0o644) as part, part.open("wb") as target:
        while length and (block := file.read(min(BLOCK, length))):
            length -= len(block)
            digest.update(block)
            target.write(block)
        target.flush()
        os.fsync(target.fileno())
        if digest.hexdigest() != place.name:
            raise OSError(None, _CHANGED, str(file.name))


def _whole(root: Path, digest: str) -> BinaryIO:
    """A piece, opened; its content was compared with its name since it was last written to or touched. Raises Damaged."""
    path = file_of(root, digest)
    try:
        file = path.open("rb")
        facts = os.fstat(file.fileno())
        try:
            _compare(path, digest, (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns))
        except BaseException:
            file.close()
            raise
    except Damaged:
        raise
    except OSError as error:
        raise Damaged(f"{digest}: {error.strerror}") from error
    return file


@lru_cache(maxsize=16384)
def _compare(path: Path, digest: str, version: tuple[int, ...]) -> None:
    """Raise Damaged for another content. Only what is whole is remembered: a damaged piece may be put right at any time."""
    if file_sha256(path) != digest:
        raise Damaged(f"{digest}: other content")
