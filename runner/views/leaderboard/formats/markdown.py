"""A leaderboard as Markdown."""

from __future__ import annotations

import re

from runner.views.leaderboard.formats import parts
from runner.views.leaderboard.rows import LeaderboardTable


def to_markdown(table: LeaderboardTable) -> str:
    """GitHub-flavoured Markdown."""
    heads, rows = parts.head_cells(table), [parts.row_cells(table, r) for r in table.rows]
    lines = [_md(parts.caption(table)), ""]
    if rows:
        used = parts.used_columns(heads, rows)
        lines.append("| " + " | ".join(_md(heads[i]) for i in used) + " |")
        lines.append("|" + "|".join(":--" if heads[i] in parts.LEFT else "--:" for i in used) + "|")
        lines += ["| " + " | ".join(_md(row[i]) for i in used) + " |" for row in rows]
        lines.append("")
    lines += [f"- {_md(line)}" for line in parts.legend(table)]
    if table.unranked:
        lines += [
            "",
            "Not ranked:",
            "",
            "| software | tag | outcome | blame | why |",
            "|:--|:--|:--|:--|:--|",
        ]
        lines += ["| " + " | ".join(_md(cell) for cell in cells) + " |" for cells in parts.below_cells(table)]
    return "\n".join(lines) + "\n"


def _md(value: str) -> str:
    """Text without meaning to Markdown or to the HTML in it; nothing in it becomes a link or a mention."""
    safe = re.sub(r"([\\`*_{}\[\]()<>#|~!])", r"\\\1", value.replace("&", "&amp;"))
    safe = re.sub(r"(?<![A-Za-z0-9])@", "&#64;", safe)
    return safe.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("://", ":&#47;/")
