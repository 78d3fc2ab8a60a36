"""The plot of the evaluator's table in docs: how much of another program's time ours takes, with the goals.

``python -m benchmarks.plot`` reads the first table of ``benchmarks/README.md`` with such ratios and writes
``docs/images/evaluator.svg``: of each row the ratio of processor time and that of wall time, each with its goal. The same table gives the same bytes.
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
    cpu_goal: float
    wall_goal: float


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
            goal = re.search(r"[\d.]*\d", row["goal"])
            if goal is None:
                raise ValueError(f"no goal is a figure: {line}")
            wall = re.search(r"wall ([\d.]*\d)", row["goal"])
            goals = float(goal[0]), float(wall[1] if wall else goal[0])
            found.append(Ratio(row["what"], float(row["cpu"]), float(row["wall"]), *goals))
    return found


def drawn(rows: Sequence[Ratio]) -> str:
    """The plot as SVG."""
    import altair as alt
    import vl_convert

    from runner.views.plots import style

    names = {
        "processor time": ("cpu", style.BLUE, "circle", 18),
        "wall time": ("wall", style.ORANGE, "square", 9),
    }
    axis = alt.Axis(labelLimit=400, ticks=False, domain=False, labelPadding=8)
    y = alt.Y(field="row", type="nominal", sort=[row.what for row in rows], title=None, axis=axis)
    x = alt.X(field="ratio", type="quantitative", title=None)
    goals = [
        alt.Chart({"values": [{"row": row.what, "ratio": getattr(row, f"{part}_goal")} for row in rows]})
        .mark_tick(color=colour, thickness=3, size=size)
        .encode(x=x, y=y)
        for part, colour, _, size in names.values()
    ]
    values: list[dict[str, Any]] = [
        {"row": row.what, "what": what, "ratio": getattr(row, part)}
        for row in rows
        for what, (part, *_) in names.items()
    ]
    kinds = alt.Scale(domain=list(names), range=[colour for _, colour, _, _ in names.values()])
    shapes = alt.Scale(domain=list(names), range=[shape for _, _, shape, _ in names.values()])
    marks = alt.Chart({"values": values}).mark_point(filled=True, size=style.POINT, opacity=1)
    marks = marks.encode(
        x=x,
        y=y,
        color=alt.Color(field="what", type="nominal", scale=kinds, legend=alt.Legend(title=None)),
        shape=alt.Shape(field="what", type="nominal", scale=shapes, legend=alt.Legend(title=None)),
    )
    chart = alt.layer(*goals, marks).properties(
        width=2 * style.WIDTH,
        height={"step": style.step(len(rows))},
        title="ours / the other's; strokes: goals",
    )
    return str(vl_convert.vegalite_to_svg(style.finished(chart).to_dict()))


def main() -> int:
    """Write the plot; returns the exit code."""
    PLOT.write_text(drawn(ratios(TABLE.read_text())) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
