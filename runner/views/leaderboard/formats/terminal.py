"""A leaderboard for people at a terminal: plain lines that fit, or colours and rules."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from runner.views.leaderboard.formats import parts
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.text import signed, style_of

_GAP = 2  # spaces between the columns of a table on a terminal
_NAME = "software"
_WHY = 30  # columns that the reason of an unranked row has at least


@dataclass(frozen=True)
class _Columns:
    """Heads and rows of a table for a terminal."""

    heads: list[str]
    rows: list[list[str]]

    @property
    def width(self) -> int:
        """How many columns of a terminal it takes."""
        widths = [max(map(columns_of, column)) for column in zip(self.heads, *self.rows, strict=True)]
        return sum(widths) + _GAP * (len(widths) - 1)

    def folded(self, width: int) -> tuple[_Columns, list[int]]:
        """The table with long names in two lines where it is wider than ``width``, and which row each line is of."""
        at, most = self.heads.index(_NAME), max(len(row[self.heads.index(_NAME)]) for row in self.rows)
        most -= max(0, self.width - width)
        rows, of = list[list[str]](), list[int]()
        for n, row in enumerate(self.rows):
            team, slash, software = row[at].rpartition("/")
            wraps = len(row[at]) > most and bool(team)
            rows.append([*row[:at], team + slash, *row[at + 1 :]] if wraps else row)
            rows += [["  " + software if i == at else "" for i in range(len(row))]] if wraps else []
            of += [n, n] if wraps else [n]
        return _Columns(self.heads, rows), of

    def fitting(self, drop: Sequence[str], width: int) -> _Columns:
        """The table with the heads ``drop`` gone, one after the other, until it is at most ``width`` wide."""
        shown = self
        for head in drop:
            if shown.width <= width:
                break
            used = [i for i, name in enumerate(shown.heads) if name != head]
            rows = [[row[i] for i in used] for row in shown.rows]
            shown = _Columns([shown.heads[i] for i in used], rows)
        return shown


def _ranked(table: LeaderboardTable, width: int | None, wide: bool) -> tuple[_Columns, list[str], list[int]]:
    """The ranked rows with the columns for which there is space (None: all), the heads of the others, and the row of each line.

    What says least goes first, then long names are wrapped. How many topics were answered stays next to the score in any case. With ``wide`` nothing
    goes, and runs and descriptions are there.
    """
    all_ = _Columns(*parts.shown_cells(table, wide=wide))
    if width is None or not all_.rows or wide:
        return all_, [], list(range(len(all_.rows)))
    others = [parts.head_of(column) for column in table.columns[1:]]
    drop = [
        "memory",
        "time",
        "judge",
        "tag",
        "95 %",
        parts.RANKS,
        *reversed(others[1:]),
        "name",
        "kind",
        *others[:1],
    ]
    shown = all_.fitting(drop, width)
    folded, of = shown.folded(width)
    return folded, [head for head in all_.heads if head not in shown.heads], of


def _below(table: LeaderboardTable, width: int | None) -> _Columns:
    """The unranked rows, whose last column is text that wraps: tag and blame go when it is narrow."""
    (*heads, why), rows = parts.below_cells(table)
    if width is None:
        return _Columns([*heads, why], rows)
    shown = _Columns(heads, [row[:-1] for row in rows]).fitting(("tag", "blame", "name"), width - _WHY)
    return _Columns([*shown.heads, why], [[*a, b[-1]] for a, b in zip(shown.rows, rows, strict=True)])


def text(table: LeaderboardTable, width: int | None = None, *, wide: bool = False) -> str:
    """Plain aligned text, for terminals without colour (``width`` characters), files and pipes (None: all of it)."""
    lines = [*_wrapped(parts.caption(table), width), ""]
    ranked, left_out, _ = _ranked(table, width, wide)
    if ranked.rows:
        lines += [*_aligned(ranked), ""]
    lines += [part for line in parts.explained(table, left_out) for part in _wrapped(line, width)]
    if table.unranked:
        lines += ["", "Not ranked:", *_hanging(_aligned(_below(table, width), left=True), width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _wrapped(line: str, width: int | None) -> list[str]:
    """A line of text in lines of ``width`` columns (None: as it is)."""
    if width is None:
        return [line]
    space = width // 2 if columns_of(line) > len(line) else width
    return textwrap.wrap(line, space, break_on_hyphens=False) or [""]


def _hanging(lines: list[str], width: int | None) -> list[str]:
    """Aligned lines whose last column is text: it goes on below itself where ``width`` is too small."""
    if width is None or len(lines) < 2:
        return lines
    start = lines[1].rstrip().rfind(" ") + 1
    space = max(20, width - start)
    shown = [lines[0].rstrip(), lines[1][: start + space]]
    for line in lines[2:]:
        at = start  # wide characters of a name take two columns each
        while columns_of(line[:at]) > start:
            at -= 1
        first, *rest = textwrap.wrap(line[at:], space, break_on_hyphens=False) or [""]
        shown += [line[:at] + first, *(" " * start + more for more in rest)]
    return shown


def _aligned(table: _Columns, *, left: bool = False) -> list[str]:
    """Heads, a rule and rows, each column as wide as its longest text."""
    columns = [[head, "", *cells] for head, *cells in zip(table.heads, *table.rows, strict=True)]
    for column in columns:
        width = max(map(columns_of, column))
        column[1] = "-" * width
        at_left = left or column[0] in parts.LEFT
        column[:] = [_padded(c, width, left=at_left) for c in column]
    return [(" " * _GAP).join(cells) for cells in zip(*columns, strict=True)]


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes: two for wide characters, none for accents of their own."""
    if text.isascii():
        return len(text)
    wide = (unicodedata.east_asian_width(c) in "WF" for c in text)
    bare = (unicodedata.category(c) in ("Mn", "Me") for c in text)
    return len(text) + sum(wide) - sum(bare)


def _padded(text: str, width: int, *, left: bool) -> str:
    blanks = " " * (width - columns_of(text))
    return text + blanks if left else blanks + text


def rich_table(table: LeaderboardTable, stream: IO[str], *, wide: bool = False) -> None:
    """Print the leaderboard with colours and rules, as wide as the terminal of ``stream``; with ``wide`` as wide as it is."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def grid(shown: _Columns, styles: Sequence[str], left: Sequence[str], wraps: str = "") -> Table:
        made = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for head in shown.heads:
            made.add_column(Text(head), justify="left" if head in left else "right", no_wrap=head != wraps)
        for row, style in zip(shown.rows, styles, strict=True):
            cells = zip(shown.heads, row, strict=True)
            made.add_row(
                *(
                    Text(signed(cell), style_of(cell)) if head == "outcome" else Text(cell)
                    for head, cell in cells
                ),
                style=style,
            )
        return made

    console = Console(file=stream, highlight=False)
    console.print(Text(parts.caption(table), style="bold"))
    ranked, left_out, of = _ranked(table, console.width, wide)
    if ranked.rows:
        styles = ["dim" if table.rows[n].baseline else "" for n in of]
        roomy = Console(file=stream, highlight=False, width=max(console.width, ranked.width))
        roomy.print("", grid(ranked, styles, tuple(parts.LEFT)), "", sep="\n")
    for line in parts.explained(table, left_out):
        console.print(Text(line, style="dim"))
    if table.unranked:
        console.print(Text("\nNot ranked:", style="bold"))
        below = _below(table, console.width)
        console.print(grid(below, [""] * len(below.rows), below.heads, below.heads[-1]))
