"""Leaderboards as text, JSON, CSV, TSV, Markdown, LaTeX, HTML and for tools around TREC; one run's scores as TIRA's prototext.

Everything is a pure function of the :class:`LeaderboardTable` (or the :class:`RunView`): no clock, no
machine, no order of a dictionary, so the same archive and events always give the same bytes. Tags and
reasons were written by participants; each format makes them harmless in its own way. A format is one module of
:mod:`runner.views.leaderboard.formats`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import IO

from runner.model.errors import no_such
from runner.views.leaderboard.formats import FORMATS as NAMES
from runner.views.leaderboard.formats import TREC
from runner.views.leaderboard.formats.latex import to_latex
from runner.views.leaderboard.formats.markdown import to_markdown
from runner.views.leaderboard.formats.page import to_html
from runner.views.leaderboard.formats.record import as_dict, each_as_dict, from_dict, to_json
from runner.views.leaderboard.formats.spreadsheet import to_csv, to_tsv
from runner.views.leaderboard.formats.terminal import rich_table, text
from runner.views.leaderboard.formats.tira import to_prototext
from runner.views.leaderboard.formats.trec import to_trec
from runner.views.leaderboard.rows import LeaderboardTable

__all__ = ["FORMATS", "as_dict", "each_as_dict", "export", "from_dict", "print_table", "text", "to_prototext"]

FORMATS: Mapping[str, Callable[[LeaderboardTable], str]] = dict(
    zip(NAMES, (text, to_json, to_csv, to_tsv, to_markdown, to_latex, to_html), strict=True)
)


def export(table: LeaderboardTable, format: str) -> str:
    """The leaderboard as text.

    Args:
        table: What is shown, already decided for an audience.
        format: One of :data:`FORMATS`, or of :data:`runner.views.leaderboard.formats.TREC`: then without values by topic.

    Returns:
        The text; the same bytes for the same table.

    Raises:
        RunnerError: E101 for another format, and for one that holds one run where there are more.
    """
    if format in TREC:
        return to_trec(table, format)
    if format not in FORMATS:
        raise no_such("format", format, FORMATS, fix=f"choose one of {', '.join(FORMATS)}", code="E101")
    return FORMATS[format](table)


def print_table(
    table: LeaderboardTable, stream: IO[str], *, color: bool | None = None, wide: bool = False
) -> None:
    """Print the leaderboard for people: with lines and colour on a terminal, plain otherwise.

    A terminal gets the columns for which it is wide enough, with ``wide`` all and more. ``color`` None asks the stream and
    ``NO_COLOR``.
    """
    import os
    import shutil

    if color is None:
        color = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if color:
        rich_table(table, stream, wide=wide)
    else:
        width = shutil.get_terminal_size().columns if stream.isatty() else None
        stream.write(text(table, width, wide=wide))
