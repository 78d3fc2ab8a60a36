"""``published/tails/``: the end of the output of running software on public data. Work writes it, the front shows it.

There is one file for each running attempt, of bounded size, replaced as a whole. Its name is random. The object ``tails/RUN`` holds the
name, for those audiences alone that may read the log of the run, so the front finds the file for nobody else. The text is escaped
(:class:`runner.views.logs.Writing`). Once the attempt is over, the next pointer drops the object, and work removes the file.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import schemas
from schemas.files import atomic_file

FOLDER = "tails"
MOST = 64 * 1024  # characters
VERSION = 1
_NAME = re.compile(r"[0-9a-f]{32}")
_LONGEST = 8 * MOST + 4096  # bytes of a file: a character has four at most, in JSON two of one


class Views(Protocol):
    """The part of :class:`runner.exchange.published.View` that is used here."""

    def below(self, prefix: str) -> list[Any]:
        """Return the objects whose paths begin with ``prefix``."""

    def data(self, of: Any) -> Any:
        """Return the data of an object. Raises OSError if the file is damaged."""


@dataclass(frozen=True)
class Tail:
    """The end of a text: ``text``, and the number of characters before it."""

    first: int = 0
    text: str = ""


def new_name() -> str:
    """Return a name that cannot be guessed."""
    return secrets.token_hex(16)


def place(root: Path, name: str) -> Path:
    """Return the path of the file ``name`` in a folder ``published/``. Raises ValueError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise ValueError("no name of a tail")
    return root / FOLDER / f"{name}.json"


def write(root: Path, name: str, tail: Tail) -> None:
    """Replace a file. Raises OSError."""
    path = place(root, name)
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o755)  # the front is another user
    with atomic_file(path, mode=0o644) as file:
        file.write(schemas.canonical({"schema_version": VERSION, "first": tail.first, "text": tail.text}))


def read(root: Path, name: str) -> Tail:
    """Return the content of a file; an empty tail if the file is missing or damaged."""
    try:
        with place(root, name).open("rb") as file:
            data = json.loads(file.read(_LONGEST))
    except (OSError, ValueError, RecursionError):
        return Tail()
    return Tail() if schemas.validate(data, "tail") else Tail(data["first"], data["text"])


def remove(root: Path, name: str) -> None:
    """Remove a file, if it exists."""
    with suppress(OSError):
        place(root, name).unlink(missing_ok=True)


def named(views: Iterable[Views]) -> set[str]:
    """Return the names of the published tails, without damaged objects."""
    names = set()
    for view in views:
        for tail in view.below(f"{FOLDER}/"):
            with suppress(OSError):
                names.add(str(view.data(tail)["file"]))
    return names


def keep(root: Path, names: Collection[str]) -> None:
    """Remove all files but those with these names."""
    for path in (root / FOLDER).glob("*"):
        if path.stem not in names:
            with suppress(OSError):
                path.unlink(missing_ok=True)
