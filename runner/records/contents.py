"""The content store: the bytes of runs and of other large files, each once, under the SHA-256 of what they are.

``<archive>/.contents/ab/<sha256>`` holds a content as it is, ``<sha256>.gz`` one that compression makes smaller; the digest
is that of the bytes without it. A name is always made of a digest, never of anything that was handed in. Contents are
copied in under a name of their own, synced and renamed, read-only, by nobody but this module; what comes out is compared
with digest and size, and no more is unpacked than the size that was recorded.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import io
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from runner.model.errors import PlatformError, disk_error
from runner.records.archive_lock import locked
from runner.records.files import damaged, file_sha256, shown
from schemas.files import sync_folder

FOLDER = ".contents"
# Measured on TREC runs and debates: level 4 comes within 3 to 6 % of the size of level 6 at twice its speed.
LEVEL = 4
_PART = ".part"
SAMPLE = 256 * 1024  # bytes of the beginning that decide whether the whole is compressed
PAYS = 0.9  # of its size; what stays larger is kept as it is
KEPT = 86_400  # seconds for which a content stays that nothing needs: its attempt may not be sealed yet
_PIECE = 1 << 20
_OBJECT = re.compile(r"([0-9a-f]{64})(\.gz)?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Content(NamedTuple):
    """Some bytes by their SHA-256 (hex) and their number."""

    sha256: str
    size: int


class ContentStore:
    """The contents of the archive under ``archive``. Many processes may use it at once."""

    def __init__(self, archive: Path) -> None:
        self.root = archive / FOLDER
        self._tmp = archive / ".tmp"

    def put(self, source: Path, known: Content | None = None) -> Content:
        """Take a copy of the regular file ``source``, unless these bytes are there already; damaged ones are replaced.

        ``known`` is what it holds, where that was hashed when it was written: a content that is there is not compared with it again.
        It is on the disk when this returns. Raises OSError when it cannot be read or written (also for a link); nothing
        half stays.
        """
        if known is not None and self._is_there(known)[1]:
            return known
        with _regular(source) as file:
            content = known or Content(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())  # type: ignore[arg-type]  # typeshed: readinto
            there, whole = self._is_there(content)
            if whole:
                return content
            file.seek(0)
            return self._copy_in(file, there)

    def find(self, sha256: str) -> Path | None:
        """The file of a content; None when it is not there."""
        if not _SHA256.fullmatch(sha256):
            raise damaged(f"{shown(sha256)} is no digest")
        plain = f"{self.root}/{sha256[:2]}/{sha256}"
        return next((path for path in map(Path, (plain, f"{plain}.gz")) if path.is_file()), None)

    @contextmanager
    def open(self, content: Content) -> Iterator[BinaryIO]:
        """The bytes of a content, in order. Reading to their end raises E307 unless they are what they were.

        Raises E307 when the content is not there.
        """
        path = self.find(content.sha256)
        if path is None:
            raise damaged(f"{self.root.parent / self.place(content)} is missing")
        with _verified(path, content) as file:
            yield file

    def place(self, content: Content) -> str:
        """Where a content lies (or would) in the archive, without its ending."""
        return f"{self.root.name}/{content.sha256[:2]}/{content.sha256}"

    def problem(self, content: Content) -> str:
        """What is wrong with a content: that it is missing or damaged; empty when it is whole. Reads all of it."""
        path = self.find(content.sha256)
        return "is missing" if path is None else _problem(path, content)

    def contents(self) -> Iterator[tuple[str, Path]]:
        """Digest and file of every content, sorted."""
        for path in sorted(self.root.glob("[0-9a-f][0-9a-f]/*")):
            if match := _OBJECT.fullmatch(path.name):
                yield match[1], path

    def sweep(self, needed: Set[str], *, dry_run: bool = False) -> list[str]:
        """Remove contents that are not ``needed`` (by digest) and were put there a day ago or more.

        Returns their names; with ``dry_run`` nothing is removed.
        """
        gone = []
        for path in (path for digest, path in self.contents() if digest not in needed):
            # Under the lock, so that nobody finds one that is needed again between the look and the end.
            with locked(self._tmp), suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > KEPT:
                    gone.append(path.name)
                    if not dry_run:
                        path.unlink()
        return gone

    def sweep_parts(self, *, dry_run: bool = False) -> list[str]:
        """Remove what processes that have died left half; returns the names. With ``dry_run`` nothing is removed."""
        gone: list[str] = []
        if not any(self._tmp.glob(f"*{_PART}")):
            return gone
        with locked(self._tmp):
            for part in self._tmp.glob(f"*{_PART}"):
                with suppress(BlockingIOError, FileNotFoundError), part.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    gone.append(part.name)
                    if not dry_run:
                        part.unlink()
        return gone

    def _is_there(self, content: Content) -> tuple[Path | None, bool]:
        """The file of a content, and whether it is whole; it counts as new then."""
        there = self._touched(content.sha256)
        return there, there is not None and not _problem(there, content)

    def _touched(self, sha256: str) -> Path | None:
        """The file of a content; it counts as new then, so that it is not removed before it is named anywhere."""
        with locked(self._tmp):
            path = self.find(sha256)
            if path is not None:
                os.utime(path)
            return path

    def _copy_in(self, file: BinaryIO, damaged: Path | None) -> Content:
        """Take in what is there in no other form than the file ``damaged``, whose place it takes."""
        head = file.read(SAMPLE)
        packed = len(zlib.compress(head, LEVEL)) < PAYS * len(head)
        with self._part() as (part, out):
            content = _write(out, head, file, packed)
            target = self.root / content.sha256[:2] / (content.sha256 + (".gz" if packed else ""))
            with locked(self._tmp):
                if not target.parent.is_dir():
                    target.parent.mkdir(parents=True)
                    sync_folder(self.root)
                there = self.find(content.sha256)
                if there in (None, damaged):
                    part.rename(target)
                    if there not in (None, target):
                        there.unlink()
                    sync_folder(target.parent)
        return content

    @contextmanager
    def _part(self) -> Iterator[tuple[Path, BinaryIO]]:
        """A new file in ``.tmp``, removed in the end unless it was renamed; locked, which the kernel undoes at any death."""
        part = self._tmp / f"{secrets.token_hex(8)}{_PART}"
        with locked(self._tmp):
            out = part.open("xb")
            fcntl.flock(out, fcntl.LOCK_EX)
        try:
            with out:
                yield part, out
        finally:
            part.unlink(missing_ok=True)


def _problem(path: Path, content: Content) -> str:
    """As :meth:`ContentStore.problem`, of a content whose file is known."""
    try:
        with _verified(path, content) as source:
            while source.read(_PIECE):
                pass
    except FileNotFoundError:
        return "is missing"
    except PlatformError:
        return "is damaged"
    return ""


@contextmanager
def _verified(path: Path, content: Content) -> Iterator[BinaryIO]:
    with path.open("rb") as raw:
        unpacked = gzip.GzipFile(fileobj=raw) if path.suffix else raw
        size = max(1, min(_PIECE, content.size + 1))  # of a small one no large buffer is had
        yield io.BufferedReader(_Verified(unpacked, content, path), size)  # type: ignore[arg-type]


class _Verified(io.RawIOBase):
    """What is read from ``source``, which has to be the bytes of ``content``; E307 at the end when it is not."""

    def __init__(self, source: BinaryIO, content: Content, path: Path) -> None:
        self._source, self._content, self._path = source, content, path
        self._digest, self._done = hashlib.sha256(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        # One byte more than there should be shows that there is more; the rest is never unpacked.
        try:
            piece = self._source.read(min(len(buffer), self._content.size + 1 - self._done))
        except (OSError, EOFError, zlib.error):
            raise damaged(f"{self._path} cannot be read") from None
        self._done += len(piece)
        self._digest.update(piece)
        if self._done > self._content.size or (not piece and not self._whole()):
            raise damaged(f"{self._path} does not hold what its name says")
        buffer[: len(piece)] = piece
        return len(piece)

    def _whole(self) -> bool:
        return (self._digest.hexdigest(), self._done) == self._content


class Stored(NamedTuple):
    """A content and where it is."""

    store: ContentStore
    content: Content


@dataclass(frozen=True)
class KeptFile:
    """A file that is kept: it lies at ``path``, or its bytes are ``stored`` elsewhere and only its name is from there."""

    path: Path
    stored: Stored | None = None

    @property
    def name(self) -> str:
        """Its file name."""
        return self.path.name

    @property
    def size(self) -> int:
        """Bytes. Raises OSError when it is gone."""
        return self.path.stat().st_size if self.stored is None else self.stored.content.size

    def sha256(self) -> str:
        """SHA-256 (hex) of its bytes. Raises E307 when it cannot be read."""
        return file_sha256(self.path) if self.stored is None else self.stored.content.sha256

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Its bytes, in order. Of one that is stored, raises E307 when they are not what they were, at the latest at their end."""
        stored = self.stored
        with self.path.open("rb") if stored is None else stored.store.open(stored.content) as file:
            yield file

    @contextmanager
    def local(self) -> Iterator[Path]:
        """Its path, or that of a copy that is there as long as the context lasts. Raises E306, E307 as :meth:`copy`."""
        with folder_of({self.name: self}, self.path.parent) as folder:
            yield folder / self.name

    def copy(self, target: Path) -> None:
        """Write it to the new file ``target``. Raises E307 when it is stored and not what it was, E306 when the disk fails."""
        with self.open() as source:
            _copy(source, target)


