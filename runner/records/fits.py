"""A quick first look at what the archive holds, which is read again and again."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import schemas


@lru_cache(maxsize=64)
def _quick(name: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(schemas.schema(name))


def fits(data: Any, name: str) -> bool:
    """Whether plain data fit the schema called ``name``: much quicker than :func:`schemas.validate`, for what is read again and again.

    False also where only that function can tell, which says what is wrong. Not for schemas with ``\\s`` or ``\\w`` in patterns, or ``$`` but at
    their end: Rust and Python read these in other ways. Raises KeyError for an unknown schema.
    """
    quick = _quick(name)
    try:
        # 1.0 is a whole number there and none here, where 1.25 is none in both.
        return bool(quick.is_valid(data) and quick.is_valid(_broken_up(data)))
    except (ValueError, RecursionError):  # what is no JSON, or deeper than it goes
        return False


def _broken_up(value: Any) -> Any:
    """The same data with another fraction for each number that is written with a point and has none. Raises ValueError for no JSON."""
    if isinstance(value, dict):
        return {key: _broken_up(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_broken_up(one) for one in value]
    if isinstance(value, float):
        if not abs(value) < 2**50:  # beyond there are no fractions
            raise ValueError
        return value + 0.25 if value.is_integer() else value
    if not isinstance(value, str | int | None):
        raise ValueError
    return value
