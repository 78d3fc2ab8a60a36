"""A leaderboard as JSON (schema ``leaderboard``), and back without loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from typing import Any

from runner.model.task import Cell, Ranking
from runner.tasks.tables import AGGREGATES
from runner.views.leaderboard import rows
from runner.views.leaderboard.comparing import CORRECTION
from runner.views.leaderboard.judges import Judge
from runner.views.leaderboard.rows import (
    Combined,
    Comparison,
    Component,
    LeaderboardTable,
    Row,
    Value,
    software_of,
)
from runner.views.leaderboard.significance import ALPHA

SCHEMA_VERSION = 1
_MARKS = {"†": "better", "‡": "worse", "": None}
# Fields that are not there where they say nothing.
_LEFT_OUT = ("combined", "flagged", "precision", "paper", "affiliation")
_NAMES = {"values": "scores"}  # what fields are called in JSON where that differs


def as_dict(table: LeaderboardTable) -> dict[str, Any]:
    """The leaderboard as JSON data (schema ``leaderboard``), with scores at full precision."""
    test = _significance(table, table.test, table.against)
    return {
        "schema_version": SCHEMA_VERSION,
        **_fields(
            table, "task", "title", "table", "heading", "description", "audience", "round", "aggregate"
        ),
        "aggregation": AGGREGATES[table.aggregate] if len(table.cells) > 1 else "",
        **_fields(table, "unit", "pick"),
        **({"best_on": table.best_on} if table.best_on else {}),
        **_fields(table, "filters", "cells"),
        "rank_by": table.rank_by.written,
        "measures": _plain(table.columns),
        **_fields(table, "baseline", "topics"),
        "significance": test,
        **_fields(table, "rows", "unranked", "counts", "judges", "notes"),
        **{name: dict(found) for name in ("names", "parts") if (found := getattr(table, name))},
    }


def _significance(table: LeaderboardTable, test: str | None, against: str | None) -> dict[str, Any] | None:
    chosen = {"against": against} if against else {}
    said = {"test": test, "correction": CORRECTION, "alpha": ALPHA, "measure": table.rank_by.first, **chosen}
    return None if test is None else said


def each_as_dict(table: LeaderboardTable) -> dict[str, Any]:
    """What of :func:`as_dict` is another against each of the rows, in their order: by their names, as softwares or teams. Comparisons
    are lists of ``fields``."""
    fields = [one.name for one in dataclass_fields(Comparison)]
    return {
        "fields": fields,
        "against": [
            {
                "name": software_of(row),
                "significance": _significance(table, one.test, software_of(row)),
                "notes": list(one.notes),
                "comparisons": [
                    _plain(found) and list(_plain(found).values())
                    for found in map(one.comparisons.get, range(len(table.rows)))
                ],
            }
            for row, one in zip(table.rows, table.each, strict=True)
        ],
    }


def _fields(table: LeaderboardTable, *names: str) -> dict[str, Any]:
    """Fields of a leaderboard as JSON data, in this order."""
    return {name: _plain(getattr(table, name)) for name in names}


def _plain(value: Any) -> Any:
    """Data of a leaderboard as JSON data: objects by their fields, in their order."""
    if isinstance(value, Value):
        return {"mean": value.mean, "interval": None if value.low is None else [value.low, value.high]}
    if isinstance(value, Comparison):
        return {**vars(value), "mark": _MARKS[value.mark]}
    if is_dataclass(value):
        said = {
            name: one for name, one in vars(value).items() if one not in (None, "") or name not in _LEFT_OUT
        }
        return {_NAMES.get(name, name): _plain(one) for name, one in said.items()}
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def from_dict(data: Mapping[str, Any], audience: str) -> LeaderboardTable:
    """The leaderboard of :func:`as_dict`'s data, checked before by the schema, for ``audience``."""
    test = data["significance"]
    return LeaderboardTable(
        **{k: data[k] for k in ("task", "title", "table", "heading", "description", "aggregate", "unit")},
        **{k: data[k] for k in ("baseline", "topics")},
        rank_by=Ranking.read(data["rank_by"]),
        audience=audience,
        cells=tuple(Cell(**c) for c in data["cells"]),
        columns=tuple(rows.Column(**m) for m in data["measures"]),
        rows=tuple(_row_of(r) for r in data["rows"]),
        unranked=tuple(
            rows.Unranked(
                **{**u, "runs": tuple(u["runs"]), "missing": tuple(Cell(**c) for c in u["missing"])}
            )
            for u in data["unranked"]
        ),
        counts=dict(data["counts"]),
        test=None if test is None else test["test"],
        against=None if test is None else test.get("against"),
        notes=tuple(data["notes"]),
        round=None if data["round"] is None else rows.RoundInfo(**data["round"]),
        filters=dict(data["filters"]),
        pick=data.get("pick", "latest"),
        best_on=data.get("best_on"),
        judges=tuple(_judge_of(judge) for judge in data.get("judges", ())),
        names=dict(data.get("names", {})),
        parts=dict(data.get("parts", {})),
    )


def _judge_of(data: Mapping[str, Any]) -> Judge:
    figures = {k: tuple(v) if isinstance(v, list) else v for k, v in data.get("reliability", {}).items()}
    return Judge(**{**data, "reliability": figures})


def _row_of(data: Mapping[str, Any]) -> Row:
    c = data["comparison"]
    marks = {name: mark for mark, name in _MARKS.items()}
    return Row(
        **{
            k: v
            for k, v in data.items()
            if k not in ("scores", "runs", "comparison", "cells", "stale", "combined")
        },
        values={n: Value(v["mean"], *(v["interval"] or (None, None))) for n, v in data["scores"].items()},
        runs=tuple(data["runs"]),
        comparison=None if c is None else Comparison(**{**c, "mark": marks[c["mark"]]}),
        cells=tuple(rows.CellScore(**cell) for cell in data["cells"]),
        stale=tuple(data.get("stale", ())),
        combined=_combined_of(data["combined"]) if "combined" in data else None,
    )


def _combined_of(data: Mapping[str, Any]) -> Combined:
    return Combined(data["value"], tuple(Component(**one) for one in data["ranks"]))


def to_json(table: LeaderboardTable) -> str:
    """:func:`as_dict` as text."""
    return json.dumps(as_dict(table), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
