"""A leaderboard as JSON (schema ``leaderboard``), and back without loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from runner.model.task import Cell
from runner.tasks.tables import AGGREGATES
from runner.views.leaderboard.comparing import CORRECTION
from runner.views.leaderboard.formats import parts
from runner.views.leaderboard.judges import Judge
from runner.views.leaderboard.rows import (
    CellScore,
    Column,
    Comparison,
    LeaderboardTable,
    RoundInfo,
    Row,
    Unranked,
    Value,
)
from runner.views.leaderboard.significance import ALPHA

SCHEMA_VERSION = 1


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
        "measures": [
            {k: getattr(c, k) for k in ("id", "measure", "direction", "whole")} for c in table.columns
        ],
        "baseline": table.baseline,
        "topics": table.topics,
        "significance": None
        if table.test is None
        else {"test": table.test, "correction": CORRECTION, "alpha": ALPHA, "measure": table.rank_by},
        "rows": [_row_dict(r) for r in table.rows],
        "unranked": [
            {
                **{k: getattr(u, k) for k in parts.UNRANKED_HEAD},
                "runs": list(u.runs),
                "missing": [{"dataset": c.dataset, "scenario": c.scenario} for c in u.missing],
            }
            for u in table.unranked
        ],
        "counts": dict(table.counts),
        "judges": [_judge_dict(judge) for judge in table.judges],
        "notes": list(table.notes),
    }


def _judge_dict(judge: Judge) -> dict[str, Any]:
    figures = {k: list(v) if isinstance(v, tuple) else v for k, v in judge.reliability.items()}
    return {**asdict(judge), "reliability": figures}


def _judge_of(data: Mapping[str, Any]) -> Judge:
    figures = {k: tuple(v) if isinstance(v, list) else v for k, v in data.get("reliability", {}).items()}
    return Judge(**{**data, "reliability": figures})


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
        "time_step": row.time_step,
        "memory_step": row.memory_step,
        "submission": row.submission,
        "runs": list(row.runs),
        "registered": row.registered,
        "cells": [
            {k: getattr(cell, k) for k in ("dataset", "scenario", "submission", "run", "value")}
            for cell in row.cells
        ],
        "judge": row.judge,
        "stale": list(row.stale),
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
        judges=tuple(_judge_of(judge) for judge in data.get("judges", ())),
    )


def _row_of(data: Mapping[str, Any]) -> Row:
    c = data["comparison"]
    mark = {"better": "†", "worse": "‡", None: ""}
    return Row(
        **{k: v for k, v in data.items() if k not in ("scores", "runs", "comparison", "cells", "stale")},
        values={n: Value(v["mean"], *(v["interval"] or (None, None))) for n, v in data["scores"].items()},
        runs=tuple(data["runs"]),
        comparison=None if c is None else Comparison(**{**c, "mark": mark[c["mark"]]}),
        cells=tuple(CellScore(**cell) for cell in data["cells"]),
        stale=tuple(data.get("stale", ())),
    )


def to_json(table: LeaderboardTable) -> str:
    """:func:`as_dict` as text."""
    return json.dumps(as_dict(table), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
