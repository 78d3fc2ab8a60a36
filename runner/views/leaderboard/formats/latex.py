"""A leaderboard as a LaTeX table (booktabs)."""

from __future__ import annotations

import math
import re

from runner.views.leaderboard.formats import parts
from runner.views.leaderboard.rows import LeaderboardTable, software_of


def to_latex(table: LeaderboardTable) -> str:
    """A ``table`` for the booktabs package. The best mean of each measure is bold; the caption says how sure
    that is."""
    from runner.views.leaderboard import frames

    ranked = frames.leaderboard(table).head(len(table.rows))  # the rows of the table come first
    names, kinds = [parts.name_of(row) for row in table.rows], [parts.kind_of(row) for row in table.rows]
    judges = [row.judge for row in table.rows]
    columns = [("", "r", ranked["rank"].map(str)), ("Software", "l", map(_tex, names))]
    displayed = [table.displayed(row) for row in table.rows]
    columns += [("Name", "l", map(_tex, displayed))] if any(displayed) else []
    columns += [("Tag", "l", ranked["tag"].map(_tex))]
    columns += [("Kind", "l", map(_tex, kinds))] if any(kinds) else []
    if table.rank_by.figure:
        combined = [row.combined.value if row.combined else 0.0 for row in table.rows]
        columns.append((table.rank_by.figure, "r", map(parts.place, combined)))
    for column in table.columns:
        means = ranked[frames.measure_column(column.id)]
        best = means.min() if column.direction == "lower" else means.max()
        cells = [_tex(parts.figure(None if math.isnan(mean) else mean, column)) for mean in means]
        cells = [f"\\textbf{{{c}}}" if mean == best else c for c, mean in zip(cells, means, strict=True)]
        if column.id == table.rank_by.first:
            cells = [c + _TEX_MARKS[parts.mark_of(row)] for c, row in zip(cells, table.rows, strict=True)]
        columns.append((parts.head_of(column), "r", cells))
    columns += [
        (
            "Answered",
            "r",
            (ranked["covered"].astype("string") + "/" + ranked["topics"].astype("string")).fillna("–"),
        )
    ]
    columns += [("Judge", "l", map(_tex, judges))] if any(judges) else []
    note = "Bold: highest mean (lowest where lower is better), whatever the test says." if table.rows else ""
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "  \\centering",
        f"  \\caption{{{' '.join(_tex(x) for x in [parts.caption(table), *parts.legend(table), note] if x)}}}",
        f"  \\label{{tab:{table.task}-{re.sub(r'[^A-Za-z0-9-]', '-', table.table)}}}",
        f"  \\begin{{tabular}}{{{''.join(align for _, align, _ in columns)}}}",
        "    \\toprule",
        "    " + " & ".join(_tex(head) for head, _, _ in columns) + " \\\\",
        "    \\midrule",
        *(f"    {' & '.join(cells)} \\\\" for cells in zip(*(c for _, _, c in columns), strict=True)),
        *("    \\bottomrule", "  \\end{tabular}", "\\end{table}"),
        *(f"% not ranked: {_tex(software_of(u))} ({u.outcome}): {_tex(u.reason)}" for u in table.unranked),
    ]
    return "\n".join(lines) + "\n"


_TEX_MARKS = {"": "", "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$"}
_TEX = {
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "↓": r"$\downarrow$",
    "≈": r"$\approx$",
    "–": "--",
    "×": r"$\times$",
    "…": r"\ldots{}",
}


def _tex(value: str) -> str:
    return "".join(_TEX.get(c, c) for c in value)
