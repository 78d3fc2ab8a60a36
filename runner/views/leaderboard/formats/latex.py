"""A leaderboard as a LaTeX table (booktabs)."""

from __future__ import annotations

import re

from runner.views.leaderboard.formats import parts
from runner.views.leaderboard.rows import LeaderboardTable


def to_latex(table: LeaderboardTable) -> str:
    """A ``table`` for the booktabs package. The best mean of each measure is bold; the caption says how sure
    that is."""
    columns = table.columns
    best = {c.id: parts.best_of(table, c) for c in columns}
    kinds = ["Kind"] if any(parts.kind_of(row) for row in table.rows) else []
    judges = ["Judge"] if any(row.judge for row in table.rows) else []
    heads = ["", "Software", "Tag", *kinds, *(parts.head_of(c) for c in columns), "Answered", *judges]
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "  \\centering",
        f"  \\caption{{{' '.join(_tex(x) for x in [parts.caption(table), *parts.legend(table), parts.bold_note(table)] if x)}}}",
        f"  \\label{{tab:{table.task}-{re.sub(r'[^A-Za-z0-9-]', '-', table.table)}}}",
        f"  \\begin{{tabular}}{{rll{'l' * len(kinds)}{'r' * (len(columns) + 1)}{'l' * len(judges)}}}",
        "    \\toprule",
        "    " + " & ".join(_tex(h) for h in heads) + " \\\\",
        "    \\midrule",
    ]
    for row in table.rows:
        cells = [
            str(row.rank),
            _tex(parts.name_of(row)),
            _tex(row.tag),
            *(_tex(parts.kind_of(row)) for _ in kinds),
        ]
        for c in columns:
            cell = _tex(parts.score_of(row, c))
            value = row.values.get(c.id)
            if value is not None and value.mean == best[c.id]:
                cell = f"\\textbf{{{cell}}}"
            if c.id == table.rank_by and parts.mark_of(row):
                cell += _TEX_MARKS[parts.mark_of(row)]
            cells.append(cell)
        lines.append(
            "    "
            + " & ".join([*cells, parts.coverage_of(row), *(_tex(row.judge) for _ in judges)])
            + " \\\\"
        )
    lines += ["    \\bottomrule", "  \\end{tabular}", "\\end{table}"]
    lines += [
        f"% not ranked: {_tex(parts.software_of(u))} ({u.outcome}): {_tex(u.reason)}" for u in table.unranked
    ]
    return "\n".join(lines) + "\n"


_TEX_MARKS = {"†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$"}
_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
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
