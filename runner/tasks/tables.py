"""The tables that task.yaml asks for, with their patterns filled in: which cells, and which tables for single cells.

Works on the raw definition, so that it can be used while a task is being loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Raw = Mapping[str, Any]
Pointer = tuple[str | int, ...]
DEFAULT_RULE = "latest-per-software"

AGGREGATES = {
    "mean": "unweighted mean over the cells",
    "scenarios-then-datasets": "unweighted mean over the scenarios of each dataset, then over the datasets",
    "datasets-then-scenarios": "unweighted mean over the datasets of each scenario, then over the scenarios",
}


def expanded(data: Raw) -> list[dict[str, Any]]:
    """The tables of a definition in their order, each with a list of cells, a ``unit`` and, for tables made by
    ``per_cell``, the table they are ``part_of``."""
    tables: list[dict[str, Any]] = []
    for _, table in expanded_with_places(data):
        tables.append(table)
    return tables


def expanded_with_places(data: Raw) -> Iterator[tuple[Pointer, dict[str, Any]]]:
    """As :func:`expanded`, each with its place in the definition. Tolerates what the schema will refuse."""
    unit = "team" if data.get("round_rule", DEFAULT_RULE) == "latest-per-team" else "software"
    rows = data.get("tables")
    several = len(_ids(data, "scenarios") or ["default"]) > 1
    for i, row in enumerate(rows if isinstance(rows, list) else ()):
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            continue
        whole = {"unit": unit, **row, "cells": cells(data, row.get("cells"))}
        yield ("tables", i), whole
        if row.get("per_cell") is True:
            for cell in whole["cells"]:
                scenario = f".{cell['scenario']}" if several or cell["scenario"] != "default" else ""
                name = f"{row['id']}.{cell['dataset']}{scenario}"
                yield (
                    ("tables", i, "per_cell"),
                    {**whole, "id": name, "cells": [cell], "part_of": row["id"], "per_cell": False},
                )


def cells(data: Raw, given: Any) -> list[dict[str, str]]:
    """The cells that ``cells:`` of a table names, each with dataset and scenario, in the task's order."""
    datasets, scenarios = _ids(data, "datasets"), _ids(data, "scenarios") or ["default"]
    if isinstance(given, list):
        listed = (cell for cell in given if isinstance(cell, dict) and isinstance(cell.get("dataset"), str))
        return [{"dataset": c["dataset"], "scenario": str(c.get("scenario", "default"))} for c in listed]
    if isinstance(given, str):
        rows = data.get("datasets")
        datasets = [
            row["id"]
            for row in (rows if isinstance(rows, list) else ())
            if isinstance(row, dict)
            and isinstance(row.get("id"), str)
            and given in ("all", row.get("visibility"))
        ]
    elif isinstance(given, dict):
        datasets = _names(given.get("datasets"), datasets)
        scenarios = _names(given.get("scenarios"), scenarios)
    else:
        return []
    return [{"dataset": d, "scenario": s} for d in datasets for s in scenarios]


def _names(value: Any, default: list[str]) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else default


def _ids(data: Raw, key: str) -> list[str]:
    rows = data.get(key)
    return [
        row["id"]
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and isinstance(row.get("id"), str)
    ]


def problems(data: Raw) -> Iterator[tuple[Pointer, str, str]]:
    """What is wrong with the patterns: place, what, and how to mend it."""
    datasets, scenarios = _ids(data, "datasets"), _ids(data, "scenarios") or ["default"]
    seen: set[str] = set(_ids(data, "tables"))
    for pointer, table in expanded_with_places(data):
        if "part_of" in table:
            if table["id"] in seen:
                yield pointer, f'per_cell makes a second table "{table["id"]}"', "rename one of them"
            seen.add(table["id"])
            continue
        given = (data["tables"][pointer[1]]).get("cells")
        if isinstance(given, list):
            continue  # references in it are checked with the other references
        if isinstance(given, dict):
            for key, known in (("datasets", datasets), ("scenarios", scenarios)):
                for k, name in enumerate(_names(given.get(key), [])):
                    if name not in known:
                        what = f'there is no {key[:-1]} "{name[:40]}"'
                        yield (*pointer, "cells", key, k), what, f"known: {', '.join(known)[:200]}"
        elif isinstance(given, str) and not table["cells"]:
            yield (*pointer, "cells"), f"no dataset is {given[:40]}", "name the cells"
        if len(table["cells"]) > 400:
            yield (*pointer, "cells"), "a table has at most 400 cells", "name fewer"
