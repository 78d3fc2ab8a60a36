"""Reading pickled look-ups without running them: an interpreter that knows data only, and streams.

A pickle is a program. This interpreter has the instructions that make dictionaries, lists, tuples, text, numbers and
None, and refuses all others by name, so that no class or function is ever looked up. The outermost dictionary is
given away entry by entry; of what the pickle remembers for later only that is kept which it will ask for again (a first
pass finds out), so that memory does not grow with the file.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

MAX_TEXT = 64 << 20  # bytes of one text
MAX_STACK = 100_000
MAX_ENTRIES = 200_000_000
MAX_PENDING = 1 << 30  # bytes that wait for being put into the outermost dictionary
MAX_KEPT = 64 << 20  # characters of remembered text in all
_NAMES: dict[int, str] = {ord(op.code): op.name for op in pickletools.opcodes}


class RefusedPickle(Exception):
    """The pickle holds something else than plain data, or is broken. Says what, and at which byte."""


class _Mark:
    """The stack's mark."""


class _Root:
    """Stands for the outermost dictionary, whose entries are given away."""


_MARK, _ROOT = _Mark(), _Root()
_FIXED: dict[int, tuple[str, int]] = {  # instruction -> (struct format, bytes) of the number that it pushes
    ord("J"): ("<i", 4), ord("K"): ("<B", 1), ord("M"): ("<H", 2), ord("G"): (">d", 8),
}  # fmt: skip
_TEXT: dict[int, tuple[str, int]] = {ord("X"): ("<I", 4), 0x8C: ("<B", 1), 0x8D: ("<Q", 8)}
_PUT: dict[int, tuple[str, int]] = {ord("q"): ("<B", 1), ord("r"): ("<I", 4)}
_GET: dict[int, tuple[str, int]] = {ord("h"): ("<B", 1), ord("j"): ("<I", 4)}
_CONSTANTS = {ord("N"): None, 0x88: True, 0x89: False}
_MEMOIZE, _FRAME, _PROTO, _STOP = 0x94, 0x95, 0x80, ord(".")
_LONG1 = 0x8A
_EMPTY = {ord("}"): dict, ord("]"): list, ord(")"): tuple}
_TUPLES = {0x85: 1, 0x86: 2, 0x87: 3}


