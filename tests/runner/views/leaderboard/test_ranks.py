"""Ranks on several measures and in several cells: what holds for every board, an oracle, and boards as they are shown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import schemas
from runner.model.run import run_id
from runner.model.task import Cell, Dataset, Measure, Ranking, Scenario, Task
from runner.records.review import decide
from runner.views.audience import ORGANISER, PUBLIC
from runner.views.leaderboard import frames
from runner.views.leaderboard.export import FORMATS, as_dict, export, from_dict, text
from runner.views.leaderboard.ranks import ranked, with_components
from runner.views.leaderboard.rows import LeaderboardTable, Row
from runner.views.leaderboard.table import build, filtered
from tests.worlds import records
from tests.worlds.records import World

CELLS = (Cell("a"), Cell("b"))
MEASURES = {"up": "higher", "down": "lower"}
PARTS = len(CELLS) * len(MEASURES)
RULES = st.sampled_from(["mean_rank", "median_rank"])
Values = Sequence[
    float | None
]  # (a, up), (a, down), (b, up), (b, down); both None where nothing counts in the cell

VALUE = st.integers(0, 4).map(float)  # few values, so that there are ties
CELL = st.one_of(st.just((None, None)), st.tuples(VALUE, VALUE))
BOARD = st.lists(st.tuples(CELL, CELL).map(lambda pair: (*pair[0], *pair[1])), min_size=1, max_size=7)


def of(values: Sequence[Values], rule: str) -> dict[str, Row]:
    """The ranked rows by their team's name, of teams t0, t1, …"""
    names = [f"t{n}" for n in range(len(values))]
    return ranks(dict(zip(names, values, strict=True)), rule)


def ranks(board: dict[str, Values], rule: str) -> dict[str, Row]:
    rank_by = Ranking(tuple(MEASURES), rule)  # type: ignore[arg-type]
    rows = [
        Row(
            rank=0, team=team, software="x", tag="x", method="automatic", baseline=False, values={}, topics=0, covered=0,
            wall_seconds=None, memory_peak=None, memory_source="none", submission=team, runs=(), registered="",
        )
        for team in board
    ]  # fmt: skip
    values = [
        [
            {m: v for m, v in zip(MEASURES, own[n : n + 2], strict=True) if v is not None}
            for n in range(0, PARTS, 2)
        ]
        for own in board.values()
    ]
    found = ranked(with_components(rows, values, CELLS, rank_by, MEASURES), rank_by, "higher")
    return {row.team: row for row in found}


@given(BOARD, RULES)
def test_combined_ranks_are_those_of_pandas(board: list[Values], rule: str) -> None:
    better_low = pd.DataFrame(board, dtype="float64") * [-1, 1, -1, 1]
    each = better_low.rank(method="average", na_option="bottom")
    whole = each.mean(axis=1) if rule == "mean_rank" else each.median(axis=1)
    final = whole.round(9).rank(method="min").astype(int)
    rows = of(board, rule)
    for n in range(len(board)):
        row = rows[f"t{n}"]
        assert row.combined is not None and row.combined.value == pytest.approx(whole[n])
        assert [one.rank for one in row.combined.ranks] == list(each.iloc[n])
        assert [one.missing for one in row.combined.ranks] == list(better_low.iloc[n].isna())
        assert row.rank == final[n]


@given(BOARD, RULES, st.randoms(use_true_random=False))
def test_the_order_in_which_teams_come_changes_nothing(board: list[Values], rule: str, dice: Any) -> None:
    named = list(enumerate(board))
    dice.shuffle(named)
    shuffled = ranks({f"t{n}": values for n, values in named}, rule)
    assert shuffled == of(board, rule) and list(shuffled) == list(of(board, rule))


@given(BOARD, RULES)
def test_a_team_that_is_worse_everywhere_comes_last_and_changes_no_order(
    board: list[Values], rule: str
) -> None:
    before = of(board, rule)
    after = of([*board, (-1.0, 9.0, -1.0, 9.0)], rule)
    if not any(value is None for values in board for value in values):
        new = after.pop(f"t{len(board)}")
        assert {team: row.rank for team, row in after.items()} == {t: r.rank for t, r in before.items()}
        assert new.rank == len(board) + 1


