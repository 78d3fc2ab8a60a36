"""Figures over all records at once against the baseline: a paired bootstrap test, from what the evaluator drew of the records."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.measures.records.base import Columns
from evaluator.measures.records.named import measure
from evaluator.measures.records.resampling import spread
from runner.model.comparing import bootstrap
from runner.model.task import Cell
from runner.records.store.connect import open_store
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.leaderboard.formats.parts import INTERVALS, legend
from runner.views.leaderboard.rows import Comparison, LeaderboardTable
from runner.views.leaderboard.table import build
from tests.worlds import records
from tests.worlds.records import World

KEYS = [*map(str, range(300))]
RIGHT = [random.Random(1).choice("aabbc") for _ in KEYS]


def said(share: float, seed: int) -> list[str]:
    """Labels of which about that share is right."""
    dice = random.Random(seed)
    return [one if dice.random() < share else dice.choice("abc") for one in RIGHT]


def figures(labels: Sequence[str], keys: Sequence[str] = KEYS, measured: str = "F1(x)") -> dict[str, Any]:
    """One measure of ``result.json``, as the evaluator makes it."""
    of, one = Columns(keys, {"x": labels}, {"x": RIGHT}), measure(measured)
    found = spread(one, of, None)
    assert found.interval is not None and found.resamples is not None
    return {
        "value": one.value(of),
        "topics": len(keys),
        "covered": len(keys),
        "interval": list(found.interval),
        "resamples": found.resamples.as_dict(),
    }


def evaluated(world: World, submission: str, found: dict[str, Any], dataset: str = "test") -> None:
    attempt = world.attempt(submission, dataset=dataset)
    world.evaluation(attempt, more={"measures": {"ndcg": found, "rr": found}})


def scored(world: World, team: str, found: dict[str, Any]) -> str:
    submission = world.register(team, "bm25")
    evaluated(world, submission, found)
    return submission


def board(world: World, audience: Audience = ORGANISER, **more: Any) -> LeaderboardTable:
    return build(world.store, records.task(**more), None, audience)


def compared(table: LeaderboardTable, team: str) -> Comparison:
    (found,) = [row.comparison for row in table.rows if row.team == team]
    assert found is not None
    return found


def macro_f1(right: Any, labels: Any) -> float:
    """By its definition, for scipy."""
    names = np.unique(np.concatenate([right, labels]))
    hits = [
        2 * np.sum((right == n) & (labels == n)) / (np.sum(right == n) + np.sum(labels == n)) for n in names
    ]
    return float(np.mean(hits))


def test_rows_are_tested_by_resamples_as_scipy_draws_them(world: World) -> None:
    from scipy.stats import bootstrap as scipys

    labels = {"baselines": said(0.6, 2), "alpha": said(0.64, 3), "beta": said(0.9, 4)}
    for team, one in labels.items():
        scored(world, team, figures(one))
    table = board(world)
    marks = {row.team: row.comparison.mark for row in table.rows if row.comparison}
    assert marks == {"beta": "†", "alpha": ""}
    right, base = np.array(RIGHT), np.array(labels["baselines"])
    p_values = []
    for team in ("alpha", "beta"):
        mine, found = np.array(labels[team]), compared(table, team)
        apart = macro_f1(right, mine) - macro_f1(right, base)
        drawn = scipys(
            (right, mine, base),
            lambda right, mine, base: macro_f1(right, mine) - macro_f1(right, base),
            paired=True,
            vectorized=False,
            method="percentile",
            n_resamples=1_000,
            rng=np.random.default_rng(9),
        ).bootstrap_distribution
        p = (1 + np.sum(np.abs(drawn - drawn.mean()) >= abs(apart))) / 1_001
        assert found.difference == pytest.approx(apart, abs=1e-12) and found.topics == 300
        assert found.p == pytest.approx(p, abs=4 * np.sqrt(2 * p * (1 - p) / 1_000) + 1e-3)
        p_values.append(found.p)
    assert compared(table, "alpha").p_corrected == p_values[0], "the larger one of two"
    assert compared(table, "beta").p_corrected == pytest.approx(2 * p_values[1])
    (line,) = [one for one in legend(table) if one.startswith("†")]
    assert "bootstrap" in line and "1,000" in line and "300" in line


def test_a_row_as_good_as_the_baseline_differs_in_nothing(world: World) -> None:
    for team in ("baselines", "alpha"):
        scored(world, team, figures(said(0.6, 2)))
    found = compared(board(world), "alpha")
    assert (found.p, found.difference, found.mark) == (1.0, 0.0, "")


def test_one_error_in_twenty_where_nothing_differs() -> None:
    """Macro F1 of two softwares that are right equally often, many times over: about 5 % have p below 0.05."""
    rng, records_, times, worlds = np.random.default_rng(5), 200, 300, 600
    errors = 0
    for _ in range(worlds):
        right = rng.integers(0, 2, records_)
        first, second = (np.where(rng.random(records_) < 0.75, right, 1 - right) for _ in range(2))
        rows = np.vstack([np.arange(records_), rng.integers(0, records_, (times, records_))])
        values = [f1_of_both(right[rows], one[rows]) for one in (first, second)]
        apart = values[0] - values[1]
        errors += bootstrap(apart[1:].tolist(), float(apart[0])) <= 0.05
    assert 0.03 < errors / worlds < 0.08


def f1_of_both(right: Any, labels: Any) -> Any:
    found = [
        2 * np.sum((right == n) & (labels == n), axis=1) / (np.sum(right == n, axis=1) + np.sum(labels == n, axis=1))
        for n in (0, 1)
    ]  # fmt: skip
    return (found[0] + found[1]) / 2


def test_a_value_that_single_resamples_lack_takes_these_out(tmp_path: Path) -> None:
    world, base, mine = World.make(tmp_path), figures(said(0.6, 2)), figures(said(0.8, 3))
    mine["resamples"]["values"][7] = base["resamples"]["values"][9] = None
    scored(world, "baselines", base)
    scored(world, "alpha", mine)
    table = board(world)
    assert table.test is not None and " 998 " in table.test
    kept = [n for n in range(1_000) if n not in (7, 9)]
    apart = [mine["resamples"]["values"][n] - base["resamples"]["values"][n] for n in kept]
    assert compared(table, "alpha").p == bootstrap(apart, mine["value"] - base["value"])


def test_several_cells_are_aggregated_in_each_resample(tmp_path: Path) -> None:
    world, labels = World.make(tmp_path), {"baselines": said(0.6, 2), "alpha": said(0.65, 3)}
    cells = {"test": KEYS, "dev": [f"d{key}" for key in KEYS]}
    for team, one in labels.items():
        submission = world.register(team, "bm25")
        for dataset, keys in cells.items():
            evaluated(world, submission, figures(one, keys), dataset)
    found = compared(board(world, cells=tuple(map(Cell, cells))), "alpha")
    one = compared(board(world), "alpha")
    assert found.topics == 600 and found.difference == pytest.approx(one.difference)
    assert found.p < one.p, "twice as many records, drawn apart from each other"


def test_a_store_that_is_made_anew_gives_the_same_test(world: World) -> None:
    for team, share in (("baselines", 0.6), ("alpha", 0.65)):
        scored(world, team, figures(said(share, 2)))
    before = compared(board(world), "alpha")
    world.store.close()
    world.config.database.unlink()
    with open_store(world.config) as store:
        assert compared(build(store, records.task(), None, ORGANISER), "alpha") == before


def test_a_public_board_with_rounded_scores_rounds_the_test(tmp_path: Path) -> None:
    world, task = World.make(tmp_path), records.task()
    for team, share in (("baselines", 0.6), ("alpha", 0.65)):
        scored(world, team, figures(said(share, 2)))
    measures = {name: replace(one, precision=2) for name, one in task.measures.items()}
    found = compared(build(world.store, replace(task, measures=measures), None, PUBLIC), "alpha")
    assert found.difference == round(found.difference, 2) and found.p == round(found.p, 3)


def medians(world: World, *, resampled: bool = True) -> None:
    """One bad error in three makes a better median than errors that are all middling, and a worse mean."""
    right = [0.0] * len(KEYS)
    said = {"baselines": [1.0 + n / 1_000 for n in range(300)], "alpha": [9.0 if n % 3 == 0 else 0.2 for n in range(300)]}  # fmt: skip
    one = measure("MAE(x, rule=median)")
    for team, numbers in said.items():
        of = Columns(KEYS, {"x": numbers}, {"x": right})
        values = one.values(of)
        found = spread(one, of, values).resamples
        assert values is not None and found is not None
        figure = {"value": one.value(of), "topics": 300, "covered": 300}
        figure |= {"resamples": found.as_dict()} if resampled else {}
        by_topic = dict(zip(KEYS, values, strict=True))
        attempt = world.attempt(world.register(team, "bm25"))
        more = {"measures": {"ndcg": figure, "rr": figure}}
        world.evaluation(attempt, {"ndcg": by_topic, "rr": by_topic}, more=more)


def test_a_figure_that_is_no_mean_is_not_tested_by_the_mean_of_its_values(world: World) -> None:
    medians(world)
    table = board(world, direction="lower")
    row = compared(table, "alpha")
    assert table.rows[0].team == "alpha" and table.test is not None and "bootstrap" in table.test
    assert row.mark == "†" and row.difference == pytest.approx(0.2 - 1.1495) and row.topics == 300


def test_boards_without_paired_resamples_have_no_test_and_say_how_to_make_them(tmp_path: Path) -> None:
    """Other truths, an older evaluator without resamples, and too many records for them."""
    worlds = {name: World.make(tmp_path / name) for name in ("changed", "older", "large")}
    scored(worlds["changed"], "baselines", figures(said(0.6, 2)))
    scored(worlds["changed"], "alpha", figures(said(0.9, 3), [f"new{key}" for key in KEYS]))
    for team, share in (("baselines", 0.6), ("alpha", 0.9)):
        without = figures(said(share, 2))
        del without["resamples"]
        scored(worlds["older"], team, without)
    medians(worlds["large"], resampled=False)  # values by record exist, but their mean does not rank
    notes = {}
    for name, world in worlds.items():
        table = board(world, direction="lower" if name == "large" else "higher")
        assert table.test is None and all(row.comparison is None for row in table.rows)
        (notes[name],) = table.notes
        assert f"runner reevaluate --task {records.TASK}" in notes[name]
    assert "alpha/bm25" in notes["changed"] and "10,000" in notes["large"] and len({*notes.values()}) == 3


@pytest.mark.parametrize("interval", [None, [0.5, 0.7]])
def test_only_intervals_that_are_shown_are_announced(world: World, interval: list[float] | None) -> None:
    """Above 10,000 records F1 has no interval; that of another measure has no column of its own."""
    other = figures(said(0.6, 2))
    ranking = {"value": 0.6, "topics": 10_001, "covered": 10_001, "interval": interval}
    attempt = world.attempt(world.register("alpha", "bm25"), dataset="test")
    world.evaluation(attempt, more={"measures": {"ndcg": ranking, "rr": other}})
    table = board(world)
    assert table.columns[0].id == "ndcg" and table.rows[0].values["rr"].low is not None
    assert (INTERVALS in legend(table)) == (interval is not None)
