"""``published/tails/``: the end of what a software writes while it runs, on public data. Work writes it, the front shows it.

A file for each attempt that is going on, replaced as a whole, at most once a second and of bounded size. Its name is drawn: it stands
in the object ``tails/RUN`` of those audiences that may read the log of the run, and nowhere else. So the front finds it for nobody
else, and nothing that others are shown or sent is made of it: no entity tag, no database. It is text that was escaped, see
:class:`runner.views.logs.Writing`. Once the attempt is over, the object goes with the next pointer, and so does the file.
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
EVERY = 1.0  # seconds between two versions of a file, at least
VERSION = 1
_NAME = re.compile(r"[0-9a-f]{32}")
_LONGEST = 8 * MOST + 4096  # bytes of a file: a character has four at most, in JSON two of one


class Views(Protocol):
    """What is used here of :class:`runner.exchange.published.View`."""

    def below(self, prefix: str) -> list[Any]:
        """The objects whose paths begin so."""

    def data(self, of: Any) -> Any:
        """The data of one of them. Raises OSError for what is damaged."""


@dataclass(frozen=True)
class Tail:
    """The end of a text: ``text``, and how many characters came before it."""

    first: int = 0
    text: str = ""

    @property
    def end(self) -> int:
        """How many characters there are in all."""
        return self.first + len(self.text)

    def since(self, place: int) -> Tail:
        """What of it came after the first ``place`` characters; all of it for a place that it has not come to."""
        at = place if self.first <= place <= self.end else self.first
        return Tail(at, self.text[at - self.first :])


def new_name() -> str:
    """A name that nobody can guess."""
    return secrets.token_hex(16)


def is_name(text: str) -> bool:
    """Whether something is a name of one."""
    return _NAME.fullmatch(text) is not None


def place(root: Path, name: str) -> Path:
    """Where the file of that name is in a folder ``published/``. Raises ValueError for what is no name."""
    if not is_name(name):
        raise ValueError("no name of a tail")
    return root / FOLDER / f"{name}.json"


def write(root: Path, name: str, tail: Tail) -> None:
    """Replace a file. Raises OSError."""
    path = place(root, name)
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o755)  # the front is another user
    with atomic_file(path, mode=0o644) as file:
        file.write(as_bytes(tail))


def as_bytes(tail: Tail) -> bytes:
    """What is in a file."""
    return schemas.canonical({"schema_version": VERSION, "first": tail.first, "text": tail.text})


def version(root: Path, name: str) -> object:
    """What is another one as soon as a file was replaced; None where there is none."""
    with suppress(OSError, ValueError):
        facts = place(root, name).stat()
        return facts.st_ino, facts.st_mtime_ns, facts.st_size
    return None


def read(root: Path, name: str) -> Tail | None:
    """What is in a file; None where there is none, or none that is whole."""
    try:
        with place(root, name).open("rb") as file:
            said = json.loads(file.read(_LONGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return None if schemas.validate(said, "tail") else Tail(said["first"], said["text"])


def remove(root: Path, name: str) -> None:
    """Remove a file, if it is there."""
    with suppress(OSError):
        place(root, name).unlink(missing_ok=True)


def named(views: Iterable[Views]) -> set[str]:
    """The names of those that are published; what is damaged of an object is left out."""
    found = set()
    for view in views:
        for one in view.below(f"{FOLDER}/"):
            with suppress(OSError):
                found.add(str(view.data(one)["file"]))
    return found


def keep(root: Path, names: Collection[str]) -> None:
    """Remove all but those of these names: where nobody else removes them."""
    for path in (root / FOLDER).glob("*.json"):
        if path.stem not in names:
            remove(root, path.stem)


def clear(root: Path) -> None:
    """Remove all: for work at its start, before it names any. Raises OSError."""
    for path in (root / FOLDER).glob("*"):
        path.unlink(missing_ok=True)
