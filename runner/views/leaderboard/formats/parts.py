"""Pieces that several formats share: heads, values, captions and legends as text."""

from __future__ import annotations

from collections.abc import Sequence

from runner.model.task import Cell
from runner.tasks.tables import AGGREGATES
from runner.views.leaderboard.choosing import cell_name
from runner.views.leaderboard.comparing import CORRECTION, TEST_NAME
from runner.views.leaderboard.rows import Column, LeaderboardTable, Row, software_of
from runner.views.leaderboard.significance import ALPHA, flips
from runner.views.text import memory, seconds

# Facts about rows that go where all rows share them: they are said once.
SHARED = ("tag", "kind", "answered", "topics answered", "judge", "time", "memory")
BELOW = ("software", "name", "tag", "outcome", "blame", "why")


def head_of(column: Column) -> str:
    """The name of a measure as a column's head, marked ↓ where lower is better."""
    return f"{column.measure} ↓" if column.direction == "lower" else column.measure


def answered_head(table: LeaderboardTable) -> str:
    """The head of the column with how many topics were answered: another one where a measure is called so, too."""
    return "topics answered" if any(one.measure == "answered" for one in table.columns) else "answered"


def figure(value: float | None, column: Column) -> str:
    """A mean with four decimals, or as many as the task says; a count with those that it needs: 78, and 77.5 as a mean over
    cells. Without a value "–"."""
    if value is None:
        return "–"
    text = f"{value:.{4 if column.precision is None else column.precision}f}"
    return text.rstrip("0").rstrip(".") if column.whole and "." in text else text


def interval_of(row: Row, column: Column) -> str:
    """The 95 % interval of a row on a measure; empty where there is none."""
    value = row.values.get(column.id)
    if value is None or value.low is None or value.high is None:
        return ""
    return f"[{figure(value.low, column)}, {figure(value.high, column)}]"


def p_value(row: Row) -> str:
    """The corrected p-value of a row, with three decimals; empty where it was not tested."""
    if row.comparison is None:
        return ""
    return "<0.001" if row.comparison.p_corrected < 0.001 else f"{row.comparison.p_corrected:.3f}"


def mark_of(row: Row) -> str:
    """† for significantly better than the baseline (or the row that was chosen), ‡ for worse; else empty."""
    return row.comparison.mark if row.comparison else ""


def name_of(row: Row) -> str:
    """As :func:`software_of`, marked where the scores are old or a run was flagged."""
    return software_of(row) + (" (stale)" if row.stale else "") + (" (flagged)" if row.flagged else "")


def kind_of(row: Row) -> str:
    """What kind of row it is: baseline; manual, uploaded or mixed where it is not automatic and executed."""
    kinds = ["baseline"] * row.baseline
    kinds += [row.method] * (row.method != "automatic")
    kinds += [row.how] * (row.how != "executed" and row.how not in kinds)
    return ", ".join(kinds)


def cells_text(cells: Sequence[Cell]) -> str:
    """The cells of a table, short: a full grid as datasets × scenarios."""
    datasets = list(dict.fromkeys(c.dataset for c in cells))
    scenarios = list(dict.fromkeys(c.scenario for c in cells))
    if len(datasets) > 1 and len(scenarios) > 1 and len(set(cells)) == len(datasets) * len(scenarios):
        return f"{', '.join(datasets)} × {', '.join(scenarios)}"
    return ", ".join(cell_name(c) for c in cells)


def caption(table: LeaderboardTable) -> str:
    """What the table shows, in one sentence."""
    name = f"table {table.table}" + (f" ({table.heading})" if table.heading else "")
    if table.round is not None:
        name += f", {table.round.title}"
    return f"{table.title}: {name} {ranking(table)}."


def ranking(table: LeaderboardTable) -> str:
    """On what a table ranks, by what, and which rows only, as the end of a sentence."""
    ranked = table.rank_by.says({c.id: c.measure for c in table.columns})
    only = "".join(f", {word} only" for word in table.filters.values())
    return f"on {cells_text(table.cells)}, ranked by {ranked}{only}"


