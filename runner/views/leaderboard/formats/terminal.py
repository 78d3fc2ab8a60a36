"""A leaderboard for people at a terminal: plain lines that fit, or colours and rules."""

from __future__ import annotations

from typing import IO

from runner.views.leaderboard.formats import parts
from runner.views.leaderboard.rows import LeaderboardTable

_GAP = 2  # spaces between the columns of a table on a terminal


def _fitting(heads: list[str], rows: list[list[str]], width: int) -> list[int]:
    """The columns to show on a terminal: what tells least goes first until the rest fits.

    How many topics were answered stays beside the score whatever else goes.
    """
    used = parts.used_columns(heads, rows)
    others = heads[7:-4]  # the measures that do not rank
    for head in ["memory", "time", "judge", "tag", "95 %", *reversed(others[1:]), "kind", *others[:1]]:
        if sum(max(len(row[i]) for row in [heads, *rows]) + _GAP for i in used) - _GAP <= width:
            break
        used = [i for i in used if heads[i] != head]
    return used


def _fitting_below(rows: list[list[str]], width: int) -> list[int]:
    """The columns of the unranked table, whose last one is text that wraps: tag and blame go when it is narrow."""
    used = list(range(len(parts.BELOW)))
    for head in ("tag", "blame"):
        if (
            sum(max(len(row[i]) for row in [list(parts.BELOW), *rows]) + _GAP for i in used[:-1]) + 30
            <= width
        ):
            break
        used = [i for i in used if parts.BELOW[i] != head]
    return used


def text(table: LeaderboardTable, width: int | None = None) -> str:
    """Plain aligned text, for terminals without colour (``width`` characters), files and pipes (None: all of it)."""
    heads, rows = parts.head_cells(table), [parts.row_cells(table, r) for r in table.rows]
    lines = [*_wrapped(parts.caption(table), width), ""]
    left_out: list[str] = []
    if rows:
        used = parts.used_columns(heads, rows) if width is None else _fitting(heads, rows, width)
        left_out = [heads[i] for i in parts.used_columns(heads, rows) if i not in used]
        lines += _aligned([heads[i] for i in used], [[row[i] for i in used] for row in rows])
        lines.append("")
    lines += [part for line in parts.explained(table, left_out) for part in _wrapped(line, width)]
    if table.unranked:
        lines += ["", "Not ranked:"]
        below = parts.below_cells(table)
        used = list(range(len(parts.BELOW))) if width is None else _fitting_below(below, width)
        shown = [[row[i] for i in used] for row in below]
        lines += _hanging(_aligned([parts.BELOW[i] for i in used], shown, left=True), width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _wrapped(line: str, width: int | None) -> list[str]:
    """A line of text in lines of ``width`` characters (None: as it is)."""
    import textwrap

    return [line] if width is None else textwrap.wrap(line, width, break_on_hyphens=False) or [""]


def _hanging(lines: list[str], width: int | None) -> list[str]:
    """Aligned lines whose last column is text: it goes on below itself where ``width`` is too small."""
    import textwrap

    if width is None or len(lines) < 2:
        return lines
    start = lines[1].rstrip().rfind(" ") + 1
    room = max(20, width - start)
    shown = [lines[0].rstrip(), lines[1][: start + room]]
    for line in lines[2:]:
        first, *rest = textwrap.wrap(line[start:], room, break_on_hyphens=False) or [""]
        shown += [line[:start] + first, *(" " * start + more for more in rest)]
    return shown


def _aligned(heads: list[str], rows: list[list[str]], *, left: bool = False) -> list[str]:
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    lefts = [left or head in parts.LEFT for head in heads]

    def line(row: list[str]) -> str:
        return "  ".join(
            c.ljust(w) if at else c.rjust(w) for c, w, at in zip(row, widths, lefts, strict=True)
        )

    return [line(heads), line(["-" * w for w in widths]), *(line(row) for row in rows)]


def rich_table(table: LeaderboardTable, stream: IO[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    heads, rows = parts.head_cells(table), [parts.row_cells(table, r) for r in table.rows]
    console.print(Text(parts.caption(table), style="bold"))
    left_out: list[str] = []
    if rows:
        console.print()
        shown = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        used = _fitting(heads, rows, console.width)
        for i in used:
            shown.add_column(
                Text(heads[i]), justify="left" if heads[i] in parts.LEFT else "right", no_wrap=True
            )
        for row, cells in zip(table.rows, rows, strict=True):
            shown.add_row(*(Text(cells[i]) for i in used), style="dim" if row.baseline else "")
        console.print(shown)
        console.print()
        left_out = [heads[i] for i in parts.used_columns(heads, rows) if i not in used]
    for line in parts.explained(table, left_out):
        console.print(Text(line, style="dim"))
    if table.unranked:
        console.print(Text("\nNot ranked:", style="bold"))
        shown = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        below = parts.below_cells(table)
        used = _fitting_below(below, console.width)
        for i in used:
            shown.add_column(parts.BELOW[i], no_wrap=i != used[-1])
        for cells in below:
            shown.add_row(*(Text(cells[i]) for i in used))
        console.print(shown)
