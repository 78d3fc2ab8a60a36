"""The tables that task.yaml asks for, with their patterns filled in: which cells, and which tables for single cells.

All but :func:`doubts` works on the raw definition, so that it can be used while a task is being loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from runner.model.kinds import kind_spec
from runner.model.mapping import ids, rows
from runner.model.problems import Problems
from runner.model.task import Task
from runner.tasks.views import count_topics
from schemas.documents import show

Raw = Mapping[str, Any]
FEW = 5  # topics of a part
DEFAULT_RULE = "latest-per-software"

# What stands beside tables on a server, below a task's address.
ADDRESSES = frozenset({"calendar.ics", "compare", "hand-in", "plots", "register", "terms"})

AGGREGATES = {
    "mean": "unweighted mean over the cells",
    "scenarios-then-datasets": "unweighted mean over the scenarios of each dataset, then over the datasets",
    "datasets-then-scenarios": "unweighted mean over the datasets of each scenario, then over the scenarios",
}


def expanded(data: Raw) -> list[dict[str, Any]]:
    """The tables of a definition in their order, each with a list of cells, a ``unit`` and, for tables made by
    ``per_cell``, the table they are ``part_of``."""
    return [table for _, table in _expanded_with_places(data)]


def _expanded_with_places(data: Raw) -> Iterator[tuple[int, dict[str, Any]]]:
    """As :func:`expanded`, each with the position of the table that it is made from."""
    unit = "team" if data.get("round_rule", DEFAULT_RULE) == "latest-per-team" else "software"
    several = len(ids(data, "scenarios")) > 1
    for i, row in rows(data, "tables"):
        if "id" not in row:
            continue
        whole = {"unit": unit, **row, "cells": cells(data, row.get("cells"))}
        yield i, whole
        for cell in whole["cells"] if row.get("per_cell") else ():
            scenario = f".{cell['scenario']}" if several or cell["scenario"] != "default" else ""
            name = f"{row['id']}.{cell['dataset']}{scenario}"
            title = f"{row.get('title') or row['id']}: {cell['dataset']}{scenario.replace('.', ', ', 1)}"
            made = {"id": name, "title": title, "cells": [cell], "part_of": row["id"], "per_cell": False}
            yield i, {**whole, **made}


def cells(data: Raw, given: Any) -> list[dict[str, str]]:
    """The cells that ``cells:`` of a table names, each with dataset and scenario, in the task's order."""
    datasets, scenarios = ids(data, "datasets"), ids(data, "scenarios") or ["default"]
    if isinstance(given, list):
        return [
            {"dataset": cell["dataset"], "scenario": cell.get("scenario", "default")}
            for cell in given
            if cell and "dataset" in cell
        ]
    if isinstance(given, str):
        meant = [row for _, row in rows(data, "datasets") if given in ("all", row.get("visibility"))]
        datasets = [row["id"] for row in meant if "id" in row]
    elif isinstance(given, dict):
        datasets = [name for name in given.get("datasets", datasets) if name]
        scenarios = [name for name in given.get("scenarios", scenarios) if name]
    else:
        return []
    return [{"dataset": d, "scenario": s} for d in datasets for s in scenarios]


def check_tables(data: Raw, problems: Problems) -> None:
    """Note what is wrong with the patterns, and tables called like another page; names in lists of cells are checked with the
    other references."""
    known = {"datasets": ids(data, "datasets"), "scenarios": ids(data, "scenarios") or ["default"]}
    seen = set(ids(data, "tables"))
    for i, table in _expanded_with_places(data):
        if table["id"] in ADDRESSES:
            what = f'no table may be called "{table["id"]}": that is the address of another page of the task'
            problems.add(("tables", i, "id"), what, "choose another name")
        if "part_of" in table:
            if table["id"] in seen:
                what = f'per_cell makes a second table "{table["id"]}"'
                problems.add(("tables", i, "per_cell"), what, "rename one of them")
            seen.add(table["id"])
            continue
        at, given = ("tables", i, "cells"), data["tables"][i].get("cells")
        for key in known if isinstance(given, dict) else ():
            for k, name in enumerate(given.get(key, ())):
                problems.known((*at, key, k), key[:-1], name, known[key])
        if isinstance(given, str) and not table["cells"]:
            problems.add(at, f"no dataset is {given}", "name the cells")
        if not isinstance(given, list) and len(table["cells"]) > 400:
            problems.add(at, "a table has at most 400 cells", "name fewer")


def doubts(task: Task) -> list[str]:
    """Return one sentence for each table that could be won without worth, each tiny part of split topics, and a loopback
    that can carry hidden data.

    Such a table ranks by a model's word, while nobody knows what that model gives for nothing: it may say yes to an echo of
    the question, or obey an order in an answer. Boards do not rank by a measure that such an answer wins
    (:mod:`runner.views.leaderboard.trusting`), but only where evaluations say what it gets.
    """
    spec = kind_spec(task.kind)
    why = "" if spec.judge_doubt is None else spec.judge_doubt(task)
    judged = [
        f"table {show(table.id)} ranks by {show(measure)}, and a model judges: {why}"
        for table in task.tables.values()
        for measure in table.rank_by.measures
        if why and spec.model_judges(task.measures[measure].measure)
    ]
    return [*judged, *_tiny_parts(task), *_loopback_channel(task)]


def _loopback_channel(task: Task) -> Iterator[str]:
    """Warn if batch systems have a loopback interface on hidden data; servers cannot do without."""
    blinded = [d.id for d in task.datasets.values() if d.visibility == "blinded"]
    if blinded and task.limits.loopback and "batch" in task.workflows:
        yield (
            f"limits.loopback is true, and {', '.join(blinded)} is blinded: systems can pass hidden topics to public runs "
            f"through TCP source ports. Public runs wait after each blinded run. Remove loopback unless systems need it"
        )


def _tiny_parts(task: Task) -> Iterator[str]:
    """Of split topics: a mean over so few tells scores of single hidden topics, and one over none is missing."""
    for dataset in task.datasets.values():
        if dataset.public_topics is None or dataset.topics is None:
            continue
        with suppress(OSError):  # it was not fetched yet
            count = count_topics(dataset.inputs / dataset.topics)
            public = dataset.public_topics * count
            part, size = min(("public", public), ("private", count - public), key=lambda one: one[1])
            if size < FEW:
                said = f"dataset {show(dataset.id)}: about {size:.0f} of its {count} topics are {part} (chance decides): a mean over so few"
                tells = (
                    "tells how single hidden topics were answered"
                    if part == "public"
                    else "decides by hardly any"
                )
                yield f"{said} {tells}; change public_topics"
