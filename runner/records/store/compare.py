"""The rows of the database against those that event log and archive make: what was forged, added or taken out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.config import Config
from runner.model.errors import PlatformError, Problem, RunnerError
from runner.records.archive import RunArchive
from runner.records.events import Event, EventLog

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

    from runner.records.store.connect import Store
    from runner.records.store.sqlite import Objects

SHOWN = 3  # differing rows that are spelled out for each run and table
_FIX = "runner store rebuild makes the database again from the event log and the archive"
_SCHEMA_FIX = "runner store rebuild makes the database again; drop what PostgreSQL keeps besides by hand"
_OF_EVALUATIONS = ("evaluations", "measures", "resamples", "pending", "topic_scores", "findings")
_Key = tuple[Any, ...]
_Rows = dict[_Key, dict[str, Any]]


def compare(config: Config, folder: Path, events: Sequence[Event], archive: RunArchive) -> list[Problem]:
    """Return the differences between the database and the rows that ``events`` and ``archive`` make.

    Events that a running command has appended since ``events`` were read are read too. An event that cannot be applied (its
    files are damaged, which is reported elsewhere) is left out, and so are the rows that depend on it. The events that the
    database has not applied yet are applied too, since the next command has to.

    Args:
        folder: an empty folder for temporary files.
    """
    from runner.records.store.database import database_url, make_engine, reading, recorded
    from runner.records.store.tables import metadata

    theirs = make_engine(database_url(config))
    try:
        with reading(theirs) as there:
            before = recorded(there).position.seq
        with _fresh(config, folder, archive) as fresh:
            known = [e for e in events if e.seq <= before]
            skipped, problems = _fill(fresh, known)
            last = known[-1].seq if known else 0
            with reading(theirs) as there:
                applied = recorded(there).position.seq
                if applied > max((event.seq for event in events), default=0):
                    events = EventLog(config.events).survey()[0]
                also_skipped, more = _fill(fresh, [e for e in events if last < e.seq <= applied])
                skipped |= also_skipped
                problems += more
                with fresh.read() as wanted:
                    for table in metadata.sorted_tables:
                        if table.name != "meta":
                            problems += _differences(
                                table, _rows(wanted, table), _rows(there, table), skipped
                            )
            return problems + _fill(fresh, [e for e in events if e.seq > applied])[1]
    finally:
        theirs.dispose()


def try_events(config: Config, folder: Path, events: Iterable[Event], archive: RunArchive) -> list[Problem]:
    """Which of ``events`` cannot be applied to an empty store, where there is no database to compare with."""
    with _fresh(config, folder, archive) as fresh:
        return _fill(fresh, events)[1]


@contextmanager
def _fresh(config: Config, folder: Path, archive: RunArchive) -> Iterator[Store]:
    """An empty store in ``folder``, until it is closed."""
    from runner.records.store.connect import Store
    from runner.records.store.database import make_engine
    from runner.records.store.tables import metadata

    engine = make_engine(f"sqlite:///{folder / 'fresh.sqlite'}")
    with Store(engine, EventLog(config.events), archive) as store:
        metadata.create_all(engine)
        yield store


def names_its_files(event: Event) -> bool:
    """Whether an event that commits an attempt or an evaluation says which, so that the archive can be asked for it."""
    data = event.data
    wanted = ("attempt", "evaluation") if event.type == "evaluation-committed" else ("attempt",)
    return all(isinstance(data.get(key), str) for key in ("task", "run", "manifest")) and all(
        isinstance(data.get(key), int) for key in wanted
    )


def _fill(store: Store, events: Iterable[Event]) -> tuple[set[_Key], list[Problem]]:
    """Apply what can be applied; returns the runs, attempts and evaluations that are left out, and other contradictions."""
    from runner.records.store.apply import apply

    skipped: set[_Key] = set()
    problems = []
    with store.write() as connection:
        for event in events:
            try:
                with connection.begin_nested():
                    apply(connection, event, store.archive)
            except (RunnerError, ValueError, AttributeError) as error:
                d = event.data
                if event.type in ("attempt-committed", "evaluation-committed") and names_its_files(event):
                    skipped.add((d.get("run"), d.get("attempt"), d.get("evaluation")))
                else:
                    where = f"events.jsonl:{event.seq}"
                    why = error.why if isinstance(error, RunnerError) else str(error)
                    problems.append(Problem(where, schemas.show(why.removeprefix(where).lstrip(), 300)))
    return skipped, problems


def _rows(connection: Connection, table: Table) -> _Rows:
    from sqlalchemy import select

    keys = [column.name for column in table.primary_key.columns]
    return {
        tuple(row[key] for key in keys): dict(row) for row in connection.execute(select(table)).mappings()
    }


def _differences(table: Table, wanted: _Rows, there: _Rows, skipped: set[_Key]) -> list[Problem]:
    """One problem for each run (or other first key) whose rows of a table differ, with some of them spelled out."""
    names = [column.name for column in table.primary_key.columns]
    found: dict[str, list[str]] = defaultdict(list)
    for key in sorted({*wanted, *there}, key=repr):
        if wanted.get(key) == there.get(key) or _hangs_on(table.name, key, skipped):
            continue
        found[_place(table.name, key)].append(_difference(names, key, wanted.get(key), there.get(key)))
    return [Problem(f"database, {place}", _listed(rows), _FIX) for place, rows in found.items()]


def _hangs_on(table: str, key: _Key, skipped: set[_Key]) -> bool:
    """Whether a row is of an attempt or evaluation that could not be applied."""
    if table == "runs":
        return any(run == key[0] for run, _, _ in skipped)
    of_attempt = (*key[:2], None) in skipped
    if table == "attempts":
        return of_attempt
    return table in _OF_EVALUATIONS and (of_attempt or tuple(key[:3]) in skipped)


def _place(table: str, key: _Key) -> str:
    name = schemas.show(key[0], 200)
    if table in _OF_EVALUATIONS:
        return f"{table} of {name}#{key[1]} evaluation {key[2]}"
    return f"attempts of {name}" if table == "attempts" else f"{table} {name}"


def _difference(
    names: Sequence[str], key: _Key, wanted: Mapping[str, Any] | None, there: Mapping[str, Any] | None
) -> str:
    rest = " ".join(schemas.show(part, 60) for part in key[3:] if part != "") if len(key) > 3 else ""
    if names[:2] == ["run", "number"]:
        rest = f"attempt {key[1]}"
    label = f"{rest}: " if rest else ""
    if wanted is None:
        return f"{label}is in the database, and neither in the log nor in the archive"
    if there is None:
        return f"{label}is not in the database"
    changed = [
        f"{name} is another one"
        if name == "key"  # of a task: only the event log tells it
        else f"{name} is {schemas.show(there[name], 60)} instead of {schemas.show(wanted[name], 60)}"
        for name in wanted
        if wanted[name] != there[name]
    ]
    return label + ", ".join(changed)


def _listed(rows: list[str]) -> str:
    more = len(rows) - SHOWN
    return "; ".join(rows[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


def verify_schema(config: Config) -> list[Problem]:
    """Compare tables, columns, indexes, triggers and views of the database with those of a new store.

    A trigger, rule or view can change rows that are written or read later, so equal rows alone do not show that a database is sound.
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
    return list(_schema_differences(wanted, existing))


def _schema_differences(wanted: Objects, existing: Objects) -> Iterator[Problem]:
    for kind, name in sorted({*wanted, *existing}):
        place = f"database, {kind} {schemas.show(name, 200)}"
        expected, actual = wanted.get((kind, name)), existing.get((kind, name))
        if expected is None:
            yield Problem(place, "is not part of a store.", _SCHEMA_FIX)
        elif actual is None:
            yield Problem(place, "is missing.", _SCHEMA_FIX)
        elif expected != actual:
            yield Problem(
                place,
                f"is {schemas.show(actual, 200)} instead of {schemas.show(expected, 200)}.",
                _SCHEMA_FIX,
            )
