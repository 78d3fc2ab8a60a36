"""Lists and dataclasses out of the mappings of a definition that was checked against its schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

Structure = TypeVar("Structure")  # a dataclass


def rows(data: Mapping[str, Any], key: str) -> list[tuple[int, Mapping[str, Any]]]:
    """The mappings of a list in data that :func:`schemas.usable` gave, with their positions; [] for another value."""
    value = data.get(key)
    return [(i, row) for i, row in enumerate(value if isinstance(value, list) else ()) if row is not None]


def ids(data: Mapping[str, Any], key: str) -> list[str]:
    """The names (``id``) of the mappings of such a list."""
    return [row["id"] for _, row in rows(data, key) if "id" in row]


def from_mapping(cls: type[Structure], row: Mapping[str, Any], **others: Any) -> Structure:
    """A dataclass with ``others``, and with those keys of ``row`` that are fields of it; lists become tuples.

    What neither gives has the default of the dataclass, where defaults are stated once.
    """
    given = {field.name: row[field.name] for field in fields(cls) if field.name in row} | others  # type: ignore[arg-type]
    return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in given.items()})
