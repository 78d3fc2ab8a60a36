"""The distribution of scores over topics, of each row of a leaderboard: box, median, and a stroke for every topic."""

from __future__ import annotations

from statistics import median
from typing import Any

from runner.model.comparing import by_number
from runner.views.plots import style
from runner.views.plots.base import Plot, axis, figure, of_board
from runner.views.plots.by_topic import ByTopic
from runner.views.text import plural

COLUMNS = ("row", "topic", "value")


def plot(scores: ByTopic) -> Plot:
    """The plot of scores by topic."""
    column = scores.measure
    made: list[dict[str, Any]] = [
        {"row": row, "topic": topic, "value": value}
        for row, values in scores.scores.items()
        for topic, value in sorted(values.items(), key=lambda one: by_number(one[0]))
    ]
    medians = {row: median(values.values()) for row, values in scores.scores.items()}
    spread = {row: max(values.values()) - min(values.values()) for row, values in scores.scores.items()}
    better = max if column.direction == "higher" else min
    first, widest = better(medians, key=lambda row: medians[row]), max(spread, key=lambda row: spread[row])
    says = (
        f"Over {plural(len(scores.topics), 'topic')}, {first} has the best median {column.measure} of "
        f"{plural(len(medians), 'row')}, {figure(medians[first])}. The scores of {widest} are the furthest apart, by "
        f"{figure(spread[widest])}."
    )
    title = of_board(scores.table, f"{column.measure} by topic")
    return Plot(
        "topics", title, says, COLUMNS, tuple(made), chart, {"axis": axis(column), "measure": column.measure}
    )


def chart(of: Plot) -> Any:
    """The chart: a box for each row."""
    import altair as alt

    names = of.names("row")
    size = style.step(len(names)) + 4
    base = alt.Chart({"values": [dict(row) for row in of.rows]}, width=style.WIDTH, height=alt.Step(size))
    x = alt.X(field="value", type="quantitative", title=of.facts["axis"])
    y = style.rows_of(names)
    strokes = base.mark_tick(color=style.PALE, opacity=1, thickness=1, size=size - 6).encode(
        x=x, y=y, tooltip=style.tips(row="row", topic="topic", value=f"{of.facts['measure']}:f")
    )
    boxes = base.mark_boxplot(
        extent="min-max",
        size=size / 2.2,
        opacity=1,
        box={"fill": None, "stroke": style.INK, "strokeWidth": 1, "opacity": 1},
        median={"color": style.VERMILION, "thickness": 4, "opacity": 1},
        rule={"color": style.MUTED},
    ).encode(x=x, y=y)
    return style.finished(alt.layer(strokes, boxes))
