"""JSON Lines that may be hostile or broken: bounded, numbered, plain or gzip, and with errors as data.

:func:`split` cuts what any ``read`` gives into lines, :func:`parse` reads the value of one, :func:`values` and :func:`rows` do both,
and :func:`read` does it for a file. What is wrong is a :class:`Fault` in place of the value; its kind and detail are for the caller to word.
"""

from __future__ import annotations

import codecs
import gzip
import json
import math
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, NoReturn

from jiter import from_json

from schemas.documents import JSON_DEPTH, beyond_bounds
from schemas.file_sorts import describe_wrong_sort, read_head

BLOCK = 1 << 20
AT_ONCE = 128  # lines: what is made of them stays in the processor's cache, and the garbage collector sleeps
GZIP = b"\x1f\x8b"
_PACKED_BLOCK = 8192  # damage loses what was unpacked of its block, so these are small


class Line(NamedTuple):
    """A line without its line end: its number from 1, where it starts, its bytes (None if it is too long)."""

    number: int
    offset: int
    raw: bytes | None


class Fault(NamedTuple):
    """Why there is no value. ``detail`` is for a message, and may hold text of the file.

    Of a file: ``unreadable`` (with the reason), ``damaged`` (gzip), ``too-large``; nothing follows these. Of a line:
    ``too-long``, ``blank``, ``encoding`` (not UTF-8), ``syntax`` (with the reason), ``duplicate`` (with the key),
    ``constant`` (NaN and infinities, with the word), ``number`` (too long or too large), ``deep``, ``surrogate``.
    """

    kind: Literal[
        "unreadable", "damaged", "too-large", "too-long", "blank", "encoding", "syntax", "duplicate",
        "constant", "number", "deep", "surrogate",
    ]  # fmt: skip
    detail: str = ""
    line: int = 1  # of the value, where syntax is wrong


class Row(NamedTuple):
    """The value of one line, or the fault that it has in its place. ``number`` counts from 1."""

    number: int
    value: Any
    fault: Fault | None = None


class Twice(dict[str, Any]):
    """An object that gives at least one key twice: ``doubled`` names those keys, the last value of each counts."""

    doubled: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rules:
    """How strict reading is.

    ``duplicates``: a key that is there twice is refused, marked (:class:`Twice`), or its last value counts.
    ``constants``: NaN and infinities are read as floats. ``bom``: a byte order mark before a line is passed over.
    ``bounded``: refused are nesting beyond 64 levels, numbers that overflow or have more than 40 digits, and text
    with half of a surrogate pair. ``finite``: of these, only numbers that overflow.
    """

    duplicates: Literal["refuse", "mark", "last"] = "refuse"
    constants: bool = False
    bom: bool = True
    bounded: bool = True
    finite: bool = False


STRICT = Rules()
LENIENT = Rules(duplicates="last", constants=True, bounded=False)  # what Python's json takes
WRITTEN = Rules(duplicates="last", bounded=False)  # what evaluators and our own parts may write


class _Found(ValueError):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.kind)
        self.fault = fault


def split(read: Callable[[int], bytes], max_line: int) -> Iterator[Line]:
    """Every line of what ``read(size)`` gives, blank ones too; a last one without its line end counts when it has bytes.

    Of a line with more than ``max_line`` bytes nothing is kept. Whatever ``read`` raises goes through.
    """
    for number, start, block in _blocks(read, max_line):
        if block is None:
            yield Line(number, start, None)
            continue
        for n, line in enumerate(block.split(b"\n"), number):
            yield Line(n, start, line if len(line) <= max_line else None)
            start += len(line) + 1


def _blocks(read: Callable[[int], bytes], max_line: int) -> Iterator[tuple[int, int, bytes | None]]:
    """Whole lines, many at once without the last line end: number and place of the first; None for one that is too long."""
    number, start, held, skipping = 1, 0, 0, False
    parts: list[bytes] = []  # of the line that has not ended; joined once, so that a long one costs no more
    while piece := read(BLOCK):
        parts.append(piece)
        held += len(piece)
        if b"\n" in piece:
            block, _, rest = b"".join(parts).rpartition(b"\n")
            parts, held, more = [rest], len(rest), True
            if skipping:  # the end of the line that was too long
                end, more, block = _cut(block)
                number, start, skipping = number + 1, start + end, False
            if more:
                yield number, start, block
                number += block.count(b"\n") + 1
                start += len(block) + 1
        if skipping or held > max_line:
            if not skipping:
                yield number, start, None
            start += held
            parts, held, skipping = [], 0, True
    if held:
        yield number, start, b"".join(parts)


