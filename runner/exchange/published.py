"""``published/``: what each audience may see. Work writes it, the front reads it and nothing else of ours.

::

    published/
      current.json             the pointer: which database is each audience's, by its digest
      audiences/<sha256>.sqlite    what one audience may see: its objects by their paths
      files/<ab>/<sha256>      the objects' data (canonical JSON), pages (HTML) and style sheets, by their content
      access.json              who may sign in (:mod:`runner.exchange.access`)
      answers/<id>.json        what became of a request (:mod:`runner.exchange.inbox`)
      tails/<name>.json        what softwares on public data write as they run (:mod:`runner.exchange.tails`)
      alive.json               when work last said that it is there, and whether it cannot publish

**One audience, one database** (``public``, ``team:NAME``, ``organiser``, ``assistant``): the front opens that of whoever asks, so an
object that an audience may not see is not there for it, and cannot be told from one that never was. What the databases
name was made by :mod:`runner.views` for that audience. No audience is given more than the people behind it may see, the
organiser's part too: it holds what was published to somebody, since whoever takes over the front has all of it.

**Replaced as a whole.** Databases and files are named by their content, are written beside and renamed, and never changed;
then ``current.json`` is replaced. A reader takes one pointer (:meth:`Published.view`) and keeps it for one answer. What no
pointer has named for :data:`KEPT_SECONDS` is removed.

**Only what changed changes.** The digest of an audience is that of its objects, in their order: no time, no counter. What was
published anew with the same content keeps its name, so neither name nor entity tag (:attr:`Object.etag`) tells when runs
on hidden data began or ended. The front sends no ``Last-Modified``.

**Objects** (path: kind; data is what ``--json`` of the command prints for the audience):

=================================  ============  ======================================================
``tasks``                          tasks         title, description, dates and tables of every task
``tasks/TASK``                     task          ``runner task show``
``tasks/TASK/TABLE``               board         ``runner leaderboard``; only where its scores are open
``tasks/TASK/rounds/ROUND/TABLE``  board         the same of a round that was frozen
``against/tasks/TASK/TABLE``       tests         ``runner leaderboard TASK --against RUN`` of each row, but for rounds that were frozen
``downloads/tasks/….ENDING``        download      the same leaderboards as files: a format of ``runner leaderboard``, its text as ``page``
``runs``                           runs          ``runner runs``: of the team; of all teams for organiser and assistant
``runs/RUN``                       run           ``runner show``
``beside/RUN``                     beside        what comparing shows beside figures; only for who sees its scores by topic
``texts/SHA256``                   texts         what the topics of a public dataset say, by their ids
``logs/RUN``                       log           ``runner logs``: stdout and stderr; only where its team may read them
``tails/RUN``                      tail          while it runs: the name of the end of its log; as ``logs/RUN``, of public data alone
``parts``                          parts         SHA-256 of parts of images that the team need not send
``standing/TASK``                  standing      what the team has left of quota and time
``queue``                          queue         how many runs wait: in all, of the team, and before its first
``console``                        console       for organisers and assistants (:mod:`runner.work.console`)
``registration/TASK``              registration  how teams register: dates, terms, what is asked; only where the task has it
``plots/SHA256``                   plot          a plot of a board or run: what it says, its CSV, its Vega specification, its drawing as ``page``
``plots-of/TASK``                  plots         the plots of all boards of a task
``styles/SHA256``                  style         a style sheet that pages name
``data/TASK``                      data          what of a task's data is offered: terms, and files with size and SHA-256
``data/TASK/DATASET/SIDE/NAME``    file          one of them, in pieces (:mod:`runner.exchange.pieces`); only for whom it is open
=================================  ============  ======================================================
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import schemas
from runner.exchange.replaced import read_replaced
from runner.model.clock import Clock, SystemClock
from schemas.files import atomic_file, atomic_path, file_sha256, make_private

VERSION = 1
KEPT_SECONDS = 600.0
AHEAD = 60.0  # seconds by which a clock may be behind that of work
LONGEST = 500  # characters of an object's path
POINTER, ALIVE = "current.json", "alive.json"
FILE = "file"  # the kind of objects whose content lies in pieces (runner.exchange.pieces)
_STUCK = {"stuck": True}
AUDIENCE = re.compile(r"public|organiser|assistant|team:[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
DIGEST = re.compile(r"[0-9a-f]{64}")
_TABLE = (
    "CREATE TABLE objects (path TEXT PRIMARY KEY, kind TEXT NOT NULL, title TEXT NOT NULL, "
    "data TEXT NOT NULL, page TEXT, style TEXT) WITHOUT ROWID"
)
_COLUMNS = "path, kind, title, data, page, style"


class Damaged(OSError):
    """What was published is there and cannot be read: cut, changed, or only in part."""


@dataclass(frozen=True)
class Object:
    """One thing that an audience may see. ``data``, ``page`` and ``style`` are digests of files; ``page`` is a piece of
    HTML (what stands between navigation and foot), ``style`` the style sheet for it."""

    path: str
    kind: str
    title: str
    data: str
    page: str | None = None
    style: str | None = None

    @property
    def etag(self) -> str:
        """An entity tag: it changes with what is shown, and with nothing else."""
        return schemas.digest([self.data, self.page, self.style])[:32]


class View:
    """What one audience may see, as of one pointer."""

    def __init__(self, root: Path, database: str) -> None:
        self._root, self._database = root, database

    def get(self, path: str) -> Object | None:
        """The object at ``path``; None where this audience has none."""
        if len(path) > LONGEST:  # nor is it remembered that it was asked for
            return None
        return _object(self._root, self._database, path)

    def below(self, prefix: str) -> list[Object]:
        """The objects whose paths begin with ``prefix``, by path."""
        return list(self._rows("WHERE substr(path, 1, ?) = ? ORDER BY path", len(prefix), prefix))

    def data(self, of: Object) -> Any:
        """The data of an object."""
        return json.loads(self.read(of.data))

    def text(self, of: Object) -> str:
        """The page of an object; empty where it has none."""
        return self.read(of.page).decode() if of.page else ""

    def read(self, digest: str) -> bytes:
        """The file of that content. Raises Damaged."""
        try:
            content = file_of(self._root, digest).read_bytes()
        except OSError as error:
            raise Damaged(f"{digest}: {error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise Damaged(f"{digest}: other content")
        return content

    def _rows(self, where: str, *values: Any) -> Iterator[Object]:
        return _rows(self._root, self._database, where, *values)


def _rows(root: Path, database: str, where: str, *values: Any) -> Iterator[Object]:
    if database == POINTER:
        raise Damaged(POINTER)
    if not DIGEST.fullmatch(database):
        return
    path = root / "audiences" / f"{database}.sqlite"
    try:
        facts = path.stat()
    except OSError as error:
        raise Damaged(f"{database}: {error.strerror}") from error
    if not _is_whole(path, (facts.st_ino, facts.st_mtime_ns, facts.st_size)):
        raise Damaged(f"{database}: other content")
    yield from _asked(path, where, *values)


@lru_cache(maxsize=1024)
def _is_whole(path: Path, version: tuple[int, int, int]) -> bool:
    """Whether a database has what its name says: SQLite does not see that the end of a file is missing."""
    return _digest(_asked(path, "ORDER BY path")) == path.stem


def _asked(path: Path, where: str, *values: Any) -> Iterator[Object]:
    query = f"SELECT {_COLUMNS} FROM objects {where}"  # noqa: S608  (no text of anybody's stands in it)
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
            rows = connection.execute(query, values).fetchall()
    except sqlite3.Error as error:
        raise Damaged(f"{path.stem}: {error}") from error
    for row in rows:
        yield Object(*row)


@lru_cache(maxsize=4096)
def _object(root: Path, database: str, path: str) -> Object | None:
    """The object of a database, which is named by its content and never changes: pages ask for the same few again and again."""
    return next(_rows(root, database, "WHERE path = ?", path), None)


class Published:
    """The reader's side of ``published/``. Opens nothing for writing. ``clock`` is that of the reader."""

    def __init__(self, root: Path, clock: Clock | None = None) -> None:
        self.root, self.clock = root, clock or SystemClock()

    def view(self, audience: str) -> View:
        """What an audience may see now; what everybody may see until something was published to it for the first time.

        What is damaged is so when it is looked at.
        """
        if (self.root / POINTER).exists() and read_replaced(self.root / POINTER, "published") is None:
            return View(self.root, POINTER)
        there = self.pointer()
        return View(self.root, str(there.get(audience) or there.get("public", "")))

    def pointer(self) -> Mapping[str, str]:
        """Which database is each audience's; empty before anything was published."""
        data = read_replaced(self.root / POINTER, "published")
        audiences: dict[str, str] = {} if data is None else data["audiences"]
        return audiences

    def age(self, now: float | None = None) -> float | None:
        """How many seconds ago work said that it is there; None where it never did, or by this clock will: it was set back."""
        try:
            said = (self.root / ALIVE).stat().st_mtime
        except OSError:
            return None
        found = (self.clock.now().timestamp() if now is None else now) - said
        return None if found < -AHEAD else max(0.0, found)

    def stuck(self) -> bool:
        """Whether work says that it cannot publish: what is here is of before that."""
        try:
            return bool(json.loads((self.root / ALIVE).read_bytes()) == _STUCK)
        except (OSError, ValueError):
            return False


