"""Pieces that requests are made of: JSON, numbers, options. Every refusal says where and what is possible."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from schemas.jsonl import Fault, Rules, parse
from sidecars.search.errors import SearchError, illegal, malformed, not_json, quote

MAX_BOOST = 1e6
# Text with half of a surrogate pair is no index term, but asking for it is no error.
_RULES = Rules(bom=False, bounded=False, finite=True)


def read_json(body: bytes) -> Any:
    """The JSON value in ``body``. Raises SearchError for anything else, also for a key that is there twice."""
    value = parse(body, _RULES)
    if isinstance(value, Fault) and value.kind == "deep":
        raise malformed("the JSON is nested too deeply")
    if isinstance(value, Fault):
        raise SearchError(400, "x_content_parse_exception", not_json(value))
    return value


def options(value: Any, where: str, known: Collection[str]) -> Mapping[str, Any]:
    """``value`` as an object with known keys only."""
    if not isinstance(value, dict):
        raise malformed(f"[{where}] has to be an object")
    for key in value:
        if key not in known:
            supported = ", ".join(sorted(known))
            raise malformed(f"[{where}] does not support [{quote(key)}]; supported here: {supported}")
    return value


def one(value: Any, where: str) -> tuple[str, Any]:
    """The only key of an object, with its value."""
    if not isinstance(value, dict) or len(value) != 1:
        raise malformed(f"[{where}] has to be an object with exactly one key")
    return next(iter(value.items()))


def whole(value: Any, where: str, low: int, high: int) -> int:
    """A whole number in a range; text with such a number is fine, as in addresses."""
    if isinstance(value, str) and len(value) < 20:
        digits = value.removeprefix("-")
        value = int(value) if digits.isascii() and digits.isdigit() else value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise malformed(f"[{where}] has to be a whole number, not [{quote(value)}]")
    if not low <= value <= high:
        raise illegal(f"[{where}] has to be between {low} and {high}, not [{quote(str(value)[:20])}]")
    return value


def number(value: Any, where: str, low: float, high: float) -> float:
    """A number in a range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise malformed(f"[{where}] has to be a number, not [{quote(value)}]")
    if not low <= value <= high:
        raise illegal(f"[{where}] has to be between {low:g} and {high:g}")
    return float(value)


def boost(value: Mapping[str, Any], where: str) -> float:
    """The factor ``boost`` of a query, 1 if there is none."""
    return number(value.get("boost", 1.0), f"{where}.boost", 0.0, MAX_BOOST)


def flag(value: Any, where: str) -> bool:
    """True or false; the words are fine, as in addresses, where the name alone means true."""
    if value in ("true", "") or value is True:
        return True
    if value == "false" or value is False:
        return False
    what = f"Failed to parse value [{quote(value)}]"
    raise illegal(f"{what} as only [true] or [false] are allowed for [{where}]")


def text(value: Any, where: str, longest: int) -> str:
    """A string; numbers and booleans are taken as their text, as Elasticsearch does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        value = repr(value)
    if not isinstance(value, str):
        raise malformed(f"[{where}] has to be text")
    if len(value) > longest:
        raise illegal(f"[{where}] is longer than {longest} characters")
    return value
