"""What a file is to the rest of this package: its data, the line of every value, and problems in safe words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

MAX_PROBLEMS = 50  # kept per file; the rest is counted
JSON_DEPTH = 64  # lists and mappings of JSON within each other
SHOWN = 60  # characters of a value that a message may repeat

Pointer = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a file. ``where`` is ``file:line`` (or only the file), ``pointer`` a JSON pointer.

    ``code`` is the code of the error that it is reported under, where several are possible.
    """

    where: str
    what: str
    fix: str = ""
    pointer: str = ""
    line: int | None = None
    code: str = ""

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return where + self.what.rstrip(".") + (f". Fix: {self.fix}" if self.fix else "")


@dataclass
class Node:
    """The line of a value, and its children's: a tree, so that long keys are never repeated per value."""

    line: int
    children: dict[str | int, Node] = field(default_factory=dict)


@dataclass
class Document:
    """A file that was read: ``data`` (None when there is none), and what was wrong while reading it.

    ``name`` is how messages call the file. A document with problems is not to be used, but may still be
    validated, to report everything at once.
    """

    name: str
    data: Any = None
    problems: list[Problem] = field(default_factory=list)
    lines: Node | None = None

    def line(self, pointer: str | Sequence[str | int] = ()) -> int | None:
        """The line (from 1) of the value at a JSON pointer, or of the nearest value above it that has one."""
        keys = parse_pointer(pointer) if isinstance(pointer, str) else pointer
        node = self.lines
        if node is None:
            return None
        for key in keys:
            found = node.children.get(key)
            if found is None and isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 9:
                found = node.children.get(int(key))
            if found is None:
                break
            node = found
        return node.line

    def where(self, pointer: str | Sequence[str | int] = ()) -> str:
        """``name:line`` of a value, for a message."""
        line = self.line(pointer)
        return show(self.name, 200) + (f":{line}" if line else "")

    def problem(self, pointer: str | Sequence[str | int], what: str, fix: str = "") -> Problem:
        """A problem at a place of this document."""
        keys = parse_pointer(pointer) if isinstance(pointer, str) else tuple(pointer)
        return Problem(self.where(keys), what, fix, render_pointer(keys), self.line(keys))


def show(value: object, limit: int = SHOWN) -> str:
    """``value`` as text that is safe to print: control characters escaped, cut at ``limit`` characters."""
    text = value if isinstance(value, str) else str(value)
    cut = text[: limit + 1]
    safe = "".join(c if c.isprintable() else escape(c) for c in cut)
    return safe if len(safe) <= limit and len(text) <= limit else safe[: limit - 1] + "…"


def escape(char: str) -> str:
    """A character as a backslash and its number."""
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def harmless(text: str) -> str:
    """JSON text that means the same and is safe to print: what does not print becomes ``\\u009b``-like sequences.

    JSON itself escapes neither C1 controls (U+009B begins an escape sequence of terminals) nor line separators, nor
    characters that turn text around. Line breaks between values stay.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)


def render_pointer(keys: Iterable[str | int]) -> str:
    """A JSON pointer (RFC 6901), made printable and short."""
    parts = (show(str(k).replace("~", "~0").replace("/", "~1")) for k in keys)
    return show("".join("/" + part for part in parts), 200)


def parse_pointer(pointer: str) -> Pointer:
    """The keys of a JSON pointer; list positions stay text."""
    if not pointer:
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/"))


def closest(word: str, known: Iterable[str]) -> str:
    """`` Did you mean "x"?`` for the known word nearest to ``word``, or an empty string."""
    import difflib

    if len(word) > SHOWN:
        return ""
    names = list(known)
    near = [one for one in names if one.casefold() == word.casefold()][:1]
    near = near or difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f' Did you mean "{show(near[0])}"?' if near else ""


def flat(data: Any, deepest: int) -> bool:
    """Whether JSON data have lists and mappings within each other at most ``deepest`` deep."""
    level = [data]
    for _ in range(deepest):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return True
    return False


def capped(problems: list[Problem], name: str) -> list[Problem]:
    """The first 50 problems, and one that counts the others."""
    if len(problems) <= MAX_PROBLEMS:
        return problems
    more = len(problems) - MAX_PROBLEMS
    return [
        *problems[:MAX_PROBLEMS],
        Problem(show(name, 200), f"and at least {more} more problems", "correct these first"),
    ]


def beyond_bounds(data: Any) -> Literal["deep", "surrogate"] | None:
    """Whether JSON data are nested too deeply, or hold text that cannot be written as UTF-8 (lone surrogates)."""
    level, depth = [data], 0
    while level:
        if depth > JSON_DEPTH:
            return "deep"
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(value)
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            elif isinstance(value, str) and _SURROGATE.search(value):
                return "surrogate"
        level, depth = below, depth + 1
    return None


_SURROGATE = re.compile("[\ud800-\udfff]")
