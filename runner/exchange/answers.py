"""What a server answers to a program: read within bounds, and believed only where it has the form that its schema says.

Whoever asks a server need not trust it. An answer is read up to so many bytes and seconds, also of what is compressed; JSON that
could not be printed or computed with (deep nesting, endless numbers, halves of characters) is none. Keys that a schema does not
know are passed over: later versions may add some.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import schemas

if TYPE_CHECKING:
    from requests import Response

MOST = 64 * 1024 * 1024  # bytes of an answer, without compression
LONGEST = 600.0  # seconds until its last byte
MOST_ENTRIES = 100_000  # of a list, on all its pages
DEEPEST = 40  # lists and mappings within each other
DIGITS = 19  # of a whole number
ACCEPT = {"Accept": "application/json", "Accept-Encoding": "gzip"}
_BLOCK = 65536
_PAGE = {"items", "next"}


class Odd(Exception):
    """An answer that is none of a server of this kind; the text says why, in a sentence."""


class Cut(Odd):
    """An answer that broke off: the next one may be whole."""


def data(said: Response, gives: str = "", *, paged: bool = False) -> Any:
    """The JSON data of an answer whose body was not read yet.

    Args:
        said: The answer.
        gives: The schema that they have to fit, or the entries of a page; empty: any.
        paged: Whether it is a page of a list.

    Raises:
        Odd: It is no such answer.
    """
    try:
        found = json.loads(_content(said), parse_int=_whole, parse_constant=_no_number)
        if not schemas.flat(found, DEEPEST):
            raise Odd("It is nested too deeply.")
        schemas.canonical(found)
    except (ValueError, RecursionError):
        raise Odd(f"It answered {said.status_code}, and not in JSON.") from None
    if paged:
        if not isinstance(found, dict) or not {*found} >= _PAGE or not isinstance(found["items"], list):
            raise Odd("It gives no page of a list.")
        if not isinstance(found["next"], str | None):
            raise Odd("A page leads nowhere.")
    if gives:
        for one in found["items"] if paged else [found]:
            check(one, gives)
    return found


def check(found: Any, gives: str) -> None:
    """Raise Odd for what does not fit a schema, but for keys that the schema does not know; parts that may be null (``x-schema``) are
    checked by their own."""
    if problems := schemas.validate(found, gives, more_keys=True):
        raise Odd(f"{problems[0].what}.")
    for name, node in schemas.schema(gives).get("properties", {}).items():
        if "x-schema" in node and found.get(name) is not None:
            check(found[name], node["x-schema"])


def _content(said: Response) -> bytes:
    """The bytes of an answer. Raises Odd, ValueError."""
    import urllib3

    coding = said.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip", ""):
        raise Odd("It is compressed in a way that nobody asked for.")
    last, found = time.monotonic() + LONGEST, bytearray()
    packed = zlib.decompressobj(16 + zlib.MAX_WBITS) if coding == "gzip" else None
    try:
        for block in _blocks(said):
            found += block if packed is None else packed.decompress(block, MOST + 1 - len(found))
            if len(found) > MOST or time.monotonic() > last:
                raise Odd("It does not end.")
    except (urllib3.exceptions.HTTPError, OSError, zlib.error):
        raise Cut("It broke off, or cannot be unpacked.") from None
    finally:
        said.close()
    if packed is not None and not packed.eof:
        raise Cut("It broke off.")
    return bytes(found)


def _blocks(said: Response) -> Iterator[bytes]:
    """The body as it comes."""
    while block := said.raw.read1(_BLOCK, decode_content=False):
        yield block


def _whole(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError("too many digits")
    return int(text)


def _no_number(text: str) -> None:
    raise ValueError(text)
