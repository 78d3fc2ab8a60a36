"""Files of datasets that are fetched from elsewhere, or brought: downloads that resume, and hashes that decide.

Nothing is put in its place before its size and hash were found right, and then at once. What has arrived of a
file waits beside its place as ``.NAME.part``; it is gone on with later, also by another process, when a hash in
task.yaml will tell whether the whole is right.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

import schemas
from runner.model.errors import RunnerError, no_such
from runner.model.task import Dataset, Source

CHUNK = 256 * 1024
CONNECT, READ = 20.0, 60.0  # seconds without any answer
TRIES = 5  # in a row without a byte that is new
MOST_TRIES = 50  # in all
REDIRECTS = 10
ROOM = 64 * 1024 * 1024  # bytes that stay free on the disk
_RETRY = (408, 425, 429, 500, 502, 503, 504)

Tell = Callable[[Source, int, int | None], None]  # a file, bytes there, bytes in all if known


@dataclass(frozen=True)
class Fetched:
    """A file that is in its place: its size in bytes, its SHA-256, and whether task.yaml had a hash to compare."""

    source: Source
    size: int
    sha256: str
    verified: bool
    new: bool


class _Broken(Exception):
    """A download that broke off, and may go on."""


def pull(
    source: Source, *, tell: Tell = lambda *_: None, wait: Callable[[float], None] = time.sleep
) -> Fetched:
    """Fetch a file that has an address; one that is in its place already is only checked.

    Raises E406 for a file with another size or hash than task.yaml says, E407 for one that cannot be fetched.
    ``wait`` sleeps between two tries.
    """
    if source.url is None:
        raise _cannot(
            source, "task.yaml names no address for it.", "bring the file: runner data import … --as"
        )
    if source.path.is_file():
        return _there(source)
    with _writing(source):
        source.path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(source):
        return _there(source) if source.path.is_file() else _fetch(source, tell, wait)


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
            return _there(source)
        raise RunnerError(
            "E101",
            f"{source.name} of {dataset.id} is there already, with another content",
            why=f"It is at {source.path}.",
            fix="move it away first",
        )
    with _writing(source):
        source.path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(source):
        part = _part(source)
        with _writing(source):
            shutil.copyfile(file, part)
        return _settle(source, part)


def _part(source: Source) -> Path:
    return source.path.with_name(f".{source.path.name}.part")


@contextmanager
def _alone(source: Source) -> Iterator[None]:
    """Be the only process that writes this file. Raises E407 when another one is at it."""
    from filelock import FileLock, Timeout

    path = source.path.with_name(f".{source.path.name}.lock")
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise RunnerError(
            "E407",
            f"{source.name} is being fetched by another process",
            why=f"It holds {path}.",
            fix="wait for it to end",
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # while it is held: nobody else can have it open to write
            path.unlink()
        lock.release()


@contextmanager
def _writing(source: Source) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunnerError(
            "E407",
            f"{source.name} cannot be written",
            why=f"{source.path.parent}: {error.strerror or error}.",
            fix="look at the folder's permissions and the disk's space",
        ) from error


def _there(source: Source) -> Fetched:
    found = _check(source, source.path)
    return Fetched(source, found.size, found.sha256, found.verified, new=False)


def _hashes(path: Path) -> tuple[str, str]:
    """SHA-256 and MD5 of a file, read once."""
    sha, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            sha.update(block)
            md5.update(block)
    return sha.hexdigest(), md5.hexdigest()


def _check(source: Source, path: Path) -> Fetched:
    """Compare a file with what task.yaml says. Raises E406."""
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        raise _wrong(source, f"It has {size:,} bytes; task.yaml says {source.size:,}.")
    sha256, md5 = _hashes(path)
    for what, wanted, actual in (("SHA-256", source.sha256, sha256), ("MD5", source.md5, md5)):
        if wanted is not None and wanted != actual:
            raise _wrong(source, f"Its {what} is {actual}; task.yaml says {wanted}.")
    return Fetched(source, size, sha256, bool(source.sha256 or source.md5), new=True)


def _wrong(source: Source, why: str) -> RunnerError:
    return RunnerError(
        "E406",
        f"{source.name} is not the file that task.yaml describes",
        why=why,
        fix="get the right file; if it was changed by its owner, mend sources in task.yaml",
    )


def _cannot(source: Source, why: str, fix: str = "look at the address in task.yaml") -> RunnerError:
    return RunnerError("E407", f"{source.name} cannot be fetched", why=why, fix=fix)


def _settle(source: Source, part: Path) -> Fetched:
    """Check a complete file and put it in its place. A wrong one is removed."""
    try:
        found = _check(source, part)
    except RunnerError:
        part.unlink()
        raise
    with _writing(source):
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.chmod(0o644)
        part.replace(source.path)
    return found


def _fetch(source: Source, tell: Tell, wait: Callable[[float], None]) -> Fetched:
    part = _part(source)
    if not (source.sha256 or source.md5):
        part.unlink(missing_ok=True)  # nothing would tell whether two halves belong together
    resumed = part.is_file() and part.stat().st_size > 0
    _download(source, part, tell, wait)
    try:
        return _settle(source, part)
    except RunnerError:
        if not resumed:
            raise
        # The beginning came from an earlier time, when the file may have been another one: all anew, once.
        _download(source, part, tell, wait)
        return _settle(source, part)


def _download(source: Source, part: Path, tell: Tell, wait: Callable[[float], None]) -> None:
    """Fetch the whole file into ``part``, going on with what is there. Raises E406, E407."""
    assert source.url is not None
    url = urlsplit(source.url)
    once = _copy if url.scheme == "file" else _get
    failures, last = 0, ""
    for _ in range(MOST_TRIES):
        before = part.stat().st_size if part.is_file() else 0
        try:
            with _writing(source), part.open("ab") as file:
                once(source, file, tell)
            return
        except _Broken as error:
            last = str(error)
        except RunnerError as error:
            if error.code == "E406":
                part.unlink(missing_ok=True)
            raise
        after = part.stat().st_size
        failures = 0 if after > before else failures + 1
        if failures >= TRIES:
            break
        wait(min(30.0, 2.0**failures))
    raise _cannot(
        source,
        f"{_shown(source.url)}: {schemas.show(last, 300)}. {part.stat().st_size:,} bytes have arrived.",
        "look at the network and the address, then start the same command again: it goes on where it stopped",
    )


def _shown(url: str) -> str:
    """An address as it may be shown: without a password, a query and control characters."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return schemas.show(f"{parts.scheme}://{host}{parts.path}", 300)


