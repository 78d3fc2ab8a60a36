"""The schema of the database: what is in it besides, or instead of, the tables that a new store has.

A trigger, rule or view can change rows that are written or read later, so equal rows alone do not show that a database is sound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import schemas
from runner.model.errors import PlatformError, Problem

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.records.store.backend import Objects

_FIX = "runner store rebuild makes the database again; drop what PostgreSQL keeps besides by hand"


def verify_schema(config: Config) -> list[Problem]:
    """Compare tables, columns, indexes, triggers and views of the database with those of a new store.

    In PostgreSQL only the schema of the store is read. Objects of extensions are left out. A database that cannot be read is one problem.
    """
    from runner.records.store.database import database_url, errors, make_engine, of

    try:
        engine = make_engine(database_url(config))
        try:
            with errors(engine):
                wanted, existing = of(engine).objects(engine)
        finally:
            engine.dispose()
    except PlatformError as error:
        return [Problem("the database", error.why or error.what, error.fix)]
    return list(_differences(wanted, existing))


def _differences(wanted: Objects, existing: Objects) -> Iterator[Problem]:
    for kind, name in sorted({*wanted, *existing}):
        place = f"database, {kind} {schemas.show(name, 200)}"
        expected, actual = wanted.get((kind, name)), existing.get((kind, name))
        if expected is None:
            yield Problem(place, "is not part of a store.", _FIX)
        elif actual is None:
            yield Problem(place, "is missing.", _FIX)
        elif expected != actual:
            yield Problem(
                place, f"is {schemas.show(actual, 200)} instead of {schemas.show(expected, 200)}.", _FIX
            )
