"""The tables of the store (SQLAlchemy Core; SQLite by default, plain enough for PostgreSQL).

Times are UTC in ISO 8601 as text, sizes are bytes, durations seconds. ``seq`` is the event that wrote a row.
"""

from __future__ import annotations

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

meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

submissions = Table(
    "submissions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("task", Text, nullable=False),
    Column("team", Text, nullable=False),
    Column("software", Text, nullable=False),
    Column("scenarios", Text, nullable=False),  # JSON list
    Column("tag", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("image", Text),
    Column("workflow", Text, nullable=False, server_default="batch"),  # "upload" for run files
    Column("cells", Text),  # JSON list of [dataset, scenario]; none: all of the task
    Column("registered", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("withdrawn", Text),
    Column("withdrawn_reason", Text, nullable=False, server_default=""),
    Column(
        "uncharged", Boolean, nullable=False, server_default=false()
    ),  # withdrawn, its place in the quota given back
    Index("submissions_by_team", "task", "team"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("submission", Text, ForeignKey("submissions.id"), nullable=False),
    Column("task", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("scenario", Text, nullable=False),
    Column("cancelled_seq", Integer),
    Index("runs_by_submission", "submission"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("run", Text, ForeignKey("runs.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("lock_digest", Text, nullable=False),
    Column("started", Text, nullable=False),
    Column("finished", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("detail", Text, nullable=False),  # JSON object (schemas.details), or empty
    Column("warnings", Text, nullable=False),  # JSON list of such objects
    Column("wall_seconds", Float),
    Column("cpu_seconds", Float),
    Column("memory_peak", BigInteger),
    Column("memory_source", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Index("attempts_by_lock", "lock_digest"),
)

evaluations = Table(
    "evaluations",
    metadata,
    Column("run", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("status", Text, nullable=False),
    Column("final", Boolean, nullable=False),  # of status error: trying again cannot help
    Column("message", Text, nullable=False),
    Column("evaluator", Text, nullable=False),
    Column("image", Text, nullable=False),
    Column("default_image", Boolean, nullable=False),
    Column("truths_digest", Text, nullable=False),
    Column("run_tag", Text),
    Column("judge", Text),  # JSON object: who judged, when somebody or something did
    Column("notes", Text, nullable=False, server_default="[]"),  # JSON list of details
    Column("asked", Text),  # by which definitions it was made (runner.model.pins.Pins); none: not known
    Column("fault", Text, nullable=False, server_default=""),  # of status error: organiser or platform
    Column("errors", Integer, nullable=False),
    Column("defects", Integer, nullable=False),
    Column("warnings", Integer, nullable=False),
    Column("started", Text, nullable=False),
    Column("finished", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    ForeignKeyConstraint(["run", "attempt"], ["attempts.run", "attempts.number"]),
)


def _of_evaluation() -> tuple[Column[str], Column[int], Column[int], ForeignKeyConstraint]:
    return (
        Column("run", Text, primary_key=True),
        Column("attempt", Integer, primary_key=True, autoincrement=False),
        Column("evaluation", Integer, primary_key=True, autoincrement=False),
        ForeignKeyConstraint(
            ["run", "attempt", "evaluation"], ["evaluations.run", "evaluations.attempt", "evaluations.number"]
        ),
    )


measures = Table(
    "measures",
    metadata,
    *_of_evaluation(),
    Column("measure", Text, primary_key=True),
    Column("value", Float, nullable=False),
    Column("topics", Integer, nullable=False),
    Column("covered", Integer, nullable=False),
    Column("low", Float),
    Column("high", Float),
)

pending = Table(
    "pending",
    metadata,
    *_of_evaluation(),
    Column("measure", Text, primary_key=True),
    Column("reason", Text, nullable=False),
)

topic_scores = Table(
    "topic_scores",
    metadata,
    *_of_evaluation(),
    Column("measure", Text, primary_key=True),
    Column("topic", Text, primary_key=True),
    Column("facets", Text, primary_key=True),  # canonical JSON; "" for none
    Column("value", Float, nullable=False),
    sqlite_with_rowid=False,
)

findings = Table(
    "findings",
    metadata,
    *_of_evaluation(),
    Column("code", Text, primary_key=True),
    Column("severity", Text, nullable=False),
    Column("count", Integer, nullable=False),
    Column("title", Text, nullable=False),
)

publications = Table(
    "publications",
    metadata,
    Column("task", Text, primary_key=True),
    Column("dataset", Text, primary_key=True),
    Column("published", Text, nullable=False),
    Column("seq", Integer, nullable=False),
)

releases = Table(
    "releases",
    metadata,
    Column("run", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("seq", Integer, nullable=False),
    ForeignKeyConstraint(["run", "attempt"], ["attempts.run", "attempts.number"]),
)

deadlines = Table(
    "deadlines",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("task", Text, nullable=False),
    Column("team", Text, nullable=False),
    Column("until", Text, nullable=False),  # as it was written, with its zone
)

rounds = Table(
    "rounds",
    metadata,
    Column("task", Text, primary_key=True),
    Column("round", Text, primary_key=True),
    Column("digest", Text, nullable=False),  # SHA-256 of the snapshot
    Column("frozen", Text, nullable=False),
    Column("seq", Integer, nullable=False),
)

extensions = Table(
    "extensions",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("task", Text, nullable=False),
    Column("team", Text, nullable=False),
    Column("submissions", Integer, nullable=False),
)