@given(BOARD, RULES)
def test_who_is_nowhere_worse_is_never_behind_and_equal_figures_share_a_rank(
    board: list[Values], rule: str
) -> None:
    rows = of(board, rule)
    signed = [
        [None if v is None else v * s for v, s in zip(own, (1, -1, 1, -1), strict=True)] for own in board
    ]
    keys = [[float("-inf") if v is None else v for v in own] for own in signed]
    for n, one in enumerate(keys):
        for k, other in enumerate(keys):
            if all(x >= y for x, y in zip(one, other, strict=True)):
                assert rows[f"t{n}"].rank <= rows[f"t{k}"].rank
    figures = sorted(row.combined.value for row in rows.values() if row.combined)
    assert all(row.combined and row.rank == figures.index(row.combined.value) + 1 for row in rows.values())


# --- boards -------------------------------------------------------------------------------------------------------


def task(
    rank_by: Ranking = Ranking(("ndcg", "rr"), "mean_rank"), *, lower: bool = False, **more: Any
) -> Task:
    """Two open test sets in one table."""
    toy = records.task()
    datasets = {
        d: Dataset(d, "blinded", toy.folder / d, toy.folder / d, scores="public") for d in ("one", "two")
    }
    measures = {
        "ndcg": Measure("ndcg", "nDCG@10", "qrels.txt"),
        "rr": Measure("rr", "RR", "qrels.txt", "lower" if lower else "higher"),
    }
    main = replace(toy.tables["main"], cells=(Cell("one"), Cell("two")), rank_by=rank_by, **more)
    return replace(
        toy, datasets=datasets, measures=measures, scenarios={"default": Scenario()}, tables={"main": main}
    )


def scored(world: World, team: str, values: dict[str, tuple[float, float]], **more: Any) -> str:
    """A submission with flat values of nDCG and RR on some datasets."""
    id = world.register(team, "x", **more)
    for dataset, (ndcg, rr) in values.items():
        flat = {name: {str(n): value for n in range(4)} for name, value in (("ndcg", ndcg), ("rr", rr))}
        world.evaluation(world.attempt(id, dataset=dataset), flat)
    return id


def four(tmp_path: Path) -> World:
    """Three teams on both datasets, the fourth on one of them; and one that failed on the other."""
    world = World.make(tmp_path)
    world.by = task()
    scored(world, "a", {"one": (0.9, 0.2), "two": (0.8, 0.4)})
    scored(world, "b", {"one": (0.5, 0.5), "two": (0.8, 0.5)})
    scored(world, "c", {"one": (0.1, 0.1), "two": (0.2, 0.1)})
    scored(world, "half", {"one": (1.0, 1.0)}, cells=[["one", "default"]])
    failed = scored(world, "late", {"one": (0.4, 0.1)})
    world.attempt(failed, dataset="two", verdict="time-limit")
    return world


def board(world: World, of: Task) -> LeaderboardTable:
    return build(world.store, of, "main", ORGANISER)


def test_a_row_ranks_by_the_mean_of_its_ranks_and_behind_all_where_nothing_of_it_is_valid(
    tmp_path: Path,
) -> None:
    table = board(four(tmp_path), task())
    ranked_rows = [(row, row.combined) for row in table.rows if row.combined]
    found = {row.team: (row.rank, by.value, [one.rank for one in by.ranks]) for row, by in ranked_rows}
    assert found == {
        "a": (2, 2.125, [2, 3, 1.5, 2]),
        "b": (1, 1.875, [3, 2, 1.5, 1]),
        "c": (4, 3.875, [5, 4.5, 3, 3]),
        "half": (3, 2.75, [1, 1, 4.5, 4.5]),
        "late": (5, 4.375, [4, 4.5, 4.5, 4.5]),
    }
    half = next(row for row in table.rows if row.team == "half")
    assert half.values == {} and (half.topics, half.covered) == (8, 3)
    assert [(u.team, u.outcome) for u in table.unranked] == [("late", "failed")]
    assert " two:" in table.unranked[0].reason
    with_median = board(four(tmp_path / "again"), task(Ranking(("ndcg", "rr"), "median_rank")))
    assert [row.combined.value for row in with_median.rows if row.combined] == [1.75, 2, 2.75, 3.75, 4.5]


