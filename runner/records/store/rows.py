"""Rows of tables that an event tells, and the error where an event and the archive contradict each other."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table

from runner.model.errors import PlatformError
from runner.records.events import Event


def insert(connection: Connection, table: Table, event: Event, *copied: str, **values: Any) -> None:
    """Write a row: ``copied`` columns are as in the event's data, and ``seq`` is its number."""
    row = {name: event.data[name] for name in copied} | values
    connection.execute(table.insert().values(**row, seq=event.seq))


def check_manifest(event: Event, digest: str) -> None:
    """That a manifest is the one that was committed, by its SHA-256. Raises: PlatformError: E307."""
    if digest != event.data["manifest"]:
        raise contradiction(event, "the archive holds other files than those that were committed")


def contradiction(event: Event, why: str) -> PlatformError:
    """The error to raise for an event that does not fit what the archive holds."""
    return PlatformError(
        "the archive and the event log contradict each other",
        why=f"Event {event.seq} ({event.type}): {why}.",
        fix="restore the archive and events.jsonl from the same backup",
        code="E307",
    )
