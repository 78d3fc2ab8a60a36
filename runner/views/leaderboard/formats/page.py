"""A leaderboard as one HTML page: nothing is loaded from elsewhere, and it is whole without its script."""

from __future__ import annotations

import re

from runner.exchange.look import BOARD
from runner.views.leaderboard.formats import ENDINGS, parts
from runner.views.leaderboard.rows import LeaderboardTable, software_of
from runner.views.pages import render

STYLE = "runner.views.leaderboard.formats/board.css"


def to_html(table: LeaderboardTable, *, piece: bool = False, task_at: str = "") -> str:
    """One self-contained page, in which one can sort and choose; readable by screen readers, in print, and without a script.

    Args:
        table: What is shown, already decided for an audience.
        piece: Only what stands in the page, for one that brings :data:`STYLE` and the script itself.
        task_at: The address of the task's page: rows lead to their softwares, and downloads are offered; empty: neither.
    """
    heads, rows = parts.shown_cells(table, wide=True)
    below_heads, below = parts.below_cells(table)
    sorts: dict[str, list[float | None] | list[int | None]] = {
        "time": [r.wall_seconds for r in table.rows],
        "memory": [r.memory_peak for r in table.rows],
    }
    brief = all(judge.brief() == judge.line() for judge in table.judges)
    return render(
        f"runner.views.leaderboard.formats/{'board_body' if piece else 'board'}.html",
        style=STYLE,
        script=BOARD,
        table=table,
        heading=_heading(table) if task_at else table.title,
        caption=f"Runs {parts.ranking(table)}." if task_at else parts.caption(table),
        heads=heads,
        measures={parts.head_of(column): column for column in table.columns},
        left=parts.LEFT,
        under=("tag", "kind"),  # stand below the software's name, so that scores are seen on a phone
        folded=parts.WIDE,  # stand there, too, and open at a click
        rows=rows,
        span=_span(table),
        sorts=sorts,
        unsorted=[head for head, values in sorts.items() if not any(v is not None for v in values)],
        citation=citation(table) if rows else "",
        task_at=task_at,
        against=_against(table, task_at),
        files=[f"{task_at}/{_within(table)}.{end}" for end in ENDINGS.values()] if task_at else [],
        legend=parts.legend(table),
        judges=[] if brief else [judge.line() for judge in table.judges],
        below_heads=below_heads,
        below=below,
    )


def _heading(table: LeaderboardTable) -> str:
    """What a leaderboard is called on a page below that of its task."""
    return (table.heading or table.table) + (f", {table.round.title}" if table.round else "")


def _against(table: LeaderboardTable, task_at: str) -> str:
    """Where the rows are tested against the first of them, and from where each leads to the same against it; empty: nowhere."""
    if not task_at or not any(one.test for one in table.each):
        return ""
    return f"{task_at}/against/{software_of(table.rows[0]).replace('/', '.')}/{_within(table)}"


def _within(table: LeaderboardTable) -> str:
    """Where a leaderboard is below its task: the table, or that of a round."""
    return table.table if table.round is None else f"rounds/{table.round.id}/{table.table}"


def _span(table: LeaderboardTable) -> tuple[float, float, float | None]:
    """The least and the largest end of an interval on the ranking measure, and the baseline's mean (None: there is none)."""
    values = [v for row in table.rows if (v := row.values.get(table.rank_by.first)) is not None]
    ends = [end for v in values for end in (v.mean, v.low, v.high) if end is not None]
    base = [r for r in table.rows if f"{r.team}/{r.software}" == table.baseline]
    against = base[0].values.get(table.rank_by.first) if base else None
    return min(ends, default=0.0), max(ends, default=1.0), None if against is None else against.mean


def citation(table: LeaderboardTable) -> str:
    """The leaderboard as an entry of BibTeX, as of the latest submission on it."""
    latest = max((row.registered for row in table.rows), default="")[:10]
    name = re.sub(r"[^A-Za-z0-9-]", "-", f"{table.task}-{table.table}")
    title = re.sub(
        r"([#$%&_{}])", r"\\\1", f"{table.title}: {table.heading or table.table}".replace("\\", "")
    )
    fields = {
        "title": f"{{{title}}}",
        "year": latest[:4],
        "howpublished": "Leaderboard of a shared task",
        "note": f"{len(table.rows)} ranked, submissions until {latest}",
    }
    lines = [f"  {field:<12} = {{{value}}}," for field, value in fields.items() if value]
    return "\n".join([f"@misc{{{name},", *lines, "}"])