def _room(source: Source, more: int) -> None:
    free = shutil.disk_usage(source.path.parent).free
    if more + ROOM > free:
        raise _cannot(
            source,
            f"It needs {more:,} bytes, and the disk has {free:,} free.",
            "make room on the disk of the task's data",
        )


def _copy(source: Source, file: BinaryIO, tell: Tell) -> None:
    """Fetch from an address that starts with ``file://``."""
    assert source.url is not None
    url = urlsplit(source.url)
    path = Path(unquote(url.path))
    if url.netloc not in ("", "localhost") or not path.is_file():
        raise _cannot(source, f"{_shown(source.url)} is no file of this machine.")
    file.truncate(0)
    total = path.stat().st_size
    _room(source, total)
    done = 0
    with path.open("rb") as original:
        while block := original.read(CHUNK):
            done += _take(source, file, block, done)
            tell(source, done, total)


def _take(source: Source, file: BinaryIO, block: bytes, done: int) -> int:
    """Write a block. Raises E406 as soon as the file is larger than it may be."""
    if source.size is not None and done + len(block) > source.size:
        raise _wrong(source, f"It is larger than the {source.size:,} bytes that task.yaml says.")
    file.write(block)
    return len(block)


def _get(source: Source, file: BinaryIO, tell: Tell) -> None:
    """One request for what is missing. Raises _Broken when trying again may help."""
    import requests
    from urllib3.exceptions import HTTPError

    assert source.url is not None
    done = file.tell()
    if source.size is not None and done == source.size and done:
        return
    headers = {"Accept-Encoding": "identity", "User-Agent": "proctor-ir"}
    if done:
        headers["Range"] = f"bytes={done}-"
    with requests.Session() as session:
        session.max_redirects = REDIRECTS
        try:
            with session.get(source.url, headers=headers, stream=True, timeout=(CONNECT, READ)) as answer:
                _receive(source, file, answer, done, tell)
        except requests.TooManyRedirects:
            raise _cannot(source, f"{_shown(source.url)} sends us in circles.") from None
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema):
            raise _cannot(source, f"{_shown(source.url)} leads to no web address.") from None
        except requests.exceptions.SSLError:
            raise _cannot(source, f"The certificate of {_shown(source.url)} cannot be trusted.") from None
        except (requests.RequestException, HTTPError) as error:
            raise _Broken(_reason(error)) from None


def _reason(error: Exception) -> str:
    """What went wrong with a connection, in a few words."""
    name = type(error).__name__
    words = {
        "ConnectionError": "no connection",
        "ConnectTimeout": "no answer in time",
        "ReadTimeout": "nothing came for a while",
        "ReadTimeoutError": "nothing came for a while",
        "ProtocolError": "the connection broke off",
        "ChunkedEncodingError": "the connection broke off",
        "IncompleteRead": "the connection broke off",
    }
    return words.get(name, name)


def _receive(source: Source, file: BinaryIO, answer: Any, done: int, tell: Tell) -> None:
    status = answer.status_code
    if status == 416:  # there is nothing after what we have
        total = re.fullmatch(r"bytes \*/([0-9]{1,18})", answer.headers.get("Content-Range", ""))
        if total and int(total[1]) == done:
            return
        file.truncate(0)
        raise _Broken("the server has a shorter file")
    if status in _RETRY:
        raise _Broken(f"the server says {status}")
    if status not in (200, 206):
        raise _cannot(source, f"{_shown(answer.url)}: the server says {status}.")
    span = re.fullmatch(
        r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)", answer.headers.get("Content-Range", "")
    )
    if done and (status == 200 or span is None or int(span[1]) != done):
        file.seek(0)
        file.truncate(0)  # the server begins at the beginning, or somewhere else
        if status == 206:
            raise _Broken("the server does not send the part we asked for")
        done = 0
    length = answer.headers.get("Content-Length", "")
    left = int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None
    total_size = None if left is None else done + left
    if source.size is not None and total_size is not None and total_size > source.size:
        raise _wrong(source, f"It has {total_size:,} bytes; task.yaml says {source.size:,}.")
    _room(source, left if left is not None else max(0, (source.size or 0) - done))
    tell(source, done, total_size or source.size)
    got = 0
    while block := answer.raw.read(CHUNK, decode_content=False):
        got += _take(source, file, block, done + got)
        if left is None and got % (64 * CHUNK) < CHUNK:
            _room(source, 0)  # a server that does not say how much is to come
        tell(source, done + got, total_size or source.size)
    if left is not None and got < left:
        raise _Broken("the connection broke off")
    if source.size is not None and left is None and done + got < source.size:
        raise _Broken("the connection broke off")
