"""Leaderboards as text, JSON, CSV, Markdown, LaTeX and HTML; one run's scores as TIRA's prototext.

Everything is a pure function of the :class:`LeaderboardTable` (or the :class:`RunView`): no clock, no
machine, no order of a dictionary, so the same archive and events always give the same bytes. Tags and
reasons were written by participants; each format defuses them in its own way.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from runner.audience import RunView, escape, not_for
from runner.errors import RunnerError
from runner.leaderboard.significance import ALPHA, flips
from runner.leaderboard.specs import AGGREGATES
from runner.leaderboard.table import (
    CORRECTION,
    CellScore,
    Column,
    Comparison,
    LeaderboardTable,
    RoundInfo,
    Row,
    Unranked,
    Value,
    cell_name,
)
from runner.tasks import Cell

SCHEMA_VERSION = 1
_BELOW = ("software", "tag", "outcome", "blame", "why")
_UNRANKED_HEAD = (
    *("team", "software", "tag", "method", "how", "outcome", "blame", "reason", "submission", "registered"),
)


def export(table: LeaderboardTable, format: str) -> str:
    """The leaderboard in one of :data:`FORMATS`. Raises E101 for another format."""
    if format not in FORMATS:
        raise RunnerError(
            "E101", f"there is no format {escape(format, 40)!r}", fix=f"choose one of {', '.join(FORMATS)}"
        )
    return FORMATS[format](table)


def print_table(table: LeaderboardTable, stream: IO[str], *, color: bool | None = None) -> None:
    """Print the leaderboard for people: with lines and colour on a terminal, plain otherwise.

    A terminal gets the columns that it has room for. ``color`` None asks the stream and ``NO_COLOR``.
    """
    import os
    import shutil

    if color is None:
        color = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if color:
        _rich(table, stream)
    else:
        stream.write(text(table, shutil.get_terminal_size().columns if stream.isatty() else None))


# Pieces that several formats share


def _head(column: Column) -> str:
    return f"{column.measure} ↓" if column.direction == "lower" else column.measure


def _score(row: Row, column: Column) -> str:
    value = row.values.get(column.id)
    return "–" if value is None else f"{value.mean:.4f}"


def _interval(row: Row, column: Column) -> str:
    value = row.values.get(column.id)
    return (
        ""
        if value is None or value.low is None or value.high is None
        else f"[{value.low:.4f}, {value.high:.4f}]"
    )


def _p(row: Row) -> str:
    if row.comparison is None:
        return ""
    return "<0.001" if row.comparison.p_corrected < 0.001 else f"{row.comparison.p_corrected:.3f}"


def _mark(row: Row) -> str:
    return row.comparison.mark if row.comparison else ""


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"


def _memory(row: Row) -> str:
    if row.memory_peak is None:
        return ""
    return f"{'≈' if row.memory_source == 'sampled' else ''}{row.memory_peak / 2**20:.0f} MiB"


def _coverage(row: Row) -> str:
    return f"{row.covered}/{row.topics}"


def _software(row: Row | Unranked) -> str:
    """The software, or only the team where a row holds several of its softwares."""
    return row.team if ", " in row.software else f"{row.team}/{row.software}"


def _kind(row: Row) -> str:
    """What sets a row apart: baseline; manual, uploaded or mixed where it is not automatic and executed."""
    kinds = ["baseline"] * row.baseline
    kinds += [row.method] * (row.method != "automatic")
    kinds += [row.how] * (row.how != "executed" and row.how not in kinds)
    return ", ".join(kinds)


def _on(cells: Sequence[Cell]) -> str:
    """The cells of a table, short: a full grid as datasets × scenarios."""
    datasets = list(dict.fromkeys(c.dataset for c in cells))
    scenarios = list(dict.fromkeys(c.scenario for c in cells))
    if len(datasets) > 1 and len(scenarios) > 1 and len(set(cells)) == len(datasets) * len(scenarios):
        return f"{', '.join(datasets)} × {', '.join(scenarios)}"
    return ", ".join(cell_name(c) for c in cells)


def _caption(table: LeaderboardTable) -> str:
    ranking = next(c for c in table.columns if c.id == table.rank_by)
    name = f"table {table.table}" + (f" ({table.heading})" if table.heading else "")
    if table.round is not None:
        name += f", {table.round.title}"
    only = "".join(f", {word} only" for word in table.filters.values())
    return f"{table.title}: {name} on {_on(table.cells)}, ranked by {ranking.measure}{only}."


def _rules(table: LeaderboardTable) -> list[str]:
    """Round, aggregation, unit and filter of a table, each in one sentence; nothing for a plain table."""
    lines = []
    if table.round is not None:
        r = table.round
        date = f"{r.at} ({r.at_utc})" if r.at != r.at_utc else r.at
        state = f"frozen {r.frozen}" if r.frozen else "not frozen yet, provisional"
        lines.append(f"Round {r.id}: what was received by {date} counts; {state}.")
    if len(table.cells) > 1:
        lines.append(f"Scores are the {AGGREGATES[table.aggregate]} ({len(table.cells)} cells).")
    if table.unit == "team":
        lines.append(
            "A row is a team: in each cell its latest valid submission counts. Baselines rank apart."
        )
    if table.filters:
        words = " and ".join(f"{name} {word}" for name, word in table.filters.items())
        lines.append(f"Filter: {words}; ranks are among these.")
    if table.description:
        lines.append(table.description)
    return lines


def _legend(table: LeaderboardTable) -> list[str]:
    """What the numbers mean: topics, intervals, the test with its correction, level and n; then the notes."""
    lines = [
        f"Means over {table.topics} judged topics; a topic without an answer counts, it is not left out."
        if table.rows
        else ("Nothing is ranked with this filter." if table.filters else "Nothing is ranked yet.")
    ]
    lines += _rules(table)
    if any(v.low is not None for r in table.rows for v in r.values.values()):
        lines.append(_INTERVALS)
    if table.test is not None:
        n = max((r.comparison.topics for r in table.rows if r.comparison), default=table.topics)
        draws = flips(n)
        how = f"{draws:,} random sign patterns" if draws else "every sign pattern"
        lines.append(
            f"† better, ‡ worse than the baseline {table.baseline}: {table.test} on paired topics "
            f"(two-sided, {how}), {CORRECTION}-corrected, alpha = {ALPHA:g}, n = {n} topics."
        )
    if any(r.memory_source == "sampled" and r.memory_peak is not None for r in table.rows):
        lines.append("≈ the memory peak was sampled, the true one may be higher.")
    lines += table.notes
    rest = [
        f"{table.counts[k]} {k}"
        for k in ("superseded", "withdrawn", "pending", "cancelled")
        if table.counts.get(k)
    ]
    if rest:
        lines.append(f"Not shown: {', '.join(rest)}.")
    return lines


def _explained(table: LeaderboardTable, left_out: Sequence[str]) -> list[str]:
    """The legend of a table without the columns ``left_out``, which are named."""
    lines = [line for line in _legend(table) if not (line == _INTERVALS and "95 %" in left_out)]
    if left_out:
        lines.insert(0, f"Too narrow for: {', '.join(left_out)}; --format csv has everything.")
    return lines


def _cells(table: LeaderboardTable, row: Row) -> list[str]:
    """One row as people read it: the order of :func:`_heads`."""
    scores = [_score(row, c) + (_mark(row) if c.id == table.rank_by else "") for c in table.columns]
    ranking = next(c for c in table.columns if c.id == table.rank_by)
    return [
        str(row.rank),
        _software(row),
        row.tag,
        _kind(row),
        scores[0],
        _interval(row, ranking),
        _p(row),
        *scores[1:],
        _coverage(row),
        _seconds(row.wall_seconds),
        _memory(row),
    ]


def _heads(table: LeaderboardTable) -> list[str]:
    names = [_head(c) for c in table.columns]
    return [
        "rank",
        "software",
        "tag",
        "kind",
        names[0],
        "95 %",
        "p",
        *names[1:],
        "answered",
        "time",
        "memory",
    ]


_LEFT = {"software", "tag", "kind"}
_INTERVALS = "In brackets: 95 % interval over topics."
_GAP = 2  # spaces between the columns of a table on a terminal


def _used(heads: list[str], rows: list[list[str]]) -> list[int]:
    """The columns that are worth their space: all but those that are empty in every row."""
    return [i for i in range(len(heads)) if not rows or any(row[i] for row in rows)]


def _fitting(heads: list[str], rows: list[list[str]], width: int) -> list[int]:
    """The columns to show on a terminal: what tells least goes first until the rest fits.

    How many topics were answered stays beside the score whatever else goes.
    """
    used = _used(heads, rows)
    others = heads[7:-3]  # the measures that do not rank
    for head in ["memory", "time", "tag", "95 %", *reversed(others[1:]), "kind", *others[:1]]:
        if sum(max(len(row[i]) for row in [heads, *rows]) + _GAP for i in used) - _GAP <= width:
            break
        used = [i for i in used if heads[i] != head]
    return used


def _fitting_below(rows: list[list[str]], width: int) -> list[int]:
    """The columns of the unranked table, whose last one is text that wraps: tag and blame go when it is narrow."""
    used = list(range(len(_BELOW)))
    for head in ("tag", "blame"):
        if sum(max(len(row[i]) for row in [list(_BELOW), *rows]) + _GAP for i in used[:-1]) + 30 <= width:
            break
        used = [i for i in used if _BELOW[i] != head]
    return used


# The formats


def text(table: LeaderboardTable, width: int | None = None) -> str:
    """Plain aligned text, for terminals without colour (``width`` characters), files and pipes (None: all of it)."""
    heads, rows = _heads(table), [_cells(table, r) for r in table.rows]
    lines = [*_wrapped(_caption(table), width), ""]
    left_out: list[str] = []
    if rows:
        used = _used(heads, rows) if width is None else _fitting(heads, rows, width)
        left_out = [heads[i] for i in _used(heads, rows) if i not in used]
        lines += _aligned([heads[i] for i in used], [[row[i] for i in used] for row in rows])
        lines.append("")
    lines += [part for line in _explained(table, left_out) for part in _wrapped(line, width)]
    if table.unranked:
        lines += ["", "Not ranked:"]
        below = _below(table)
        used = list(range(len(_BELOW))) if width is None else _fitting_below(below, width)
        shown = [[row[i] for i in used] for row in below]
        lines += _hanging(_aligned([_BELOW[i] for i in used], shown, left=True), width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _wrapped(line: str, width: int | None) -> list[str]:
    """A line of text in lines of ``width`` characters (None: as it is)."""
    import textwrap

    return [line] if width is None else textwrap.wrap(line, width, break_on_hyphens=False) or [""]


def _hanging(lines: list[str], width: int | None) -> list[str]:
    """Aligned lines whose last column is text: it goes on below itself where ``width`` is too small."""
    import textwrap

    if width is None or len(lines) < 2:
        return lines
    start = lines[1].rstrip().rfind(" ") + 1
    room = max(20, width - start)
    shown = [lines[0].rstrip(), lines[1][: start + room]]
    for line in lines[2:]:
        first, *rest = textwrap.wrap(line[start:], room, break_on_hyphens=False) or [""]
        shown += [line[:start] + first, *(" " * start + more for more in rest)]
    return shown


def _below(table: LeaderboardTable) -> list[list[str]]:
    """The rows of the unranked table: the order of :data:`_BELOW`."""
    return [[_software(u), u.tag, u.outcome, u.blame, u.reason] for u in table.unranked]


def _aligned(heads: list[str], rows: list[list[str]], *, left: bool = False) -> list[str]:
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    lefts = [left or head in _LEFT for head in heads]

    def line(row: list[str]) -> str:
        return "  ".join(
            c.ljust(w) if at else c.rjust(w) for c, w, at in zip(row, widths, lefts, strict=True)
        )

    return [line(heads), line(["-" * w for w in widths]), *(line(row) for row in rows)]


def _rich(table: LeaderboardTable, stream: IO[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    heads, rows = _heads(table), [_cells(table, r) for r in table.rows]
    console.print(Text(_caption(table), style="bold"))
    left_out: list[str] = []
    if rows:
        console.print()
        shown = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        used = _fitting(heads, rows, console.width)
        for i in used:
            shown.add_column(Text(heads[i]), justify="left" if heads[i] in _LEFT else "right", no_wrap=True)
        for row, cells in zip(table.rows, rows, strict=True):
            shown.add_row(*(Text(cells[i]) for i in used), style="dim" if row.baseline else "")
        console.print(shown)
        console.print()
        left_out = [heads[i] for i in _used(heads, rows) if i not in used]
    for line in _explained(table, left_out):
        console.print(Text(line, style="dim"))
    if table.unranked:
        console.print(Text("\nNot ranked:", style="bold"))
        shown = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        below = _below(table)
        used = _fitting_below(below, console.width)
        for i in used:
            shown.add_column(_BELOW[i], no_wrap=i != used[-1])
        for cells in below:
            shown.add_row(*(Text(cells[i]) for i in used))
        console.print(shown)


def as_dict(table: LeaderboardTable) -> dict[str, Any]:
    """The leaderboard as JSON data (schema ``leaderboard``), with scores at full precision."""
    return {
        "schema_version": SCHEMA_VERSION,
        "task": table.task,
        "title": table.title,
        "table": table.table,
        "heading": table.heading,
        "description": table.description,
        "audience": table.audience,
        "round": None
        if table.round is None
        else {k: getattr(table.round, k) for k in ("id", "title", "at", "at_utc", "frozen")},
        "aggregate": table.aggregate,
        "aggregation": AGGREGATES[table.aggregate] if len(table.cells) > 1 else "",
        "unit": table.unit,
        "filters": dict(table.filters),
        "cells": [{"dataset": c.dataset, "scenario": c.scenario} for c in table.cells],
        "rank_by": table.rank_by,
        "measures": [{"id": c.id, "measure": c.measure, "direction": c.direction} for c in table.columns],
        "baseline": table.baseline,
        "topics": table.topics,
        "significance": None
        if table.test is None
        else {"test": table.test, "correction": CORRECTION, "alpha": ALPHA, "measure": table.rank_by},
        "rows": [_row_dict(r) for r in table.rows],
        "unranked": [
            {
                **{k: getattr(u, k) for k in _UNRANKED_HEAD},
                "runs": list(u.runs),
                "missing": [{"dataset": c.dataset, "scenario": c.scenario} for c in u.missing],
            }
            for u in table.unranked
        ],
        "counts": dict(table.counts),
        "notes": list(table.notes),
    }


def _row_dict(row: Row) -> dict[str, Any]:
    c = row.comparison
    return {
        "rank": row.rank,
        "team": row.team,
        "software": row.software,
        "tag": row.tag,
        "method": row.method,
        "how": row.how,
        "baseline": row.baseline,
        "scores": {
            name: {"mean": v.mean, "interval": None if v.low is None else [v.low, v.high]}
            for name, v in row.values.items()
        },
        "topics": row.topics,
        "covered": row.covered,
        "comparison": None
        if c is None
        else {
            "difference": c.difference,
            "topics": c.topics,
            "p": c.p,
            "p_corrected": c.p_corrected,
            "mark": {"†": "better", "‡": "worse"}.get(c.mark),
        },
        "wall_seconds": row.wall_seconds,
        "memory_peak": row.memory_peak,
        "memory_source": row.memory_source,
        "submission": row.submission,
        "runs": list(row.runs),
        "registered": row.registered,
        "cells": [
            {k: getattr(cell, k) for k in ("dataset", "scenario", "submission", "run", "value")}
            for cell in row.cells
        ],
    }


def from_dict(data: Mapping[str, Any], audience: str) -> LeaderboardTable:
    """The leaderboard of :func:`as_dict`'s data, checked before by the schema, for ``audience``."""
    test = data["significance"]
    return LeaderboardTable(
        **{k: data[k] for k in ("task", "title", "table", "heading", "description", "aggregate", "unit")},
        **{k: data[k] for k in ("rank_by", "baseline", "topics")},
        audience=audience,
        cells=tuple(Cell(**c) for c in data["cells"]),
        columns=tuple(Column(**m) for m in data["measures"]),
        rows=tuple(_row_of(r) for r in data["rows"]),
        unranked=tuple(
            Unranked(**{**u, "runs": tuple(u["runs"]), "missing": tuple(Cell(**c) for c in u["missing"])})
            for u in data["unranked"]
        ),
        counts=dict(data["counts"]),
        test=None if test is None else test["test"],
        notes=tuple(data["notes"]),
        round=None if data["round"] is None else RoundInfo(**data["round"]),
        filters=dict(data["filters"]),
    )


