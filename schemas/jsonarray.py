"""The entries of a JSON array, one after the other: memory does not grow with the file."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator

from schemas.jsonl import STRICT, Fault, Row, Rules, parse


def array_rows(
    read: Callable[[int], bytes], most: int, rules: Rules = STRICT, piece: int = 1 << 20
) -> Iterator[Row]:
    """The value or fault of every entry of a JSON array; behind a fault of syntax nothing follows. Lines count from 1.

    Args:
        read: Gives up to so many bytes of the file, and b"" at its end. Whatever it raises goes through.
        most: Characters that an entry may have, about.
        rules: How strictly entries are read.
        piece: Bytes that are read at least before an entry that goes on is looked at again.
    """
    text = _Text(read, most, piece)
    try:
        if text.next() != "[":
            yield Row(text.line, None, Fault("syntax", "there is no [ at the beginning"))
            return
        text.at += 1
        sign = text.next()
        while sign != "]":
            entry = text.entry()
            if entry is None:
                yield Row(text.line, None, Fault("syntax", "an entry is broken, too long or missing"))
                return
            value = parse(entry.encode("utf-8", "surrogatepass"), rules)
            yield Row(text.line, None, value) if isinstance(value, Fault) else Row(text.line, value)
            sign = text.next()
            if sign == ",":
                text.at += 1
                text.next()  # a ] here is no entry
            elif sign != "]":
                yield Row(text.line, None, Fault("syntax", "a comma or ] is missing"))
                return
        text.at += 1
        if text.next():
            yield Row(text.line, None, Fault("syntax", "there is something behind the array"))
    except UnicodeDecodeError:
        yield Row(text.line, None, Fault("encoding"))


class _Text:
    """What was read of a file and not yet used: ``text`` from ``at`` on, which is in ``line``."""

    def __init__(self, read: Callable[[int], bytes], most: int, piece: int) -> None:
        self._read, self._most, self._piece = read, most, piece
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.text, self.at, self.line, self._counted = "", 0, 1, 0
        self._end = False

    def next(self) -> str:
        """The next character that is not blank; "" at the end. ``at`` is where it stands."""
        while True:
            self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
            self.line += self.text.count("\n", self._counted, self.at)
            self._counted = self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self._more():
                return ""

    def entry(self) -> str | None:
        """The text of the JSON value here, behind which ``at`` stands then; None where it is broken or too long."""
        while True:
            end = _end_of(self.text, self.at)
            if 0 <= end < len(self.text) or (end >= 0 and self._end):
                found = self.text[self.at : end]
                self.at = end
                return found
            if len(self.text) - self.at > self._most or not self._more():
                return self.text[self.at : end] if end >= 0 else None

    def _more(self) -> bool:
        """Read on, at least a whole piece: gzip can give single bytes, and the entry is looked at again each time."""
        pieces, size = [], 0
        while not self._end and size < self._piece:
            pieces.append(self._read(self._piece))
            size += len(pieces[-1])
            self._end = not pieces[-1]
        self.text = self.text[self.at :] + self._decoder.decode(b"".join(pieces), final=self._end)
        self._counted -= self.at
        self.at = 0
        return size > 0


_SPACE = re.compile(r"[ \t\n\r]*")
_SCAN = json.JSONDecoder().raw_decode


def _end_of(text: str, at: int) -> int:
    """Where the JSON value at a place ends; -1 where it is broken, or goes on behind the text."""
    try:
        return _SCAN(text, at)[1]
    except (ValueError, RecursionError):
        return -1