def rules(table: LeaderboardTable) -> list[str]:
    """Round, aggregation, unit and filter of a table, each in one sentence; nothing for a plain table."""
    lines = []
    if table.round is not None:
        r = table.round
        date = f"{r.at} ({r.at_utc})" if r.at != r.at_utc else r.at
        state = f"frozen {r.frozen}" if r.frozen else "not frozen yet, provisional"
        lines.append(f"Round {r.id}: what was received by {date} counts; {state}.")
    lines += combined_rule(table)
    if len(table.cells) > 1:
        lines.append(f"Scores are the {AGGREGATES[table.aggregate]} ({len(table.cells)} cells).")
    if table.unit == "team":
        lines.append(
            f"A row is a team: in each cell its {table.pick} valid submission counts. Baselines rank apart."
        )
    elif table.pick != "latest" or table.counts.get("superseded"):
        lines.append(f"In each cell the {table.pick} valid submission of a software counts.")
    if table.pick == "chosen":
        lines.append("Chosen is the one that its team named last; where it named none, the latest.")
    if table.pick == "best":
        on = f", in every cell by its value on {table.best_on}" if table.best_on else ""
        lines.append(
            f"Which is best is decided by the first ranking measure of the task{on}; of equal ones the latest counts, and one without a "
            "value is behind all."
        )
    lines += _rounding(table)
    if table.filters:
        words = " and ".join(f"{name} {word}" for name, word in table.filters.items())
        lines.append(f"Filter: {words}; ranks are among these.")
    if table.description:
        lines.append(table.description)
    return lines


def combined_rule(table: LeaderboardTable) -> list[str]:
    """How the ranks of a table are combined, in what order the column ``ranks`` has them, and who stands where without a value;
    nothing where the value on a measure decides."""
    if table.rank_by.rule == "value":
        return []
    of, several = {column.id: column.measure for column in table.columns}, len(table.cells) > 1
    on = [
        f"{of[measure]} ({cell_name(cell)})" if several else of[measure]
        for cell in table.cells
        for measure in table.rank_by.measures
    ]
    middle = table.rank_by.figure.removesuffix(" rank")
    lines = [
        f"The {table.rank_by.figure} is the {middle} of the ranks on {', '.join(on)}; equal values share the mean of their ranks."
    ]
    if any(one.missing for row in table.rows if row.combined for one in row.combined.ranks):
        lines.append(
            "In parentheses: nothing valid there. Such a row stands behind all that have a value, and several such share the "
            "mean of the last ranks."
        )
    return lines


def place(rank: float) -> str:
    """A mean or median rank, with two decimals at most: ``2``, ``1.5``, ``2.33``."""
    return f"{rank:.2f}".rstrip("0").rstrip(".")


def _ranks_of(row: Row) -> list[str]:
    """The cells of a row that say its combined rank and what this is made of; none where ranks are not combined."""
    if row.combined is None:
        return []
    shown = [f"({place(one.rank)})" if one.missing else place(one.rank) for one in row.combined.ranks]
    return [place(row.combined.value), ", ".join(shown)]


def _rounding(table: LeaderboardTable) -> list[str]:
    """With how many decimals scores are ranked, where the task says it."""
    by: dict[int, list[str]] = {}
    for column in table.columns:
        if column.precision is not None:
            by.setdefault(column.precision, []).append(column.measure)
    after = "and so ranked: equal ones share a rank."
    if len(by) == 1 and len(next(iter(by.values()))) == len(table.columns):
        return [f"Scores are rounded to {next(iter(by))} decimals, {after}"]
    texts = [f"{', '.join(names)} to {places} decimals" for places, names in by.items()]
    return [f"Rounded: {'; '.join(texts)}, {after}"] if by else []


def legend(table: LeaderboardTable) -> list[str]:
    """What the numbers mean: topics, intervals, the test with its correction, level and n; then the notes."""
    lines = [
        f"Figures over {table.topics} judged topics; a topic without an answer counts, it is not left out."
        if table.rows
        else ("Nothing is ranked with this filter." if table.filters else "Nothing is ranked yet.")
    ]
    if same := _shared(table):
        lines.append(f"In every row: {', '.join(f'{head} {text}' for head, text in same.items())}.")
    lines += rules(table)
    if any(interval_of(row, column) for row in table.rows for column in table.columns[:1]):
        lines.append(INTERVALS)
    if table.test is not None:
        n = max((r.comparison.topics for r in table.rows if r.comparison), default=table.topics)
        than = table.against or f"the baseline {table.baseline}"
        on = f" on {table.columns[0].measure}" if table.rank_by.figure else ""
        lines.append(
            f"† better, ‡ worse than {than}{on}: {_test(table.test, n)}, "
            f"{CORRECTION}-corrected, alpha = {ALPHA:g}, n = {n} topics."
        )
    if any(r.memory_source == "sampled" and r.memory_peak is not None for r in table.rows):
        lines.append("≈ the memory peak was sampled, the true one may be higher.")
    if any(r.time_step or r.memory_step for r in table.rows):
        lines.append("Time and memory are given in four steps: the dataset is blinded.")
    if any(u.outcome == "unjudged" for u in table.unranked):
        lines.append(
            "Who has no value yet on what decides has no rank, and takes none from others: see below."
        )
    if any(c.id not in r.values for r in table.rows for c in table.columns):
        lines.append("–: no value, or none yet.")
    lines += [judge.brief() for judge in table.judges]
    lines += table.notes
    rest = [
        f"{table.counts[k]} {k}"
        for k in ("superseded", "withdrawn", "pending", "cancelled")
        if table.counts.get(k)
    ]
    if rest:
        lines.append(f"Not shown: {', '.join(rest)}.")
    return lines