def _cut(block: bytes) -> tuple[int, bool, bytes]:
    """How long the first line is with its line end, whether there are others, and these."""
    first, more, others = block.partition(b"\n")
    return len(first) + 1, bool(more), others


def values(
    read: Callable[[int], bytes], max_line: int, rules: Rules = STRICT
) -> Iterator[tuple[int, Any | Fault]]:
    """Number and value, or fault, of every line of what ``read(size)`` gives; whatever it raises goes through."""
    for first, block in blocks(read, max_line, rules):
        yield from enumerate(block, first)


def blocks(
    read: Callable[[int], bytes], max_line: int, rules: Rules = STRICT
) -> Iterator[tuple[int, list[Any] | Iterator[Any | Fault]]]:
    """The same for many lines at once: the number of the first, and a list where every line has a value and none is blank."""
    how = _quick(rules)
    for first, _, block in _blocks(read, max_line):
        if block is None:
            yield first, iter([Fault("too-long")])
            continue
        every = block.split(b"\n")
        sure = _sure(block, rules) and max(map(len, every)) <= max_line
        for start in range(0, len(every), AT_ONCE):
            lines = every[start : start + AT_ONCE]
            found: list[Any] | Iterator[Any] = (_value(raw, max_line, rules) for raw in lines)
            if sure and how is not None:
                with suppress(ValueError):
                    found = [from_json(raw, **how) for raw in lines]
            yield first + start, found


# How jiter is asked. Texts are mostly different ones: only keys are looked up among those before.
_QUICK: tuple[tuple[Rules, dict[str, Any]], ...] = (
    (LENIENT, {"allow_inf_nan": True, "catch_duplicate_keys": False, "cache_mode": "keys"}),
    (STRICT, {"allow_inf_nan": False, "catch_duplicate_keys": True, "cache_mode": "keys"}),
    (WRITTEN, {"allow_inf_nan": False, "catch_duplicate_keys": False, "cache_mode": "keys"}),
)


def _quick(rules: Rules) -> dict[str, Any] | None:
    """How jiter is asked by these rules; None where it is not."""
    return next((how for known, how in _QUICK if known is rules), None)


def _sure(block: bytes, rules: Rules) -> bool:
    """Whether what the quick way takes of these lines, the other one takes, too."""
    return rules is not STRICT or not _doubtful(block)


def _value(raw: bytes, max_line: int, rules: Rules) -> Any | Fault:
    if len(raw) > max_line:
        return Fault("too-long")
    return Fault("blank") if not raw or raw.isspace() else parse(raw, rules)


def parse(raw: bytes, rules: Rules = STRICT) -> Any | Fault:
    """The value of a line, or why it has none."""
    how = _quick(rules)
    if how is not None and (value := _quickly(raw, how, rules is STRICT)) is not _UNSURE:
        return value
    if raw.startswith(codecs.BOM_UTF8) and not rules.bom:
        return Fault("syntax", "Unexpected UTF-8 BOM (decode using utf-8-sig)")  # what json says of text
    try:
        value = decoder(rules).decode(raw.decode("utf-8-sig"))
    except _Found as found:
        return found.fault
    except UnicodeDecodeError:
        return Fault("encoding")
    except json.JSONDecodeError as error:
        return Fault("syntax", error.msg, error.lineno)
    except RecursionError:
        return Fault("deep")
    except ValueError:  # thousands of digits
        return Fault("number")
    beyond = beyond_bounds(value) if rules.bounded else None
    return Fault(beyond) if beyond else value


# The quick way is jiter, which takes a third of the time of json. What it takes json takes, too, with the same value; but it takes
# deep nesting and numbers that strict reading refuses, and refuses halves of surrogate pairs: the other way says what is so.
_UNSURE = object()
_SHAPES = bytes.maketrans(b"123456789+E", b"0000000000e")
_MANY, _LARGE = b"0" * 40, b"0e000"
_NO_BRACKETS = bytes({*range(256)} - {*b"[{\n"})


def _quickly(raw: bytes, how: Mapping[str, Any], strict: bool) -> Any:
    try:
        value = from_json(raw, **how)
    except ValueError:
        return _UNSURE
    return value if not strict or not _doubtful(raw) or _bounded(value) else _UNSURE


