"""Leaderboards, runs, scores by topic and findings as pandas DataFrames, with the columns that this module lists.

Everything comes in already decided for an audience: leaderboards as :class:`LeaderboardTable`, runs as what ``runner runs --json``
prints of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.model.comparing import by_number
from runner.views.leaderboard.rows import Combined, LeaderboardTable, Row, Unranked

if TYPE_CHECKING:
    import pandas as pd

TEXT, WHOLE, FLOAT, YES_NO, TIME = "string", "Int64", "float64", "boolean", "datetime64[us, UTC]"


class Column(NamedTuple):
    """A column of a frame: its name, its dtype, and what is in it, with the unit."""

    name: str
    dtype: str
    says: str


def _texts(**says: str) -> tuple[Column, ...]:
    """Columns of text: their names, and what is in them."""
    return tuple(Column(name, TEXT, text) for name, text in says.items())


ABOUT = ("paper", "affiliation")
RANKS = ("combined_rank", "component_ranks")
JUDGES = ("judge", "judge_model", "judge_prompts", "judge_reliability")
WHOSE = (
    Column("team", TEXT, "The team."),
    Column(
        "software", TEXT, "The software; on a leaderboard all that count in the row, with commas between."
    ),
    Column("tag", TEXT, "The run tag, escaped."),
    Column("method", TEXT, "`automatic` or `manual`; on a leaderboard also `mixed`."),
    Column("how", TEXT, "`executed` or `uploaded`; on a leaderboard also `mixed`."),
)
NAMES = _texts(
    team_display_name="What the team is called, beside its name; empty where it has no other.",
    display_name="What the software is called, beside its name; empty where it has no other.",
)
RESOURCES = (
    Column("memory_source", TEXT, "`exact` or `sampled` (the true peak may be higher); `none`: not shown."),
    Column("time_step", TEXT, "In place of seconds on hidden data: one of four steps."),
    Column("memory_step", TEXT, "In place of bytes on hidden data: one of four steps."),
)
BEFORE_MEASURES = (
    Column("rank", WHOLE, "The rank; equal scores share one. Missing: listed, but not ranked."),
    *WHOSE,
    Column("baseline", YES_NO, "Whether the row is a baseline."),
)
MEASURE = (
    Column(
        "<measure>", FLOAT, "The mean of a measure over all judged topics (and over the cells of the table)."
    ),
    Column(
        "<measure>_low", FLOAT, "Lower bound of its 95 % interval over topics; missing over several cells."
    ),
    Column("<measure>_high", FLOAT, "Upper bound of the same interval."),
)
AFTER_MEASURES = (
    Column("combined_rank", FLOAT, "The mean or median of the row's ranks, where these are combined."),
    Column(
        "component_ranks",
        TEXT,
        "These ranks, as `dataset/scenario/measure=rank`; with `(missing)` where nothing of the row counts.",
    ),
    Column(
        "difference",
        FLOAT,
        "The row's mean minus that of the baseline or of the row that was chosen, on the ranking measure.",
    ),
    Column(
        "p",
        FLOAT,
        "Two-sided p of the paired test against the baseline or the row that was chosen, uncorrected.",
    ),
    Column("p_corrected", FLOAT, "The same with Holm's correction over all rows."),
    Column(
        "covered",
        WHOLE,
        "Topics with an answer, summed over the cells; missing where only a part of the topics counts.",
    ),
    Column("topics", WHOLE, "Judged topics, summed over the cells."),
    Column("wall_seconds", FLOAT, "Run time in seconds, summed over the cells."),
    Column("memory_peak", WHOLE, "Peak memory in bytes, the maximum over the cells."),
    *RESOURCES,
    *_texts(
        outcome="`scored` for ranked rows; otherwise what became of the submission.",
        blame="Whose fault it is that a row is not ranked.",
        reason="Why a row is not ranked.",
        submission="The latest submission that counts in the row.",
    ),
    Column("registered", TIME, "When that was registered."),
    *_texts(
        table="The table.",
        round="The round, or empty.",
        frozen="When the round was frozen (ISO 8601), or `no`; empty without a round.",
        aggregate="How the means of several cells become one; empty with one cell.",
        unit="What a row is: `software` or `team`.",
        pick="What counts of it in each cell: its `latest`, its `best` (`best on DATASET`) or the `chosen` valid submission.",
        filter="What the rows were filtered by, such as `method=manual`.",
        topics_of="Of datasets whose topics are split: over which part the scores are, such as `test=public`.",
        judge="Who judged the runs of the row; several with bars between.",
        judge_model="The judge's model.",
        judge_prompts="The digest of the judge's prompts.",
        judge_reliability="How reliable the judge is known to be, as `figure=value`.",
        stale="Why the scores are old; empty: they are as the task asks now.",
        runs="The runs that count in the row, with blanks between.",
        description="How it works, as its team says.",
        paper="The address of its paper, as its team says.",
        affiliation="Where the team is from, as it says.",
    ),
    *NAMES,
)
LEADERBOARD = (*BEFORE_MEASURES, *MEASURE, *AFTER_MEASURES)
RUN = _texts(
    run="The run, unique.",
    submission="Its submission.",
    task="The task.",
    dataset="The dataset.",
    scenario="The scenario.",
)
RUNS = (
    *RUN,
    *WHOSE,
    Column("registered", TIME, "When its submission was registered."),
    Column("attempts", WHOLE, "How often it was executed."),
    Column("started", TIME, "When the deciding attempt started; midnight of that day on hidden data."),
    Column("finished", TIME, "When it ended."),
    Column("outcome", TEXT, "What became of it, such as `scored`, `failed` or `pending`."),
    Column("reason", TEXT, "Why, escaped; empty on hidden data."),
    Column("blame", TEXT, "Whose fault it was."),
    Column("verdict", TEXT, "How the deciding attempt ended."),
    Column("ranked", YES_NO, "Whether it may rank."),
    Column("stale", TEXT, "Why its scores are old; empty: they are as the task asks now."),
    Column("wall_seconds", FLOAT, "Run time in seconds."),
    Column("cpu_seconds", FLOAT, "Processor time in seconds."),
    Column("memory_peak", WHOLE, "Peak memory in bytes."),
    *RESOURCES,
    *NAMES,
)
OF_RUN = (*RUN, *_texts(team="The team.", software="The software."))
TOPIC_SCORES = (
    *OF_RUN,
    Column("measure", TEXT, "The measure, as the task calls it."),
    Column("topic", TEXT, "The topic."),
    Column("value", FLOAT, "The score of the run on this topic, in the unit of the measure."),
)
FINDINGS = (
    *OF_RUN,
    Column("code", TEXT, "The code of the finding; `finding` where another evaluator's code is not shown."),
    Column("severity", TEXT, "`error`, `defect` or `warning`."),
    Column("count", WHOLE, "How often it was found; missing on hidden data."),
    Column("amount", TEXT, "In place of the count on hidden data: `few` or `many`."),
    Column("title", TEXT, "What the code means."),
)

COMPARISON = (
    *_texts(
        measure="The measure, as the task calls it.",
        first="A run.",
        second="Another one.",
    ),
    Column(
        "first_value",
        FLOAT,
        "The first's figure: the mean over the topics that both runs have, where it is a mean.",
    ),
    Column("second_value", FLOAT, "That of the second."),
    Column("difference", FLOAT, "First minus second."),
    Column("difference_low", FLOAT, "Lower bound of its 95 % interval; missing from a server."),
    Column("difference_high", FLOAT, "Upper bound of the same interval."),
    Column("wins", WHOLE, "Topics on which the first is better."),
    Column("losses", WHOLE, "Topics on which the second is better."),
    Column("ties", WHOLE, "Topics on which they are equal."),
    Column("effect", FLOAT, "The mean difference as a multiple of the differences' standard deviation."),
    Column("p", FLOAT, "Two-sided p, uncorrected; missing without a test."),
    Column("test", TEXT, "The test: by randomisation or resamples; from a server by resamples or signs."),
)


def table_of(columns: Iterable[Column]) -> str:
    """The columns as a Markdown table."""
    lines = ["| column | dtype | what |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{c.name}` | `{c.dtype}` | {c.says} |" for c in columns)])


def frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> pd.DataFrame:
    """A frame with exactly these columns, of their dtypes; what a row does not have is missing."""
    import pandas as pd

    made = {}
    for name, dtype, _ in columns:
        values = [row.get(name) for row in rows]
        if dtype == TIME:
            times = pd.to_datetime(pd.Series(values, dtype="object"), utc=True, format="ISO8601")
            made[name] = times.astype(dtype)
        else:
            made[name] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(made, columns=[column.name for column in columns])


def measure_column(measure: str) -> str:
    """The name of a measure's column: its id, but ``measure_ID`` where a column of another meaning has that name."""
    fixed = {column.name for column in (*BEFORE_MEASURES, *AFTER_MEASURES)}
    return f"measure_{measure}" if fixed & {measure, f"{measure}_low", f"{measure}_high"} else measure


