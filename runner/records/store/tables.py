"""The tables of the store (SQLAlchemy Core), the same in SQLite and PostgreSQL.

Times are UTC in ISO 8601 as text, sizes are bytes, durations seconds. ``seq`` is the event that wrote a row. Whoever changes
a table counts :data:`runner.records.store.database.RULES` up.
"""

from __future__ import annotations

import re
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


# What a column holds, by the first word of a row of :func:`_table`; ``?``: it may be NULL.
_SORTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "key": (TEXT, {"primary_key": True}),
    "number-key": (WHOLE, {"primary_key": True, "autoincrement": False}),
    "text": (TEXT, {"nullable": False}),
    "text?": (TEXT, {}),
    "number": (WHOLE, {"nullable": False}),
    "number?": (WHOLE, {}),
    "float": (sa.Float, {"nullable": False}),
    "float?": (sa.Float, {}),
    "flag": (sa.Boolean, {"nullable": False}),
    "flag?": (sa.Boolean, {}),
    "size?": (sa.BigInteger, {}),
}


def _table(name: str, *columns: str | sa.schema.SchemaItem, **options: Any) -> sa.Table:
    """Define a table. A column is an object of SQLAlchemy, or one of several in a text: the sort (:data:`_SORTS`), then their names."""
    items: list[Any] = []
    for column in columns:
        if isinstance(column, str):
            sort, *names = column.split()
            type_, settings = _SORTS[sort]
            items += [sa.Column(one, type_, **settings) for one in names]
        else:
            items.append(column)
    return sa.Table(name, metadata, *items, **options)


def _of_attempt(number: str = "attempt") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["run", number], ["attempts.run", "attempts.number"])


def _of_evaluation(name: str, *columns: str | sa.schema.SchemaItem, **options: Any) -> sa.Table:
    """Define a table with rows of evaluations."""
    names = ["evaluations.run", "evaluations.attempt", "evaluations.number"]
    owner = sa.ForeignKeyConstraint(["run", "attempt", "evaluation"], names)
    return _table(name, "key run", "number-key attempt evaluation", owner, *columns, **options)


_FALSE: dict[str, Any] = {"nullable": False, "server_default": sa.false()}

meta = _table("meta", "key key", "text value")

submissions = _table(
    "submissions",
    "key id",
    "text task team software tag description method registered",
    "text scenarios",  # JSON list
    "text workflow",  # "upload" for run files
    "text paper affiliation",  # empty: not said
    "text? image",
    "text? limits",  # JSON object of what it asks for in the task's frame
    "text? source",  # JSON object: remote, commit and dirty; none: git did not know its folder
    "text? cells",  # JSON list of [dataset, scenario]; none: all of the task
    "number seq",
    sa.Column("texts_cleared", sa.Boolean, **_FALSE),
    "text? withdrawn",
    sa.Column("withdrawn_reason", TEXT, nullable=False, server_default=""),
    sa.Column("uncharged", sa.Boolean, **_FALSE),  # withdrawn, and its place in the quota given back
    sa.Index("submissions_by_team", "task", "team"),
)

runs = _table(
    "runs",
    "key id",
    sa.Column("submission", TEXT, sa.ForeignKey("submissions.id"), nullable=False),
    "text task dataset scenario",
    "number? cancelled_seq restarted_seq",
    sa.Index("runs_by_submission", "submission"),
)

attempts = _table(
    "attempts",
    sa.Column("run", TEXT, sa.ForeignKey("runs.id"), primary_key=True),
    "number-key number",
    "text lock_digest started finished verdict memory_source manifest",
    "text detail",  # JSON object (schemas.details), or empty
    "text warnings",  # JSON list of such objects
    "float? wall_seconds cpu_seconds",
    "float? first_seconds",  # of processor time on the first cases, which are beside these; none: without such
    "size? memory_peak",
    "number seq",
    sa.Index("attempts_by_lock", "lock_digest"),
)

