"""Downloads of files of datasets: resumed where they broke off, and bounded by the size that task.yaml says."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote, urlsplit

import schemas
from runner.model.errors import RunnerError, disk_words
from runner.model.task import Source

if TYPE_CHECKING:
    from requests import Response

CHUNK = 256 * 1024
CONNECT, READ = 20.0, 60.0  # seconds without any answer
TRIES = 5  # in a row without a byte that is new
MOST_TRIES = 50  # in all
REDIRECTS = 10
MARGIN = 64 * 1024 * 1024  # bytes that stay free on the disk
_RETRY = (408, 425, 429, 500, 502, 503, 504)

OnProgress = Callable[[Source, int, int | None], None]  # a file, bytes there, bytes in all if known
Wait = Callable[[float], None]
Ask = Callable[
    [str, dict[str, str]], AbstractContextManager["Response"]
]  # address and headers: an answer, not read yet


class _Broken(Exception):
    """A download that broke off, and may be resumed."""


def wrong_file(source: Source, why: str) -> RunnerError:
    """E406: the file is not the one that task.yaml describes."""
    what = f"{source.name} is not the file that task.yaml describes"
    fix = "get the right file; if it was changed by its owner, correct sources in task.yaml"
    return RunnerError("E406", what, why=why, fix=fix)


def not_fetched(source: Source, why: str, fix: str = "look at the address in task.yaml") -> RunnerError:
    """E407: the file cannot be fetched."""
    return RunnerError("E407", f"{source.name} cannot be fetched", why=why, fix=fix)


@contextmanager
def writing(source: Source) -> Iterator[None]:
    """Report what the operating system refuses while the file is written as E407."""
    try:
        yield
    except OSError as error:
        why, fix = disk_words(error, source.path.parent, setting="")
        raise RunnerError("E407", f"{source.name} cannot be written", why=why, fix=fix) from error


@contextmanager
def as_anybody(url: str, headers: dict[str, str]) -> Iterator[Response]:
    """The answer of a server somewhere, which may send us on a few times."""
    from runner.exchange.http import Session

    with (
        Session(REDIRECTS) as session,
        session.get(url, headers=headers, stream=True, timeout=(CONNECT, READ)) as answer,
    ):
        yield answer


def download(
    source: Source, part: Path, on_progress: OnProgress, wait: Wait = time.sleep, ask: Ask = as_anybody
) -> None:
    """Fetch the whole file into ``part``, from where it ends. Its hashes are not checked.

    Args:
        source: the file, with its address.
        part: where it is written; what it holds already is the beginning of the file.
        on_progress: called with every piece.
        wait: sleeps for seconds between two tries.
        ask: sends a request.

    Raises:
        RunnerError: E406 when it is larger than it may be, E407 when it cannot be fetched or written.
    """
    assert source.url is not None
    failures, last = 0, ""
    for _ in range(MOST_TRIES):
        before = part.stat().st_size if part.is_file() else 0
        try:
            with writing(source), part.open("ab") as file:
                transfer = _Transfer(source, source.url, file, on_progress, ask)
                transfer.copy() if urlsplit(source.url).scheme == "file" else transfer.get()
            return
        except _Broken as error:
            last = str(error)
        except RunnerError as error:
            if error.code == "E406":
                part.unlink(missing_ok=True)
            raise
        failures = 0 if part.stat().st_size > before else failures + 1
        if failures >= TRIES:
            break
        wait(min(30.0, 2.0**failures))
    raise not_fetched(
        source,
        f"{_shown(source.url)}: {schemas.show(last, 300)}. {part.stat().st_size:,} bytes have arrived.",
        "look at the network and the address, then start the same command again: it goes on where it stopped",
    )


@dataclass
class _Transfer:
    """One try at the missing rest of a file."""

    source: Source
    url: str
    file: BinaryIO
    on_progress: OnProgress
    ask: Ask

    def copy(self) -> None:
        """Copy from an address that starts with ``file://``."""
        url = urlsplit(self.url)
        path = Path(unquote(url.path))
        if url.netloc not in ("", "localhost") or not path.is_file():
            raise not_fetched(self.source, f"{_shown(self.url)} is no file of this machine.")
        self.file.truncate(0)
        total = path.stat().st_size
        self.reserve(total)
        with path.open("rb") as original:
            self.take(lambda: original.read(CHUNK), 0, total)

    def get(self) -> None:
        """Send one request for what is missing. Raises _Broken when trying again may help."""
        import requests
        from urllib3.exceptions import HTTPError

        done = self.file.tell()
        if done and done == self.source.size:
            return
        headers = {"Accept-Encoding": "identity", "User-Agent": "proctor-ir"}
        if done:
            headers["Range"] = f"bytes={done}-"
        shown = _shown(self.url)
        try:
            with self.ask(self.url, headers) as answer:
                self.receive(answer, done)
        except requests.TooManyRedirects:
            raise not_fetched(self.source, f"{shown} sends us in circles.") from None
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema):
            raise not_fetched(self.source, f"{shown} leads to no web address.") from None
        except requests.exceptions.SSLError:
            raise not_fetched(self.source, f"The certificate of {shown} cannot be trusted.") from None
        except (requests.RequestException, HTTPError) as error:
            raise _Broken(_REASONS.get(type(error).__name__, type(error).__name__)) from None

    def receive(self, answer: Any, done: int) -> None:
        """Take what a server answers to a request for everything after ``done`` bytes."""
        size, start = self.source.size, self.first_byte(answer, done)
        if start is None:
            return
        length = answer.headers.get("Content-Length", "")
        left = int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None
        total = None if left is None else start + left
        if size is not None and total is not None and total > size:
            raise wrong_file(self.source, f"It has {total:,} bytes; task.yaml says {size:,}.")
        self.reserve(left if left is not None else max(0, (size or 0) - start))
        self.on_progress(self.source, start, total or size)
        end = self.take(lambda: answer.raw.read(CHUNK, decode_content=False), start, total or size)
        if end < (total if total is not None else size or 0):
            raise _Broken("the connection broke off")

    def first_byte(self, answer: Any, done: int) -> int | None:
        """Where in the file the body of an answer begins: at ``done``, or at 0; None when nothing is missing."""
        status, span = answer.status_code, answer.headers.get("Content-Range", "")
        if status == 416:  # there is nothing after what we have
            total = re.fullmatch(r"bytes \*/([0-9]{1,18})", span)
            if total and int(total[1]) == done:
                return None
            self.file.truncate(0)
            raise _Broken("the server has a shorter file")
        if status in _RETRY:
            raise _Broken(f"the server says {status}")
        if status not in (200, 206):
            raise not_fetched(self.source, f"{_shown(answer.url)}: the server says {status}.")
        part = re.fullmatch(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)", span)
        if done and (status == 200 or part is None or int(part[1]) != done):
            self.file.seek(0)
            self.file.truncate(0)  # the server begins at the beginning, or somewhere else
            if status == 206:
                raise _Broken("the server does not send the part we asked for")
            return 0
        return done

    def take(self, read: Callable[[], bytes], done: int, total: int | None) -> int:
        """Write what ``read`` gives after ``done`` bytes, and return how many there are then.

        Raises E406 as soon as the file is larger than it may be.
        """
        while block := read():
            done += len(block)
            if self.source.size is not None and done > self.source.size:
                size = f"{self.source.size:,}"
                raise wrong_file(self.source, f"It is larger than the {size} bytes that task.yaml says.")
            self.file.write(block)
            if done % (64 * CHUNK) < CHUNK:
                self.reserve(0)  # a server may not say how much is to come
            self.on_progress(self.source, done, total)
        return done

    def reserve(self, more: int) -> None:
        """Raise E407 unless the disk has space for ``more`` bytes."""
        free = shutil.disk_usage(self.source.path.parent).free
        if more + MARGIN > free:
            why = f"It needs {more:,} bytes, and the disk has {free:,} free."
            raise not_fetched(self.source, why, "make room on the disk of the task's data")


_REASONS = {
    "ConnectionError": "no connection",
    "ConnectTimeout": "no answer in time",
    "ReadTimeout": "nothing came for a while",
    "ReadTimeoutError": "nothing came for a while",
    "ProtocolError": "the connection broke off",
    "ChunkedEncodingError": "the connection broke off",
    "IncompleteRead": "the connection broke off",
}


def _shown(url: str) -> str:
    """An address as it may be shown: without a password, a query and control characters."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return schemas.show(f"{parts.scheme}://{host}{parts.path}", 300)
