"""What every plot is: rows that its audience may read, two sentences that say what they show, and what its chart is made by."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.errors import RunnerError
from runner.views.leaderboard.formats.spreadsheet import no_formula
from runner.views.leaderboard.rows import Column, LeaderboardTable, Row, software_of

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, eq=False)
class Plot:
    """One plot, made for an audience; equal to another one with the same digest.

    ``rows`` have the keys ``columns``; ``says`` is the text alternative, written from them; ``facts`` is what the chart needs
    besides, such as titles of axes. ``chart`` makes the Altair chart of it. Texts in it were escaped for people already.
    ``of`` is with what its title begins: a board's or a run's name, which a page of that has as its heading.
    """

    kind: str
    title: str
    says: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    chart: Callable[[Plot], alt.TopLevelMixin] = field(repr=False)
    facts: Mapping[str, Any] = field(default_factory=dict)
    of: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plot) and other.digest() == self.digest()

    def __hash__(self) -> int:
        return hash(self.digest())

    @property
    def caption(self) -> str:
        """The title without what it is ``of``."""
        return self.title.removeprefix(f"{self.of}: ")

    def as_csv(self) -> str:
        """A line for each row, at full precision. No cell starts a spreadsheet formula."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            cells = (row.get(name) for name in self.columns)
            writer.writerow([no_formula(cell) if isinstance(cell, str) else cell for cell in cells])
        return out.getvalue()

    def digest(self) -> str:
        """By what the plot is known again: the same for the same rows, words and kind, as long as it is drawn in the same way."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        shown = [self.kind, self.title, self.says, self.columns, self.rows, self.facts]
        return schemas.digest([*shown, _drawn_by()])

    def names(self, key: str) -> list[str]:
        """The different values of a column, in the order of the rows."""
        return list(dict.fromkeys(str(row[key]) for row in self.rows))


@cache
def _drawn_by() -> str:
    """What a drawing is made by: this folder, and the packages that draw, as far as they are installed."""
    known: list[str] = []
    for name in ("altair", "vl-convert-python"):
        with suppress(metadata.PackageNotFoundError):
            known.append(f"{name} {metadata.version(name)}")
    parts = sorted(Path(__file__).parent.glob("*.*"))
    return schemas.digest([*known, *(path.read_text("utf-8") for path in parts)])


def nothing(what: str, why: str) -> RunnerError:
    """The error for a plot of which there is nothing to show."""
    return RunnerError(
        "E102", f"there is nothing to plot: {what}", why=why, fix="choose another kind of plot"
    )


def group_of(row: Row) -> str:
    """By what the mark of a row is told apart: baselines, and the methods of the others."""
    return "baseline" if row.baseline else row.method


def column_of(table: LeaderboardTable, measure: str | None = None) -> Column:
    """A measure of a table by its id; None: the one that ranks. Raises E102 where the table has none of that name."""
    from runner.model.errors import no_such

    wanted = table.rank_by.first if measure is None else measure
    for column in table.columns:
        if column.id == wanted:
            return column
    raise no_such("measure", wanted, [one.id for one in table.columns], of=f"the table {table.table}")


def axis(column: Column) -> str:
    """The title of a measure's axis: as the task writes it, its unit, and which end is better where that is the lower one."""
    name = column.measure + (f" [{column.unit}]" if column.unit else "")
    return f"{name} (lower is better)" if column.direction == "lower" else name


def valued(table: LeaderboardTable, column: Column) -> list[Row]:
    """The ranked rows that have a value of a measure. Raises E102 where none has."""
    rows = [row for row in table.rows if column.id in row.values]
    if not rows:
        raise nothing(f"no row of {table.table} has a value of {column.measure}", "Nothing is ranked yet.")
    return rows


def best(rows: Sequence[Row], column: Column) -> Row:
    """The row with the best value; of equal ones the one that stands first."""
    sign = 1 if column.direction == "higher" else -1
    return max(rows, key=lambda row: sign * row.values[column.id].mean)


def board_name(table: LeaderboardTable) -> str:
    """What a table is called in the titles of its plots."""
    return f"{table.title}: {table.heading or table.table}"


def of_board(table: LeaderboardTable, what: str) -> str:
    """The title of a plot of a table."""
    return f"{board_name(table)}: {what}" + (f", {table.round.title}" if table.round else "")


def label(row: Row) -> str:
    """What a row is called in plots: ``team/software``, or the team where it holds several."""
    return software_of(row)


def figure(value: float) -> str:
    """A score in a sentence."""
    return f"{value:.4f}" if math.isfinite(value) else "no number"