def _doubtful(lines: bytes) -> bool:
    """Whether lines may hold a number that has too many digits or overflows, or one be nested too deeply."""
    shape = lines.translate(_SHAPES)
    if _LARGE in shape or _MANY in shape:
        return True
    return max(map(len, lines.translate(None, _NO_BRACKETS).split(b"\n"))) > JSON_DEPTH


_LEAST, _MOST = -(10**39), 10**40  # a sign counts as a digit


def _bounded(value: Any) -> bool:
    """Whether no number in a value overflowed or has more than 40 digits, and it is not nested too deeply."""
    level, depth = [value], 0
    while level:
        if depth > JSON_DEPTH:
            return False
        below: list[Any] = []
        for one in level:
            sort = type(one)
            if sort is dict:
                below += one.values()
            elif sort is list:
                below += one
            elif (sort is float and one - one != 0.0) or (sort is int and not _LEAST < one < _MOST):
                return False
        level, depth = below, depth + 1
    return True


def rows(
    read: Callable[[int], bytes], *, max_line: int, rules: Rules = STRICT, blanks: bool = False
) -> Iterator[Row]:
    """The value or fault of every line of what ``read(size)`` gives; whatever it raises goes through.

    Blank lines are passed over, or with ``blanks`` are faults.
    """
    for number, value in values(read, max_line, rules):
        if type(value) is not Fault:
            yield Row(number, value)
        elif value.kind != "blank" or blanks:
            yield Row(number, None, value)


def read(
    path: Path,
    *,
    max_line: int,
    max_bytes: int | None = None,
    rules: Rules = STRICT,
    packed: bool | None = None,
    blanks: bool = False,
) -> Iterator[Row]:
    """The value or fault of every line of a regular file; never raises for what is in it or that it is not there.

    gzip is told by content, or by ``packed``; ``max_bytes`` bounds what is unpacked. See :func:`rows`.
    """
    number = 0
    try:
        with _opened(path) as raw:
            if packed is None:
                packed = raw.read(2) == GZIP
                raw.seek(0)
                wrong_sort = describe_wrong_sort(read_head(raw, packed=packed))
                if wrong_sort is not None:
                    raise _Found(Fault("unreadable", f"the file is {wrong_sort}"))
            for row in rows(_reader(raw, packed, max_bytes), max_line=max_line, rules=rules, blanks=True):
                number = row.number
                if blanks or row.fault is None or row.fault.kind != "blank":
                    yield row
    except _Found as found:
        yield Row(number + 1, None, found.fault)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        yield Row(number + 1, None, Fault("damaged"))
    except OSError as error:
        yield Row(number + 1, None, Fault("unreadable", (error.strerror or str(error)).lower()))


def _opened(path: Path) -> BinaryIO:
    """A regular file, open for reading; never waits for a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:
        raise _Found(Fault("unreadable", "not a path")) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _Found(Fault("unreadable", "not a regular file"))
    return open(handle, "rb")  # noqa: PTH123


def _reader(raw: BinaryIO, packed: bool, most: int | None) -> Callable[[int], bytes]:
    unpacked = gzip.GzipFile(fileobj=raw) if packed else None
    done = 0

    def read(size: int) -> bytes:
        nonlocal done
        block = unpacked.read1(_PACKED_BLOCK) if unpacked is not None else raw.read(size)
        done += len(block)
        if most is not None and done > most:
            raise _Found(Fault("too-large"))
        return block

    return read


@lru_cache
def decoder(rules: Rules) -> json.JSONDecoder:
    """A decoder that raises ValueError or RecursionError for what ``rules`` refuse while text is read."""
    hooks: dict[str, Any] = {}
    if rules.duplicates != "last":
        hooks["object_pairs_hook"] = _once if rules.duplicates == "refuse" else _marked
    if not rules.constants:
        hooks["parse_constant"] = _no_constant
    if rules.bounded or rules.finite:
        hooks["parse_float"] = _float
    if rules.bounded:
        hooks["parse_int"] = _int
    return json.JSONDecoder(**hooks)


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    twice = Twice(made)
    seen: set[str] = set()
    twice.doubled = frozenset(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
    return twice


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = _marked(pairs)
    if isinstance(made, Twice):
        raise _Found(Fault("duplicate", min(made.doubled)))
    return made


def _no_constant(word: str) -> NoReturn:
    raise _Found(Fault("constant", word))


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Found(Fault("number"))
    return value


def _int(text: str) -> int:
    if len(text) > 40:
        raise _Found(Fault("number"))
    return int(text)


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return {str: "text", bool: "true or false", type(None): "null"}.get(type(value), "a number")
