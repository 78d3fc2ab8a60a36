"""Lines of a file that a participant may have written: bounded, numbered, and JSON that never surprises."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from evaluator.findings import Log, show
from evaluator.formats.files import Damaged, TooLarge, Unreadable
from schemas.jsonl import Rules, decoder, split

_AROUND = len(codecs.BOM_UTF8 + b"\r")  # what does not count towards the length of a line


@contextmanager
def reporting(log: Log, max_bytes: int | None) -> Iterator[None]:
    """Report to ``log`` that a file cannot be read, holds too much or is damaged; the rest of the block is left out."""
    try:
        yield
    except Unreadable as error:
        log.add("F002", None, str(error))
    except TooLarge:
        log.add("F004", None, f"the file holds more than {max_bytes or 0:,} bytes (unpacked)")
    except Damaged as error:
        log.add("F003", None, f"the gzip data is damaged or ends too early ({show(str(error))})")


def numbered(
    read: Callable[[int], bytes], log: Log, most: int, *, too_long: str, gaps: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Yield every line that is not blank with its number, without its line end.

    A line of more than ``most`` bytes is reported under the code ``too_long`` and skipped, or is empty where places
    count (``gaps``); a byte order mark is reported (F118) and dropped. Sets ``log.lines``. Whatever ``read`` raises goes
    through.
    """
    for number, _, raw in split(read, most + _AROUND):
        log.lines = number
        line = b"" if raw is None else raw
        if number == 1 and line.startswith(codecs.BOM_UTF8):
            log.add("F118", 1, "the file begins with a byte order mark")
            line = line[3:]
        line = line.removesuffix(b"\r")
        if raw is None or len(line) > most:
            log.add(too_long, number, f"it is longer than {most:,} bytes")
            if gaps:
                yield number, b""
        elif line.strip():
            yield number, line


# NaN and Infinity become floats, so that one bad number is one finding and not the loss of a whole line.
_decode = decoder(Rules(duplicates="mark", constants=True, bounded=False)).decode


def parse(line: bytes) -> Any:
    """The JSON value of a line. Raises ValueError (also for what is not UTF-8 or nested too deeply)."""
    try:
        return _decode(line.decode("utf-8").strip())
    except RecursionError:
        raise ValueError("nested too deeply") from None
