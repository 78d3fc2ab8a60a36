"""``inbox/``: what people ask for. The front writes it; work takes every request once, and trusts nothing in it.

::

    inbox/
      <number>-<id>/           a request; there as a whole or not at all
        request.json           schemas/inbox-request.schema.json
        payload                the file that was sent, where the kind has one

The front writes a folder with a dot in front, waits until it is on the disk, and renames it (:meth:`Inbox.put`). An upload is moved
into it last, once everything else is there: a front that was killed has either the upload where it was, or a folder that lacks
nothing but its name, which it gets at the next start (:meth:`Inbox.sweep`). ``number``
gives the order, ``id`` (128 random bits) says which request it is: work decides each id once, whatever is in the inbox twice.

Work reads it by :meth:`Inbox.waiting` and :meth:`Inbox.take`: no link is followed, nothing but regular files with one name is
opened, sizes are bounded before anything is read, and the payload is copied to a folder of work's own and hashed while
it is copied. What cannot be taken is a :class:`Refused`; what our own disk or rights do not let us read waits. Before the payload
is copied, rights are looked up again from work's own accounts: the proof (:func:`runner.exchange.access.proven`) shows that the
token's owner was signed in. ``arrival`` is the front's word only within bounds that work sets.

What became of a request is an answer in ``published/answers/<id>.json`` (:func:`answer`, :func:`answered`): for its team alone.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import schemas
from runner.exchange.access import prove, proven
from schemas.files import atomic_file, make_private, sync_folder
from schemas.untrusted_files import (
    REFUSED_PREFIX,
    copy_file,
    delete_folder,
    open_file,
    open_folder,
    refused_name,
)
from schemas.untrusted_files import Refused as Refused

MAX_REQUEST = 64 * 1024  # bytes of request.json
MAX_PAYLOAD = 512 * 1024 * 1024  # bytes of a payload that work copies at most
MAX_PARCEL = 32 * 1024**3  # the same of a software
MAX_DEPTH = 20  # lists and mappings within each other in request.json
MAX_VALUES = 200  # in request.json; jsonschema compares the items of a list pairwise
MAX_NUMBER = 9_999_999_999  # in the name of a request's folder
MAX_LOOK = 1000  # requests that are looked at in one go
SWEEP_SECONDS = 10.0  # for deleting refused folders when a front starts
KINDS = (  # a kind is a handler in runner/work/handlers/
    *("run-file", "software", "withdraw", "choose", "token", "register", "identity"),
    *("propose", "review", "rerun", "team", "withdraw-any", "notices", "terms"),
)
ID = re.compile(r"[0-9a-f]{32}")
_NAME = re.compile(r"([0-9]{10})-([0-9a-f]{32})")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class Request:
    """A wish of somebody who was signed in. ``sha256`` and ``size`` are of the payload (None: there is none), ``data`` is what
    the kind asks for, ``arrival`` when the last byte was there (UTC), by the front's clock."""

    id: str
    kind: str
    account: str
    token: str
    team: str | None
    arrival: str
    data: Mapping[str, Any]
    sha256: str | None = None
    size: int = 0
    proof: str = ""

    @classmethod
    def new(
        cls, kind: str, account: str, token: str, team: str | None, arrival: str, data: Mapping[str, Any]
    ) -> Request:
        """A request with an id that nobody can guess."""
        return cls(secrets.token_hex(16), kind, account, token, team, arrival, data)

    @property
    def signed(self) -> dict[str, Any]:
        """What the proof is of: everything else."""
        return {name: value for name, value in asdict(self).items() if name != "proof"}

    @property
    def arrived(self) -> datetime:
        """The arrival. Raises ValueError for what is no time."""
        return datetime.strptime(self.arrival, _TIME).replace(tzinfo=UTC)

    def is_proven(self, key: str) -> bool:
        """Whether somebody with the token's key made it."""
        return proven(key, self.signed, self.proof)


@dataclass(frozen=True)
class Ready:
    """A file on the inbox's disk that is complete and synced, with digest and size."""

    path: Path
    sha256: str
    size: int


@dataclass(frozen=True)
class Taken:
    """A request as work has it: its own copy of the payload, if there is one, with size and digest as the request says."""

    request: Request
    payload: Path | None