def test_what_still_waits_in_a_cell_is_not_ranked_until_it_is_settled(world: World) -> None:
    scored(world, "a", {"one": (0.9, 0.2), "two": (0.8, 0.4)})
    waits = scored(world, "b", {"one": (0.5, 0.5)}, cells=[["one", "default"], ["two", "default"]])
    held = scored(world, "c", {"one": (0.5, 0.5)})
    world.attempt(held, dataset="two", verdict="platform-error")
    table = board(world, task())
    assert [row.team for row in table.rows] == ["a"]
    assert (table.counts["pending"], [(u.team, u.outcome) for u in table.unranked]) == (2, [])
    world.attempt(waits, dataset="two", verdict="run-error")
    assert [row.team for row in board(world, task()).rows] == ["a", "b"]


def test_what_is_not_approved_yet_costs_nobody_a_rank(world: World) -> None:
    of = replace(task(), review="required")
    ids = [scored(world, team, {"one": (v, v), "two": (v, v)}) for team, v in (("a", 0.9), ("b", 0.5))]
    runs = [run_id(id, dataset, "default") for id in ids for dataset in ("one", "two")]
    for run in runs:
        if run != runs[1]:  # of a, on two
            decide(world.store, {of.id: of}, run, "approved", "", "organiser")
    assert [row.team for row in board(world, of).rows] == ["a", "b"]
    seen = build(world.store, of, "main", PUBLIC)
    assert [(row.rank, row.team) for row in seen.rows] == [(1, "b")]
    assert [(below.team, below.outcome) for below in seen.unranked] == [("a", "incomplete")]


def test_text_and_exports_have_the_rule_and_the_component_ranks(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    table = board(four(tmp_path), task())
    golden("board-ranks.txt", text(table))
    assert max(map(len, text(table, 80).splitlines())) <= 80
    for form in set(FORMATS) - {"csv", "tsv", "json"}:
        assert "mean rank" in export(table, form), form
    data = json.loads(export(table, "json"))
    assert schemas.validate(data, "leaderboard") == [] and data["rank_by"] == {"mean_rank": ["ndcg", "rr"]}
    assert as_dict(from_dict(data, "organiser")) == data
    assert data["rows"][0]["combined"]["ranks"][1] == {
        "dataset": "one", "scenario": "default", "measure": "rr", "rank": 2.0, "missing": False
    }  # fmt: skip
    line = {row["team"]: row for row in csv.DictReader(io.StringIO(export(table, "csv")))}["half"]
    assert line["combined_rank"] == "2.75"
    assert line["component_ranks"].startswith(
        "one/default/ndcg=1 one/default/rr=1 two/default/ndcg=4.5(missing)"
    )
    assert list(frames.leaderboard(table)["combined_rank"].dropna()) == [1.875, 2.125, 2.75, 3.875, 4.375]
    plain = board(four(tmp_path / "again"), task(Ranking(("ndcg",))))
    assert "combined" not in export(plain, "json") and "combined_rank" not in export(plain, "csv")


def test_a_filter_ranks_the_rows_that_are_left_among_themselves(world: World) -> None:
    scored(world, "a", {"one": (0.9, 0.9), "two": (0.9, 0.9)}, method="manual")
    scored(world, "b", {"one": (0.5, 0.5), "two": (0.8, 0.5)})
    scored(world, "c", {"one": (0.6, 0.4), "two": (0.2, 0.1)})
    left = filtered(board(world, task()), method="automatic")
    found = [(row.rank, row.team, row.combined.value) for row in left.rows if row.combined]
    assert found == [(1, "b", 1.25), (2, "c", 1.75)]


def test_lower_is_better_where_the_measure_says_so(world: World) -> None:
    world.by = task(lower=True)
    scored(world, "a", {"one": (0.9, 0.1), "two": (0.9, 0.1)})
    scored(world, "b", {"one": (0.5, 0.5), "two": (0.8, 0.5)})
    assert [row.combined.value for row in board(world, task(lower=True)).rows if row.combined] == [1, 2]


def test_rows_are_tested_on_the_first_measure(world: World) -> None:
    scored(world, "a", {"one": (0.9, 0.9), "two": (0.9, 0.9)})
    scored(world, "b", {"one": (0.5, 0.5), "two": (0.8, 0.5)})
    table = board(world, task(baseline="b/x"))
    assert table.rows[0].comparison is not None and table.rows[0].comparison.difference == pytest.approx(0.25)
    (legend,) = [line for line in text(table).splitlines() if line.startswith("†")]
    assert "b/x" in legend and "nDCG@10" in legend and "RR" not in legend
