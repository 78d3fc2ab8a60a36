"""``evaluator convert-lookup``: a pickled document look-up as JSON Lines, once and without running the file.

A pickle is a program. The interpreter here has the instructions that make dictionaries, lists, tuples, text, numbers and
None, and refuses all others by name, so that no class or function is ever looked up (:mod:`pickletools` only takes the
instructions apart). The outermost dictionary is given away entry by entry; of what the pickle remembers for later only that
is kept which it will ask for again (a first pass finds out), so that memory does not grow with the file.

What is read is ``{doc id: {"title": ..., "text": ...}}`` (also a text, or a pair of title and text); what is written is
``{"id", "title", "text"}`` a line. Meant to run in a container without a network.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickletools
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from evaluator.argue.models import Document
from evaluator.errors import EvaluatorError
from evaluator.findings import show
from schemas.files import atomic_file

MAX_TEXT = 64 << 20  # bytes of one text
MAX_STACK = 100_000
MAX_ENTRIES = 200_000_000
MAX_PENDING = 1 << 30  # characters that wait for being put into the outermost dictionary
MAX_KEPT = 64 << 20  # characters of remembered text in all
MAX_BYTES = 200 << 30  # written, before compression
MAX_PROBLEMS = 20

Operation = tuple[str, Any, int]  # an instruction's name, its argument, and at which byte it stands


class RefusedPickle(Exception):
    """The pickle holds something else than plain data, or is broken. Says what, and at which byte."""


_MARK, _ROOT = object(), object()  # the stack's mark; the outermost dictionary, whose entries are given away
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {
    "BININT",
    "BININT1",
    "BININT2",
    "LONG1",
    "BINFLOAT",
    "BINUNICODE",
    "SHORT_BINUNICODE",
    "BINUNICODE8",
}
_EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_PUT = {"BINPUT", "LONG_BINPUT", "MEMOIZE"}
_GET = {"BINGET", "LONG_BINGET"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_GATHERING = {"MARK", "TUPLE", *_TUPLES, "SETITEM", "SETITEMS", "APPEND", "APPENDS", "POP", "POP_MARK"}
_KNOWN = {*_CONSTANTS, *_VALUES, *_EMPTY, *_PUT, *_GET, *_GATHERING}


class _Bounded:
    """A file of which nothing large is read at once: the lengths in a pickle are its writer's."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.tell = file.tell

    def read(self, size: int) -> bytes:
        if size > MAX_TEXT:
            at = self.tell()
            raise RefusedPickle(
                f"it has a text of {size:,} bytes at byte {at:,}; at most {MAX_TEXT:,} are read"
            )
        return self._file.read(size)

    def readline(self) -> bytes:
        return self._file.readline(1024)


def _operations(file: BinaryIO) -> Iterator[Operation]:
    """Every instruction between head and end mark, from the file's beginning. Raises :class:`RefusedPickle`."""
    file.seek(0)
    head = file.read(2)
    if head[:1] != b"\x80" or len(head) < 2:
        raise RefusedPickle("it is no pickle of protocol 2 or newer")
    if not 2 <= head[1] <= 5:
        raise RefusedPickle(f"it has protocol {head[1]}, known are 2 to 5")
    try:
        for code, argument, at in pickletools.genops(_Bounded(file)):  # type: ignore[arg-type]
            assert at is not None
            if code.name in _KNOWN:
                yield code.name, argument, at
            elif code.name not in ("FRAME", "STOP"):  # a frame only says how much may be read ahead
                raise RefusedPickle(
                    f"it has the instruction {code.name} at byte {at:,}, which is not for plain data"
                )
    except ValueError as error:
        raise RefusedPickle(f"it is broken: {show(str(error), 200)}") from None


def entries(path: Path) -> Iterator[tuple[Any, Any]]:
    """The entries of the pickled dictionary in a file, in their order. Raises :class:`RefusedPickle`."""
    with path.open("rb", buffering=1 << 20) as file:
        wanted: set[int] = set()  # the numbers of all that the pickle remembers and asks for again
        for name, argument, _ in _operations(file):
            if name in _GET:
                wanted.add(argument)
                if len(wanted) > MAX_STACK:
                    raise RefusedPickle(f"it asks for more than {MAX_STACK:,} remembered values")
        yield from _Machine(wanted).run(_operations(file))


