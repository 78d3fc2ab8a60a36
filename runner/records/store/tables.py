"""The tables of the store (SQLAlchemy Core), the same in SQLite and PostgreSQL.

Times are UTC in ISO 8601 as text, sizes are bytes, durations seconds. ``seq`` is the event that wrote a row. Whoever changes
a table counts :data:`runner.records.store.database.RULES` up.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()


class _Text(sa.TypeDecorator[str]):
    """Text in PostgreSQL: ordered by its bytes, as SQLite does, and with NUL, which PostgreSQL takes in no text.

    U+0000 is kept as U+0001 U+0001, and U+0001 as U+0001 U+0002, so that the order stays.
    """

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, _: object) -> Any:
        return (
            re.sub("[\0\x01]", lambda m: f"\x01{chr(ord(m[0]) + 1)}", value)
            if isinstance(value, str)
            else value
        )

    def process_result_value(self, value: Any, _: object) -> Any:
        return value if value is None else re.sub("\x01(.)", lambda m: chr(ord(m[1]) - 1), value)


TEXT = sa.Text().with_variant(_Text(collation="C"), "postgresql")
WHOLE = sa.Integer().with_variant(sa.BigInteger(), "postgresql")  # SQLite's have 64 bits by themselves


def _columns(type_: Any, *names: str, **options: Any) -> list[sa.Column[Any]]:
    return [sa.Column(name, type_, **options) for name in names]


_keys = partial(_columns, TEXT, primary_key=True)
_number_keys = partial(_columns, WHOLE, primary_key=True, autoincrement=False)
_texts = partial(_columns, TEXT, nullable=False)
_numbers = partial(_columns, WHOLE, nullable=False)


def _of_evaluation() -> list[Any]:
    names = ["evaluations.run", "evaluations.attempt", "evaluations.number"]
    return [
        *_keys("run"),
        *_number_keys("attempt", "evaluation"),
        sa.ForeignKeyConstraint(["run", "attempt", "evaluation"], names),
    ]


def _of_attempt(number: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["run", number], ["attempts.run", "attempts.number"])


meta = sa.Table("meta", metadata, *_keys("key"), *_texts("value"))

submissions = sa.Table(
    "submissions",
    metadata,
    *_keys("id"),
    *_texts("task", "team", "software", "tag", "description", "method", "registered"),
    *_texts("scenarios"),  # JSON list
    *_texts("workflow"),  # "upload" for run files
    *_texts("paper", "affiliation"),  # empty: not said
    sa.Column("image", TEXT),
    sa.Column("limits", TEXT),  # JSON object of what it asks for in the task's frame
    sa.Column("source", TEXT),  # JSON object: remote, commit and dirty; none: git did not know its folder
    sa.Column("cells", TEXT),  # JSON list of [dataset, scenario]; none: all of the task
    *_numbers("seq"),
    sa.Column("texts_cleared", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("withdrawn", TEXT),
    *_texts("withdrawn_reason", server_default=""),
    # Withdrawn, and its place in the quota given back.
    sa.Column("uncharged", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("submissions_by_team", "task", "team"),
)

runs = sa.Table(
    "runs",
    metadata,
    *_keys("id"),
    sa.Column("submission", TEXT, sa.ForeignKey("submissions.id"), nullable=False),
    *_texts("task", "dataset", "scenario"),
    sa.Column("cancelled_seq", WHOLE),
    sa.Column("restarted_seq", WHOLE),
    sa.Index("runs_by_submission", "submission"),
)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("run", TEXT, sa.ForeignKey("runs.id"), primary_key=True),
    *_number_keys("number"),
    *_texts("lock_digest", "started", "finished", "verdict", "memory_source", "manifest"),
    *_texts("detail"),  # JSON object (schemas.details), or empty
    *_texts("warnings"),  # JSON list of such objects
    *_columns(sa.Float, "wall_seconds", "cpu_seconds"),
    *_columns(
        sa.Float, "first_seconds"
    ),  # of processor time on the first cases, which are beside these; none: without such
    sa.Column("memory_peak", sa.BigInteger),
    *_numbers("seq"),
    sa.Index("attempts_by_lock", "lock_digest"),
)

evaluations = sa.Table(
    "evaluations",
    metadata,
    *_keys("run"),
    *_number_keys("attempt", "number"),
    *_texts("status", "message", "evaluator", "image", "truths_digest", "started", "finished", "manifest"),
    sa.Column("final", sa.Boolean, nullable=False),  # of status error: trying again cannot help
    *_texts("fault"),  # of status error: organiser or platform
    sa.Column("default_image", sa.Boolean, nullable=False),
    sa.Column("counts", sa.Boolean),  # false: it waits for the organiser to accept it; none: it was discarded
    sa.Column("run_tag", TEXT),
    sa.Column("judge", TEXT),  # JSON object: who judged, when somebody or something did
    *_texts("notes"),  # JSON list of details
    sa.Column("asked", TEXT),  # by which definitions it was made (runner.model.pins.Pins); none: not known
    *_numbers("errors", "defects", "warnings", "seq"),
    _of_attempt("attempt"),
)

measures = sa.Table(
    "measures",
    metadata,
    *_of_evaluation(),
    *_keys("measure"),
    *_columns(sa.Float, "value", nullable=False),
    *_numbers("topics", "covered"),
    *_columns(sa.Float, "low", "high"),
)

# Values of a measure in bootstrap resamples of the topics, where single topics have none.
resamples = sa.Table(
    "resamples",
    metadata,
    *_of_evaluation(),
    *_keys("measure"),
    *_texts("drawn"),  # SHA-256 of what was drawn: what shares it can be paired
    sa.Column("values", sa.LargeBinary, nullable=False),  # IEEE doubles, low byte first; NaN: none
)

pending = sa.Table("pending", metadata, *_of_evaluation(), *_keys("measure"), *_texts("reason"))

topic_scores = sa.Table(
    "topic_scores",
    metadata,
    *_of_evaluation(),
    *_keys("measure", "topic"),  # values that have facets are in the archive alone
    *_columns(sa.Float, "value", nullable=False),
    sa.Column("answered", sa.Boolean, nullable=False),
    sqlite_with_rowid=False,
)

findings = sa.Table(
    "findings", metadata, *_of_evaluation(), *_keys("code"), *_texts("severity", "title"), *_numbers("count")
)

# Whether the scores of a dataset are ``open`` to everybody, and the time of the event that decided it last.
publications = sa.Table(
    "publications",
    metadata,
    *_keys("task", "dataset"),
    *_texts("since"),
    *_columns(sa.Boolean, "open", nullable=False),
    *_numbers("seq"),
)

# The random key of a task, in hexadecimal digits: it says which topics are public.
keys = sa.Table("keys", metadata, *_keys("task"), *_texts("key"), *_numbers("seq"))

# Tasks whose names are shown to everybody, which were made up before.
opened_names = sa.Table("opened_names", metadata, *_keys("task"), *_numbers("seq"))

releases = sa.Table(
    "releases", metadata, *_keys("run"), *_number_keys("attempt"), *_numbers("seq"), _of_attempt("attempt")
)

# What executing an attempt again gave the last time.
verifications = sa.Table(
    "verifications",
    metadata,
    *_keys("run"),
    *_number_keys("attempt"),
    sa.Column("same", sa.Boolean, nullable=False),
    *_numbers("seq"),
    _of_attempt("attempt"),
)

# ``until`` is as it was written, with its zone; of the whole task: its dataset is empty.
deadlines = sa.Table("deadlines", metadata, *_number_keys("seq"), *_texts("task", "dataset", "team", "until"))

# What a single team's softwares may use instead of the task's limits; none: as the task. Seconds and bytes.
team_limits = sa.Table(
    "team_limits",
    metadata,
    *_number_keys("seq"),
    *_texts("task", "team"),
    sa.Column("wall_clock", sa.Float),
    sa.Column("memory", sa.BigInteger),
)

# Of the whole task: its dataset is empty.
pauses = sa.Table("pauses", metadata, *_keys("task", "dataset"), *_texts("reason"), *_numbers("seq"))

# ``digest`` is the SHA-256 of the snapshot.
rounds = sa.Table("rounds", metadata, *_keys("task", "round"), *_texts("digest", "frozen"), *_numbers("seq"))

# A submission was named by its team as the one that counts.
choices = sa.Table("choices", metadata, *_number_keys("seq"), *_texts("submission", "at"))

# Of a team: its software is empty.
display_names = sa.Table(
    "display_names", metadata, *_keys("team", "software"), *_texts("display_name"), *_numbers("seq")
)

# What the organiser decided about an attempt; a flag has a ``reason``, which is open ``to`` the organiser or the team.
reviews = sa.Table(
    "reviews",
    metadata,
    *_keys("run"),
    *_number_keys("attempt"),
    *_texts("state", "reason", "to"),
    *_numbers("seq"),
    _of_attempt("attempt"),
)

# Lines of the log of a blinded run that its team was given.
excerpts = sa.Table(
    "excerpts",
    metadata,
    *_number_keys("seq"),
    *_texts("task", "dataset", "team", "run", "stream", "text"),
    *_numbers("attempt", "first", "last", "bytes"),
    _of_attempt("attempt"),
)

# What organisers wrote about a run, for themselves or ``to`` its team, too.
comments = sa.Table(
    "comments",
    metadata,
    *_number_keys("seq"),
    sa.Column("run", TEXT, sa.ForeignKey("runs.id"), nullable=False),
    *_texts("text", "to", "at", "who"),
)

# The rules of a task (JSON object) as they were noted last.
policies = sa.Table("policies", metadata, *_keys("task"), *_texts("policy"), *_numbers("seq"))

# What was written out last, and the SHA-256 of it: the same again is no event. ``name`` is of a table, run or dataset.
exports = sa.Table(
    "exports",
    metadata,
    *_keys("task", "what", "name", "format", "audience", "person"),
    *_texts("sha256"),
    *_numbers("seq"),
)

extensions = sa.Table(
    "extensions", metadata, *_number_keys("seq"), *_texts("task", "team"), *_numbers("submissions")
)

OURS = frozenset({*metadata.tables, "alembic_version"})  # the last one is of earlier versions
