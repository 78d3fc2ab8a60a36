"""The tables of every task that comes with the project come out in every format."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

import schemas
from runner.model.config import Config
from runner.model.task import Measure
from runner.tasks import load as tasks
from runner.views.audience import ORGANISER
from runner.views.leaderboard.export import FORMATS, export
from runner.views.leaderboard.formats.parts import shown_cells
from runner.views.leaderboard.table import build
from tests.worlds import records
from tests.worlds.records import World

ROOT = Path(__file__).parents[4]
EXPORTS = ("table", "json", "csv", "markdown", "latex", "html")


def test_a_measure_called_as_a_column_is_gets_none_twice(world: World) -> None:
    """The debates count how many answers there were, as a measure, beside how many topics were answered."""
    task = records.task()
    world.by = replace(task, measures={**task.measures, "rr": Measure("rr", "answered", "qrels.txt")})
    scores = {m: records.per_topic(m, topics=5) for m in task.measures}
    world.evaluation(world.attempt(world.register("alpha", "dense")), scores)
    table = build(world.store, world.by, "main", ORGANISER)
    heads, rows = shown_cells(table)
    assert heads.count("answered") == 1 and rows[0][heads.index("topics answered")] == "4/5"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vaswani", "touche-2021-task1", "perspective-2024"])
def test_every_table_in_every_format(tmp_path: Path, name: str) -> None:
    assert set(EXPORTS) <= set(FORMATS)
    loaded = tasks.load_task(Config(root=ROOT, home=tmp_path / "home", truths=None), name)
    task = replace(loaded, id=records.TASK)  # the builders' events are for that name
    world = World.make(tmp_path)
    world.by = task
    cells = list(dict.fromkeys(c for table in task.tables.values() for c in table.cells))
    names = {table.baseline for table in task.tables.values()} - {None}
    assert names, "every table here has a baseline to test against"
    for who in [*sorted(n for n in names if n), "alpha/dense", "beta/sparse"]:
        team, software = who.split("/")
        id = world.register(
            team,
            software,
            scenarios=tuple(task.scenarios),
            cells=[[c.dataset, c.scenario] for c in cells],
        )
        for cell in cells:
            attempt = world.attempt(id, dataset=cell.dataset, scenario=cell.scenario)
            # Every software has values of its own in every measure, for the same topics.
            values = {m: records.per_topic(f"{who}{cell}{m}", topics=5) for m in task.measures}
            world.evaluation(attempt, values)

    for table_id, defined in task.tables.items():
        table = build(world.store, task, table_id, ORGANISER)
        assert {f"{r.team}/{r.software}" for r in table.rows} >= {"alpha/dense", "beta/sparse"}, table_id
        assert table.baseline == defined.baseline and table.test is not None, table_id
        for format in EXPORTS:
            text = export(table, format)
            assert "alpha" in text and "sparse" in text, (table_id, format)
        data = json.loads(export(table, "json"))
        assert schemas.validate(data, "leaderboard") == [], table_id
        assert [r["rank"] for r in data["rows"]] == sorted(r["rank"] for r in data["rows"])
        rows = list(csv.DictReader(io.StringIO(export(table, "csv"))))
        assert len(rows) == len(data["rows"]) and set(defined.measures) <= rows[0].keys()
