"""Score over submission date: when what counts of each row was received, and the best score until then."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.plots import style
from runner.views.plots.base import Plot, axis, column_of, figure, group_of, label, of_board, valued
from runner.views.text import plural

_MINUTES, _DAYS, _YEAR = timedelta(minutes=10), timedelta(days=6), timedelta(days=300)
_TICKS = 3  # about so many
COLUMNS = ("row", "registered", "group", "value", "best", "tag")


def plot(table: LeaderboardTable, measure: str | None = None) -> Plot:
    """The plot of a measure (None: the one that ranks) over time (UTC). Raises E102 where no row has a value."""
    column = column_of(table, measure)
    rows = sorted(valued(table, column), key=lambda row: (row.registered, label(row)))
    better = max if column.direction == "higher" else min
    made: list[dict[str, Any]] = []
    for row in rows:
        value = row.values[column.id].mean
        best = value if not made else better(made[-1]["best"], value)
        made.append(
            {
                **{"row": label(row), "registered": row.registered, "group": group_of(row)},
                **{"value": value, "best": best, "tag": row.tag},
            }
        )
    steps = 1 + sum(before["best"] != after["best"] for before, after in pairwise(made))
    first, last = made[0], made[-1]
    days = " to ".join(dict.fromkeys(one["registered"][:10] for one in (first, last)))
    if len(made) == 1:
        says = f"{first['row']} alone counts, received on {days}. Its {column.measure} is {figure(first['best'])}."
    else:
        says = f"{plural(len(made), 'row')} count, received {'from' if ' to ' in days else 'on'} {days}. The best {column.measure} "
        says += (
            f"went from {figure(first['best'])} to {figure(last['best'])} in {plural(steps - 1, 'step')}."
            if steps > 1
            else f"is that of {first['row']}, which came first, {figure(first['best'])}."
        )
    form = ticks(*(datetime.fromisoformat(one["registered"]) for one in (first, last)))
    facts = {"axis": axis(column), "measure": column.measure, "format": form}
    title = of_board(table, f"{column.measure} over submission date")
    return Plot("dates", title, says, COLUMNS, tuple(made), chart, facts)


def ticks(first: datetime, last: datetime) -> str:
    """How times on an axis from ``first`` to ``last`` are written, so that no two of its ticks are the same words."""
    apart = last - first
    if apart < _MINUTES:
        return "%-d %b %H:%M:%S" if apart else "%-d %b %H:%M"
    if apart < _DAYS:
        return "%-d %b %H:%M"
    return "%-d %b" if apart < _YEAR else "%-d %b %Y"


def chart(of: Plot) -> Any:
    """The chart: a mark for each row, and the best until then as steps."""
    import altair as alt

    base = alt.Chart({"values": [dict(row) for row in of.rows]}, width=style.WIDTH + 60, height=200)
    x = alt.X(
        field="registered",
        type="temporal",
        title="received (UTC)",
        scale=alt.Scale(type="utc"),
        axis=alt.Axis(grid=False, format=of.facts["format"], tickCount=_TICKS),
    )
    y = alt.Y(
        field="value",
        type="quantitative",
        title=of.facts["axis"],
        scale=style.scale(row["value"] for row in of.rows),
    )
    steps = base.mark_line(
        interpolate="step-after", color=style.MUTED, strokeWidth=1.5, strokeDash=[5, 3]
    ).encode(x=x, y=alt.Y(field="best", type="quantitative"))
    tips = style.tips(row="row", value=f"{of.facts['measure']}:f", registered="received", tag="tag")
    points = base.mark_point(size=style.POINT, opacity=1, strokeWidth=1).encode(
        x=x, y=y, tooltip=tips, **style.marks(of.names("group"))
    )
    return style.finished(alt.layer(steps, points))
