"""What was noted and decided beside the outcomes of runs, as the last event about it says."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import select

from runner.records.store import tables as t
from runner.records.store.connect import Store


def policies(store: Store) -> dict[str, Any]:
    """The rules of tasks as they were noted last, by task."""
    with store.read() as connection:
        return {row.task: json.loads(row.policy) for row in connection.execute(select(t.policies))}


def exported(store: Store, **what: str) -> str | None:
    """The SHA-256 of what was exported last; ``what`` has the other columns of its table. None where nothing was."""
    c = t.exports.c
    with store.read() as connection:
        return connection.execute(
            select(c.sha256).where(*(c[k] == value for k, value in what.items()))
        ).scalar()