class Inbox:
    """The folder of requests."""

    def __init__(self, root: Path, sync: Callable[[Path], None] = sync_folder) -> None:
        self.root, self._sync = root, sync

    def put(self, request: Request, key: str, payload: BinaryIO | Ready | None = None) -> Request:
        """Put a request there; it is on the disk, and complete, when this returns.

        Args:
            request: The wish; size, digest and proof are filled in.
            key: Of the token that its sender signed in with.
            payload: Read from where it stands to its end; a file that is :class:`Ready` is moved, and not read.

        Returns:
            The request as it was written.

        Raises:
            Refused: It is larger than work would take; nothing is left behind.
            OSError: The disk refused it; nothing is left behind, and what was ready is where it was. What work has taken already was
                put there, whatever the disk says afterwards.
        """
        make_private(self.root.parent)
        self.root.mkdir(exist_ok=True)
        part, there = self.root / f".{request.id}", None
        part.mkdir(0o770)
        try:
            sha256, size = None, 0
            if isinstance(payload, Ready):
                sha256, size = payload.sha256, payload.size
            elif payload is not None:
                with (part / "payload").open("xb") as file:
                    sha256, size = copy_file(payload, file, MAX_PAYLOAD)
            known = {**request.signed, "sha256": sha256, "size": size}
            done = Request(**known, proof=prove(key, known))
            text = schemas.canonical({"schema_version": 1, **asdict(done)})
            if len(text) > MAX_REQUEST:
                raise Refused(f"the request has more than {MAX_REQUEST} bytes")
            with (part / "request.json").open("xb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.chmod(0o770)  # work, of the folder's group, takes it away
            if isinstance(payload, Ready):
                payload.path.rename(part / "payload")
            self._sync(part)
            there = part.rename(self._free_name(request.id))
            self._sync(self.root)
        except BaseException:
            if there is not None:
                try:
                    there.rename(part)
                except FileNotFoundError:  # work has it
                    return done
            if isinstance(payload, Ready):
                with suppress(OSError):
                    (part / "payload").rename(payload.path)
            shutil.rmtree(part, ignore_errors=True)
            raise
        return done

    def _free_name(self, id: str) -> Path:
        found = [int(m[1]) for path in self.root.iterdir() if (m := _NAME.fullmatch(path.name))]
        return self.root / f"{min(max(found, default=0) + 1, MAX_NUMBER):010}-{id}"

    def sweep(self) -> None:
        """Name the requests that a killed front had written completely. Delete the others, and what work refused and could not delete.

        For the front, before it accepts requests.
        """
        for part in [path for path in self.root.glob(".*") if ID.fullmatch(path.name[1:])]:
            try:
                request = _read(part)
                is_complete = request.sha256 is None or (part / "payload").stat().st_size == request.size
            except (Refused, OSError):
                is_complete = False
            with suppress(OSError):  # the next start tries it again
                part.rename(self._free_name(part.name[1:]) if is_complete else self.root / refused_name())
                self._sync(self.root)
        self.delete_refused(SWEEP_SECONDS)

    def delete_refused(self, seconds: float) -> None:
        """Delete the folders that :meth:`remove` renamed, for at most ``seconds``. The next call goes on.

        No tree is too deep: nested folders are moved up first. Links are not followed.
        """
        until = time.monotonic() + seconds
        with suppress(OSError, Refused), open_folder(self.root) as root:
            names = [path.name for path in self.root.glob(f"{REFUSED_PREFIX}*")]
            while names and time.monotonic() < until:
                names += delete_folder(root, names.pop(), until)

    def waiting(
        self, most: int = MAX_LOOK, *, skip: Callable[[str], bool] = lambda id: False
    ) -> list[tuple[str, str]]:
        """The names of the first requests that are there, in their order, each with its id. Other names are passed over, and ids to ``skip``."""
        try:
            with os.scandir(self.root) as entries:
                matches = (match for entry in entries if (match := _NAME.fullmatch(entry.name)))
                names = ((match[0], match[2]) for match in matches if not skip(match[2]))
                return heapq.nsmallest(most, names)
        except FileNotFoundError:
            return []

    def sizes(self, name: str) -> dict[str, int]:
        """The files of a request, and how many bytes each has; empty for what is none."""
        try:
            found = [one for one in os.scandir(self.root / name) if one.is_file(follow_symlinks=False)]
            return {one.name: one.stat().st_size for one in found} if _NAME.fullmatch(name) else {}
        except OSError:
            return {}

    def take(
        self,
        name: str,
        into: Path,
        *,
        most: int = MAX_PAYLOAD,
        allow: Callable[[Request], object] = lambda request: None,
    ) -> Taken:
        """Copy a request into a new folder and check what it is.

        Args:
            name: Of the request's folder.
            into: The new folder.
            most: Bytes that the payload may have.
            allow: Called before the payload is copied; raises Refused for what shall not be taken.

        Raises:
            Refused: It is none; the text has nothing of what stands in it.
            OSError: Our own disk, or rights, do not let us have it.
        """
        request = self.read(name)
        allow(request)
        return Taken(request, self.payload(name, request, into, most=most))

    def read(self, name: str) -> Request:
        """What a request says of itself, without its payload. Raises as :meth:`take`."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise Refused("not a request's name")
        request = _read(self.root / name)
        if request.id != match[2]:
            raise Refused("its id is not that of its folder")
        return request

    def payload(self, name: str, request: Request, into: Path, *, most: int = MAX_PAYLOAD) -> Path | None:
        """Copy the payload of a request that was read into a new folder; None where it has none. Raises as :meth:`take`."""
        if request.sha256 is None:
            return None
        if request.size > most:
            raise Refused(f"its payload is larger than {most} bytes")
        into.mkdir(0o700)
        with (
            open_folder(self.root / name) as folder,
            open_file(folder, "payload", request.size) as source,
            (into / "payload").open("xb") as target,
        ):
            found = copy_file(source, target, request.size)
        if found != (request.sha256, request.size):
            raise Refused("its payload is not what it says")
        return into / "payload"

    def remove(self, name: str) -> bool:
        """Remove the folder of a decided request. False if it could not be removed.

        Only the files of a request are deleted at once. A folder with other content is renamed to a name that begins with a dot,
        and :meth:`delete_refused` deletes it later, since the front chooses how many files it has. Each name is new: the front
        may create the folder again, and a folder cannot replace another one that is not empty.
        """
        if not _NAME.fullmatch(name):
            return False
        path = self.root / name
        with suppress(OSError):
            if path.is_symlink() or not path.is_dir():
                path.unlink()
        with (
            suppress(OSError, Refused),
            open_folder(path) as folder,
        ):  # the front may replace it by a link meanwhile
            for file in ("request.json", "payload"):
                with suppress(OSError):
                    os.unlink(file, dir_fd=folder)
        with suppress(OSError):
            path.rmdir()
        with suppress(OSError):
            if path.is_dir():
                path.rename(self.root / refused_name(name))
        return not os.path.lexists(path)


def id_of(name: str) -> str:
    """The id in the name of a request's folder; empty for what is no such name."""
    match = _NAME.fullmatch(name)
    return match[2] if match else ""


def answer(published: Path, request_id: str, data: Mapping[str, Any]) -> None:
    """Write what became of a request (schemas/inbox-answer.schema.json), for the front to show to its team."""
    folder = published / "answers"
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(folder / f"{_id(request_id)}.json", mode=0o644, sync=True) as file:
        file.write(schemas.canonical({"schema_version": 1, "id": request_id, **data}))


def remove_answer(published: Path, request_id: str) -> bool:
    """Remove the answer to a request; False if there was none. Raises OSError."""
    try:
        (published / "answers" / f"{_id(request_id)}.json").unlink()
    except FileNotFoundError:
        return False
    return True


def answered(published: Path, request_id: str) -> dict[str, Any] | None:
    """What became of a request; None as long as nothing did."""
    path = published / "answers" / f"{_id(request_id)}.json"
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found


def _id(text: str) -> str:
    if not ID.fullmatch(text):
        raise ValueError("no id of a request")
    return text


def _read(path: Path) -> Request:
    """Return the request in a folder. Raises Refused, OSError."""
    with open_folder(path) as folder, open_file(folder, "request.json", MAX_REQUEST) as file:
        return _parsed(file.read(MAX_REQUEST + 1))


def _parsed(raw: bytes) -> Request:
    """The request that these bytes are: it can be signed, written down and dated. Raises Refused."""
    try:
        data = json.loads(raw)
        if not schemas.flat(data, MAX_DEPTH):
            raise Refused("request.json is nested too deeply")
        if _values(data) > MAX_VALUES:
            raise Refused(f"request.json has more than {MAX_VALUES} values")
        schemas.canonical(data)
    except (ValueError, RecursionError):
        raise Refused("request.json is not JSON") from None
    if schemas.validate(data, "inbox-request") or not isinstance(data["size"], int):
        raise Refused("request.json does not fit its schema")
    request = Request(**{name: value for name, value in data.items() if name != "schema_version"})
    try:
        request.arrived  # noqa: B018  (whether it is a time)
    except ValueError:
        raise Refused("its arrival is no time") from None
    return request


def _values(data: Any) -> int:
    """Return the number of values in JSON data that are not nested deeply."""
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return 1 + sum(map(_values, inner))
