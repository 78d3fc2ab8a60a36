"""What was made of runs last, kept over a restart of work: else its first publishing makes the page of every run anew.

``pages.sqlite`` in the data directory holds a row a run (:class:`runner.work.run_pages.Made`): digests, no content. It is derived, and used by the
same program alone: after an update, or with another version of any package, everything is made anew. What is damaged is as if it were not there:
each row has a checksum. A program that was changed under this process keeps nothing: nobody knows which of both made a page.
"""

from __future__ import annotations

import hashlib
import json
import site
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import astuple
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import runner
import schemas
from runner.exchange.published import Object
from runner.records.store.sqlite import remove_file
from runner.work.run_pages import Kept, Made

NAME = "pages.sqlite"
WAIT = 1.0  # seconds for whoever else has the file
_CACHES = "__pycache__"
_TRANSIENT = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
)


def program() -> str:
    """Return a digest of our files, the interpreter, and the names and versions of its installed packages.

    Folders that are added to ``sys.path`` while the process runs do not count.
    """
    found = hashlib.sha256(sys.version.encode())
    for package in (runner, schemas):
        root = Path(str(package.__file__)).parent
        for path in sorted(root.rglob("*")):
            if path.is_file() and _CACHES not in path.parts:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                found.update(f"{path.relative_to(root)}\0{content}\n".encode())
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    for name in sorted(f"{package.name} {package.version}" for package in distributions(path=folders)):
        found.update(f"{name}\n".encode())
    return found.hexdigest()


@cache
def started_as() -> str:
    """:func:`program` as it was when this process asked first, which work does at its start."""
    return program()


class Shelf:
    """The file at ``path``, for a program (:func:`program`), by default the one as which this process was started."""

    def __init__(self, path: Path, made_by: str | None = None) -> None:
        self._path, self._given = path, made_by
        self._program = made_by or started_as()
        self._there: dict[str, Made] = {}

    def load(self) -> Kept:
        """What was kept; nothing where it was made by another program, or is damaged."""
        self._there = {}
        with suppress(sqlite3.Error, OSError, ValueError, TypeError, KeyError):
            if self._path.is_file():
                self._there = self._read()
        return dict(self._there)

    def save(self, kept: Mapping[str, Made]) -> None:
        """Write what is another one than the last time; a file that is none of ours is removed, and begun anew. Nothing is written when the program on
        the disk is not the one that was started. Raises OSError where it cannot be written."""
        changed = {run: made for run, made in kept.items() if self._there.get(run) is not made}
        gone = self._there.keys() - kept.keys()
        if not (changed or gone) or (self._given is None and program() != self._program):
            return
        try:
            try:
                self._write(changed, gone)
            except sqlite3.Error as error:
                if (
                    getattr(error, "sqlite_errorcode", 0) & 0xFF in _TRANSIENT
                ):  # it may be another one next time
                    raise
                remove_file(self._path)
                self._there = {}
                self._write(kept, set())
        except sqlite3.Error as error:
            raise OSError(f"{self._path}: {error}") from error
        self._there = dict(kept)

    def _read(self) -> dict[str, Made]:
        with closing(sqlite3.connect(self._path, timeout=WAIT)) as connection:
            if connection.execute("SELECT program FROM made_by").fetchone() != (self._program,):
                return {}
            rows = connection.execute("SELECT run, made, checksum FROM made").fetchall()
        return {
            run: _made(json.loads(text)) for run, text, known in rows if known == self._checksum(run, text)
        }

    def _checksum(self, run: str, text: str) -> str:
        return schemas.digest([self._program, run, text])

    def _write(self, changed: Mapping[str, Made], gone: set[str]) -> None:
        with closing(sqlite3.connect(self._path, timeout=WAIT)) as connection, connection:
            connection.execute("CREATE TABLE IF NOT EXISTS made_by (program TEXT)")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS made (run TEXT PRIMARY KEY, made TEXT NOT NULL, checksum TEXT NOT NULL)"
            )
            if not self._there:  # what is there is another program's, or nothing
                connection.execute("DELETE FROM made")
            connection.execute("DELETE FROM made_by")
            connection.execute("INSERT INTO made_by VALUES (?)", (self._program,))
            texts = [(run, json.dumps(_said(made))) for run, made in changed.items()]
            rows = [(run, text, self._checksum(run, text)) for run, text in texts]
            connection.executemany("INSERT OR REPLACE INTO made VALUES (?, ?, ?)", rows)
            connection.executemany("DELETE FROM made WHERE run = ?", [(run,) for run in gone])


def _said(made: Made) -> dict[str, Any]:
    return {
        **made._asdict(),
        "page": astuple(made.page),
        "plot": [astuple(one) for one in made.plot],
        "beside": [astuple(one) for one in made.beside],
        "measures": sorted(made.measures),
        "outside": [str(one) for one in made.outside],
    }


def _made(said: dict[str, Any]) -> Made:
    begin, end = said["part"]
    more = {
        "page": Object(*said["page"]),
        "plot": tuple(Object(*one) for one in said["plot"]),
        "beside": tuple(Object(*one) for one in said["beside"]),
        "part": (begin, end),
        "measures": frozenset(said["measures"]),
        "outside": tuple(Path(one) for one in said["outside"]),
    }
    return Made(**{**said, **more})
