"""One run topic by topic, beside the median and the best of the board, as far as its audience sees these."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from runner.views.plots import style
from runner.views.plots.base import Plot, figure, nothing
from runner.views.redact import RunView
from runner.views.show.topics import Topics
from runner.views.text import plural

COLUMNS = ("topic", "value", "median", "best")
MOST = 300  # topics of a run that has more are left out of the drawing, evenly
_LABELLED = 80


def plot(view: RunView, topics: Topics | None) -> Plot:
    """The plot of a run, as somebody may see it, and its topics. Raises E102 where there are none for them."""
    if topics is None:
        why = "It has none, or they are hidden: on blinded data single topics could be read back from them."
        raise nothing(f"no scores by topic of {view['run']}", why)
    id, scores = next(iter(topics.names)), topics.scores
    medians = topics.medians.topics if topics.medians else {}
    bests = topics.medians.best if topics.medians else {}
    made: list[dict[str, Any]] = [
        {"topic": topic, "value": scores[id][topic], "median": medians.get(topic), "best": bests.get(topic)}
        for topic in topics.order
    ]
    says = f"By {topics.measure}, its worst topic is {made[0]['topic']}, {figure(made[0]['value'])}, and its best of "
    says += f"{plural(len(made), 'topic')} {made[-1]['topic']}, {figure(made[-1]['value'])}."
    beside = [row for row in made if row["median"] is not None]
    if topics.medians and beside:
        above, below = (sum(sign * (row["value"] - row["median"]) > 0 for row in beside) for sign in (1, -1))
        says += f" It is above the median of {plural(topics.medians.runs, 'run')} on {above} and below it on {below}."
    else:
        says += f" On half of them it has {figure(median(row['value'] for row in made))} or less."
    runs = topics.medians.runs if topics.medians else 0
    facts = {
        "axis": topics.measure,
        "series": {
            "value": "this run",
            "median": f"median of {plural(runs, 'run')}",
            "best": "best of these",
        },
    }
    title = f"{view['run']}: {topics.measure} by topic"
    return Plot("run", title, says, COLUMNS, tuple(made), chart, facts)


def chart(of: Plot) -> Any:
    """The chart: a row for each topic, the worst first; a line leads from the median to the run."""
    import altair as alt

    rows = _even([dict(row) for row in of.rows])
    names = [str(row["topic"]) for row in rows]
    base = alt.Chart(
        {"values": _long(rows, of.facts["series"])},
        width=style.WIDTH,
        height=alt.Step(13 if len(rows) <= _LABELLED else 4),
    )
    y = style.rows_of(names, "topic", "topics, the worst first")
    if len(rows) > _LABELLED:
        y = y.axis(labels=False, ticks=False, domain=False)
    x = alt.X(field="value", type="quantitative", title=of.facts["axis"])
    shown = {
        key: word for key, word in of.facts["series"].items() if any(row[key] is not None for row in rows)
    }
    looks = [_LOOKS[key] for key in shown]
    legend = None if len(shown) == 1 else alt.Legend(title=None)
    domain = list(shown.values())
    tips = style.tips(topic="topic", series="what", value=f"{of.facts['axis']}:f")
    points = base.mark_point(opacity=1, size=36 if len(rows) <= _LABELLED else 12).encode(
        x=x,
        y=y,
        tooltip=tips,
        color=alt.Color(
            field="series",
            type="nominal",
            scale=alt.Scale(domain=domain, range=[colour for colour, _ in looks]),
            legend=legend,
        ),
        shape=alt.Shape(
            field="series",
            type="nominal",
            scale=alt.Scale(domain=domain, range=[shape for _, shape in looks]),
            legend=legend,
        ),
    )
    if "median" not in shown:
        return style.finished(points)
    lines = (
        alt.Chart({"values": [row for row in rows if row["median"] is not None]})
        .mark_rule(color=style.MUTED, strokeWidth=1)
        .encode(x=alt.X(field="value", type="quantitative"), x2=alt.X2(field="median"), y=y)
    )
    return style.finished(alt.layer(lines, points))


# Of each series: its colour and its shape.
_LOOKS = {
    "value": (style.BLUE, "circle"),
    "median": (style.INK, "stroke"),
    "best": (style.VERMILION, "triangle-right"),
}


def _long(rows: list[dict[str, Any]], series: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row for each topic and series that has a value."""
    return [
        {"topic": row["topic"], "series": word, "value": row[key]}
        for row in rows
        for key, word in series.items()
        if row[key] is not None
    ]


def _even(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most :data:`MOST` rows, evenly spread, with the first and the last."""
    if len(rows) <= MOST:
        return rows
    return [rows[round(n * (len(rows) - 1) / (MOST - 1))] for n in range(MOST)]
