"""A leaderboard as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from runner.views.leaderboard.formats import parts
from runner.views.leaderboard.rows import LeaderboardTable


def to_markdown(table: LeaderboardTable) -> str:
    """GitHub-flavoured Markdown."""
    heads, rows = parts.shown_cells(table)
    lines = [_md(parts.caption(table)), ""]
    if rows:
        lines += [*_table(heads, [":--" if head in parts.LEFT else "--:" for head in heads], rows), ""]
    lines += [f"- {_md(line)}" for line in parts.legend(table)]
    if table.unranked:
        below_heads, below_rows = parts.below_cells(table)
        below = _table(below_heads, [":--"] * len(below_heads), below_rows)
        lines += ["", "Not ranked:", "", *below]
    return "\n".join(lines) + "\n"


def _table(heads: Sequence[str], aligns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(map(_md, cells)) + " |" for cells in (heads, *rows)]
    return [lines[0], f"|{'|'.join(aligns)}|", *lines[1:]]


def _md(value: str) -> str:
    """Text without meaning to Markdown or to the HTML in it; nothing in it becomes a link or a mention."""
    safe = re.sub(r"([\\`*_{}\[\]()<>#|~!])", r"\\\1", value.replace("&", "&amp;"))
    safe = re.sub(r"(?<![A-Za-z0-9])@", "&#64;", safe)
    return safe.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("://", ":&#47;/")