evaluations = _table(
    "evaluations",
    "key run",
    "number-key attempt number",
    "text status message evaluator image truths_digest started finished manifest",
    "flag final",  # of status error: trying again cannot help
    "text fault",  # of status error: organiser or platform
    "flag default_image",
    "flag? counts",  # false: it waits for the organiser to accept it; none: it was discarded
    "text? run_tag",
    "text? judge",  # JSON object: who judged, when somebody or something did
    "text notes",  # JSON list of details
    "text? asked",  # by which definitions it was made (runner.model.pins.Pins); none: not known
    "number errors defects warnings seq",
    _of_attempt(),
)

measures = _of_evaluation(
    "measures", "key measure", "float value", "number topics covered", "float? low high"
)

# Values of a measure in bootstrap resamples of the topics, where single topics have none.
resamples = _of_evaluation(
    "resamples",
    "key measure",
    "text drawn",  # SHA-256 of what was drawn: what shares it can be paired
    sa.Column("values", sa.LargeBinary, nullable=False),  # IEEE doubles, low byte first; NaN: none
)

pending = _of_evaluation("pending", "key measure", "text reason")

# Values that have facets are in the archive alone.
topic_scores = _of_evaluation(
    "topic_scores", "key measure topic", "float value", "flag answered", sqlite_with_rowid=False
)

findings = _of_evaluation("findings", "key code", "text severity title", "number count")

# Whether the scores of a dataset are ``open`` to everybody, and the time of the event that decided it last.
publications = _table("publications", "key task dataset", "text since", "flag open", "number seq")

# The random key of a task, in hexadecimal digits: it says which topics are public.
keys = _table("keys", "key task", "text key", "number seq")

# Tasks whose names are shown to everybody, which were made up before.
opened_names = _table("opened_names", "key task", "number seq")

releases = _table("releases", "key run", "number-key attempt", "number seq", _of_attempt())

# What executing an attempt again gave the last time.
verifications = _table(
    "verifications", "key run", "number-key attempt", "flag same", "number seq", _of_attempt()
)

# ``until`` is as it was written, with its zone; of the whole task: its dataset is empty.
deadlines = _table("deadlines", "number-key seq", "text task dataset team until")

# What a single team's softwares may use instead of the task's limits; none: as the task. Seconds and bytes.
team_limits = _table("team_limits", "number-key seq", "text task team", "float? wall_clock", "size? memory")

# Of the whole task: its dataset is empty.
pauses = _table("pauses", "key task dataset", "text reason", "number seq")

# ``digest`` is the SHA-256 of the snapshot.
rounds = _table("rounds", "key task round", "text digest frozen", "number seq")

# A submission was named by its team as the one that counts.
choices = _table("choices", "number-key seq", "text submission at")

# Of a team: its software is empty.
display_names = _table("display_names", "key team software", "text display_name", "number seq")

# What the organiser decided about an attempt; a flag has a ``reason``, which is open ``to`` the organiser or the team.
reviews = _table(
    "reviews", "key run", "number-key attempt", "text state reason to", "number seq", _of_attempt()
)

# Lines of the log of a blinded run that its team was given.
excerpts = _table(
    "excerpts",
    "number-key seq",
    "text task dataset team run stream text",
    "number attempt first last bytes",
    _of_attempt(),
)

# What organisers wrote about a run, for themselves or ``to`` its team, too.
comments = _table(
    "comments",
    "number-key seq",
    sa.Column("run", TEXT, sa.ForeignKey("runs.id"), nullable=False),
    "text text to at who",
)

# The rules of a task (JSON object) as they were noted last.
policies = _table("policies", "key task", "text policy", "number seq")

# What was written out last, and the SHA-256 of it: the same again is no event. ``name`` is of a table, run or dataset.
exports = _table("exports", "key task what name format audience person", "text sha256", "number seq")

extensions = _table("extensions", "number-key seq", "text task team", "number submissions")

OURS = frozenset(metadata.tables)