def _row_of(data: Mapping[str, Any]) -> Row:
    c = data["comparison"]
    mark = {"better": "†", "worse": "‡", None: ""}
    return Row(
        **{k: v for k, v in data.items() if k not in ("scores", "runs", "comparison", "cells")},
        values={n: Value(v["mean"], *(v["interval"] or (None, None))) for n, v in data["scores"].items()},
        runs=tuple(data["runs"]),
        comparison=None if c is None else Comparison(**{**c, "mark": mark[c["mark"]]}),
        cells=tuple(CellScore(**cell) for cell in data["cells"]),
    )


def to_json(table: LeaderboardTable) -> str:
    """:func:`as_dict` as text."""
    return json.dumps(as_dict(table), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(table: LeaderboardTable) -> str:
    """One line a submission, ranked ones first; scores at full precision. No cell starts a spreadsheet formula."""
    heads = ["rank", "team", "software", "tag", "method", "how", "baseline"]
    for column in table.columns:
        heads += [column.id, f"{column.id}_low", f"{column.id}_high"]
    heads += [
        "difference",
        "p",
        "p_corrected",
        "covered",
        "topics",
        "wall_seconds",
        "memory_peak",
        "memory_source",
    ]
    heads += ["outcome", "blame", "reason", "submission", "registered"]
    # The same in every line: a line that is cut out of the file still says what it belongs to.
    heads += ["table", "round", "frozen", "aggregate", "unit", "filter"]
    same = {
        "table": table.table,
        "round": table.round.id if table.round else "",
        "frozen": (table.round.frozen or "no") if table.round else "",
        "aggregate": table.aggregate if len(table.cells) > 1 else "",
        "unit": table.unit,
        "filter": " ".join(f"{name}={word}" for name, word in table.filters.items()),
    }
    out = io.StringIO()
    writer = csv.DictWriter(out, heads, restval="", lineterminator="\n")
    writer.writeheader()
    for row in table.rows:
        line: dict[str, Any] = {
            "rank": row.rank,
            **_defused(
                row,
                ("team", "software", "tag", "method", "how", "memory_source", "submission", "registered"),
            ),
            **same,
            "baseline": "yes" if row.baseline else "no",
            "covered": row.covered,
            "topics": row.topics,
            "wall_seconds": _number(row.wall_seconds),
            "memory_peak": _number(row.memory_peak),
            "outcome": "scored",
        }
        for name, value in row.values.items():
            line |= {
                name: repr(value.mean),
                f"{name}_low": _number(value.low),
                f"{name}_high": _number(value.high),
            }
        if row.comparison:
            c = row.comparison
            line |= {"difference": repr(c.difference), "p": repr(c.p), "p_corrected": repr(c.p_corrected)}
        writer.writerow(line)
    for u in table.unranked:
        writer.writerow({**_defused(u, _UNRANKED_HEAD), **same})
    return out.getvalue()


def _defused(row: Row | Unranked, names: Sequence[str]) -> dict[str, str]:
    return {name: _no_formula(str(getattr(row, name))) for name in names}


def _no_formula(value: str) -> str:
    """Text that a spreadsheet takes as text: what could start a formula gets an apostrophe in front."""
    return f"'{value}" if value.lstrip()[:1] in tuple("=+-@|%") or value[:1] in ("\t", "\r", "\n") else value


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def to_markdown(table: LeaderboardTable) -> str:
    """GitHub-flavoured Markdown."""
    heads, rows = _heads(table), [_cells(table, r) for r in table.rows]
    lines = [_md(_caption(table)), ""]
    if rows:
        used = _used(heads, rows)
        lines.append("| " + " | ".join(_md(heads[i]) for i in used) + " |")
        lines.append("|" + "|".join(":--" if heads[i] in _LEFT else "--:" for i in used) + "|")
        lines += ["| " + " | ".join(_md(row[i]) for i in used) + " |" for row in rows]
        lines.append("")
    lines += [f"- {_md(line)}" for line in _legend(table)]
    if table.unranked:
        lines += [
            "",
            "Not ranked:",
            "",
            "| software | tag | outcome | blame | why |",
            "|:--|:--|:--|:--|:--|",
        ]
        lines += ["| " + " | ".join(_md(cell) for cell in cells) + " |" for cells in _below(table)]
    return "\n".join(lines) + "\n"


def _md(value: str) -> str:
    """Text without meaning to Markdown or to the HTML in it; nothing in it becomes a link or a mention."""
    safe = re.sub(r"([\\`*_{}\[\]()<>#|~!])", r"\\\1", value.replace("&", "&amp;"))
    safe = re.sub(r"(?<![A-Za-z0-9])@", "&#64;", safe)
    return safe.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("://", ":&#47;/")


def to_latex(table: LeaderboardTable) -> str:
    """A ``table`` for the booktabs package. The best mean of each measure is bold; the caption says how sure
    that is."""
    columns = table.columns
    best = {c.id: _best(table, c) for c in columns}
    kinds = ["Kind"] if any(_kind(row) for row in table.rows) else []
    heads = ["", "Software", "Tag", *kinds, *(_head(c) for c in columns), "Answered"]
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "  \\centering",
        f"  \\caption{{{' '.join(_tex(x) for x in [_caption(table), *_legend(table), _bold_note(table)] if x)}}}",
        f"  \\label{{tab:{table.task}-{re.sub(r'[^A-Za-z0-9-]', '-', table.table)}}}",
        f"  \\begin{{tabular}}{{rll{'l' * len(kinds)}{'r' * (len(columns) + 1)}}}",
        "    \\toprule",
        "    " + " & ".join(_tex(h) for h in heads) + " \\\\",
        "    \\midrule",
    ]
    for row in table.rows:
        cells = [str(row.rank), _tex(_software(row)), _tex(row.tag), *(_tex(_kind(row)) for _ in kinds)]
        for c in columns:
            cell = _tex(_score(row, c))
            value = row.values.get(c.id)
            if value is not None and value.mean == best[c.id]:
                cell = f"\\textbf{{{cell}}}"
            if c.id == table.rank_by and _mark(row):
                cell += _TEX_MARKS[_mark(row)]
            cells.append(cell)
        lines.append("    " + " & ".join([*cells, _coverage(row)]) + " \\\\")
    lines += ["    \\bottomrule", "  \\end{tabular}", "\\end{table}"]
    lines += [f"% not ranked: {_tex(_software(u))} ({u.outcome}): {_tex(u.reason)}" for u in table.unranked]
    return "\n".join(lines) + "\n"


