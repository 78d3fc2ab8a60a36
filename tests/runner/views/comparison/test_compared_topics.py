"""Two runs topic by topic: figures checked by hand and by scipy, errors that say what to name, and who may compare what."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from scipy.stats import permutation_test

import schemas
from runner.model.comparing import effect
from runner.model.task import Task
from runner.records.store import run_detail
from runner.views.audience import ORGANISER
from runner.views.comparison.topics import Comparison, compare, unlike
from runner.views.redact import redact_run
from tests.runner.views.comparison.conftest import Refused
from tests.worlds import records
from tests.worlds.commands import Answer
from tests.worlds.records import World

FIRST = {"a": 0.9, "b": 0.5, "c": 0.5, "d": 0.1, "only": 1.0}
SECOND = {"a": 0.1, "b": 0.4, "c": 0.5, "d": 0.3, "x": 0.0, "y": 0.0}
TEAM = ("--as", "team:alpha")
Run = Callable[..., Answer]


def made(world: World, first: str, second: str, task: Task | None = None, **more: object) -> Comparison:
    task = task or records.task()
    views = [
        redact_run(found, ORGANISER, task.datasets[found.run.dataset])
        for found in (run_detail.detail(world.store, run, [task]) for run in (first, second))
    ]
    return compare(views[0], views[1], task, **more)  # type: ignore[arg-type]


def test_figures(world: World) -> None:
    first, second = world.scored("alpha", "x", scores=FIRST), world.scored("beta", "y", scores=SECOND)
    found = made(world, f"{first}.test", f"{second}.test")
    one = found.measures[0]
    assert (one.id, one.wins, one.losses, one.ties) == ("ndcg", 2, 1, 1)
    assert [pair.topic for pair in one.pairs] == ["a", "d", "b", "c"]  # the largest differences first
    assert (one.only_first, one.only_second) == (("only",), ("x", "y"))
    differences = [0.8, 0.1, 0.0, -0.2]
    assert one.difference == pytest.approx(0.7 / 4) and one.first == pytest.approx(0.5)
    exact = permutation_test(
        (differences,), lambda d, axis: d.mean(axis), permutation_type="samples", vectorized=True
    )
    assert one.p == pytest.approx(exact.pvalue)
    deviation = math.sqrt(sum((d - 0.175) ** 2 for d in differences) / 3)
    assert one.effect == pytest.approx(0.175 / deviation)
    assert len(found.notes) == 3, "topics of one run only, and that these are few"
    back = made(world, f"{second}.test", f"{first}.test").measures[0]
    assert (back.wins, back.losses, back.p) == (1, 2, one.p) and back.difference == pytest.approx(-0.175)


def test_lower_is_better(world: World) -> None:
    first, second = world.scored("alpha", "x", scores=FIRST), world.scored("beta", "y", scores=SECOND)
    one = made(world, f"{first}.test", f"{second}.test", records.task(direction="lower")).measures[0]
    assert (one.wins, one.losses, one.ties) == (1, 2, 1) and one.difference == pytest.approx(0.175)


def test_an_effect_is_not_divided_by_nothing() -> None:
    assert effect([]) is None and effect([0.3]) is None and effect([0.1, 0.1, 0.1]) is None
    assert effect([1.0, -1.0]) == 0 and effect([0.0, 1.0]) == pytest.approx(0.5 / math.sqrt(0.5))


def test_text_shows_the_largest_differences(
    world: World, cli: Run, golden: Callable[[str, str], None]
) -> None:
    world.scored("alpha", "x", scores=FIRST)
    world.scored("beta", "y", scores={**SECOND, **{f"t{n}": n / 40 for n in range(20)}})
    world.scored("gamma", "z", scores={**FIRST, **{f"t{n}": (n + n % 3) / 40 for n in range(20)}})
    text, few = (cli(*names).out for names in (("gamma", "beta"), ("alpha", "beta")))
    golden("comparison.txt", f"{text}\n{few}")
    assert len([line for line in text.split("\n") if line.startswith("t")]) == 8
    assert max(map(len, text.split("\n"))) <= 80
    assert "\nt19 " in cli("gamma", "beta", "--all").out and "\nt19 " not in text
    alone = cli("gamma", "beta", "--measure", "rr").out
    assert "nDCG" not in alone and "RR" in alone


def test_data(world: World, cli: Run, refused: Refused) -> None:
    world.scored("alpha", "x", scores={"=1+1": 0.5, "b": 0.25})
    world.scored("beta", "y", scores={"=1+1": 0.25, "b": 0.75})
    data = json.loads(cli("alpha", "beta", "--json").out)
    assert [one["id"] for one in data["measures"]] == ["ndcg", "rr"] and data["left_out"] == {}
    worst = {"topic": "b", "first": 0.25, "second": 0.75, "difference": -0.5}
    assert data["measures"][0]["topics"][0] == worst
    assert data == json.loads(cli("alpha", "beta", "--format", "json").out)
    assert schemas.validate(data, "comparison") == []
    rows = list(csv.DictReader(io.StringIO(cli("alpha", "beta", "--format", "csv").out)))
    assert [*rows[1].values()] == ["ndcg", "'=1+1", "0.5", "0.25", "0.25"] and len(rows) == 4
    refused(("alpha", "beta", "--format", "xml"), "E101", "json", "csv")


def test_runs_that_cannot_be_compared(world: World, refused: Refused) -> None:
    both = world.scored("alpha", "x", scores=FIRST, datasets=("dev", "test"))
    world.scored("beta", "y", scores={"else": 0.5})
    failed = world.register("gamma", "z")
    world.attempt(failed, verdict="run-error", dataset="dev")
    refused(("nobody", "beta"), "E102", "nobody")
    for names in (("alpha",), (both, "beta", "gamma")):
        refused(names, "E101", str(len(names)))
    refused(("alpha", "alpha"), "E102", f"{both}.dev", f"{both}.test")
    refused((f"{both}.test", f"{both}.test"), "E101")
    refused((f"{both}.test", f"{both}.dev"), "E101", "test", "dev")
    refused((f"{both}.dev", f"{failed}.dev"), "E102", f"{failed}.dev", "failed")
    refused((f"{both}.test", f"{failed}.test"), "E102", f"{failed}.test", "pending")
    refused((f"{both}.test", "beta.y"), "E101")
    refused((f"{both}.test", "beta.y", "--measure", "ndgc"), "E102", "ndgc", "ndcg")


def test_beginnings_mean_what_can_be_compared(world: World, cli: Run, refused: Refused) -> None:
    one = world.scored("alpha", "x", scores=FIRST)
    world.attempt(one, dataset="dev", verdict="run-error")  # not scored
    two = world.scored("beta", "y", scores=SECOND, datasets=("dev", "test"))
    lines = cli("alpha", "beta").out.split("\n")
    assert lines[:2] == [f"first:  {one}.test", f"second: {two}.test"]
    assert cli("beta", "alpha.x").out.split("\n")[:2] == [f"first:  {two}.test", f"second: {one}.test"]
    assert f"second: {two}.dev" not in cli(f"{one}.test", f"{two}#1").out
    refused(("beta", "beta"), "E102", f"{two}.dev", f"{two}.test")
    refused(("alpha", f"{two}.dev"), "E101", "test", "dev")
    refused(("", "beta"), "E102")


def test_measures_without_a_value_or_without_topics(world: World) -> None:
    first = world.scored("alpha", "x", scores=FIRST)
    attempt = world.attempt(world.register("beta", "y"))
    why = "nobody has judged it"
    world.evaluation(attempt, {"ndcg": SECOND}, more={"pending": {"rr": why}})
    found = made(world, f"{first}.test", attempt.run_id)
    assert [one.id for one in found.measures] == ["ndcg"]
    assert (
        [*found.left_out] == ["rr"] and attempt.run_id in found.left_out["rr"] and why in found.left_out["rr"]
    )
    other = world.attempt(world.register("gamma", "z"))
    world.evaluation(other, {"ndcg": SECOND})
    found = made(world, f"{first}.test", other.run_id)
    assert [*found.left_out] == ["rr"] and other.run_id in found.left_out["rr"]
    totals = world.attempt(world.register("delta", "z"))
    figures = {name: {"value": 0.25, "topics": 6, "covered": 6} for name in ("ndcg", "rr")}
    world.evaluation(totals, {"ndcg": SECOND}, more={"measures": figures})
    rr = made(world, f"{first}.test", totals.run_id).measures[1]
    assert (rr.first, rr.second, rr.pairs, rr.p, rr.effect) == (0.6, 0.25, (), None, None)


def test_a_root_is_compared_as_the_figures_of_the_runs(world: World) -> None:
    """RMSE has squared errors by record: their means are MSE, and no test of RMSE."""
    squares = {"first": {"a": 16.0, "b": 0.0, "c": 9.0}, "second": {"a": 1.0, "b": 4.0, "c": 4.0}}
    runs, drawn = [], []
    for n, (name, values) in enumerate(squares.items()):
        root = math.sqrt(sum(values.values()) / 3)
        resamples = {"drawn": "d" * 64, "values": [root + k / 100 + n * k % 3 for k in range(200)]}
        figure = {"value": root, "topics": 3, "covered": 3, "resamples": resamples}
        attempt = world.attempt(world.register(name, "x"))
        more = {"measures": {"ndcg": figure, "rr": figure}}
        world.evaluation(attempt, {"ndcg": values, "rr": values}, more=more)
        runs.append(attempt.run_id)
        drawn.append({"ndcg": resamples, "rr": resamples})
    task = records.task(direction="lower")
    one = made(world, *runs, task, resampled=tuple(drawn)).measures[0]
    assert (one.first, one.second) == pytest.approx((math.sqrt(25 / 3), math.sqrt(3)))
    assert (one.wins, one.losses, one.effect) == (1, 2, None) and len(one.pairs) == 3
    assert one.p is not None and {"bootstrap", "200"} <= {*one.test.split()}
    without = made(world, *runs, task).measures[0]
    assert without.p is None and without.first == one.first, "not the mean of what stands by topic"


def test_another_definition_is_another_measure(world: World) -> None:
    first = world.scored("alpha", "x", scores=FIRST)
    task = records.task()
    rr = replace(task.measures["rr"], measure="RR@10")
    changed = replace(task, measures={**task.measures, "rr": rr})
    world.by = changed
    second = world.scored("beta", "y", scores=SECOND)
    found = made(world, f"{first}.test", f"{second}.test", changed)
    assert [*found.left_out] == ["rr"] and {"RR", "RR@10"} <= {*found.left_out["rr"].split()}
    assert any(note.startswith(f"{first}.test ") for note in found.notes), "it is stale"


def test_other_truths_are_said(world: World, cli: Run) -> None:
    first = world.scored("alpha", "x", scores=FIRST)
    attempt = world.attempt(world.register("beta", "y"))
    world.evaluation(attempt, {"ndcg": SECOND, "rr": SECOND}, truths="u" * 64)
    runs = [run_detail.detail(world.store, run).run for run in (f"{first}.test", attempt.run_id)]
    (note,) = unlike(*runs)
    assert list(unlike(runs[0], runs[0])) == []
    assert note in json.loads(cli("alpha.x", "beta", "--json").out)["notes"]


def test_who_may_compare(world: World, cli: Run, refused: Refused) -> None:
    one = world.scored("alpha", "x", scores=FIRST, datasets=("dev", "test"))
    two = world.scored("alpha", "y", scores=SECOND, datasets=("dev", "test"))
    other = world.scored("beta", "z", scores=SECOND, datasets=("dev", "test"))
    assert "nDCG@10" in cli(f"{one}.dev", f"{two}.dev", *TEAM).out
    refused((f"{one}.test", f"{two}.test", *TEAM), "E103")
    for dataset in ("dev", "test"):  # the run of another team is as unknown as one that does not exist
        refused((f"{one}.{dataset}", f"{other}.{dataset}", *TEAM), "E102", other)
        refused((f"{one}.{dataset}", f"{two}.{dataset}", "--as", "public"), "E102", one)
