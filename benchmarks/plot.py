"""The plot of the evaluator's table in docs: how much of another program's time ours takes, with the goals.

``python -m benchmarks.plot`` reads the first table of ``benchmarks/README.md`` with such ratios and writes ``docs/images/evaluator.svg``: of each row the ratio of processor time and that of wall time, and its (first) goal. The same table gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
TABLE, PLOT = ROOT / "benchmarks" / "README.md", ROOT / "docs" / "images" / "evaluator.svg"
COLUMNS = {"what": "what", "CPU / its": "cpu", "wall / its": "wall", "goal": "goal"}


class Ratio(NamedTuple):
    """A row of the table."""

    what: str
    cpu: float
    wall: float
    goal: float


def ratios(text: str) -> list[Ratio]:
    """The rows of the first table with ratios; empty where there is none. Raises ValueError for a row without figures."""
    found, names = list[Ratio](), list[str]()
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if names and not cells:
            break
        if set(COLUMNS) <= set(cells):
            names = cells
        elif names and not cells[0].startswith("---"):
            row = {COLUMNS[name]: cell for name, cell in zip(names, cells, strict=True) if name in COLUMNS}
            goal = re.search(r"\d+(?:\.\d+)?", row["goal"])
            if goal is None:
                raise ValueError(f"no goal is a figure: {line}")
            found.append(Ratio(row["what"], float(row["cpu"]), float(row["wall"]), float(goal[0])))
    return found


def drawn(rows: Sequence[Ratio]) -> str:
    """The plot as SVG."""
    import altair as alt
    import vl_convert

    from runner.views.plots import style

    values: list[dict[str, Any]] = [
        {"row": row.what, "what": what, "ratio": ratio}
        for row in rows
        for what, ratio in (("processor time", row.cpu), ("wall time", row.wall))
    ]
    axis = alt.Axis(labelLimit=400, ticks=False, domain=False, labelPadding=8)
    y = alt.Y(field="row", type="nominal", sort=[row.what for row in rows], title=None, axis=axis)
    x = alt.X(field="ratio", type="quantitative", title=None)
    kinds = alt.Scale(domain=["processor time", "wall time"], range=[style.BLUE, style.ORANGE])
    shapes = alt.Scale(domain=["processor time", "wall time"], range=["circle", "square"])
    told = {
        "color": alt.Color(field="what", type="nominal", scale=kinds, legend=alt.Legend(title=None)),
        "shape": alt.Shape(field="what", type="nominal", scale=shapes, legend=alt.Legend(title=None)),
    }
    goals = [{"row": row.what, "ratio": row.goal} for row in rows]
    marks = alt.Chart({"values": values}).mark_point(filled=True, size=style.POINT, opacity=1)
    ticks = alt.Chart({"values": goals}).mark_tick(color=style.VERMILION, thickness=3, size=14)
    chart = alt.layer(ticks.encode(x=x, y=y), marks.encode(x=x, y=y, **told)).properties(
        width=2 * style.WIDTH,
        height={"step": style.step(len(rows))},
        title="ours / the other's; red: the goal",
    )
    return str(vl_convert.vegalite_to_svg(style.finished(chart).to_dict()))


def main() -> int:
    """Write the plot; returns the exit code."""
    PLOT.write_text(drawn(ratios(TABLE.read_text())) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
