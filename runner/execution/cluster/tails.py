"""What a software writes at a host, while it runs: of public data alone, and only while somebody follows the run.

Who follows leaves a note in the data directory (:class:`Follower`). The coordinator sees it, asks the host now and then for what came since
(:class:`Tails`), and lays that beside the note; the host keeps no more than the last bytes (:class:`Tail`, which work uses for what runs beside
it, too). They are words of a participant, by way of a host: bounded here, whatever comes, and escaped by whoever shows them.
"""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from runner.engines.base import MayCut
from runner.model.task import Dataset

Follow = Callable[[MayCut], Iterable[bytes]]
FOLDER = "following"  # in the data directory: notes of those who follow, and what came
AT_ONCE = 32 << 10  # bytes that a host gives at once: the last, where more came since
EVERY = 1.0  # seconds between two questions for one run
SILENT = 30.0  # the same where nothing came of the last one
MOST = 1 << 20  # bytes that are kept of an attempt: then its file begins anew
FRESH = 60.0  # seconds after which a note that nobody renewed is old
PAUSES = (
    0.5,
    2.0,
)  # seconds until a host looks again whether the software has begun: doubled up to the second
HEAD = 4096  # bytes by which a stream that begins again is known
PIECES, BYTES = 4000, 2 << 20  # that are read of one software in a second, whatever it writes
LEFT_OUT = b"\n[%d bytes are left out here: the log has them once the run is over]\n"


def may_leave(dataset: Dataset) -> bool:
    """Whether what softwares write on a dataset may be asked of a host. Both sides ask that."""
    return dataset.visibility == "public"