def _test(name: str, topics: int) -> str:
    """What the test of a table does, in words."""
    if name != TEST_NAME:
        return f"{name} (two-sided, the same resamples for all rows)"
    draws = flips(topics)
    how = f"{draws:,} random sign patterns" if draws else "every sign pattern"
    return f"{name} on paired topics (two-sided, {how})"


def explained(table: LeaderboardTable, left_out: Sequence[str]) -> list[str]:
    """The legend of a table without the columns ``left_out``, which are named. Display names follow it, a line each."""
    lines = [line for line in legend(table) if not (line == INTERVALS and "95 %" in left_out)]
    if narrow := [head for head in left_out if head != "name"]:
        lines.insert(0, f"Too narrow for: {', '.join(narrow)}; --wide has everything.")
    if "name" in left_out:
        lines += ["", "Display names:", *(f"{name}: {text}" for name, text in table.names.items())]
    return lines


def cells_by_head(table: LeaderboardTable) -> tuple[list[str], list[list[str]]]:
    """Heads, and one list of texts a row, as people read them; last the runs, and what teams say of their software."""
    ranking, *others = table.columns
    assert ranking.id == table.rank_by.first
    combined = [table.rank_by.figure, RANKS] if table.rank_by.figure else []
    heads = ["rank", "software", "name", "tag", "kind", *combined]
    heads += [head_of(ranking), "95 %", "p", *map(head_of, others)]
    heads += [answered_head(table), "judge", "time", "memory", *WIDE]
    return heads, [_cells(table, row, ranking, others) for row in table.rows]


def _cells(table: LeaderboardTable, row: Row, ranking: Column, others: Sequence[Column]) -> list[str]:
    means = {name: value.mean for name, value in row.values.items()}
    return [
        *(str(row.rank), name_of(row), table.displayed(row), row.tag, kind_of(row)),
        *_ranks_of(row),
        figure(means.get(ranking.id), ranking) + mark_of(row),
        *(interval_of(row, ranking), p_value(row)),
        *(figure(means.get(column.id), column) for column in others),
        *("" if row.covered is None else f"{row.covered}/{row.topics}", row.judge),
        seconds(row.wall_seconds) or row.time_step,
        memory(row.memory_peak, row.memory_source) or row.memory_step,
        row.runs[0] if len(row.runs) == 1 else row.submission,
        *(row.affiliation, row.paper, row.description),
    ]


RANKS = "ranks"
WIDE = ("run", "affiliation", "paper", "description")
LEFT = {"software", "name", "tag", "kind", "judge", *WIDE}
INTERVALS = "In brackets: 95 % interval over topics."


def shown_cells(table: LeaderboardTable, *, wide: bool = False) -> tuple[list[str], list[list[str]]]:
    """Heads and rows as :func:`cells_by_head`, without columns that say nothing: empty ones, facts that all rows share, tags
    that are the softwares' names.

    Without ``wide`` runs and descriptions go, too.
    """
    heads, rows = cells_by_head(table)
    left_out = {*_shared(table), *(() if wide else WIDE)}
    if all(row.tag == row.software for row in table.rows):
        left_out.add("tag")
    used = [
        i
        for i, head in enumerate(heads)
        if head not in left_out and (not rows or any(row[i] for row in rows))
    ]
    return [heads[i] for i in used], [[row[i] for i in used] for row in rows]


def _shared(table: LeaderboardTable) -> dict[str, str]:
    """The facts that all of several rows share, by head; without those that are empty.

    Answers that are missing in every row stay beside the scores.
    """
    heads, rows = cells_by_head(table)
    if len(rows) < 2:
        return {}
    columns = {head: {row[i] for row in rows} for i, head in enumerate(heads) if head in SHARED}
    if any(row.covered is not None and row.covered < row.topics for row in table.rows):
        del columns[answered_head(table)]
    return {head: min(texts) for head, texts in columns.items() if len(texts) == 1 and "" not in texts}


def below_cells(table: LeaderboardTable) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the unranked table: :data:`BELOW`, without names that nobody has and tags that are the softwares'."""
    rows = [[software_of(u), table.displayed(u), u.tag, u.outcome, u.blame, u.reason] for u in table.unranked]
    left_out = {"tag"} if all(u.tag == u.software for u in table.unranked) else set()
    left_out |= set() if any(row[1] for row in rows) else {"name"}
    used = [n for n, head in enumerate(BELOW) if head not in left_out]
    return [BELOW[n] for n in used], [[row[n] for n in used] for row in rows]