class _Machine:
    """Runs the pickle on a stack, and gives away what is put into the outermost dictionary."""

    def __init__(self, wanted: set[int]) -> None:
        self.wanted = wanted
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.memoized = self.kept = self.pending = self.at = 0

    def run(self, operations: Iterable[Operation]) -> Iterator[tuple[Any, Any]]:
        count = 0
        for name, argument, self.at in operations:
            if name in ("SETITEM", "SETITEMS") and self._to_root(name):
                for pair in self._pairs(name):
                    count += 1
                    if count > MAX_ENTRIES:
                        raise RefusedPickle(f"it has more than {MAX_ENTRIES:,} entries")
                    yield pair
                self.pending = 0
                continue
            self.pending += 16 + (len(argument) if isinstance(argument, str) else 0)
            if self.pending > MAX_PENDING:
                raise RefusedPickle(f"one part of it is too large, before byte {self.at:,}")
            self._step(name, argument)
            if len(self.stack) > MAX_STACK:
                raise RefusedPickle(f"it piles up more than {MAX_STACK:,} values")
        if self.marks or len(self.stack) != 1 or self.stack[0] is not _ROOT:
            raise RefusedPickle("what it holds is no dictionary")

    def _step(self, name: str, argument: Any) -> None:
        if name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _VALUES:
            self.stack.append(argument)
        elif name in _EMPTY:
            root = name == "EMPTY_DICT" and not self.stack
            self.stack.append(_ROOT if root else _EMPTY[name]())
        elif name in _PUT:
            self._remember(self.memoized if argument is None else argument)
            self.memoized += 1
        elif name in _GET:
            if argument not in self.memo:
                raise RefusedPickle(f"it asks for a value that it never had, at byte {self.at:,}")
            self.stack.append(self.memo[argument])
        else:
            self._gather(name)

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

    def _gather(self, name: str) -> None:
        """The instructions about marks, tuples, lists and dictionaries."""
        if name == "MARK":
            self.marks.append(len(self.stack))
            self.stack.append(_MARK)
        elif name in ("SETITEM", "SETITEMS"):
            pairs = list(self._pairs(name))
            if not isinstance(self.stack[-1], dict):
                raise self._broken()
            self.stack[-1].update(pairs)
        else:
            whole = name in ("TUPLE", "APPENDS", "POP_MARK")
            values = self._above() if whole else self._last(_TUPLES.get(name, 1))
            if name.startswith("TUPLE"):
                self.stack.append(tuple(values))
            elif name.startswith("APPEND"):
                if not self.stack or not isinstance(self.stack[-1], list):
                    raise self._broken()
                self.stack[-1].extend(values)

    def _to_root(self, name: str) -> bool:
        below = (self.marks[-1] if self.marks else 0) if name == "SETITEMS" else len(self.stack) - 2
        return below == 1 and self.stack[0] is _ROOT

    def _pairs(self, name: str) -> Iterator[tuple[Any, Any]]:
        values = self._above() if name == "SETITEMS" else self._last(2)
        if len(values) % 2 or not self.stack:
            raise self._broken()
        for i in range(0, len(values), 2):
            if not isinstance(values[i], str | int | float | None):
                raise RefusedPickle(f"it has a key that is no text, before byte {self.at:,}")
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
        return RefusedPickle(f"it is broken at byte {self.at:,}")


# --- converting ------------------------------------------------------------------------------------------------


def convert(source: Path, target: Path, *, max_bytes: int = MAX_BYTES) -> int:
    """Convert a pickle; the target (compressed if it is called ``.gz``) appears only when it is complete.

    Returns how many documents it has. Raises :class:`EvaluatorError` for a pickle that holds something else than
    documents.
    """
    problems: list[str] = []
    count = written = 0
    try:
        with _target(target) as file:
            for key, value in entries(source):
                found = document(key, value)
                if isinstance(found, str):
                    problems.append(found)
                    if len(problems) >= MAX_PROBLEMS:
                        break
                    continue
                row = {"id": found.id, "title": found.title, "text": found.text}
                line = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
                written += len(line)
                if written > max_bytes:
                    raise RefusedPickle(f"it unpacks to more than {max_bytes:,} bytes")
                file.write(line)
                count += 1
            if problems or not count:
                raise RefusedPickle("; ".join(problems) or "it holds no document")
    except RefusedPickle as error:
        raise EvaluatorError(
            f"the pickle {source.name} was not converted",
            str(error),
            "get it from its source again; only dictionaries of documents are converted",
        ) from None
    except OSError as error:
        raise EvaluatorError(
            f"{source.name} cannot be converted", (error.strerror or str(error)).lower()
        ) from None
    return count


def document(key: Any, value: Any) -> Document | str:
    """The document of one entry, or what is wrong with it."""
    if isinstance(key, int) and not isinstance(key, bool):
        key = str(key)
    if not isinstance(key, str) or not key:
        return "a key is no document id"
    title: Any = ""
    if isinstance(value, dict):
        text = next((value[k] for k in ("text", "body", "contents") if isinstance(value.get(k), str)), None)
        title = value.get("title")
    elif isinstance(value, list | tuple) and len(value) == 2:
        title, text = value
    else:
        text = value
    if not isinstance(text, str) or not isinstance(title, str | None):
        return f"the document {show(key)} has no text"
    return Document(key, text, title or "")


@contextmanager
def _target(path: Path) -> Iterator[IO[bytes]]:
    with atomic_file(path, mode=0o644) as raw:
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield raw


def add_command(commands: Any) -> None:
    """Add the command to argparse's ``commands``."""
    parser = commands.add_parser(
        "convert-lookup",
        help="turn a pickled document look-up into JSON Lines, without running it",
        description="Read a pickled dictionary of documents as data only, and write one JSON object a line.",
    )
    parser.add_argument("pickle", type=Path, metavar="PICKLE")
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="a .jsonl or .jsonl.gz file")
    parser.set_defaults(call=run)


def run(args: argparse.Namespace) -> int:
    """Do what the command says. Returns 0; raises :class:`EvaluatorError`."""
    count = convert(args.pickle, args.output)
    print(f"{args.output.name}: {count:,} documents", file=sys.stderr)
    return 0