@contextmanager
def folder_of(files: Mapping[str, KeptFile], there: Path) -> Iterator[Path]:
    """A folder with these files under their relative names: a temporary one, or ``there`` where they all lie. Raises E306, E307."""
    if not any(file.stored for file in files.values()):
        yield there
        return
    with tempfile.TemporaryDirectory(prefix="runner-files-") as folder:
        for name, file in files.items():
            place = PurePosixPath(name)
            if place.is_absolute() or ".." in place.parts:
                raise damaged(f"{shown(name)} is no name of a file")
            target = Path(folder) / place
            target.parent.mkdir(parents=True, exist_ok=True)
            file.copy(target)
        yield Path(folder)


def _copy(source: BinaryIO, target: Path) -> None:
    try:
        with target.open("xb") as out:
            shutil.copyfileobj(source, out, _PIECE)
    except OSError as error:
        raise disk_error(
            "a file of a run cannot be taken out of the archive", error, target.parent
        ) from error


@contextmanager
def _regular(path: Path) -> Iterator[BinaryIO]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(None, "not a regular file", str(path))
        yield file


def _write(out: BinaryIO, head: bytes, file: BinaryIO, packed: bool) -> Content:
    """Write ``head`` and what is left of ``file`` to the new file ``out``, read-only and synced; returns what was written."""
    digest, size = hashlib.sha256(), 0
    # Without name and date, so that the same bytes give the same file.
    packing = gzip.GzipFile("", "wb", LEVEL, out, 0) if packed else nullcontext(out)
    with packing as target:
        piece = head
        while piece:
            digest.update(piece)
            size += len(piece)
            target.write(piece)
            piece = file.read(_PIECE)
    out.flush()
    os.fchmod(out.fileno(), 0o444)
    os.fsync(out.fileno())
    return Content(digest.hexdigest(), size)
