"""Uploads that go on after a cut: what a team has sent so far, on the disk, until it is handed in or its time is over.

An upload is two files below ``inbox/.uploads/``: ``<id>.json`` says whose it is, and how many bytes of which SHA-256 are to come;
``<id>`` has those that came. How far it is, is the size of that file: there is no second truth to lose. What is complete and has
its digest is moved into a request as it is, so that nothing large is copied or held in memory.

A server that is killed between the last byte and the note of the digest leaves an upload that has all bytes and no ``arrival``:
:meth:`Uploads.settle` finishes it, at the next start and whenever the upload is asked for.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from runner.exchange.inbox import Ready
from runner.model.clock import Clock, SystemClock, stamp
from runner.model.limits import GIB, MIB, in_units
from schemas.files import atomic_file, file_sha256

ID = re.compile(r"[0-9a-f]{32}")
SHA256 = re.compile(r"[0-9a-f]{64}")

ALONE = 60.0  # seconds after which one of the two files without the other goes
SURE = 3600.0  # seconds for which the time of one has to be over until it goes: a clock that was set wrong and is corrected takes nothing away


@dataclass(frozen=True)
class Bounds:
    """What uploads may take: bytes of ``each`` and of all of a ``team``, how many are ``open`` at a time, for how many seconds one
    ``lasts`` after its last byte, and bytes that stay ``free`` on the disk."""

    each: int = 32 * GIB
    team: int = 48 * GIB
    open: int = 16
    lasts: float = 2 * 86400.0
    free: int = 512 * MIB


@dataclass(frozen=True)
class Upload:
    """One upload: ``size`` bytes with the digest ``sha256`` are to come for ``team``; ``began`` and ``arrival`` (UTC) say when the first
    and the last could come and came (None: not yet)."""

    id: str
    team: str
    size: int
    sha256: str
    began: str
    arrival: str | None = None


class Full(Exception):
    """An upload that is not begun, with the status of the answer; the text says what the bound is and what helps."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Uploads:
    """The uploads below a folder. ``clock`` says when the time of one is over, ``steady`` gives seconds that never go back."""

    def __init__(
        self,
        root: Path,
        bounds: Bounds = Bounds(),
        clock: Clock | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.root, self.bounds, self._clock, self._steady = root, bounds, clock or SystemClock(), steady
        self._over: dict[str, float] = {}  # by id since when its time is seen to be over
        self._busy: set[str] = set()
        self._lock, self._creating = threading.Lock(), threading.Lock()

    def begin(self, team: str, size: int, sha256: str, began: str) -> Upload:
        """Return the upload of a team with this digest; begin it if there is none. Raises Full, OSError."""
        with self._creating:  # several threads at once would exceed the bounds
            return self.find(team, sha256) or self._create(team, size, sha256, began)

    def find(self, team: str, sha256: str) -> Upload | None:
        """Return the upload of a team with this digest; None if there is none."""
        return next((one for one in self.of(team) if one.sha256 == sha256), None)

    def _create(self, team: str, size: int, sha256: str, began: str) -> Upload:
        self.sweep()
        bounds, there = self.bounds, self.of(team)
        if size > bounds.each:
            raise Full(413, f"An upload has at most {in_units(bounds.each)}: make the image smaller.")
        if len(there) >= bounds.open:
            raise Full(
                429, f"A team has at most {bounds.open} uploads at a time: hand them in, or remove them."
            )
        kept = sum(one.size for one in there)
        if kept + size > bounds.team:
            why = f"Uploads of a team have at most {in_units(bounds.team)} together, and {in_units(kept)} are announced"
            raise Full(413, f"{why}: hand them in, or remove them.")
        self.root.mkdir(parents=True, exist_ok=True)
        if not self.has_room(size) and (not self.sweep(0.0) or not self.has_room(size)):
            raise Full(507, "The disk of the server has no room for it: write to the organiser.")
        made = Upload(secrets.token_hex(16), team, size, sha256, began)
        self._file(made.id).touch()
        self._write(made)
        return made

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more, and all that is still to come of the uploads of all teams, leave what has to stay free."""
        coming = 0
        for path in self.root.glob("*.json"):
            with suppress(OSError, ValueError, TypeError):
                one = Upload(**json.loads(path.read_bytes()))
                coming += max(0, one.size - self.offset(one))
        return shutil.disk_usage(self.root).free - size - coming >= self.bounds.free

    def keep_free(self, size: int) -> None:
        """Raise OSError (no space) where so many bytes would take what has to stay free: others write to the disk, too."""
        if (
            shutil.disk_usage(self.root if self.root.is_dir() else self.root.parent).free - size
            < self.bounds.free
        ):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.root))

    def of(self, team: str) -> list[Upload]:
        """The uploads of a team."""
        ids = [path.stem for path in sorted(self.root.glob("*.json"))]
        return [found for id in ids if (found := self.get(team, id)) is not None]

    def get(self, team: str | None, id: str) -> Upload | None:
        """An upload of a team; None where it has none of that id, or its time is over."""
        found = self.facts(id)
        try:
            over = found is None or self.expires(found) < self._now()
        except OSError:
            return None
        return found if found is not None and found.team == team and not over else None

    def as_dict(self, upload: Upload) -> dict[str, object]:
        """Return what a program may know of an upload. Raises OSError if it is gone."""
        offset = self.offset(upload)
        return {"id": upload.id, "sha256": upload.sha256, "size": upload.size, "offset": offset}

    def listed(self, team: str) -> list[dict[str, object]]:
        """Return what a program may know of the uploads of a team."""
        items: list[dict[str, object]] = []
        for upload in self.of(team):
            with suppress(FileNotFoundError):  # submitted or removed just now
                items.append(self.as_dict(upload))
        return items

    def facts(self, id: str) -> Upload | None:
        """Return what is written down of an upload, also if its content was submitted just now; None if nothing is."""
        if not ID.fullmatch(id):
            return None
        try:
            return Upload(**json.loads(self._facts(id).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def is_there(self, upload: Upload) -> bool:
        """True if the content of an upload is here, and not in a request."""
        return self._file(upload.id).exists()

    def offset(self, upload: Upload) -> int:
        """How many bytes have come. Raises OSError where it went away."""
        return self._file(upload.id).stat().st_size

    def expires(self, upload: Upload) -> float:
        """When its time is over, in seconds since 1970. Raises OSError."""
        return self._file(upload.id).stat().st_mtime + self.bounds.lasts

    @contextmanager
    def only(self, id: str) -> Iterator[bool]:
        """Whether nobody else writes to it, for as long as the block lasts."""
        with self._lock:
            free = id not in self._busy
            self._busy.add(id)
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._busy.discard(id)

    def open(self, upload: Upload) -> BinaryIO:
        """The file, to add to it. Raises OSError."""
        return self._file(upload.id).open("ab")

    def finish(self, upload: Upload, arrival: str) -> Upload | None:
        """Note that the last byte came; None for content of another digest, which goes. Raises OSError."""
        path = self._file(upload.id)
        if file_sha256(path) != upload.sha256:
            self.forget(upload.id)
            return None
        done = Upload(**{**asdict(upload), "arrival": arrival})
        self._write(done)
        return done

    def is_unsettled(self, upload: Upload) -> bool:
        """True if all bytes are there, but their digest was not noted. Raises OSError where the upload went away."""
        return upload.arrival is None and self.offset(upload) >= upload.size

    def settle(self, team: str | None, id: str) -> Upload | None:
        """Return an upload of a team, finished if all its bytes are there; for whoever has it alone (:meth:`only`).

        Returns:
            None where the team has none of that id, or its content has another digest: then it goes.

        Raises:
            OSError: The disk refuses it.
        """
        found = self.get(team, id)
        if found is None or not self.is_unsettled(found):
            return found
        return self.finish(found, stamp(self._clock.now()))

    def settle_all(self) -> None:
        """Finish what a killed server left unfinished. For the start of the server; digests of large uploads take minutes."""
        for path in sorted(self.root.glob("*.json")):
            with suppress(OSError), self.only(path.stem) as free:
                if free and (found := self.facts(path.stem)) is not None:
                    self.settle(found.team, found.id)

    def ready(self, upload: Upload) -> Ready:
        """The file of a complete upload, to be moved away."""
        return Ready(self._file(upload.id), upload.sha256, upload.size)

    def sweep(self, sure: float = SURE) -> bool:
        """Take away those whose time has been over for ``sure`` seconds, and what a killed front left of one; whether there were any."""
        now, steady = self._now(), self._steady()
        over = [
            id for id in {path.stem for path in self.root.glob("*")} - self._busy if self._is_over(id, now)
        ]
        self._over = {id: self._over.get(id, steady) for id in over}
        gone = [id for id, since in self._over.items() if steady - since >= sure]
        for id in gone:
            with suppress(OSError):
                self.forget(id)
        return bool(gone)

    def _is_over(self, id: str, now: float) -> bool:
        """Whether the time of an upload is over."""
        times = []
        for path in (self._file(id), self._facts(id)):
            with suppress(OSError):
                times.append(path.stat().st_mtime)
        lasts = self.bounds.lasts if len(times) == 2 else ALONE
        return bool(times) and max(times) + lasts < now

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def forget(self, id: str) -> None:
        """Take away what is there of an upload, whose it was."""
        for path in (self._facts(id), self._file(id)):
            path.unlink(missing_ok=True)

    def _write(self, upload: Upload) -> None:
        with atomic_file(self._facts(upload.id), mode=0o600, sync=True) as file:
            file.write(json.dumps(asdict(upload)).encode())

    def _file(self, id: str) -> Path:
        return self.root / id

    def _facts(self, id: str) -> Path:
        return self.root / f"{id}.json"
