"""The headers of a hostile tar archive, read with bounds on everything.

Python's ``tarfile`` reads an extended header of any declared size into memory, searches it in quadratic time
and follows chains of them by recursion: a small compressed file could take the runner down. This walker reads
no more than :data:`MAX_EXTENDED` bytes of one and keeps none; it says how large each entry is, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from runner.engines.tarstream import BLOCK, CHUNK

MAX_EXTENDED = 1 << 20  # bytes of one extended header; Go's reader, which the engine uses, has the same bound
MAX_CHAIN = 16  # extended headers before one entry

_NO_CONTENT = b"123456"  # links, devices, directories, pipes: their size says nothing
_EXTENDED = b"xgXLK"
_RECORD = re.compile(rb"(\d{1,20}) ([^=]{1,200})=")


class Source(Protocol):
    """What is walked: a binary file; one that cannot seek is read through."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""

    def seekable(self) -> bool:
        """Whether :meth:`seek` can be used."""

    def seek(self, offset: int, whence: int, /) -> int:
        """Go to a place, as :meth:`io.IOBase.seek`; returns it."""


@dataclass(frozen=True)
class Entry:
    """One entry: the bytes it declares to unpack to (at least what it takes up), and whether it is sparse."""

    unpacked: int
    sparse: bool


def walk(source: Source, *, max_extended: int = MAX_EXTENDED) -> Iterator[Entry]:
    """The entries of a tar archive up to its end mark; the content is skipped.

    Raises ValueError or EOFError, in words for people, for what is broken or beyond its bounds.
    """
    size_of_next: int | None = None
    grows_to, sparse, chain, first = 0, False, 0, True
    while True:
        raw = source.read(BLOCK)
        if not raw and not first:
            return
        if len(raw) != BLOCK:
            raise EOFError("the archive is cut off")
        first = False
        if raw.count(0) == BLOCK:
            return
        kind, size = raw[156:157], _size(raw)
        if kind in _EXTENDED:
            chain += 1
            if size > max_extended or chain > MAX_CHAIN:
                raise ValueError("an extended header is larger than any real one")
            body = _exactly(source, size)
            records = _records(body) if kind in b"xgX" else {}
            _skip(source, -size % BLOCK)
            if b"size" in records:
                if kind == b"g":
                    raise ValueError("an extended header gives all entries one size")
                size_of_next = _number(records[b"size"])
            for key in (b"GNU.sparse.realsize", b"GNU.sparse.size"):
                if key in records:
                    grows_to = max(grows_to, _number(records[key]))
            sparse = sparse or any(key.startswith(b"GNU.sparse") for key in records)
            continue
        if kind == b"S":
            raise ValueError("an entry is sparse in the old form")
        size = size if size_of_next is None else size_of_next
        yield Entry(max(size, grows_to), sparse)
        if kind not in _NO_CONTENT:
            _skip(source, size + -size % BLOCK)
        size_of_next, grows_to, sparse, chain = None, 0, False, 0


def _size(raw: bytes) -> int:
    """The size field of a header whose checksum is right."""
    stored = _octal(raw[148:156])
    rest = raw[:148] + b" " * 8 + raw[156:]
    if stored not in (sum(rest), sum(b - 256 if b > 127 else b for b in rest)):
        raise ValueError("a header of the archive is damaged")
    field = raw[124:136]
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    if field[0] > 0x7F:
        raise ValueError("an entry has a negative size")
    return _octal(field)


def _octal(field: bytes) -> int:
    text = field.partition(b"\0")[0].strip()
    if not re.fullmatch(rb"[0-7]*", text):
        raise ValueError("a header of the archive is damaged")
    return int(text or b"0", 8)


def _number(value: bytes) -> int:
    if not re.fullmatch(rb"\d{1,20}", value):
        raise ValueError("an extended header gives a size that is none")
    return int(value)


def _records(body: bytes) -> dict[bytes, bytes]:
    """The records of an extended header: ``length key=value`` and a line feed, one behind the other."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(body) and body[at]:
        match = _RECORD.match(body, at)
        end = at + int(match[1]) if match else 0
        if match is None or not match.end() < end <= len(body) or body[end - 1] != 0x0A:
            raise ValueError("an extended header is damaged")
        found[match[2]] = body[match.end() : end - 1]
        at = end
    return found


def _exactly(source: Source, size: int) -> bytes:
    data = source.read(size)
    if len(data) != size:
        raise EOFError("the archive is cut off")
    return data


def _skip(source: Source, size: int) -> None:
    if source.seekable():
        source.seek(size, 1)
        return
    while size:
        size -= len(_exactly(source, min(size, CHUNK)))
