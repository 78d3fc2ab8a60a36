"""Rows of tables: written as an event tells them, asked for, and the error where an event and the archive contradict each other."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, CursorResult, Select, Table, bindparam, select

from runner.model.errors import PlatformError
from runner.model.verdict import read_verdict
from runner.records.archive import RunArchive
from runner.records.events import Event
from runner.records.store import tables as t

_MAX_COUNT = 2**53

# What columns have to be: a value, or one of some; None: anything.
Scope = Mapping[str, str | Collection[str] | None]


def insert(connection: Connection, table: Table, event: Event, *copied: str, **values: Any) -> None:
    """Write a row: ``copied`` columns are as in the event's data, and ``seq`` is its number."""
    row = {name: event.data[name] for name in copied} | values
    connection.execute(table.insert(), row | {"seq": event.seq})


def remove(connection: Connection, table: Table, event: Event, *columns: str) -> bool:
    """Remove the row that has in ``columns`` what the event's data have; returns whether it was there."""
    here = (table.c[name] == event.data[name] for name in columns)
    return connection.execute(table.delete().where(*here)).rowcount == 1


def insert_many(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of a table, all with the same columns."""
    if rows:
        connection.execute(table.insert(), [*rows])


def insert_attempts(connection: Connection, events: Sequence[Event], archive: RunArchive) -> None:
    """Write the rows of the attempts that events commit, those of a table together.

    Raises E307 where the archive holds others, what :data:`runner.records.store.evaluated.WRONG` has where their records cannot be
    read, and IntegrityError; the caller rolls back then.
    """
    runs, attempts = dict[str, dict[str, Any]](), list[dict[str, Any]]()
    for event in events:
        d = event.data
        attempt = archive.attempt(d["task"], d["run"], d["attempt"])
        check_manifest(event, attempt.manifest_digest())
        run, lock = attempt.record(check=False), attempt.lock(check=False)
        place = {"task": d["task"], "dataset": lock["dataset"], "scenario": lock["scenario"]}
        runs[d["run"]] = {"submission": lock["submission_id"], **place}
        attempts.append(
            {
                **_row(run),
                "seq": event.seq,
                "run": d["run"],
                "manifest": d["manifest"],
                "number": d["attempt"],
            }
        )
    ensure_runs(connection, runs)
    insert_many(connection, t.attempts, attempts)


def _row(run: dict[str, Any]) -> dict[str, Any]:
    verdict = read_verdict(run["verdict"])
    verdict.as_dict()  # a name that is none, or details that cannot be said, would fail whoever reads them
    return {
        **_figures(run),
        "verdict": verdict.name,
        "detail": "" if verdict.detail is None else json.dumps(verdict.detail.as_dict(), sort_keys=True),
        "warnings": json.dumps([warning.as_dict() for warning in verdict.warnings], sort_keys=True),
    }


def ensure_runs(connection: Connection, rows: Mapping[str, dict[str, Any]]) -> None:
    """Write the rows of runs, by their ids, of which there are none."""
    there = {row[0] for row in connection.execute(_RUNS, {"ids": [*rows]})} if rows else set()
    insert_many(connection, t.runs, [{"id": id, **row} for id, row in rows.items() if id not in there])


_RUNS = select(t.runs.c.id).where(t.runs.c.id.in_(bindparam("ids", expanding=True)))


def clear_texts(connection: Connection, event: Event, _: RunArchive) -> None:
    """Apply a ``texts-cleared`` event: empty the fields of the submissions, and remove the display names of the team."""
    c, d = t.submissions.c, event.data
    cleared = connection.execute(
        t.submissions.update()
        .where(c.team == d["team"], c.id.in_(list(d["submissions"])))
        .values(**dict.fromkeys(_CLEARED, ""), source=None, tag=c.software, texts_cleared=True)
    )
    if cleared.rowcount != len(d["submissions"]):
        raise contradiction(event, "it clears the texts of a submission that was never registered")
    connection.execute(t.display_names.delete().where(t.display_names.c.team == d["team"]))


_CLEARED = ("description", "paper", "affiliation", "withdrawn_reason")


def as_number(value: Any) -> float:
    """A finite number as it was given. Raises ValueError for anything else, OverflowError for what is too large."""
    if type(value) is float and value - value == 0.0:  # as nearly all are
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("not a finite number")
    return float(value)


def as_count(value: Any) -> int:
    """A whole number from 0 on as it was given. Raises ValueError for anything else, and what not every reader can hold."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MAX_COUNT:
        raise ValueError("not a count")
    return value


def as_text(value: Any) -> str:
    """A text as it was given. Raises ValueError for anything else: SQLite would take it, or say that it cannot be used."""
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _figures(run: dict[str, Any]) -> dict[str, Any]:
    """What a ``run.json`` says of an attempt's times and of what it used, by column. Raises ValueError, KeyError, OverflowError."""
    used = run.get("resources") or {}
    seconds = {name: used.get(name) for name in ("wall_seconds", "cpu_seconds")}
    seconds["first_seconds"] = _on_first_cases(run)
    peak = used.get("memory_peak")
    return {
        **{name: as_text(run[name]) for name in ("lock_digest", "started", "finished")},
        **{name: None if value is None else as_number(value) for name, value in seconds.items()},
        "memory_peak": None if peak is None else as_count(peak),
        "memory_source": as_text(used.get("memory_source") or "none"),
    }


def _on_first_cases(run: dict[str, Any]) -> Any:
    """Seconds that an attempt used on its first cases before it was executed on all topics; of the clock where processor time
    could not be measured."""
    first = run.get("first_cases")
    if first is None or first["verdict"] != "ok":  # it ended there: what it used stands under its resources
        return None
    return first["wall_seconds"] if first["cpu_seconds"] is None else first["cpu_seconds"]


def check_manifest(event: Event, digest: str) -> None:
    """That a manifest is the one that was committed, by its SHA-256. Raises: PlatformError: E307."""
    if digest != event.data["manifest"]:
        raise contradiction(event, "the archive holds other files than those that were committed")


def contradiction(event: Event, why: str) -> PlatformError:
    """The error to raise for an event that does not fit what the archive holds."""
    return PlatformError(
        "the archive and the event log contradict each other",
        why=f"events.jsonl:{event.seq} ({event.type}): {why}.",
        fix="runner store verify lists everything that is wrong; restore the archive and events.jsonl from the same backup",
        code="E307",
    )


def ask(connection: Connection, query: Select[Any], table: Any, scope: Scope) -> CursorResult[Any]:
    """Return the rows of a query in a scope of a table's columns."""
    for name, value in scope.items():
        if value is not None:
            column = table.c[name]
            query = query.where(column == value if isinstance(value, str) else column.in_([*value]))
    return connection.execute(query)