def leaderboard(table: LeaderboardTable) -> pd.DataFrame:
    """A leaderboard with the columns of :data:`LEADERBOARD`: ranked rows first, then those that do not rank."""
    names = [measure_column(column.id) for column in table.columns]
    measured = [Column(f"{name}{end}", FLOAT, "") for name in names for end in ("", "_low", "_high")]
    same = {
        "table": table.table,
        "round": table.round.id if table.round else "",
        "frozen": (table.round.frozen or "no") if table.round else "",
        "aggregate": table.aggregate if len(table.cells) > 1 else "",
        "unit": table.unit,
        "pick": f"{table.pick} on {table.best_on}" if table.best_on else table.pick,
        "topics_of": " ".join(f"{name}={part}" for name, part in table.parts.items()),
        "filter": " ".join(f"{name}={word}" for name, word in table.filters.items()),
    }
    rows = [{**_ranked(table, row), **same} for row in table.rows]
    rows += [{**_plain(row), **same} for row in table.unranked]
    for line in rows:
        line["team_display_name"] = table.names.get(line["team"], "")
        line["display_name"] = table.names.get(f"{line['team']}/{line['software']}", "")
    made = frame(rows, (*BEFORE_MEASURES, *measured, *AFTER_MEASURES))
    made.attrs = {"task": table.task, "table": table.table, "audience": table.audience}
    made.attrs |= {"rank_by": measure_column(table.rank_by.first), "notes": list(table.notes)}
    return made


