"""A leaderboard as one HTML page: no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from runner.views.leaderboard.formats import parts
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.pages import render

STYLE = "runner.views.leaderboard.formats/board.css"


def to_html(table: LeaderboardTable, *, piece: bool = False) -> str:
    """One self-contained page: no script, nothing fetched from anywhere; readable by screen readers and in print.

    With ``piece`` only what stands in it, for a page that brings :data:`STYLE` itself.
    """
    heads, rows = parts.shown_cells(table, wide=True)
    below_heads, below = parts.below_cells(table)
    brief = all(judge.brief() == judge.line() for judge in table.judges)
    return render(
        f"runner.views.leaderboard.formats/{'board_body' if piece else 'board'}.html",
        style=STYLE,
        table=table,
        caption=parts.caption(table),
        heads=heads,
        measures={parts.head_of(column): column for column in table.columns},
        left=parts.LEFT,
        under=("tag", "kind"),  # stand below the software's name, so that scores are seen on a phone
        folded=parts.WIDE,  # stand there, too, and open at a click
        rows=rows,
        legend=parts.legend(table),
        judges=[] if brief else [judge.line() for judge in table.judges],
        below_heads=below_heads,
        below=below,
    )
