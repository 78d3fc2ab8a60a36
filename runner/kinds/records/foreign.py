"""What a task of another platform says, in our terms; and its definition read so that nothing of it is lost in silence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from schemas import show

_MOST_TEXT = 100_000  # characters of a page
FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")  # of an output


class Given:
    """A mapping of a foreign definition. What nobody asked for, or has another type, is what was not taken over."""

    def __init__(self, data: Any, name: str = "", key: str = "") -> None:
        self.data: Mapping[str, Any] = data if isinstance(data, dict) else {}
        self.name, self.key = name, key
        self._left = dict.fromkeys(self.data)
        self._below: list[Given] = []

    def _take(self, key: str, kind: type | tuple[type, ...]) -> Any:
        """The value of a key if it is of this kind, else None; a value of another kind stays among what is left."""
        value = self.data.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            if value is None:
                self._left.pop(key, None)
            return None
        self._left.pop(key, None)
        return value

    def known(self, *keys: str) -> None:
        """These keys are taken over by what else is read."""
        for key in keys:
            self._left.pop(key, None)

    def text(self, key: str) -> str:
        """A value as one line of text; empty when there is none."""
        value = self._take(key, (str, int, float))
        return "" if value is None else plain(str(value))

    def texts(self, key: str) -> list[str]:
        """A value that is a text or a list of texts; numbers are texts."""
        value = self._take(key, (str, int, list))
        values = [value] if isinstance(value, str | int) else value or ()
        return [plain(str(one)) for one in values if isinstance(one, str | int)]

    def whole(self, key: str) -> int | None:
        """A whole number from 0 on."""
        value: int | None = self._take(key, int)
        return value if value is None or value >= 0 else None

    def flag(self, key: str) -> bool | None:
        """True or false."""
        found: bool | None = self._take(key, bool)
        return found

    def one(self, key: str) -> Given:
        """The mapping below a key; empty when there is none."""
        found = Given(self._take(key, dict), f"{self.name}{key}/", key)
        self._below.append(found)
        return found

    def rows(self, key: str) -> list[Given]:
        """The mappings of a list, or those that a mapping has by names."""
        value = self._take(key, (list, dict)) or ()
        named = list(value.items()) if isinstance(value, dict) else list(enumerate(value, 1))
        found = [Given(row, f"{self.name}{key}/{show(name)}/", str(name)) for name, row in named]
        self._below += found
        return found

    def left(self) -> Iterator[tuple[str, str]]:
        """Key and place of everything that was not taken, below too."""
        for key in self._left:
            yield key, f"{self.name}{show(key)}"
        for one in self._below:
            yield from one.left()


def untaken(given: Given, why: Mapping[str, str]) -> list[str]:
    """A line for each key that was not taken, with a reason where ``why`` has one."""
    places: dict[str, list[str]] = {}
    for key, place in given.left():
        places.setdefault(key, []).append(place)
    found = []
    for key, at in places.items():
        many = f", and {len(at) - 1} more" if len(at) > 1 else ""
        found.append(f"{at[0]}{many}: {why.get(key, 'nothing here corresponds to it')}")
    return found


class Asked(NamedTuple):
    """A figure that the other platform shows: its name there, decimals, and whether lower is better (None: not said)."""

    name: str
    precision: int | None = None
    lower: bool | None = None


@dataclass
class Part:
    """A dataset: its files by their names, and when and how often it may be submitted to."""

    id: str
    visibility: Literal["public", "blinded"]
    inputs: Mapping[str, Path]
    truths: Mapping[str, Path]
    description: str = ""
    opens: str = ""
    closes: str = ""
    quota: dict[str, int] = field(default_factory=dict)


@dataclass
class Taken:
    """A task as another platform's files say it; ``left`` says what of them has no place here."""

    title: str
    parts: list[Part]
    platform: str
    description: str = ""
    contact: str = ""
    terms: str = ""
    workflow: Literal["batch", "upload"] = "batch"
    wall_clock: int | None = None  # seconds
    output: str = ""
    id_field: str = ""
    truth_id: str = ""
    value_field: str = ""
    truth_value: str = ""
    required: Sequence[str] = ()
    asked: list[Asked] = field(default_factory=list)
    pages: list[tuple[str, str]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def plain(text: str, most: int = 2_000) -> str:
    """One line of text that prints."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:most]


def page(raw: bytes) -> str:
    """A text of several lines without what does not print, and without the marks of generated parts (``<!--``)."""
    text = raw[: 4 * _MOST_TEXT].decode("utf-8", "replace")[:_MOST_TEXT].replace("<!--", "<!- -")
    return "".join(c for c in text if c == "\n" or c.isprintable()).strip()


def name_of(text: str, taken: Sequence[str], otherwise: str) -> str:
    """A name of ours (letters, digits, hyphens) for a title of theirs, which is none of those ``taken``."""
    bare = re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")[:30].strip("-") or otherwise
    return next(one for one in (bare, *(f"{bare}-{n}" for n in range(2, len(taken) + 3))) if one not in taken)
