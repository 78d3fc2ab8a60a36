"""Dots and whiskers of a leaderboard: the mean of every row, with its 95 % interval over topics where there is one."""

from __future__ import annotations

from typing import Any

from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.plots import style
from runner.views.plots.base import Plot, axis, best, column_of, figure, group_of, label, of_board, valued
from runner.views.text import plural

COLUMNS = ("row", "rank", "group", "value", "low", "high", "tag")


def plot(table: LeaderboardTable, measure: str | None = None) -> Plot:
    """The plot of a measure (None: the one that ranks) of a leaderboard. Raises E102 where no row has a value."""
    column = column_of(table, measure)
    rows = valued(table, column)
    made: list[dict[str, Any]] = []
    for row in rows:
        value = row.values[column.id]
        made.append(
            {
                **{"row": label(row), "rank": row.rank, "group": group_of(row), "tag": row.tag},
                **{"value": value.mean, "low": value.low, "high": value.high},
            }
        )
    first, with_interval = best(rows, column), [row for row in made if row["low"] is not None]
    of_rows = (
        f"the best {column.measure} of {plural(len(rows), 'row')}"
        if len(rows) > 1
        else f"the only {column.measure}"
    )
    says = f"{label(first)} has {of_rows}, {figure(first.values[column.id].mean)}."
    top = next(row for row in made if row["row"] == label(first))
    if len(rows) == 1 and top["low"] is not None:
        says += f" Its 95 % interval goes from {figure(top['low'])} to {figure(top['high'])}."
    elif with_interval and top["low"] is not None:
        overlap = sum(row["low"] <= top["high"] and row["high"] >= top["low"] for row in with_interval) - 1
        says += f" The 95 % intervals of {overlap} of {plural(len(with_interval) - 1, 'other row')} overlap with its own."
    else:
        says += " There are no intervals, since the means are over several cells or not over topics."
    facts = {"axis": axis(column), "measure": column.measure}
    return Plot(
        "scores", of_board(table, f"{column.measure} of each row"), says, COLUMNS, tuple(made), chart, facts
    )


def chart(of: Plot) -> Any:
    """The chart: a row each, best rank first."""
    import altair as alt

    names = of.names("row")
    base = alt.Chart(
        {"values": [dict(row) for row in of.rows]}, width=style.WIDTH, height=alt.Step(style.step(len(names)))
    )
    ends = [row[key] for row in of.rows for key in ("value", "low", "high")]
    x = alt.X(field="value", type="quantitative", title=of.facts["axis"], scale=style.scale(ends))
    y = style.rows_of(names)
    tips = style.tips(row="row", value=f"{of.facts['measure']}:f", low="from:f", high="to:f", tag="tag")
    rules = base.mark_rule(color=style.MUTED, strokeWidth=1.5).encode(
        x=alt.X(field="low", type="quantitative"), x2=alt.X2(field="high"), y=y
    )
    points = base.mark_point(size=style.POINT, opacity=1, strokeWidth=1).encode(
        x=x, y=y, tooltip=tips, **style.marks(of.names("group"))
    )
    return style.finished(
        alt.layer(rules, points) if any(row["low"] is not None for row in of.rows) else points
    )
