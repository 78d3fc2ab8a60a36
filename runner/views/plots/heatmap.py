"""Topic × row as a heat map: hard and easy topics, and where rows differ."""

from __future__ import annotations

import math
from typing import Any

from runner.views.plots import style
from runner.views.plots.base import Plot, axis, figure, of_board
from runner.views.plots.by_topic import ByTopic
from runner.views.text import plural

COLUMNS = ("row", "topic", "value")
_LABELLED = 60  # topics that have space for their names
# From light to dark, after viridis (S. van der Walt, N. Smith, 2015, CC0).
_SHADES = ("#fde725", "#90d743", "#35b779", "#21918c", "#31688e", "#443983", "#440154")
_WIDEST = 640  # pixels of all topics together


def plot(scores: ByTopic) -> Plot:
    """The plot of scores by topic: topics from the easiest to the hardest by the mean over rows."""
    column = scores.measure
    means = {}
    for topic in scores.topics:
        values = [one[topic] for one in scores.scores.values() if topic in one]
        means[topic] = math.fsum(values) / len(values)
    sign = -1 if column.direction == "higher" else 1
    order = sorted(means, key=lambda topic: sign * means[topic])
    made: list[dict[str, Any]] = [
        {"row": row, "topic": topic, "value": values[topic]}
        for row, values in scores.scores.items()
        for topic in order
        if topic in values
    ]
    says = (
        f"Of {plural(len(order), 'topic')}, {order[0]} is the easiest for {plural(len(scores.scores), 'row')} by mean "
        f"{column.measure}, {figure(means[order[0]])}, and {order[-1]} the hardest, {figure(means[order[-1]])}. "
        "Topics stand from the easiest to the hardest, rows by their rank."
    )
    title = of_board(scores.table, f"{column.measure} of topics and rows")
    facts = {"axis": axis(column), "measure": column.measure, "topics": order}
    return Plot("heatmap", title, says, COLUMNS, tuple(made), chart, facts)


def chart(of: Plot) -> Any:
    """The chart: darker is more, so that it is read the same in grey."""
    import altair as alt

    topics, names = of.facts["topics"], of.names("row")
    labelled = len(topics) <= _LABELLED
    width = max(2.0, min(22.0, _WIDEST / len(topics)))
    axis = alt.Axis(
        labels=labelled, ticks=False, domain=False, labelAngle=-90, labelLimit=90, labelFontSize=9
    )
    words, shaded = _shaded(of)
    base = alt.Chart({"values": shaded}, width=alt.Step(width), height=alt.Step(style.step(len(names))))
    # Steps in place of a gradient: they are told apart in grey, and what is drawn is the same each time.
    scale = alt.Scale(domain=words, range=list(_SHADES[: len(words)]))
    legend = alt.Legend(symbolType="square", symbolSize=110, direction="horizontal")
    return style.finished(
        base.mark_rect().encode(
            x=alt.X(field="topic", type="nominal", sort=topics, title="topics, the easiest first", axis=axis),
            y=style.rows_of(names),
            color=alt.Color(
                field="shade",
                type="nominal",
                title=of.facts["axis"],
                scale=scale,
                legend=legend,
            ),
            tooltip=style.tips(row="row", topic="topic", value=f"{of.facts['measure']}:f"),
        )
    )


def _shaded(of: Plot) -> tuple[list[str], list[dict[str, Any]]]:
    """The steps from the lowest to the highest value in words, and the rows with that of each."""
    values = [row["value"] for row in of.rows]
    low, high = min(values), max(values)
    width = (high - low) / len(_SHADES) or 1.0
    # As many decimals as tell one step from the next: equal words would be one step.
    decimals = max(2, math.ceil(-math.log10(width)) + 1)
    words = [
        f"{low + n * width:.{decimals}f} to {low + (n + 1) * width:.{decimals}f}" for n in range(len(_SHADES))
    ]
    steps = [min(int((value - low) / width), len(_SHADES) - 1) for value in values]
    rows = [{**row, "shade": words[step]} for row, step in zip(of.rows, steps, strict=True)]
    return words[: max(steps) + 1], rows
