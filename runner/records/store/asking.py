"""Questions to the store whose statement is made once for each set of columns that are asked for, as they are asked again and again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import BindParameter, Connection, CursorResult, Select, bindparam

# What columns have to be: a value, or one of some; None: anything.
Scope = Mapping[str, str | Collection[str] | None]


def ask(connection: Connection, query: Select[Any], table: Any, scope: Scope) -> CursorResult[Any]:
    """The rows of a query in a scope of a table's columns. The query is one that lasts, such as a constant: what is made of it is kept."""
    given = {name: value for name, value in scope.items() if value is not None}
    statement = _scoped(query, table, tuple((name, isinstance(value, str)) for name, value in given.items()))
    values = {f"scope_{name}": value if isinstance(value, str) else [*value] for name, value in given.items()}
    return connection.execute(statement, values)


@lru_cache(maxsize=256)
def _scoped(query: Select[Any], table: Any, names: tuple[tuple[str, bool], ...]) -> Select[Any]:
    for name, one in names:
        value: BindParameter[Any] = bindparam(f"scope_{name}", expanding=not one)
        query = query.where(table.c[name] == value if one else table.c[name].in_(value))
    return query
