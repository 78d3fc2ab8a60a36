"""What was noted and decided beside the outcomes of runs, as the last event about it says."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from runner.model.run import Review
from runner.records.store import tables as t
from runner.records.store.connect import Store
from runner.records.store.rows import ask


def policies(store: Store) -> dict[str, Any]:
    """The rules of tasks as they were noted last, by task."""
    query = select(t.policies).order_by(t.policies.c.task)
    with store.read() as connection:
        return {row.task: json.loads(row.policy) for row in connection.execute(query)}


def exported(store: Store, **what: str) -> str | None:
    """The SHA-256 of what was exported last; ``what`` has the other columns of its table. None where nothing was."""
    c = t.exports.c
    with store.read() as connection:
        return connection.execute(
            select(c.sha256).where(*(c[k] == value for k, value in what.items()))
        ).scalar()


def reviews_in(connection: Connection, runs: Collection[str] | None = None) -> dict[tuple[str, int], Review]:
    """What the organiser decided about attempts (run, number), where anything was; of all runs, or of some."""
    rows = ask(connection, _REVIEWS, t.reviews, {"run": runs})
    return {(row.run, row.attempt): Review(row.state, row.reason, row.to) for row in rows}


_REVIEWS = select(t.reviews).order_by(*t.reviews.primary_key)


@dataclass(frozen=True)
class Comment:
    """What an organiser (``who``) wrote about a run, ``to`` whom it is open, and when."""

    text: str
    to: str
    at: str
    who: str


def comments_in(connection: Connection, run: str) -> tuple[Comment, ...]:
    """The comments on a run, oldest first."""
    c = t.comments.c
    rows = connection.execute(select(c.text, c.to, c.at, c.who).where(c.run == run).order_by(c.seq))
    return tuple(Comment(*row) for row in rows)


def names_opened(store: Store, task: str) -> bool:
    """Whether the names of a task's teams are shown to everybody, by an event."""
    c = t.opened_names.c
    with store.read() as connection:
        return connection.execute(select(c.task).where(c.task == task)).first() is not None


@dataclass(frozen=True)
class Given:
    """Lines ``first`` to ``last`` of a log of an attempt that its team was given."""

    attempt: int
    stream: str
    first: int
    last: int
    text: str


def excerpts_in(connection: Connection, run: str) -> tuple[Given, ...]:
    """What a team was given of the logs of a run, oldest first."""
    c = t.excerpts.c
    columns = (c.attempt, c.stream, c.first, c.last, c.text)
    return tuple(
        Given(*row) for row in connection.execute(select(*columns).where(c.run == run).order_by(c.seq))
    )


def excerpt_bytes(store: Store, task: str, dataset: str, team: str) -> int:
    """How many bytes of logs a team was given of its runs on a dataset."""
    c = t.excerpts.c
    query = select(func.coalesce(func.sum(c.bytes), 0))
    with store.read() as connection:
        found = connection.execute(query.where(c.task == task, c.dataset == dataset, c.team == team))
        return int(found.scalar_one())
