"""Score against what it took: run time or peak memory, only where the audience sees these as figures."""

from __future__ import annotations

from typing import Any, NamedTuple

from runner.views.leaderboard.rows import LeaderboardTable, Row
from runner.views.plots import style
from runner.views.plots.base import (
    Plot,
    axis,
    best,
    column_of,
    figure,
    group_of,
    label,
    nothing,
    of_board,
    valued,
)
from runner.views.text import plural

_WIDE = 20  # so many times the least: from there on the axis is logarithmic


class Cost(NamedTuple):
    """What is taken: its name, the title of its axis, the column of its values, and in how many of them one is shown."""

    name: str
    title: str
    unit: str
    scale: float

    def of(self, row: Row) -> float | None:
        """What a row took, in the unit; None where it was not measured, or is not for this audience."""
        value = row.wall_seconds if self.name == "time" else row.memory_peak
        return None if value is None else value / self.scale


TIME = Cost("time", "run time, summed over the cells [s]", "seconds", 1.0)
MEMORY = Cost("memory", "peak memory, the highest over the cells [MiB]", "mebibytes", 2.0**20)


def plot(table: LeaderboardTable, measure: str | None, cost: Cost) -> Plot:
    """The plot of a measure (None: the one that ranks) against time or memory.

    Raises:
        RunnerError: E102 where no row has both, as on hidden data for everybody but the organiser: these are shown in steps.
    """
    column = column_of(table, measure)
    rows = [row for row in valued(table, column) if (cost.of(row) or 0) > 0]
    if not rows:
        stepped = any(row.time_step or row.memory_step for row in table.rows)
        why = (
            "On hidden data it is shown in steps alone."
            if stepped
            else "Uploaded runs were executed elsewhere."
        )
        raise nothing(f"no row of {table.table} has a figure of its {cost.name}", why)
    made: list[dict[str, Any]] = [
        {
            **{"row": label(row), "group": group_of(row), cost.unit: cost.of(row)},
            **{"value": row.values[column.id].mean, "tag": row.tag},
        }
        for row in rows
    ]
    first, least = best(rows, column), min(rows, key=lambda row: cost.of(row) or 0)
    if len(rows) == 1:
        says = f"The only row, {label(first)}, has {figure(first.values[column.id].mean)} with {cost.of(first):,.1f} {cost.unit}."
    else:
        says = (
            f"The best {column.measure} of {plural(len(rows), 'row')} is that of {label(first)}, "
            f"{figure(first.values[column.id].mean)} with {cost.of(first):,.1f} {cost.unit}. The least, {cost.of(least):,.1f} "
            f"{cost.unit}, took {label(least)}, with {figure(least.values[column.id].mean)}."
        )
    facts = {"axis": axis(column), "measure": column.measure, "unit": cost.unit, "cost": cost.title}
    columns = ("row", "group", cost.unit, "value", "tag")
    title = of_board(table, f"{column.measure} against {cost.name}")
    return Plot(cost.name, title, says, columns, tuple(made), chart, facts)


def chart(of: Plot) -> Any:
    """The chart: a mark for each row."""
    import altair as alt

    unit = of.facts["unit"]
    values = [row[unit] for row in of.rows]
    wide = max(values) >= _WIDE * min(values)
    scale = alt.Scale(type="log") if wide else style.scale(values)
    base = alt.Chart({"values": [dict(row) for row in of.rows]}, width=style.WIDTH, height=240)
    tips = style.tips(row="row", value=f"{of.facts['measure']}:f", **{unit: f"{unit}:f"}, tag="tag")
    x = alt.X(field=unit, type="quantitative", title=of.facts["cost"], scale=scale)
    y = alt.Y(
        field="value",
        type="quantitative",
        title=of.facts["axis"],
        scale=style.scale(row["value"] for row in of.rows),
    )
    return style.finished(style.scattered(base, x, y, tips, of.names("group"), of))
