"""A quick first look at what is read again and again: what the archive holds, and the definitions of tasks."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from schemas.checking import schema

_OTHERWISE = re.compile(r"\\\\[swdbSWDB]")  # classes of characters that Rust and Python read in other ways
# What is escaped, a class of characters, or "$" that is not the last
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$(?!\Z)", re.DOTALL)


@lru_cache(maxsize=64)
def quick_look(name: str) -> Any:
    """What looks quickly; None for a schema that it does not take, or with patterns that Rust and Python read in other ways, and where it
    is not installed, as where participants check runs of most kinds."""
    try:
        import jsonschema_rs
    except ImportError:
        return None
    asked = schema(name)
    if _OTHERWISE.search(json.dumps(asked)):
        return None
    try:
        return jsonschema_rs.Draft202012Validator(_for_rust(asked), offline=True)
    except ValueError:  # of a kind from elsewhere
        return None


def _for_rust(node: Any, *, named: bool = False) -> Any:
    """The schema with ``$`` inside of patterns as Python reads it, where it is also before a last line feed."""
    if isinstance(node, list):
        return [_for_rust(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _PIECE.sub(_piece, value)
        if key == "pattern" and isinstance(value, str) and not named
        else _for_rust(value, named=key == "properties" and not named)
        for key, value in node.items()
    }


def _piece(found: re.Match[str]) -> str:
    """A piece of a pattern as Rust writes it. Raises ValueError for a class that it reads in another way."""
    piece = found[0]
    if piece.startswith(("[]", "[^]")):
        raise ValueError(piece)
    return r"(?=\n?$)" if piece == "$" else piece


def fits(data: Any, name: str) -> bool:
    """Whether plain data fit the schema called ``name``: much quicker than :func:`schemas.validate`, for what is read again and again.

    False also where only that function can tell, which says what is wrong. Raises KeyError for an unknown schema.
    """
    quick = quick_look(name)
    if quick is None:
        return False
    try:
        # 1.0 is a whole number there and none here, where 1.25 is none in both.
        return bool(quick.is_valid(data) and (not _has_whole(data) or quick.is_valid(_broken_up(data))))
    except (ValueError, RecursionError):  # what is no JSON, or deeper than it goes
        return False


_PLAIN = (str, int, type(None))


def _has_whole(data: Any) -> bool:
    """Whether a number in the data is written with a point and has no fraction. Raises ValueError for no JSON."""
    found, waiting = False, [data]
    for one in waiting:  # which grows meanwhile
        if isinstance(one, _PLAIN):
            continue
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, float) and abs(one) < 2**50:  # beyond there are no fractions
            found = found or one.is_integer()
        else:
            raise ValueError
    return found


def _broken_up(value: Any) -> Any:
    """The same JSON data with another fraction for each number that is written with a point and has none."""
    if isinstance(value, dict):
        return {key: _broken_up(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_broken_up(one) for one in value]
    if isinstance(value, float):
        return value + 0.25 if value.is_integer() else value
    return value