def _best(table: LeaderboardTable, column: Column) -> float | None:
    means = [r.values[column.id].mean for r in table.rows if column.id in r.values]
    return (min if column.direction == "lower" else max)(means, default=None)


def _bold_note(table: LeaderboardTable) -> str:
    return "Bold: highest mean (lowest where lower is better), whatever the test says." if table.rows else ""


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


_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 88rem; padding: 0 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
thead th { border-bottom: 2px solid var(--line); white-space: nowrap; }
th[scope=row], .text { text-align: left; white-space: nowrap; }
td.why { text-align: left; overflow-wrap: break-word; min-width: 16rem; }
tr.baseline { background: var(--soft); }
.interval { white-space: nowrap; }
@media print { body { margin: 0; max-width: none; } .scroll { overflow: visible; } }
"""


def to_html(table: LeaderboardTable) -> str:
    """One self-contained page: no script, nothing fetched from anywhere; readable by screen readers and in print."""
    heads, rows = _heads(table), [_cells(table, r) for r in table.rows]
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_h(table.title)}: {_h(table.table)}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{_h(table.title)}</h1>",
    ]
    if rows:
        used = _used(heads, rows)
        parts += ['<div class="scroll" tabindex="0" role="region" aria-label="Leaderboard">', "<table>"]
        parts += [f"<caption>{_h(_caption(table))}</caption>", "<thead><tr>"]
        parts += [f'<th scope="col"{_css(heads[i])}>{_h(heads[i])}</th>' for i in used]
        parts += ["</tr></thead>", "<tbody>"]
        for row, cells in zip(table.rows, rows, strict=True):
            parts.append('<tr class="baseline">' if row.baseline else "<tr>")
            for i in used:
                if heads[i] == "software":
                    parts.append(f'<th scope="row">{_h(cells[i])}</th>')
                else:
                    parts.append(f"<td{_css(heads[i])}>{_h(cells[i])}</td>")
            parts.append("</tr>")
        parts += ["</tbody>", "</table>", "</div>"]
    parts += ["<ul>", *(f"<li>{_h(line)}</li>" for line in _legend(table)), "</ul>"]
    if table.unranked:
        parts += ['<div class="scroll" tabindex="0" role="region" aria-label="Not ranked">', "<table>"]
        parts += ["<caption>Not ranked</caption>", "<thead><tr>"]
        parts += [f'<th scope="col" class="text">{head}</th>' for head in _BELOW]
        parts += ["</tr></thead>", "<tbody>"]
        for software, *cells, why in _below(table):
            parts.append(f'<tr><th scope="row">{_h(software)}</th>')
            parts += [*(f'<td class="text">{_h(cell)}</td>' for cell in cells)]
            parts.append(f'<td class="why">{_h(why)}</td></tr>')
        parts += ["</tbody>", "</table>", "</div>"]
    parts += ["</main>", "</body>", "</html>"]
    return "\n".join(parts) + "\n"


def _h(value: str) -> str:
    return html.escape(value, quote=True)


def _css(head: str) -> str:
    if head in _LEFT:
        return ' class="text"'
    return ' class="interval"' if head == "95 %" else ""


def to_prototext(view: RunView, names: Mapping[str, str] | None = None) -> str:
    """One run's scores as TIRA's ``evaluation.prototext``: a ``measure`` for each, key and value as strings.

    ``names`` maps measure ids to the keys to write (a task's measure strings); ids stand where it has none.
    Raises E103 when the view holds no scores for its audience.
    """
    if "scores" in view["hidden"]:
        raise not_for(view.audience, f"the scores of {view['run']}")
    names = names or {}
    keys = [names.get(name, name) for name in view["scores"]]
    blocks = []
    for (name, score), key in zip(view["scores"].items(), keys, strict=True):
        unique = key if keys.count(key) == 1 else name  # two truths may share a measure
        blocks.append(f'measure{{\n  key: "{_proto(unique)}"\n  value: "{score["value"]!r}"\n}}\n')
    return "".join(blocks)


def _proto(value: str) -> str:
    return escape(value).replace("\\", "\\\\").replace('"', '\\"')


FORMATS: dict[str, Callable[[LeaderboardTable], str]] = {
    "table": text,
    "json": to_json,
    "csv": to_csv,
    "markdown": to_markdown,
    "latex": to_latex,
    "html": to_html,
}
