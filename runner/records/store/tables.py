"""The tables of the store (SQLAlchemy Core; SQLite by default, plain enough for PostgreSQL).

Times are UTC in ISO 8601 as text, sizes are bytes, durations seconds. ``seq`` is the event that wrote a row. Whoever changes
a table counts :data:`runner.records.store.database.RULES` up.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    false,
)

metadata = MetaData()


def _columns(type_: Any, *names: str, **options: Any) -> list[Column[Any]]:
    return [Column(name, type_, **options) for name in names]


_keys = partial(_columns, Text, primary_key=True)
_number_keys = partial(_columns, Integer, primary_key=True, autoincrement=False)
_texts = partial(_columns, Text, nullable=False)
_numbers = partial(_columns, Integer, nullable=False)


def _of_evaluation() -> list[Any]:
    names = ["evaluations.run", "evaluations.attempt", "evaluations.number"]
    return [
        *_keys("run"),
        *_number_keys("attempt", "evaluation"),
        ForeignKeyConstraint(["run", "attempt", "evaluation"], names),
    ]


def _of_attempt(number: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["run", number], ["attempts.run", "attempts.number"])


meta = Table("meta", metadata, *_keys("key"), *_texts("value"))

submissions = Table(
    "submissions",
    metadata,
    *_keys("id"),
    *_texts("task", "team", "software", "tag", "description", "method", "registered"),
    *_texts("scenarios"),  # JSON list
    *_texts("workflow"),  # "upload" for run files
    Column("image", Text),
    Column("cells", Text),  # JSON list of [dataset, scenario]; none: all of the task
    *_numbers("seq"),
    Column("withdrawn", Text),
    *_texts("withdrawn_reason", server_default=""),
    # Withdrawn, and its place in the quota given back.
    Column("uncharged", Boolean, nullable=False, server_default=false()),
    Index("submissions_by_team", "task", "team"),
)

runs = Table(
    "runs",
    metadata,
    *_keys("id"),
    Column("submission", Text, ForeignKey("submissions.id"), nullable=False),
    *_texts("task", "dataset", "scenario"),
    Column("cancelled_seq", Integer),
    Index("runs_by_submission", "submission"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("run", Text, ForeignKey("runs.id"), primary_key=True),
    *_number_keys("number"),
    *_texts("lock_digest", "started", "finished", "verdict", "memory_source", "manifest"),
    *_texts("detail"),  # JSON object (schemas.details), or empty
    *_texts("warnings"),  # JSON list of such objects
    *_columns(Float, "wall_seconds", "cpu_seconds"),
    Column("memory_peak", BigInteger),
    *_numbers("seq"),
    Index("attempts_by_lock", "lock_digest"),
)

evaluations = Table(
    "evaluations",
    metadata,
    *_keys("run"),
    *_number_keys("attempt", "number"),
    *_texts("status", "message", "evaluator", "image", "truths_digest", "started", "finished", "manifest"),
    Column("final", Boolean, nullable=False),  # of status error: trying again cannot help
    *_texts("fault"),  # of status error: organiser or platform
    Column("default_image", Boolean, nullable=False),
    Column("run_tag", Text),
    Column("judge", Text),  # JSON object: who judged, when somebody or something did
    *_texts("notes"),  # JSON list of details
    Column("asked", Text),  # by which definitions it was made (runner.model.pins.Pins); none: not known
    *_numbers("errors", "defects", "warnings", "seq"),
    _of_attempt("attempt"),
)

measures = Table(
    "measures",
    metadata,
    *_of_evaluation(),
    *_keys("measure"),
    *_columns(Float, "value", nullable=False),
    *_numbers("topics", "covered"),
    *_columns(Float, "low", "high"),
)

pending = Table("pending", metadata, *_of_evaluation(), *_keys("measure"), *_texts("reason"))

topic_scores = Table(
    "topic_scores",
    metadata,
    *_of_evaluation(),
    *_keys("measure", "topic", "facets"),  # facets: canonical JSON; "" for none
    *_columns(Float, "value", nullable=False),
    sqlite_with_rowid=False,
)

findings = Table(
    "findings", metadata, *_of_evaluation(), *_keys("code"), *_texts("severity", "title"), *_numbers("count")
)

publications = Table(
    "publications", metadata, *_keys("task", "dataset"), *_texts("published"), *_numbers("seq")
)

releases = Table(
    "releases", metadata, *_keys("run"), *_number_keys("attempt"), *_numbers("seq"), _of_attempt("attempt")
)

# ``until`` is as it was written, with its zone.
deadlines = Table("deadlines", metadata, *_number_keys("seq"), *_texts("task", "team", "until"))

# ``digest`` is the SHA-256 of the snapshot.
rounds = Table("rounds", metadata, *_keys("task", "round"), *_texts("digest", "frozen"), *_numbers("seq"))

extensions = Table(
    "extensions", metadata, *_number_keys("seq"), *_texts("task", "team"), *_numbers("submissions")
)