class _Reader:
    """Bytes with their position, and numbers of fixed width."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.at = 0

    def take(self, n: int) -> bytes:
        data = self._file.read(n)
        self.at += len(data)
        if len(data) != n:
            raise RefusedPickle(f"it ends in the middle, at byte {self.at:,}")
        return data

    def number(self, form: tuple[str, int]) -> Any:
        return struct.unpack(form[0], self.take(form[1]))[0]


def entries(path: Path) -> Iterator[tuple[Any, Any]]:
    """The entries of the pickled dictionary in a file, in their order. Raises :class:`RefusedPickle`."""
    with path.open("rb", buffering=1 << 20) as file:
        wanted = _asked_for(_Reader(file))
        file.seek(0)
        yield from _Machine(_Reader(file), wanted).run()


def _asked_for(reader: _Reader) -> set[int]:
    """The numbers of everything that the pickle remembers and asks for again; refuses what is no data."""
    wanted: set[int] = set()
    for code in _codes(reader):
        if code in _GET:
            wanted.add(reader.number(_GET[code]))
            if len(wanted) > MAX_STACK:
                raise RefusedPickle(f"it asks for more than {MAX_STACK:,} remembered values")
        else:
            _skip(reader, code)
    return wanted


def _codes(reader: _Reader) -> Iterator[int]:
    """Instruction after instruction up to the end mark, after the head. The caller reads the arguments."""
    if reader.take(1)[0] != _PROTO:
        raise RefusedPickle("it is no pickle of protocol 2 or newer")
    protocol = reader.take(1)[0]
    if not 2 <= protocol <= 5:
        raise RefusedPickle(f"it has protocol {protocol}, known are 2 to 5")
    while (code := reader.take(1)[0]) != _STOP:
        if code == _FRAME:
            reader.take(8)  # only says how much may be read ahead
        else:
            yield code


def _text_length(reader: _Reader, code: int) -> int:
    length: int = reader.number(_TEXT[code])
    if length > MAX_TEXT:
        raise RefusedPickle(
            f"it has a text of {length:,} bytes at byte {reader.at:,}; at most {MAX_TEXT:,} are read"
        )
    return length


_PLAIN = frozenset(
    {*_CONSTANTS, *_EMPTY, *_TUPLES, _MEMOIZE, ord("("), ord("t"), ord("s"), ord("u"), ord("a"), ord("e"), ord("0"), ord("1")}
)  # fmt: skip


def _skip(reader: _Reader, code: int) -> None:
    if code in _PLAIN:
        return
    if code in _FIXED:
        reader.take(_FIXED[code][1])
    elif code in _PUT:
        reader.take(_PUT[code][1])
    elif code in _TEXT:
        reader.take(_text_length(reader, code))
    elif code == _LONG1:
        reader.take(reader.take(1)[0])
    else:
        name = _NAMES.get(code, f"0x{code:02x}")
        raise RefusedPickle(
            f"it has the instruction {name} at byte {reader.at - 1:,}, which is not for plain data"
        )


class _Machine:
    """Runs the pickle on a stack, and gives away what is put into the outermost dictionary."""

    def __init__(self, reader: _Reader, wanted: set[int]) -> None:
        self.reader, self.wanted = reader, wanted
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.memoized = 0
        self.kept = self.pending = 0

    def run(self) -> Iterator[tuple[Any, Any]]:
        count = 0
        for code in _codes(self.reader):
            if code in (ord("s"), ord("u")) and self._to_root(code):
                for pair in self._pairs(code):
                    count += 1
                    if count > MAX_ENTRIES:
                        raise RefusedPickle(f"it has more than {MAX_ENTRIES:,} entries")
                    yield pair
                self.pending = 0
            else:
                self._step(code)
                if len(self.stack) > MAX_STACK:
                    raise RefusedPickle(f"it piles up more than {MAX_STACK:,} values")
        if self.marks or len(self.stack) != 1 or self.stack[0] is not _ROOT:
            raise RefusedPickle("what it holds is no dictionary")

    # what the instructions do

    def _step(self, code: int) -> None:
        reader = self.reader
        self.pending += 16
        if self.pending > MAX_PENDING:
            raise RefusedPickle(f"one part of it is too large, before byte {reader.at:,}")
        if code in _CONSTANTS:
            self.stack.append(_CONSTANTS[code])
        elif code in _EMPTY:
            root = code == ord("}") and not self.stack
            self.stack.append(_ROOT if root else _EMPTY[code]())
        elif code in _TEXT:
            raw = reader.take(_text_length(reader, code))
            self.pending += len(raw)
            self.stack.append(raw.decode("utf-8", "replace"))
        elif code in _FIXED:
            self.stack.append(reader.number(_FIXED[code]))
        elif code == _LONG1:
            self.stack.append(int.from_bytes(reader.take(reader.take(1)[0]), "little", signed=True))
        elif code in _PUT or code == _MEMOIZE:
            self._remember(reader.number(_PUT[code]) if code in _PUT else self.memoized)
            self.memoized += 1
        elif code in _GET:
            number = reader.number(_GET[code])
            if number not in self.memo:
                raise RefusedPickle(f"it asks for a value that it never had, at byte {reader.at:,}")
            self.stack.append(self.memo[number])
        else:
            self._gather(code)

    def _remember(self, number: int) -> None:
        if not self.stack or self.stack[-1] is _MARK:
            raise self._broken()
        value = self.stack[-1]
        if number in self.wanted:
            if value is _ROOT or isinstance(value, dict | list):
                # Data of a look-up never refers to a container twice; a pickle that does could grow or never end.
                raise RefusedPickle("it refers to a list or dictionary twice")
            self.kept += len(value) if isinstance(value, str | tuple) else 1
            if self.kept > MAX_KEPT:
                raise RefusedPickle("it refers to too much text twice")
            self.memo[number] = value

    def _gather(self, code: int) -> None:
        """The instructions about marks, tuples, lists and dictionaries."""
        if code == ord("("):
            self.marks.append(len(self.stack))
            self.stack.append(_MARK)
        elif code in _TUPLES or code == ord("t"):
            values = self._above() if code == ord("t") else self._last(_TUPLES[code])
            self.stack.append(tuple(values))
        elif code in (ord("s"), ord("u")):
            pairs = list(self._pairs(code))
            if not isinstance(self.stack[-1], dict):
                raise self._broken()
            self.stack[-1].update(pairs)
        elif code in (ord("a"), ord("e")):
            values = self._above() if code == ord("e") else self._last(1)
            if not self.stack or not isinstance(self.stack[-1], list):
                raise self._broken()
            self.stack[-1].extend(values)
        elif code == ord("0"):
            self._last(1)
        elif code == ord("1"):
            self._above()
        else:
            _skip(self.reader, code)  # refuses it
            raise self._broken()

    def _to_root(self, code: int) -> bool:
        below = (self.marks[-1] if self.marks else 0) if code == ord("u") else len(self.stack) - 2
        return below == 1 and bool(self.stack) and self.stack[0] is _ROOT

    def _pairs(self, code: int) -> Iterator[tuple[Any, Any]]:
        values = self._above() if code == ord("u") else self._last(2)
        if len(values) % 2 or not self.stack:
            raise self._broken()
        for i in range(0, len(values), 2):
            if not isinstance(values[i], str | int | float | None):
                raise RefusedPickle(f"it has a key that is no text, before byte {self.reader.at:,}")
            yield values[i], values[i + 1]

    def _above(self) -> list[Any]:
        if not self.marks:
            raise self._broken()
        at = self.marks.pop()
        values = self.stack[at + 1 :]
        del self.stack[at:]
        return values

    def _last(self, n: int) -> list[Any]:
        if len(self.stack) < n or (self.marks and len(self.stack) - n <= self.marks[-1]):
            raise self._broken()
        values = self.stack[-n:]
        del self.stack[-n:]
        return values

    def _broken(self) -> RefusedPickle:
        return RefusedPickle(f"it is broken at byte {self.reader.at:,}")
