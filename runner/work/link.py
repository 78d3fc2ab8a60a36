"""The link to a front on another machine: work's exchange folder and the front's, made alike, again and again.

The contract stays that of the folder (:mod:`runner.exchange`): the clerk takes requests from ``inbox/`` and publishes to
``published/`` as ever. A round of the link sends who may sign in first, then what the pointer leads to, answers, the pointer and
the sign of life, and then what of large files the pointer does not name yet; and it brings requests, each hashed before the clerk sees it, and tells the front to forget one only when
the clerk has decided it and its answer is there. Logs that grow come last, now and then. Every step can be repeated: cut anywhere, the next round goes on.

What the front says is a stranger's word: names have their form, at most :data:`MOST_HERE` requests wait here or are here in part, and no more
bytes are taken than a request may have.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import schemas
from runner.exchange import tails
from runner.exchange.arriving import files_in_pieces, without
from runner.exchange.inbox import MAX_PARCEL, MAX_PAYLOAD, MAX_REQUEST, Inbox, answered, id_of
from runner.exchange.link import MOST_NAMES, NAME
from runner.exchange.published import ALIVE, POINTER, Object, Publisher, leads_to
from runner.model.config import Config
from runner.model.errors import RunnerError, disk_error
from runner.model.limits import in_units
from runner.work.front import Front, LinkDown
from schemas.files import atomic_file, file_sha256, make_private, settled, sync_folder

SENDING = 10.0  # seconds of a round in which what is published is sent, apart from the file that it is at
PACE = 1.0  # seconds between two rounds
TAILS = 3.0  # seconds in which logs that grow are sent, apart from the file that it is at, and until that is done again
PAUSES = (1.0, 30.0)  # seconds until the next try: doubled each time, up to the second
MOST_HERE = 32  # requests that wait at work at a time; the others wait at the front
ROOM = 4  # times the size of a request that has to be free here: it is brought, copied, unpacked and loaded
TRIES = 3  # times that a file is brought again whose content is not what its request says
FILE = "link.json"
_SECTION = ("files", "audiences")
_Stamp = tuple[int, int, int]
_NAMED: _Stamp = (0, 0, 0)  # of what is named by its content


class Link:
    """The link of a data directory's exchange folder to a front. ``say`` and ``problem`` take what people should know; a round sends
    what is published for at most about so many ``seconds``, so that requests never wait for large data."""

    def __init__(
        self,
        config: Config,
        front: Front,
        say: Callable[[str], None],
        problem: Callable[[RunnerError], None],
        seconds: float = SENDING,
    ) -> None:
        self.config, self.front, self.say, self.problem = config, front, say, problem
        self.seconds = seconds
        self.inbox = Inbox(config.inbox)
        self._there: dict[str, _Stamp] = {}  # what the front has, by name
        self._in_part: dict[str, Any] | None = None  # the pointer that it has until large files are there
        self._tails: dict[str, float] = {}  # when each log that grows was sent last, by name
        self._no_tails = 0.0  # until when none is sent
        self._given: set[str] = set()  # requests that the clerk got from this process
        self._broken: dict[str, int] = {}
        self._held = False  # requests wait for room on our disk

    def run(self, stop: threading.Event) -> None:
        """Keep both alike until ``stop`` is set; a link that is down is said once, and tried again."""
        pause, up = PAUSES[0], None
        while not stop.is_set():
            try:
                more = self.round()
                if up is not True:
                    self.say(f"linked to {self.front.url}")
                pause, up = PAUSES[0], True
                stop.wait(0 if more else PACE)
            except (LinkDown, OSError) as error:
                self.front.drop()
                if isinstance(error, OSError):
                    self.problem(disk_error("the link cannot go on", error, self.config.exchange))
                elif up is not False:
                    self.say(
                        f"no link to {self.front.url}: {schemas.show(str(error), 600)}; it is tried again"
                    )
                up = False
                stop.wait(pause)
                pause = min(PAUSES[1], 2 * pause)

    def round(self) -> bool:
        """Send what the front has not, of much a part, and bring what it has, of large requests a part; whether parts are left.

        Raises LinkDown, OSError of our disk.
        """
        if not self.front.known:
            self._there.clear()
            self._in_part = None
            self.front.enter()
        more = not self._publish()
        more |= self._bring()
        with atomic_file(self.config.home / FILE, mode=0o600) as file:
            file.write(schemas.canonical({"front": self.front.url}))
        if time.monotonic() >= self._no_tails:
            self._send_tails()
            self._no_tails = time.monotonic() + TAILS
        return more

    def _publish(self) -> bool:
        """Send what the front has not; whether that is all. Much takes several rounds: large files come last, each is named at the
        front once it is whole there, and what else is new waits for none of them."""
        new = {name: stamp for name, stamp in self._replaced() if self._there.get(name) != stamp}
        pointer = self._bytes(POINTER) if POINTER in new else None
        moving = new.keys() - {POINTER, ALIVE}
        if "access.json" in moving:
            self._send_missing({"access.json": new["access.json"]})
        named = {} if pointer is None else json.loads(pointer)
        late = self._late(named["audiences"].values()) if named else {}
        shown = named | {"audiences": without(self._to, named["audiences"], late)} if late else named
        whole = not named or self._send_named(shown["audiences"].values())
        self._send_missing({name: new[name] for name in sorted(moving) if name != "access.json"})
        if whole and late and shown != self._in_part:
            self._send(POINTER, _NAMED, schemas.canonical(shown))
            self._in_part = shown
        elif whole and pointer is not None and not late:
            self._send(POINTER, new[POINTER], pointer)
        if ALIVE in new:
            self._send(ALIVE, new[ALIVE])
        if whole and late:
            self._send_missing(dict.fromkeys(sorted(set().union(*late.values())), _NAMED), self.seconds)
        return whole and not late

    def _send_tails(self) -> None:
        """Send the logs that grow, those first that were not sent for longest, for a short while."""
        root = self.config.published
        names = [path.relative_to(root).as_posix() for path in (root / tails.FOLDER).glob("*.json")]
        names.sort(key=lambda name: self._tails.get(name, 0.0))
        self._send_missing(dict.fromkeys(names, _NAMED), min(TAILS, self.seconds))
        now = time.monotonic()
        self._tails = {name: now if name in self._there else self._tails.get(name, 0.0) for name in names}

    def _late(self, databases: Collection[str]) -> dict[Object, set[str]]:
        """The files that the front has not whole, with the names of the pieces that it lacks; it keeps those that it has."""
        files = files_in_pieces(self._to, databases)
        pieces = sorted(set().union(*files.values()))
        if not all(one in self._there for one in pieces):
            for first in range(0, len(pieces), MOST_NAMES):
                self._missing(dict.fromkeys(pieces[first : first + MOST_NAMES], _NAMED))
        return {one: lacks for one, names in files.items() if (lacks := names - self._there.keys())}

    def _send_named(self, databases: Iterable[str]) -> bool:
        """Send what these databases lead to, as much as a round takes; whether the front has all of it."""
        needed = leads_to(self.config.published, databases)
        return self._send_missing(dict.fromkeys(sorted(needed - self._there.keys()), _NAMED), self.seconds)

    def _replaced(self) -> Iterator[tuple[str, _Stamp]]:
        """The files that are not named by their content, and what tells one version from the next."""
        root = self.config.published
        for top in root.iterdir() if root.is_dir() else ():
            for path in (
                [] if top.name in (*_SECTION, tails.FOLDER) else [top] if top.is_file() else top.rglob("*")
            ):
                name = path.relative_to(root).as_posix()
                if NAME.fullmatch(name):
                    with suppress(FileNotFoundError):
                        yield name, _stamp(path)

    def _send_missing(self, names: dict[str, _Stamp], seconds: float = math.inf) -> bool:
        """Send those of these files that the front has not, for so many seconds; whether it has all then."""
        listed, until = list(names), time.monotonic() + seconds
        for first in range(0, len(listed), MOST_NAMES):
            for name in self._missing({name: names[name] for name in listed[first : first + MOST_NAMES]}):
                self._send(name, names[name])
                if time.monotonic() > until:
                    return all(one in self._there for one in listed)
        return True

    def _missing(self, names: dict[str, _Stamp]) -> list[str]:
        """Those of these files, at most :data:`MOST_NAMES`, that the front has not; what it has is noted, and stays there for a while."""
        said = self.front.ask("POST", "missing", {name: self._digest(name) for name in names}).get("missing")
        if not isinstance(said, list):
            raise LinkDown("it does not say what is missing")
        for name, stamp in names.items():
            if name in said:
                self._there.pop(name, None)
            else:
                self._there[name] = stamp
        return [name for name in names if name in said]

    def _digest(self, name: str) -> str:
        """SHA-256 of a file; empty for what is named by its content, and for what went away."""
        if name.startswith(tuple(f"{one}/" for one in _SECTION)):
            return ""
        with suppress(FileNotFoundError):
            return file_sha256(self.config.published / name)
        return ""

    def _send(self, name: str, stamp: _Stamp, content: bytes | None = None) -> None:
        with suppress(FileNotFoundError):  # replaced by something else: the next round sends that
            with (
                (self.config.published / name).open("rb") if content is None else io.BytesIO(content) as file
            ):
                digest = file_sha256(file)
                file.seek(0)
                self.front.send(name, digest, file)
            self._there[name] = stamp

    @cached_property
    def _to(self) -> Publisher:
        return Publisher(self.config.published)

    def _bytes(self, name: str) -> bytes | None:
        with suppress(FileNotFoundError):
            return (self.config.published / name).read_bytes()
        return None

    def _bring(self) -> bool:
        """Bring requests, and have those forgotten that were decided; whether one is here in part."""
        more, held = False, []
        make_private(self.config.exchange)
        self.config.inbox.mkdir(exist_ok=True)
        said = self.front.ask("GET", "inbox")
        listed = dict(_listed(said))
        self._forget_parts(set(listed))
        here = {name for name, _ in self.inbox.waiting()}
        begun = {entry for entry in listed.keys() - here if self._part(entry).is_dir()}
        free = shutil.disk_usage(self.inbox.root).free
        # What has begun comes first: it has its place on the disk before anything new does.
        for entry, files in sorted(listed.items(), key=lambda one: one[0] not in begun):
            if entry in here:
                continue
            if entry in self._given or answered(self.config.published, id_of(entry)) is not None:
                self._done(entry)
            elif sum(files.values()) > MAX_PARCEL + MAX_REQUEST or files.get("request.json", 0) > MAX_REQUEST:
                self.say(f"request {id_of(entry)} is not valid: it is too large")
                self._done(entry)
            elif free < (needs := ROOM * sum(files.values()) - self._has(entry)):
                held.append(files)
            elif entry in begun or self._may_begin(files, here, [listed[one] for one in begun]):
                begun.add(entry)
                free -= needs
                more |= not self._brought(entry, files)
        self._say_held(held)
        return more

    def _has(self, entry: str) -> int:
        """The bytes of a request that are here in part."""
        part = self._part(entry)
        return sum(one.stat().st_size for one in part.iterdir()) if part.is_dir() else 0

    def _say_held(self, held: list[dict[str, int]]) -> None:
        """Say that requests wait for room on our disk, and that they do no longer, each once."""
        if held and not self._held:
            size = in_units(sum(sum(files.values()) for files in held))
            wait, their = ("request waits", "its") if len(held) == 1 else ("requests wait", "their")
            why = f"{self.inbox.root} has not four times {their} {size} free; free some"
            self.say(f"{len(held)} {wait} at {self.front.url}: {why}")
        elif self._held and not held:
            self.say(f"the disk has room again for what waits at {self.front.url}")
        self._held = bool(held)

    def _may_begin(self, files: dict[str, int], here: Iterable[str], begun: list[dict[str, int]]) -> bool:
        """Whether a request may come beside those that are here, and those that are in part: so many, and of large ones one."""
        there = [*begun, *(self.inbox.sizes(name) for name in here)]
        large = [sum(one.values()) > MAX_PAYLOAD + MAX_REQUEST for one in (files, *there)]
        return len(there) < MOST_HERE and not (large[0] and any(large[1:]))

    def _part(self, entry: str) -> Path:
        """Where a request is that is here in part."""
        return self.inbox.root / f".{id_of(entry)}"

    def _done(self, entry: str) -> None:
        """Have the front forget a request; its answer goes first, where there is one."""
        name = f"answers/{id_of(entry)}.json"
        with suppress(FileNotFoundError):
            stamp = _stamp(self.config.published / name)
            if self._there.get(name) != stamp:
                self._send(name, stamp)
        self.front.ask("POST", f"inbox/{entry}/done")
        self._given.discard(entry)

    def _brought(self, entry: str, files: dict[str, int]) -> bool:
        """Bring one request, or the next part of it; whether the clerk has it now."""
        part = self._part(entry)
        part.mkdir(0o700, exist_ok=True)
        for name, size in sorted(files.items()):
            with (part / name).open("ab+") as file:
                if file.seek(0, 2) > size:
                    file.truncate(0)
                if file.tell() < size:
                    self.front.fetch(entry, name, size, file)
                file.flush()
                os.fsync(file.fileno())
                if file.tell() < size:
                    return False
        if not _as_it_says(part) and self._broken.setdefault(entry, 0) < TRIES:
            self._broken[entry] += 1
            shutil.rmtree(part)
            return False
        sync_folder(part)
        part.rename(self.inbox.root / entry)
        sync_folder(self.inbox.root)
        self._given.add(entry)
        return True

    def _forget_parts(self, listed: set[str]) -> None:
        """Remove what was brought in part of requests that the front has no more."""
        ids = {id_of(entry) for entry in listed}
        for path in self.inbox.root.glob(".*"):
            if path.name[1:] not in ids:
                shutil.rmtree(path, ignore_errors=True)


def _listed(said: dict[str, Any]) -> Iterator[tuple[str, dict[str, int]]]:
    """The requests of a front with the sizes of their files. Raises LinkDown for what is no list of them."""
    rows = said.get("waiting")
    for row in rows if isinstance(rows, list) else [None]:
        entry, files = (row.get("entry"), row.get("files")) if isinstance(row, dict) else (None, None)
        if not isinstance(entry, str) or not isinstance(files, dict) or not id_of(entry) or len(files) > 16:
            raise LinkDown("what it says of its inbox is no list of requests")
        for name, size in files.items():
            if not NAME.fullmatch(name) or "/" in name or type(size) is not int or size < 0:
                raise LinkDown("what it says of a request's files are no names and sizes")
        yield entry, files


def _stamp(path: Path) -> _Stamp:
    """What tells one version from the next; the same only once it is settled."""
    facts = path.stat()
    return (facts.st_ino, facts.st_mtime_ns if settled(facts) else -time.time_ns(), facts.st_size)


def _as_it_says(folder: Path) -> bool:
    """Whether a payload has the digest that its request names; True where there is nothing to compare."""
    try:
        said = json.loads((folder / "request.json").read_bytes())
        digest = said.get("sha256") if isinstance(said, dict) else None
        return digest is None or file_sha256(folder / "payload") == digest
    except FileNotFoundError:
        return True
    except (ValueError, RecursionError):
        return False


@dataclass(frozen=True)
class Contact:
    """The front that work is linked to, and how many seconds ago it was reached."""

    front: str
    seconds: float


def last_contact(config: Config) -> Contact | None:
    """When work last reached a front on another machine; None where front and work have one folder."""
    path = config.home / FILE
    try:
        said, at = json.loads(path.read_bytes()), path.stat().st_mtime
    except (OSError, ValueError):
        return None
    return Contact(str(said["front"]), max(0.0, time.time() - at))


def forget_contact(config: Config) -> None:
    """Say that front and work have one folder."""
    (config.home / FILE).unlink(missing_ok=True)
