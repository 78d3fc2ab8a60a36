"""Lines of a file that a participant may have written: bounded, numbered, and JSON that never surprises."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from jiter import from_json

from evaluator.errors import EvaluatorError
from evaluator.findings import Log, show
from evaluator.formats.files import BOM, Damaged, TooLarge, Unreadable
from schemas.jsonl import Rules, decoder, split

_AROUND = len(BOM + b"\r")  # what does not count towards the length of a line


@contextmanager
def reporting(log: Log, max_bytes: int | None) -> Iterator[None]:
    """Report to ``log`` that a file cannot be read, holds too much or is damaged; the rest of the block is left out."""
    try:
        yield
    except Unreadable as error:
        log.add(error.code, None, str(error))
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
        if number == 1 and line.startswith(BOM):
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


def id_of_object(line: bytes, place: str, keys: Sequence[str], wrong: tuple[str, str, str]) -> bytes:
    """The id in a JSON object of the organiser.

    Args:
        line: The object.
        place: File and line, for messages.
        keys: Under which an id may be; the first that holds text or a whole number counts.
        wrong: What to say of a line that is not JSON, what of one without an id, and how that is corrected.

    Raises:
        EvaluatorError: The line is not JSON, or has no id.
    """
    try:
        record = json.loads(line)
    except ValueError:
        raise EvaluatorError(wrong[0], f"{place}: not JSON") from None
    for key in keys if isinstance(record, dict) else ():
        if isinstance(record.get(key), str | int):
            return str(record[key]).encode()
    raise EvaluatorError(wrong[1], f"{place}: none of {', '.join(keys)}", wrong[2])


BROKEN = object()  # instead of the value of a line that has none


def parse_or_report(line: bytes, number: int, log: Log, decode: Callable[[str], Any] | None = None) -> Any:
    """The JSON value of a line; :data:`BROKEN`, having reported to ``log`` why, for a line that has none."""
    try:
        return parse(line, decode)
    except UnicodeDecodeError:
        log.add("F005", number, f"the line is not UTF-8: {show(line)}")
    except ValueError:
        log.add("F101", number, f"the line is not JSON: {show(line)}")
    return BROKEN


def parse(line: bytes, decode: Callable[[str], Any] | None = None) -> Any:
    """The JSON value of a line. Raises ValueError (also for what is not UTF-8 or nested too deeply)."""
    with suppress(
        ValueError
    ):  # what jiter takes so, json takes, too, with the same value; it only needs three times as long
        return from_json(line, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")
    try:
        return (decode or _decode)(line.decode("utf-8").strip())
    except RecursionError:
        raise ValueError("nested too deeply") from None