class Tail:
    """At a host: the last bytes of what a software writes. ``follow`` gives all of it as it comes, nothing before it has begun, and tells
    what is given to it how another thread ends that; it is first called when somebody asks, and again after ``pauses`` until this is closed:
    a stream may break, and an attempt may begin anew. Of a software that writes more than :data:`PIECES` and :data:`BYTES` a second the
    engine keeps the rest, as much as it keeps of logs at all."""

    def __init__(self, follow: Follow, pauses: tuple[float, float] = PAUSES) -> None:
        self._follow, self._pauses = follow, pauses
        self._kept, self._end = b"", 0
        self._head, self._had = b"", 0  # of what is followed now: how it begins, and its bytes so far
        self._over, self._lock = threading.Event(), threading.Lock()
        self._cut: Callable[[], None] = _nothing
        self._reader: threading.Thread | None = None

    def since(self, start: int) -> dict[str, Any]:
        """As :meth:`came`, to be sent: ``first``, and ``data`` (base64)."""
        first, data = self.came(start)
        return {"first": first, "data": base64.b64encode(data).decode()}

    def came(self, start: int) -> tuple[int, bytes]:
        """The bytes that came after the first ``start``, at most the last :data:`AT_ONCE`, behind the place of the first of them."""
        with self._lock:
            if self._reader is None and not self._over.is_set():
                self._reader = threading.Thread(target=self._read, name="tail", daemon=True)
                self._reader.start()
            before = self._end - len(self._kept)
            first = max(start, before)
            return first, self._kept[first - before :]

    @property
    def closed(self) -> bool:
        """Whether nothing is read any more."""
        return self._over.is_set()

    def close(self) -> None:
        """Nothing is read any more, also of a software that says nothing."""
        with self._lock:
            self._over.set()
            cut = self._cut
        cut()

    def _may_cut(self, cut: Callable[[], None]) -> None:
        with self._lock:
            self._cut = cut
            closed = self._over.is_set()
        if closed:
            cut()

    def _read(self) -> None:
        pause, longest = self._pauses
        while not self._over.is_set():
            before = self._end
            with suppress(Exception):  # an engine that is gone says so to whoever executes the run
                for piece in self._new(self._paced(self._follow(self._may_cut))):
                    with self._lock:
                        self._kept = (self._kept + piece)[-AT_ONCE:]
                        self._end += len(piece)
            with self._lock:
                self._cut = _nothing
            pause = self._pauses[0] if self._end > before else pause
            self._over.wait(pause)
            pause = min(longest, 2 * pause)

    def _new(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """What of a stream did not come before, when it broke; all of it where it begins otherwise: an attempt was begun anew."""
        left, held = self._had, b""
        for piece in pieces:
            if left and len(held) < len(self._head):
                held = piece = held + piece
                if not held.startswith(self._head[: len(held)]):
                    self._head, self._had, left = b"", 0, 0
                elif len(held) < len(self._head):
                    continue
            left, piece = max(0, left - len(piece)), piece[left:]
            if piece:
                self._head = (self._head + piece[:HEAD])[:HEAD]
                self._had += len(piece)
                yield piece

    def _paced(self, stream: Iterable[bytes]) -> Iterator[bytes]:
        """A stream, so much of it in a second, until this is closed."""
        pieces = size = 0
        second = time.monotonic() + 1
        for piece in stream:
            if self._over.is_set():
                return
            yield piece
            pieces, size = pieces + 1, size + len(piece)
            if pieces >= PIECES or size >= BYTES:
                self._over.wait(second - time.monotonic())
                pieces = size = 0
                second = time.monotonic() + 1


def _nothing() -> None:
    """What is not read now needs no end."""


@dataclass
class _Taken:
    """What came of one attempt: the place after its last byte, the bytes that were taken, and when it was asked for the last time."""

    path: Path
    place: int = 0
    size: int = 0
    asked: float | None = None
    waits: bool = False
    over: bool = False


class Tails:
    """At the coordinator: what hosts say is laid into ``folder``, for those who follow. Used by several threads."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder, self._clock = folder, clock
        self._taken: dict[str, _Taken] = {}  # by order
        self._lock = threading.Lock()

    def followed(self) -> set[str]:
        """The ids of runs that may be followed, by one look for all, and other names: what :meth:`due` is asked about."""
        try:
            return {path.name for path in self.folder.iterdir()}
        except OSError:
            return set()

    def due(self, name: str, run_id: str, number: int) -> int | None:
        """From which byte on the host is to be asked what the software of an order has written; None: it is not to be asked now."""
        try:
            if abs(time.time() - (self.folder / run_id).stat().st_mtime) > FRESH:
                return None
        except OSError:
            return None
        with self._lock:
            if (one := self._taken.get(name)) is None:
                one = self._taken[name] = _Taken(_place(self.folder, run_id, number))
                with suppress(OSError):  # of a coordinator that was killed
                    one.path.unlink(missing_ok=True)
            now, pause = self._clock(), SILENT if one.waits else EVERY
            if one.over or (one.asked is not None and now < one.asked + pause):
                return None
            one.asked, one.waits = now, True
            return one.place

    def take(self, name: str, said: Any) -> None:
        """Keep what a host says of an order that it was asked about; what was not asked for, is too much or is nothing like it is not kept."""
        with self._lock:
            one = self._taken.get(name)
            if one is None or not one.waits:
                return
            one.waits = False
            found = _bytes(said, one.place)
            if found is None:
                return
            first, data = found
            text = LEFT_OUT % (first - one.place) * (first > one.place) + data
            try:
                if one.size + len(text) > MOST:  # who follows still has the file that is open to them
                    one.path.unlink(missing_ok=True)
                    one.size = 0
                if text:
                    _append(one.path, text)
            except OSError:  # of our disk: following is the least that it is needed for
                one.over = True
            one.place, one.size = first + len(data), one.size + len(text)

    def forget(self, name: str) -> None:
        """An order is over: what was kept of it goes."""
        with self._lock:
            one = self._taken.pop(name, None)
        if one is not None:
            with suppress(OSError):
                one.path.unlink(missing_ok=True)


def _bytes(said: Any, place: int) -> tuple[int, bytes] | None:
    """Where what a host says begins, and its bytes; None for what cannot be."""
    first, data = (said.get("first"), said.get("data")) if isinstance(said, dict) else (None, None)
    if type(first) is not int or not place <= first < 1 << 53 or not isinstance(data, str):
        return None
    if len(data) > 4 * (AT_ONCE // 3 + 1):
        return None
    try:
        return first, base64.b64decode(data, validate=True)[:AT_ONCE]
    except ValueError:
        return None


def _append(path: Path, text: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
        file.write(text)


def _place(folder: Path, run_id: str, number: int) -> Path:
    return folder / f"{run_id}~{number}"


class Follower:
    """Who follows an attempt, beside the coordinator: asks for what its software writes, and reads what came. For one thread.
    ``over`` says that what came went away again: the host is done with it. Once it is closed, nothing is asked for and nothing comes."""

    def __init__(self, folder: Path, run_id: str, number: int) -> None:
        self._note, self._path = folder / run_id, _place(folder, run_id, number)
        self._file: BinaryIO | None = None
        self._closed = self.over = False

    def ask(self) -> None:
        """Renew the note. Where this user may not write there, nothing comes."""
        if self._closed:
            return
        with suppress(OSError):
            self._note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._note.touch(0o600)

    def read(self) -> bytes:
        """What came since."""
        came = b""
        with suppress(OSError):
            while not self._closed:
                if self._file is None:
                    self._file, self.over = self._path.open("rb"), False
                begun_anew = (
                    os.fstat(self._file.fileno()).st_nlink == 0
                )  # before reading: nothing more comes into it
                came += self._file.read()
                if not begun_anew:
                    break
                self._file.close()
                self._file, self.over = None, True
        return came

    def rest(self) -> None:
        """Ask for nothing until it is asked again; others who follow renew the note."""
        with suppress(OSError):
            self._note.unlink(missing_ok=True)

    def close(self) -> None:
        """Follow no more."""
        self._closed, file, self._file = True, self._file, None
        with suppress(OSError):
            if file is not None:
                file.close()
        self.rest()


@contextmanager
def following(folder: Path, run_id: str, number: int) -> Iterator[Follower]:
    """Follow an attempt as long as the block lasts."""
    follower = Follower(folder, run_id, number)
    try:
        yield follower
    finally:
        follower.close()


def sweep(folder: Path) -> None:
    """Remove what killed processes left: what came for whoever followed, and notes that nobody renews. For a coordinator, before hosts are asked."""
    for path in folder.glob("*"):
        with suppress(OSError):
            if "~" in path.name or time.time() - path.stat().st_mtime > FRESH:
                path.unlink()
