"""Tables over many cells: aggregation, what is missing, teams with several softwares, filters, patterns."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.model.errors import RunnerError
from runner.model.task import Cell, Dataset, Ranking, Scenario, Table, Task
from runner.records.store import queries
from runner.tasks import tables as specs
from runner.views.audience import ORGANISER
from runner.views.leaderboard.export import FORMATS, as_dict, export, from_dict, text
from runner.views.leaderboard.ranks import aggregated
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.leaderboard.table import build, filtered
from tests.worlds import records
from tests.worlds.definitions import problems_of
from tests.worlds.records import World

DATASETS = ("test-1", "test-2", "test-3")
SCENARIOS = ("baseline", "explicit", "implicit")
CELLS = tuple(Cell(d, s) for d, s in itertools.product(DATASETS, SCENARIOS))


def grid(unit: str = "software", **more: Any) -> Task:
    """Three test sets in three scenarios: an overall table, and one for every cell."""
    task = records.task()
    here = task.folder
    datasets = {d: Dataset(d, "blinded", here / d, here / d, scores="public") for d in DATASETS}
    whole = Table(
        "relevance", CELLS, Ranking(("ndcg",)), ("ndcg", "rr"), "scenarios-then-datasets", unit=unit, **more
    )  # type: ignore[arg-type]
    tables = {"relevance": whole}
    for cell in CELLS:
        name = f"relevance.{cell.dataset}.{cell.scenario}"
        tables[name] = replace(whole, id=name, cells=(cell,), part_of="relevance")
    return replace(task, datasets=datasets, scenarios={s: Scenario(s) for s in SCENARIOS}, tables=tables)


def hand_in(
    world: World,
    team: str,
    software: str,
    values: Mapping[Cell, float | None],
    *,
    upload: bool = False,
    method: str = "automatic",
) -> str:
    """A submission for some cells, scored with a flat value in each (None: an invalid file)."""
    scenarios = tuple(dict.fromkeys(c.scenario for c in values))
    more: dict[str, Any] = {"method": method, "cells": [[c.dataset, c.scenario] for c in values]}
    if upload:
        more |= {"workflow": "upload", "image": None}
    id = world.register(team, software, scenarios=scenarios, **more)
    for cell, value in values.items():
        attempt = world.attempt(id, dataset=cell.dataset, scenario=cell.scenario)
        if value is None:
            world.evaluation(attempt, status="invalid", codes={"F101": ("error", 1)})
        else:
            flat = {str(n): value for n in range(4)}
            world.evaluation(attempt, {"ndcg": flat, "rr": flat})
    return id


def everywhere(value: float) -> dict[Cell, float | None]:
    return dict.fromkeys(CELLS, value)


def ranking(table: LeaderboardTable) -> list[tuple[int, str]]:
    return [(r.rank, r.team) for r in table.rows]


@pytest.mark.slow
def test_a_topic_of_several_scenarios_is_one_topic_in_the_test(world: World) -> None:
    hand_in(world, "base", "x", everywhere(0.5))
    hand_in(world, "low", "x", everywhere(0.25))
    table = build(world.store, grid(baseline="base/x"), "relevance", ORGANISER)
    found = table.rows[1].comparison
    # 4 topics in each of 3 test sets; the 3 scenarios of a test set share them. All 12 differences are negative.
    assert found is not None and (found.topics, found.difference) == (12, -0.25)
    assert found.p == pytest.approx(2 / 2**12)


@pytest.mark.slow
def test_a_missing_cell_is_listed_overall_and_ranked_in_the_others(world: World) -> None:
    hand_in(world, "all", "x", everywhere(0.5))
    hand_in(world, "tie", "x", everywhere(0.5))
    hand_in(world, "low", "x", everywhere(0.25))
    best = {c: 0.9 for c in CELLS if c.scenario != "implicit"}
    hand_in(world, "part", "x", best)
    table = build(world.store, grid(), "relevance", ORGANISER)
    assert ranking(table) == [(1, "all"), (1, "tie"), (3, "low")]
    assert [(u.team, u.outcome) for u in table.unranked] == [("part", "incomplete")]
    lacks = table.unranked[0]
    assert lacks.missing == tuple(c for c in CELLS if c.scenario == "implicit")
    assert "test-1/implicit, test-2/implicit, test-3/implicit" in lacks.reason
    own = build(world.store, grid(), "relevance.test-2.explicit", ORGANISER)
    assert ranking(own) == [(1, "part"), (2, "all"), (2, "tie"), (4, "low")]
    other = build(world.store, grid(), "relevance.test-2.implicit", ORGANISER)
    assert "part" not in {r.team for r in other.rows}


def test_the_rule_stands_on_the_table_in_every_format(world: World) -> None:
    hand_in(world, "all", "x", everywhere(0.5))
    task = grid(description="Our rule; the official one is not known.", title="Track relevance")
    rule = "scenarios-then-datasets"
    table = build(world.store, task, "relevance", ORGANISER)
    for form in set(FORMATS) - {"csv", "tsv", "json"}:
        said = " ".join(export(table, form).split())
        assert task.tables["relevance"].description in said and "Track relevance" in said, form
        assert said.index("scenarios") < said.index("datasets"), form
    assert json.loads(export(table, "json"))["aggregate"] == rule
    [line] = csv.DictReader(io.StringIO(export(table, "csv")))
    assert (line["aggregate"], line["table"], line["unit"]) == (rule, "relevance", "software")


def test_the_rules_of_aggregation() -> None:
    cells = (Cell("a", "x"), Cell("a", "y"), Cell("b", "x"))
    values = (0.0, 1.0, 0.2)
    assert aggregated("mean", cells, values) == pytest.approx(0.4)
    assert aggregated("scenarios-then-datasets", cells, values) == pytest.approx((0.5 + 0.2) / 2)
    assert aggregated("datasets-then-scenarios", cells, values) == pytest.approx((0.1 + 1.0) / 2)
    full = [float(n) for n in range(9)]
    assert {aggregated(rule, CELLS, full) for rule in specs.AGGREGATES} == {4.0}


def test_softwares_of_a_team_fill_its_cells_together(world: World) -> None:
    for n, scenario in enumerate(SCENARIOS):
        values = {c: 0.1 * (n + 1) for c in CELLS if c.scenario == scenario}
        hand_in(world, "alpha", f"s{n}", values, upload=n > 0, method="manual" if n else "automatic")
    hand_in(world, "baselines", "bm25", everywhere(0.3))
    hand_in(world, "baselines", "sbert", everywhere(0.4))
    apart = build(world.store, grid(), "relevance", ORGANISER)
    assert [r.team for r in apart.rows] == ["baselines", "baselines"]
    assert [u.outcome for u in apart.unranked] == ["incomplete"] * 3
    table = build(world.store, grid("team"), "relevance", ORGANISER)
    softwares = [(r.team, r.software) for r in table.rows]
    assert softwares == [("baselines", "sbert"), ("baselines", "bm25"), ("alpha", "s0, s1, s2")]
    row = table.rows[-1]
    assert row.values["ndcg"].mean == pytest.approx(0.2)
    assert (row.method, row.how) == ("mixed", "mixed")
    names = {one.id: one.software for one in queries.submissions(world.store)}
    assert [names[c.submission] for c in row.cells] == ["s0", "s1", "s2"] * 3
    assert schemas.validate(as_dict(table), "leaderboard") == []
    assert "\n   3  alpha " in export(table, "table")


def test_the_latest_valid_submission_of_a_team_counts_in_each_cell(world: World) -> None:
    cell = CELLS[0]
    first = hand_in(world, "alpha", "a", everywhere(0.9))
    second = hand_in(world, "alpha", "b", {cell: 0.2})
    third = hand_in(world, "alpha", "c", {cell: None})
    table = build(world.store, grid("team"), "relevance", ORGANISER)
    [row] = table.rows
    assert [c.submission for c in row.cells] == [second] + [first] * 8
    assert row.values["ndcg"].mean == pytest.approx((8 * 0.9 + 0.2) / 9)
    [below] = table.unranked
    assert (below.submission, below.outcome) == (third, "invalid")
    assert second in below.reason and "test-1/baseline" in below.reason


@pytest.fixture
def mixed(tmp_path: Path) -> LeaderboardTable:
    world = World.make(tmp_path)
    test = Cell("test")
    for n, (upload, method) in enumerate(itertools.product((False, True), ("automatic", "manual"))):
        hand_in(world, f"team-{n}", "x", {test: 0.9 - n / 10}, upload=upload, method=method)
        hand_in(world, f"bad-{n}", "x", {test: None}, upload=upload, method=method)
    hand_in(world, "baselines", "bm25", {test: 0.1})
    return build(world.store, records.task(), "main", ORGANISER)


def test_filters_rank_what_is_left(mixed: LeaderboardTable) -> None:
    assert [r.how for r in mixed.rows] == ["executed", "executed", "uploaded", "uploaded", "executed"]
    table = filtered(mixed, how="uploaded")
    assert ranking(table) == [(1, "team-2"), (2, "team-3")]
    assert {u.team for u in table.unranked} == {"bad-2", "bad-3"}
    assert ranking(filtered(mixed, method="manual", how="executed")) == [(1, "team-1")]
    assert ranking(filtered(mixed, method="automatic")) == [(1, "team-0"), (2, "team-2"), (3, "baselines")]
    assert filtered(mixed) is mixed
    for form in FORMATS:
        assert "uploaded" in export(table, form)
    assert json.loads(export(table, "json"))["filters"] == {"how": "uploaded"}
    assert schemas.validate(json.loads(export(table, "json")), "leaderboard") == []
    assert "uploaded" in export(mixed, "latex") and "manual" in export(mixed, "latex")
    with pytest.raises(RunnerError) as caught:
        filtered(mixed, how="stolen\x1b")
    assert caught.value.code == "E101" and "\x1b" not in caught.value.what


def test_json_can_be_read_back(mixed: LeaderboardTable, tmp_path: Path) -> None:
    for table in (mixed, filtered(mixed, how="executed")):
        again = from_dict(json.loads(export(table, "json")), table.audience)
        assert again == table
        assert all(export(again, form) == export(table, form) for form in FORMATS)


@pytest.mark.parametrize("width", [80, 100])
def test_a_wide_table_stays_readable_on_a_narrow_terminal(world: World, width: int) -> None:
    hand_in(world, "a-team-with-a-rather-long-name", "and-a-software", everywhere(0.5))
    hand_in(world, "beta", "x", {CELLS[0]: 0.5, CELLS[1]: None})
    lines = text(build(world.store, grid("team"), "relevance", ORGANISER), width).splitlines()
    assert max(map(len, lines)) <= width
    assert any("0.5000" in line and "a-team-with-a-rather-long-name" in line for line in lines)


# Patterns


def definition(**table: Any) -> dict[str, Any]:
    return {
        "datasets": [{"id": "dev", "visibility": "public"}]
        + [{"id": d, "visibility": "blinded"} for d in DATASETS],
        "scenarios": [{"id": s} for s in SCENARIOS],
        "tables": [{"id": "relevance", "rank_by": "ndcg", **table}],
    }


def wrong(data: dict[str, Any]) -> str:
    """What is said about the tables of a definition."""
    return " ".join(str(problem) for problem in problems_of(specs.check_tables, data))


@pytest.mark.parametrize(
    ("cells", "count"),
    [
        ("all", 12),
        ("blinded", 9),
        ("public", 3),
        ({"datasets": ["test-1", "test-2"], "scenarios": ["explicit"]}, 2),
        ({"datasets": ["dev"]}, 3),
        ([{"dataset": "dev", "scenario": "explicit"}], 1),
    ],
)
def test_patterns_of_cells(cells: Any, count: int) -> None:
    data = definition(cells=cells)
    [table] = specs.expanded(data)
    assert len(table["cells"]) == count
    assert wrong(data) == ""


def test_a_table_for_each_cell() -> None:
    tables = specs.expanded(definition(cells="blinded", per_cell=True))
    names = [t["id"] for t in tables]
    assert names[0] == "relevance" and len(names) == 10 == len(set(names))
    assert "relevance.test-1.explicit" in names
    assert [t.get("part_of") for t in tables] == [None] + ["relevance"] * 9
    plain = {**definition(cells="blinded", per_cell=True), "scenarios": [{"id": "default"}]}
    assert [t["id"] for t in specs.expanded(plain)][1] == "relevance.test-1"


def test_the_rule_of_the_rounds_chooses_the_unit() -> None:
    data = definition(cells="blinded")
    assert specs.expanded(data)[0]["unit"] == "software"
    assert specs.expanded({**data, "round_rule": "latest-per-team"})[0]["unit"] == "team"
    data["tables"][0]["unit"] = "software"
    assert specs.expanded({**data, "round_rule": "latest-per-team"})[0]["unit"] == "software"


def test_wrong_patterns() -> None:
    assert '"tset-1"' in wrong(definition(cells={"datasets": ["tset-1"]}))
    assert '"x"' in wrong(definition(cells={"scenarios": ["x"]}))
    twice = definition(cells="blinded", per_cell=True)
    twice["tables"].append({"id": "relevance.test-1.explicit", "rank_by": "ndcg", "cells": "all"})
    assert '"relevance.test-1.explicit"' in wrong(twice)
    nothing = definition(cells="public")
    nothing["datasets"] = nothing["datasets"][1:]
    assert "public" in wrong(nothing)
