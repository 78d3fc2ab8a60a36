"""Lines of a file that a participant may have written: bounded, numbered, and JSON that never surprises."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from typing import Any

from evaluator.findings import Log

CHUNK = 1 << 20


class Twice(dict[str, Any]):
    """An object that gives at least one key twice: ``doubled`` names those keys."""

    doubled: frozenset[str] = frozenset()


def numbered(
    read: Callable[[int], bytes], log: Log, most: int, *, too_long: str, gaps: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Yield every line that is not blank with its number, without its line end.

    A line of more than ``most`` bytes is reported under the code ``too_long`` and skipped, or is empty where places
    count (``gaps``); a byte order mark is reported (F118) and dropped. Sets ``log.lines``. Whatever ``read`` raises goes
    through.
    """
    number, rest, skipping = 0, b"", False
    while piece := read(CHUNK):
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        for line in lines:
            number += 1
            log.lines = number
            if not skipping:
                yield from _one(line, number, log, most, too_long, gaps)
            skipping = False
        if skipping:
            rest = b""
        elif len(rest) > most:
            log.add(too_long, number + 1, f"it is longer than {most:,} bytes")
            rest, skipping = b"", True
            if gaps:
                yield number + 1, b""
    if rest or skipping:
        number += 1
        log.lines = number
        if not skipping:
            yield from _one(rest, number, log, most, too_long, gaps)


def _one(
    line: bytes, number: int, log: Log, most: int, too_long: str, gaps: bool
) -> Iterator[tuple[int, bytes]]:
    if number == 1 and line.startswith(codecs.BOM_UTF8):
        log.add("F118", 1, "the file begins with a byte order mark")
        line = line[3:]
    line = line.removesuffix(b"\r")
    if len(line) > most:
        log.add(too_long, number, f"it is longer than {most:,} bytes")
        if gaps:
            yield number, b""
    elif line.strip():
        yield number, line


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) == len(pairs):
        return data
    twice = Twice(data)
    seen: set[str] = set()
    twice.doubled = frozenset(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
    return twice


# NaN and Infinity become floats, so that one bad number is one finding and not the loss of a whole line.
_decode: Callable[[str], Any] = json.JSONDecoder(object_pairs_hook=_pairs).decode


def parse(line: bytes) -> Any:
    """The JSON value of a line. Raises ValueError (also for what is not UTF-8 or nested too deeply)."""
    try:
        return _decode(line.decode("utf-8").strip())
    except RecursionError:
        raise ValueError("nested too deeply") from None


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return {str: "text", bool: "true or false", type(None): "null"}.get(type(value), "a number")
