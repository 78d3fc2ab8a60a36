"""Files of datasets that are fetched from elsewhere, or brought by a person: only what has the right hash is used.

Nothing is put in its place before its size and hashes were found right, and then at once. What has arrived of a
file is kept next to its place as ``.NAME.part``; a later download resumes it, also in another process, when task.yaml has
a hash that will show whether the whole is right.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import schemas
from runner.model.errors import RunnerError, no_such
from runner.model.task import Dataset, Source
from runner.tasks.transfer.download import (
    CHUNK,
    Ask,
    OnProgress,
    Wait,
    as_anybody,
    download,
    not_fetched,
    writing,
    wrong_file,
)


@dataclass(frozen=True)
class Fetched:
    """A file that is in its place: its size in bytes, its SHA-256, and whether task.yaml had a hash to compare."""

    source: Source
    size: int
    sha256: str
    verified: bool
    new: bool


def pull(
    source: Source,
    *,
    on_progress: OnProgress = lambda *_: None,
    wait: Wait = time.sleep,
    ask: Ask = as_anybody,
) -> Fetched:
    """Fetch a file that has an address; one that is in its place already is only checked.

    Raises E406 for a file with another size or hash than task.yaml says, E407 for one that cannot be fetched.
    ``wait`` sleeps between two tries, ``ask`` sends requests.
    """
    if source.url is None:
        why, fix = "task.yaml names no address for it.", "bring the file: runner data import … --as"
        raise not_fetched(source, why, fix)
    if source.path.is_file():
        return _check(source, source.path, new=False)
    with only_writer(source):
        if source.path.is_file():
            return _check(source, source.path, new=False)
        return _fetch(source, on_progress, wait, ask)


def add_local_file(dataset: Dataset, name: str, file: Path) -> Fetched:
    """Copy ``file`` to the place of the source ``name`` (``inputs/…`` or ``truths/…``) when its hash is right.

    Raises E102 when there is no such source or file, E406 for another size or hash, E101 when another file is
    there already.
    """
    known = {source.name: source for source in dataset.sources}
    if name not in known:
        why = f"Its sources are {schemas.show(', '.join(known), 300) or 'none'}."
        fix = "name one of them, or add it to task.yaml"
        raise no_such("source", name, known, of=dataset.id, why=why, fix=fix)
    source = known[name]
    if not file.is_file():
        raise no_such("file", file, fix="name a file", limit=300)
    found = _check(source, file)
    if source.path.is_file():
        if _hashes(source.path)[0] == found.sha256:
            return _check(source, source.path, new=False)
        what = f"{source.name} of {dataset.id} is there already, with another content"
        raise RunnerError("E101", what, why=f"It is at {source.path}.", fix="move it away first")
    with only_writer(source):
        part = part_of(source)
        with writing(source):
            shutil.copyfile(file, part)
        return _put_in_place(source, part)


def part_of(source: Source) -> Path:
    """Where a file is kept until it is complete."""
    return source.path.with_name(f".{source.path.name}.part")


@contextmanager
def only_writer(source: Source) -> Iterator[None]:
    """Make the file's folder, and be the only process that writes the file. Raises E407 when another one does."""
    from filelock import FileLock, Timeout

    with writing(source):
        source.path.parent.mkdir(parents=True, exist_ok=True)
    path = source.path.with_name(f".{source.path.name}.lock")
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        what = f"{source.name} is being fetched by another process"
        raise RunnerError("E407", what, why=f"It holds {path}.", fix="wait for it to end") from error
    try:
        yield
    finally:
        with suppress(OSError):  # while it is held: nobody else can have it open to write
            path.unlink()
        lock.release()


def _hashes(path: Path) -> tuple[str, str]:
    """SHA-256 and MD5 (hex) of a file, read once."""
    sha, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            sha.update(block)
            md5.update(block)
    return sha.hexdigest(), md5.hexdigest()


def _check(source: Source, path: Path, *, new: bool = True) -> Fetched:
    """Compare a file with what task.yaml says. Raises E406."""
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        raise wrong_file(source, f"It has {size:,} bytes; task.yaml says {source.size:,}.")
    sha256, md5 = _hashes(path)
    for what, wanted, actual in (("SHA-256", source.sha256, sha256), ("MD5", source.md5, md5)):
        if wanted is not None and wanted != actual:
            raise wrong_file(source, f"Its {what} is {actual}; task.yaml says {wanted}.")
    return Fetched(source, size, sha256, bool(source.sha256 or source.md5), new)


def _put_in_place(source: Source, part: Path) -> Fetched:
    """Check a complete file and put it in its place. A wrong one is removed."""
    try:
        found = _check(source, part)
    except RunnerError:
        part.unlink()
        raise
    with writing(source):
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.chmod(0o644)
        part.replace(source.path)
    return found


def _fetch(source: Source, on_progress: OnProgress, wait: Wait, ask: Ask) -> Fetched:
    part = part_of(source)
    if not (source.sha256 or source.md5):
        part.unlink(missing_ok=True)  # nothing would show whether two halves belong together
    resumed = part.is_file() and part.stat().st_size > 0
    download(source, part, on_progress, wait, ask)
    try:
        return _put_in_place(source, part)
    except RunnerError:
        if not resumed:
            raise
        # The beginning came from an earlier time, when the file may have been another one: all anew, once.
        download(source, part, on_progress, wait, ask)
        return _put_in_place(source, part)
