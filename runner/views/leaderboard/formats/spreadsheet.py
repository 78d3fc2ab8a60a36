"""A leaderboard as CSV, with cells that no spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from runner.views.leaderboard.formats import parts
from runner.views.leaderboard.rows import LeaderboardTable, Row, Unranked


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
        "time_step",
        "memory_step",
    ]
    heads += ["outcome", "blame", "reason", "submission", "registered"]
    # The same in every line: a line that is cut out of the file still says what it belongs to.
    heads += ["table", "round", "frozen", "aggregate", "unit", "filter"]
    # Who judged, and how reliable that is: a score without it says little.
    heads += ["judge", "judge_model", "judge_prompts", "judge_reliability"] if table.judges else []
    stale = any(row.stale for row in table.rows)
    heads += ["stale"] * stale
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
                (
                    *(
                        "team",
                        "software",
                        "tag",
                        "method",
                        "how",
                        "memory_source",
                        "submission",
                        "registered",
                    ),
                    *("time_step", "memory_step"),
                ),
            ),
            **same,
            "baseline": "yes" if row.baseline else "no",
            "covered": row.covered,
            "topics": row.topics,
            "wall_seconds": _number(row.wall_seconds),
            "memory_peak": _number(row.memory_peak),
            "outcome": "scored",
            **_judges(table, row),
            **({"stale": _no_formula(" ".join(row.stale))} if stale else {}),
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
        writer.writerow({**_defused(u, parts.UNRANKED_HEAD), **same})
    return out.getvalue()


def _judges(table: LeaderboardTable, row: Row) -> dict[str, str]:
    mine = [judge for judge in table.judges if judge.label in row.judge.split(", ")]
    if not mine:
        return {}
    figures = ["; ".join(f"{k}={_figure(v)}" for k, v in judge.reliability.items()) for judge in mine]
    columns = {
        "judge": [judge.name for judge in mine],
        "judge_model": [judge.model or "" for judge in mine],
        "judge_prompts": [judge.prompts or "" for judge in mine],
        "judge_reliability": figures,
    }
    return {name: _no_formula(" | ".join(values)) for name, values in columns.items()}


def _defused(row: Row | Unranked, names: Sequence[str]) -> dict[str, str]:
    return {name: _no_formula(str(getattr(row, name))) for name in names}


def _no_formula(value: str) -> str:
    """Text that a spreadsheet takes as text: what could start a formula gets an apostrophe in front."""
    return f"'{value}" if value.lstrip()[:1] in tuple("=+-@|%") or value[:1] in ("\t", "\r", "\n") else value


def _figure(value: float | tuple[float, float]) -> str:
    """A judge's figure, or its lowest and highest over the runs."""
    return f"{value[0]!r} to {value[1]!r}" if isinstance(value, tuple) else repr(value)


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)