def _plain(row: Row | Unranked) -> dict[str, Any]:
    """The fields of a row that are columns as they are."""
    known = {column.name for column in LEADERBOARD}
    return {**{k: v for k, v in vars(row).items() if k in known}, "runs": " ".join(row.runs)}


def _ranked(table: LeaderboardTable, row: Row) -> dict[str, Any]:
    """A ranked row by column."""
    line = {**_plain(row), "outcome": "scored", "stale": " ".join(row.stale), **_judges(table, row)}
    for measure, value in row.values.items():
        name = measure_column(measure)
        line |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
    if row.combined:
        line |= {"combined_rank": row.combined.value, "component_ranks": _components(row.combined)}
    if row.comparison:
        line |= {k: getattr(row.comparison, k) for k in ("difference", "p", "p_corrected")}
    return line


def _components(combined: Combined) -> str:
    """The ranks of a row on each measure in each cell."""
    return " ".join(
        f"{one.dataset}/{one.scenario}/{one.measure}={one.rank:g}{'(missing)' if one.missing else ''}"
        for one in combined.ranks
    )


def _judges(table: LeaderboardTable, row: Row) -> dict[str, str | None]:
    """Who judged a row, and how reliable that is; nothing (not the label) where nobody did."""
    judges = [judge for judge in table.judges if judge.label in row.judge.split(", ")]
    if not judges:
        return {"judge": None}
    columns = {
        "judge": [judge.name for judge in judges],
        "judge_model": [judge.model or "" for judge in judges],
        "judge_prompts": [judge.prompts or "" for judge in judges],
        "judge_reliability": [
            "; ".join(f"{k}={_figure(v)}" for k, v in judge.reliability.items()) for judge in judges
        ],
    }
    return {name: " | ".join(values) for name, values in columns.items()}


def _figure(value: float | tuple[float, float]) -> str:
    """A judge's figure, or its lowest and highest over the runs."""
    return f"{value[0]!r} to {value[1]!r}" if isinstance(value, tuple) else repr(value)


def runs(views: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a run, with the columns of :data:`RUNS`."""
    rows = []
    for view in views:
        steps = view["steps"] or {}
        outcome = {k: view["outcome"][k] for k in ("reason", "blame", "verdict", "ranked")}
        row = {**view, **view["resources"], **outcome, "outcome": view["outcome"]["name"]}
        row |= {f"{k}_step": steps.get(k) for k in ("time", "memory")}
        rows.append({**row, "stale": " ".join(view["stale"])})
    return frame(rows, RUNS)


def topic_scores(
    found: Iterable[tuple[Mapping[str, Any], Mapping[str, Mapping[str, float]]]],
) -> pd.DataFrame:
    """One row a run, measure and topic, by the names of these, with the columns of :data:`TOPIC_SCORES`."""
    return frame(
        [
            {**view, "measure": measure, "topic": topic, "value": value}
            for view, scores in found
            for measure, topics in sorted(scores.items())
            for topic, value in sorted(topics.items(), key=lambda one: by_number(one[0]))
        ],
        TOPIC_SCORES,
    )


def findings(
    found: Iterable[tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]]]],
) -> pd.DataFrame:
    """One row a run and code, with the columns of :data:`FINDINGS`."""
    rows = [{**view, **one, "code": code} for view, codes in found for code, one in sorted(codes.items())]
    return frame(rows, FINDINGS)


def comparison(data: Mapping[str, Any]) -> pd.DataFrame:
    """One row a measure, with the columns of :data:`COMPARISON`, of what ``comparison.schema.json`` describes; ``attrs`` has its task,
    dataset, runs and notes."""
    rows = []
    for one in data["measures"]:
        low, high = one["interval"] or (None, None)
        row = {**one, "measure": one["id"], "difference_low": low, "difference_high": high}
        for side in ("first", "second"):
            row |= {side: data[side], f"{side}_value": one[side]}
        rows.append(row)
    made = frame(rows, COMPARISON)
    made.attrs = {name: data[name] for name in ("task", "dataset")}
    made.attrs["runs"] = [data["first"], data["second"]]
    made.attrs["notes"] = list(data.get("notes", ()))
    return made
