"""Hostile text made safe to show, at the length that suits an engine's messages."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

import schemas

# Sequences that a terminal obeys: colours and cursors, titles (to their end or the line's), and those of two characters.
_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]"
)


def printable(text: str, limit: int = 200) -> str:
    """``text`` with everything that is not printable escaped, cut to at most ``limit`` characters."""
    return schemas.show(text, limit)


def clean_path(path: str) -> str:
    """Return an absolute path as engines write it, without empty, ``.`` and ``..`` parts; a relative one as it is."""
    return "/" + posixpath.normpath(path).lstrip("/") if path.startswith("/") else path


def plain(text: str) -> str:
    """``text`` without the sequences that make terminals show colours, move cursors and set titles."""
    return _SEQUENCE.sub("", text)


class Lines:
    """The lines of an output that comes in pieces of any length, as a terminal would show them in the end, printable."""

    def __init__(self, limit: int = 500) -> None:
        self._limit, self._rest = limit, ""

    def of(self, piece: str) -> Iterator[str]:
        """The lines that ``piece`` completes, without empty ones; of one that is written over, its last state."""
        *whole, self._rest = (self._rest + piece).split("\n")
        self._rest = self._rest[-65536:]  # nobody's line keeps growing
        for line in whole:
            yield from self._shown(line)

    def end(self) -> Iterator[str]:
        """The line that was never ended, if there is one."""
        rest, self._rest = self._rest, ""
        yield from self._shown(rest)

    def _shown(self, line: str) -> Iterator[str]:
        states = [state for state in plain(line).split("\r") if state.strip()]
        if states:
            yield printable(states[-1].rstrip(), self._limit)
