"""The cache of rendered run pages, kept over a restart of work: else its first publishing renders every run again.

``pages.json`` in the data directory holds one entry a run (:class:`runner.work.run_pages.Made`): digests, no content. It is derived, and used by
the same program alone: after an update, or with another version of any package, everything is rendered again. A damaged file counts as
missing: its name of the program is a digest of its content, too. A process whose program was changed on the disk saves nothing.
"""

from __future__ import annotations

import hashlib
import json
import site
import sys
from collections.abc import Mapping
from dataclasses import astuple
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import runner
import schemas
from runner.exchange.published import Object
from runner.work.run_pages import Kept, Made
from schemas.files import atomic_file

NAME = "pages.json"
_CACHES = "__pycache__"


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
    """Return :func:`program` as it was at the first call in this process, which work makes at its start."""
    return program()


class Shelf:
    """The file at ``path``, for a program (:func:`program`), by default the one as which this process was started."""

    def __init__(self, path: Path, made_by: str | None = None) -> None:
        self._path, self._given = path, made_by
        self._program = made_by or started_as()
        self._saved: Kept = {}

    def load(self) -> Kept:
        """Return the saved pages by run; none if another program saved them, or the file is damaged."""
        try:
            data = json.loads(self._path.read_bytes())
            pages = {run: _made(*fields) for run, fields in data["made"].items()}
            self._saved = pages if data["by"] == self._checksum(data["made"]) else {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self._saved = {}
        return dict(self._saved)

    def save(self, kept: Mapping[str, Made]) -> None:
        """Write the pages, if they changed and this program is still the one on the disk. Raises OSError."""
        same = len(kept) == len(self._saved) and all(self._saved.get(run) is kept[run] for run in kept)
        if same or (self._given is None and program() != self._program):
            return
        made = json.loads(json.dumps(kept, default=_plain))
        try:
            with atomic_file(self._path, mode=0o600) as file:
                file.write(json.dumps({"by": self._checksum(made), "made": made}).encode())
        except OSError as error:  # without the name of the temporary file, which is another one each time
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        self._saved = dict(kept)

    def _checksum(self, made: Any) -> str:
        return schemas.digest([self._program, made])


def _plain(value: Any) -> Any:
    if isinstance(value, Object):
        return astuple(value)
    return sorted(value) if isinstance(value, frozenset) else str(value)


def _made(of: str, page: Any, plot: Any, beside: Any, part: Any, measures: Any, *rest: Any) -> Made:
    medians, drawn, outside = rest
    plots, more = (tuple(Object(*one) for one in objects) for objects in (plot, beside))
    paths = tuple(Path(one) for one in outside)
    return Made(
        of, Object(*page), plots, more, (part[0], part[1]), frozenset(measures), medians, drawn, paths
    )
