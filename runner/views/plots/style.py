"""How plots look: few colours that the colour-blind tell apart and that differ in grey, a shape beside each, one font.

The colours are those of Okabe and Ito (Color Universal Design, 2008), in an order in which neighbours differ in lightness. On
pages the style sheet puts the page's own in the place of each (``figure.css``), so that the same drawing is light and dark.
The font comes with vl-convert: Liberation Sans, so that the same plot has the same bytes on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

FONT = "Liberation Sans"
INK, MUTED, GRID = "#1b1f24", "#57606a", "#d8dee4"
BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PALE = "#86bcdc"  # of many strokes beside one another; nothing is transparent: such PDFs are not made the same twice
# Of each group: its colour and its shape.
GROUPS = {
    "automatic": (BLUE, "circle"),
    "manual": (ORANGE, "square"),
    "mixed": (GREEN, "triangle-up"),
    "baseline": (INK, "diamond"),
}
COLOURS = (INK, MUTED, GRID, *(colour for colour, _ in GROUPS.values()), VERMILION, PALE)
WIDTH = 300  # with the names beside it a drawing is as wide as a phone shows without making it unreadable; pages make it larger
POINT = 55  # square pixels of a mark
STEP, MANY, TIGHT = 18, 45, 11  # pixels a row has, and from how many rows on it has fewer
CONFIG: dict[str, Any] = {
    "font": FONT,
    "background": "white",
    "aria": False,  # the figure around it says what it shows
    "view": {"stroke": None},
    "axis": {
        **{"labelColor": INK, "titleColor": INK, "domainColor": MUTED, "tickColor": MUTED, "gridColor": GRID},
        **{"labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 150},
        **{"labelFlush": False},
    },
    # No two figures of an axis stand closer than this.
    "axisQuantitative": {"labelOverlap": "greedy", "labelSeparation": 8},
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "orient": "top",
    },
    "text": {"color": INK, "fontSize": 11},
}


def finished(chart: Any) -> alt.TopLevelMixin:
    """A chart with the look of all plots."""
    made: alt.TopLevelMixin = chart.configure(**CONFIG)
    return made


def scale(values: Iterable[float | None]) -> alt.Scale:
    """The scale of an axis of these values, which need not begin at nought; around a single one there is space, or its tick would
    be rounded to another figure."""
    import altair as alt

    known = [value for value in values if value is not None and math.isfinite(value)]
    least, most = min(known, default=0.0), max(known, default=1.0)
    if least < most:
        return alt.Scale(zero=False)
    around = abs(least) / 10 or 0.1
    return alt.Scale(zero=False, domain=[least - around, most + around])


def step(rows: int) -> int:
    """The pixels that each of so many rows has."""
    return STEP if rows <= MANY else TIGHT


def rows_of(names: Sequence[str], field: str = "row", title: str | None = None) -> alt.Y:
    """The axis with a row for each name, in this order."""
    import altair as alt

    axis = alt.Axis(labelFontSize=11 if len(names) <= MANY else 9, ticks=False, domain=False, labelPadding=8)
    return alt.Y(field=field, type="nominal", sort=list(names), title=title, axis=axis)


def marks(groups: Sequence[str]) -> dict[str, Any]:
    """The encodings that tell ``groups`` apart: colour and shape, with one legend; none for a single group."""
    import altair as alt

    known = [name for name in GROUPS if name in groups]
    legend = None if len(known) == 1 else alt.Legend(title=None, symbolOpacity=1)
    colours = alt.Scale(domain=known, range=[GROUPS[name][0] for name in known])
    shapes = alt.Scale(domain=known, range=[GROUPS[name][1] for name in known])
    return {
        "color": alt.Color(field="group", type="nominal", scale=colours, legend=legend),
        "fill": alt.Fill(field="group", type="nominal", scale=colours, legend=legend),
        "shape": alt.Shape(field="group", type="nominal", scale=shapes, legend=legend),
    }


def tips(**fields: str) -> list[alt.Tooltip]:
    """What is told of a mark: the title of each field; texts as they are, figures with four decimals where ``:f`` follows."""
    import altair as alt

    return [
        alt.Tooltip(field=name, type="quantitative", title=title.removesuffix(":f"), format=".4f")
        if title.endswith(":f")
        else alt.Tooltip(field=name, type="nominal", title=title)
        for name, title in fields.items()
    ]
