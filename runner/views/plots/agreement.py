"""One measure against another over the rows of a leaderboard, with Kendall's tau-b of the two orders.

tau-b: M. G. Kendall, The treatment of ties in ranking problems, Biometrika 33, 1945; computed by scipy.
"""

from __future__ import annotations

import math
from typing import Any

from runner.model.errors import RunnerError
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.plots import style
from runner.views.plots.base import Plot, axis, column_of, group_of, label, nothing, of_board
from runner.views.text import plural

COLUMNS = ("row", "group", "first", "second", "tag")


def plot(table: LeaderboardTable, first: str | None = None, second: str | None = None) -> Plot:
    """The plot of two measures of a leaderboard; by default the one that ranks against the next one.

    Raises:
        RunnerError: E101 for twice the same measure, E102 for a table with one measure, or fewer than two rows that have both.
    """
    one = column_of(table, first)
    others = [column for column in table.columns if column.id != one.id]
    if second is None and not others:
        raise nothing(f"{table.table} has one measure", "One measure against another needs two.")
    two = column_of(table, second if second is not None else others[0].id)
    if one.id == two.id:
        raise RunnerError("E101", f"{one.id} was named twice", fix="name two measures of the table")
    rows = [row for row in table.rows if one.id in row.values and two.id in row.values]
    if len(rows) < 2:
        why = "Orders of fewer than two rows cannot be compared."
        raise nothing(f"{plural(len(rows), 'row')} of {table.table} with both measures", why)
    made: list[dict[str, Any]] = [
        {
            **{"row": label(row), "group": group_of(row), "tag": row.tag},
            **{"first": row.values[one.id].mean, "second": row.values[two.id].mean},
        }
        for row in rows
    ]
    signs = [1 if column.direction == "higher" else -1 for column in (one, two)]
    tau = kendall(
        *([sign * row[key] for row in made] for sign, key in zip(signs, ("first", "second"), strict=True))
    )
    said = "cannot be told" if tau is None else f"is {tau:.3f}"
    says = (
        f"Kendall's tau-b between the orders of {plural(len(made), 'row')} by {one.measure} and by {two.measure} {said}. "
        + ("1 means the same order, 0 no relation, -1 the opposite order.")
    )
    facts = {
        **{"axes": [axis(one), axis(two)], "measures": [one.measure, two.measure], "tau": tau},
        "caption": f"Kendall's tau-b {'–' if tau is None else f'{tau:.3f}'} over {plural(len(made), 'row')}",
    }
    title = of_board(table, f"{one.measure} against {two.measure}")
    return Plot("measures", title, says, COLUMNS, tuple(made), chart, facts)


def kendall(first: list[float], second: list[float]) -> float | None:
    """Kendall's tau-b of two lists of values; None for fewer than two, or where all values of a list are equal."""
    from scipy.stats import kendalltau

    if len(first) < 2:
        return None
    tau = float(kendalltau(first, second).statistic)
    return tau if math.isfinite(tau) else None


def chart(of: Plot) -> Any:
    """The chart: a mark for each row, tau above."""
    import altair as alt

    caption = alt.TitleParams(
        of.facts["caption"], anchor="start", fontSize=12, fontWeight="normal", color=style.INK
    )
    base = alt.Chart({"values": [dict(row) for row in of.rows]}, width=style.WIDTH, height=280, title=caption)
    titles, names = of.facts["axes"], of.facts["measures"]
    tips = style.tips(row="row", first=f"{names[0]}:f", second=f"{names[1]}:f", tag="tag")
    x = alt.X(
        field="first",
        type="quantitative",
        title=titles[0],
        scale=style.scale(row["first"] for row in of.rows),
    )
    y = alt.Y(
        field="second",
        type="quantitative",
        title=titles[1],
        scale=style.scale(row["second"] for row in of.rows),
    )
    return style.finished(style.scattered(base, x, y, tips, of.names("group"), of))