class Publisher:
    """The writer's side. One process at a time; whatever kills it, readers see the generation before or the new one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in (root, root / "audiences", root / "files", root / "answers"):
            make_private(folder)
            folder.chmod(0o755)

    def place(self, digest: str) -> Path:
        """Where a content goes; its folder is there, and open to the front whatever umask work has."""
        target = file_of(self.root, digest)
        if not target.parent.is_dir():
            target.parent.mkdir(exist_ok=True)
            target.parent.chmod(0o755)
        return target

    def keep(self, content: bytes) -> str:
        """Put a file there, and return its digest. The same content is written once."""
        digest = hashlib.sha256(content).hexdigest()
        target = self.place(digest)
        if target.is_file():
            os.utime(target)  # young again: it is not removed before the pointer names it
        else:
            with atomic_file(target, mode=0o644, sync=True) as file:
                file.write(content)
        return digest

    def object(
        self, path: str, kind: str, title: str, data: Any, page: str | None = None, style: str | None = None
    ) -> Object:
        """An object whose files are there. ``data`` is JSON data, ``page`` HTML, ``style`` the digest of a kept style sheet."""
        kept = None if page is None else self.keep(page.encode())
        return Object(path, kind, title, self.keep(schemas.canonical(data)), kept, style)

    def has(self, objects: Iterable[Object]) -> bool:
        """Whether all files of ``objects`` are there; then none of them is removed before the pointer names it."""
        try:
            for one in objects:
                for digest in _files(self.root, one):
                    keep_young(file_of(self.root, digest))
        except FileNotFoundError:
            return False
        return True

    def publish(self, audiences: Mapping[str, Iterable[Object]]) -> bool:
        """Publish the objects of every audience, in the place of all that was published; whether anything changed.

        Equal objects are one, such as the plots of two tasks with the same title and rows. Raises ValueError for what is no
        audience, and for different objects at one path.
        """
        pointer: dict[str, str] = {}
        for audience, objects in sorted(audiences.items()):
            if not AUDIENCE.fullmatch(audience):
                raise ValueError(f"no audience: {audience!r}")
            pointer[audience] = self.database(objects)
        if pointer == Published(self.root).pointer():
            return False
        with atomic_file(self.root / POINTER, mode=0o644, sync=True) as file:
            file.write(schemas.canonical({"schema_version": VERSION, "audiences": pointer}))
        sweep(self.root)
        return True

    def clean(self) -> None:
        """Remove what is not what its name says, and what a killed writer left: the next :meth:`publish` makes it anew."""
        for path in self.root.glob("files/*/*"):
            if DIGEST.fullmatch(path.name) and file_sha256(path) != path.name:
                path.unlink()
        for path in self.root.glob("audiences/*.sqlite"):
            try:
                next(_rows(self.root, path.stem, "LIMIT 1"), None)
            except Damaged:
                path.unlink()
        old = time.time() - KEPT_SECONDS
        for path in self.root.rglob(".*.part"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < old:
                    path.unlink()

    def alive(self, stuck: bool = False) -> None:
        """Say that work is there: at an even pace, whatever it does, so that nothing can be told from it; ``stuck``: that it cannot publish."""
        with atomic_file(self.root / ALIVE, mode=0o644) as file:
            file.write(schemas.canonical(_STUCK if stuck else {}) + b"\n")

    def database(self, of: Iterable[Object]) -> str:
        """Write the database of an audience; its digest, which is that of the objects. Nothing is written where it is there.

        Raises ValueError for different objects at one path.
        """
        objects = sorted(set(of), key=lambda one: one.path)
        if len({o.path for o in objects}) != len(objects):
            raise ValueError("two objects have one path")
        digest, rows = _digest(objects), [_row(one) for one in objects]
        target = self.root / "audiences" / f"{digest}.sqlite"
        if target.is_file():
            os.utime(target)
            return digest
        with atomic_path(target, mode=0o644) as part:
            with closing(sqlite3.connect(part)) as connection, connection:
                connection.execute(_TABLE)
                connection.executemany("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)", rows)
            with part.open("rb+") as file:
                os.fsync(file.fileno())
        return digest


def _row(of: Object) -> list[str | None]:
    return [of.path, of.kind, of.title, of.data, of.page, of.style]


def _digest(objects: Iterable[Object]) -> str:
    """The name of a database with these objects, which are in their order."""
    return schemas.digest([VERSION, [_row(one) for one in objects]])


def leads_to(root: Path, databases: Iterable[str]) -> set[str]:
    """The names below ``root`` of these databases, and of all files that they name (those of a database that is not there: none)."""
    found: set[str] = set()
    for database in set(databases):
        found.add(f"audiences/{database}.sqlite")
        if (root / "audiences" / f"{database}.sqlite").is_file():
            for one in View(root, database).below(""):
                found.update(f"files/{x[:2]}/{x}" for x in _files(root, one))
    return found


def _files(root: Path, of: Object) -> Iterator[str]:
    """The digests of all files of an object; of a file that is offered also those of its pieces, once it is there itself."""
    yield from filter(None, (of.data, of.page, of.style))
    if of.kind == FILE:
        yield from _pieces(root, of.data)


@lru_cache(maxsize=4096)
def _pieces_of(text: bytes) -> tuple[str, ...]:
    return tuple(str(one) for one in json.loads(text)["pieces"])


def _pieces(root: Path, digest: str) -> tuple[str, ...]:
    try:
        return _pieces_of(file_of(root, digest).read_bytes())
    except FileNotFoundError:
        return ()


def sweep(root: Path) -> None:
    """Remove databases and files that no pointer has named for a while; readers may still be at them."""
    named = set(Published(root).pointer().values())
    old, used = time.time() - KEPT_SECONDS, leads_to(root, named)
    for path in (*root.glob("audiences/*.sqlite"), *root.glob("files/*/*")):
        with suppress(FileNotFoundError):
            if str(path.relative_to(root)) not in used and path.stat().st_mtime < old:
                path.unlink()


def keep_young(path: Path) -> None:
    """Have a file stay before a pointer names it. Raises OSError for one that is not there.

    Its time changes once a minute at most: pieces with another time are compared with their names again.
    """
    if path.stat().st_mtime < time.time() - KEPT_SECONDS / 10:
        os.utime(path)


def file_of(root: Path, digest: str) -> Path:
    """Where the file of that content is. Raises ValueError for what is no digest."""
    if not DIGEST.fullmatch(digest):
        raise ValueError("no digest")
    return root / "files" / digest[:2] / digest
