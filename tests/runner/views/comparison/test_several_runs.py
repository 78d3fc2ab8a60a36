"""Three runs and more at home: tests of leaderboards over all pairs, in every form, for each audience."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import schemas
from runner.model.comparing.topics import holm
from tests.runner.views.comparison.conftest import Refused
from tests.runner.views.test_show_page import Read
from tests.worlds.commands import Answer
from tests.worlds.records import World

HOSTILE = "<img src=x onerror=alert(1)>"
SCORES = [
    {"1": 0.9, "2": 0.5, "3": 0.25, HOSTILE: 0.5},
    {"1": 0.1, "2": 0.5, "3": 0.5, HOSTILE: 0.25},
    {"1": 0.3, "2": 0.25, "3": 0.125},
]
Run = Callable[..., Answer]


def several(world: World, dataset: str = "test", team: str = "") -> list[str]:
    return [
        f"{world.scored(team or name, f'{name}-{dataset}', scores=scores, datasets=(dataset,))}.{dataset}"
        for name, scores in zip(("alpha", "beta", "gamma"), SCORES, strict=True)
    ]


def test_pairs_are_tested_as_two_runs_are_and_corrected_together(world: World, cli: Run) -> None:
    runs = several(world)
    made = json.loads(cli(*runs, "--json").out)
    assert schemas.validate(made, "comparison") == [] and made["runs"] == runs
    one = made["measures"][0]
    assert one["left_out"] == 1 and len(made["notes"]) == 2
    assert [row["topic"] for row in one["topics"]] == ["1", "3", "2"]
    assert one["values"] == pytest.approx([0.55, 1.1 / 3, 0.225])
    for pair in one["pairs"][1:]:  # which have the same topics as all three
        alone = json.loads(cli(pair["first"], pair["second"], "--json").out)["measures"][0]
        same = ("difference", "p", "effect", "wins", "losses", "ties", "test")
        assert [pair[name] for name in same] == pytest.approx([alone[name] for name in same])
        assert pair["interval"] == pytest.approx(alone["interval"])
    assert [pair["p_corrected"] for pair in one["pairs"]] == holm([pair["p"] for pair in one["pairs"]])
    said = cli(*runs).out
    assert f"A: {runs[0]}" in said and "p (Holm)" in said
    told = " ".join(said.split())
    assert "A B +0.1833" in told and "1 0.9000 0.1000 0.3000 0.8000" in told and "randomisation" in told
    rows = list(csv.DictReader(io.StringIO(cli(*runs, "--format", "csv").out)))
    assert len(rows) == 6 and float(rows[0][runs[1]]) == 0.1 and float(rows[0]["spread"]) == 0.8


def test_a_page_of_all_needs_nothing_and_escapes(world: World, cli: Run, tmp_path: Path) -> None:
    runs = several(world)[:2]
    runs.append(f"{world.scored('delta', 'x', scores=SCORES[1])}.test")
    target = tmp_path / "all.html"
    assert cli(*runs, "--html", str(target)).exit_code == 0
    read = Read(target.read_text())
    assert HOSTILE in read.text
    assert not {"script", "img"} & {*read.tags} and all(name in read.text for name in runs)
    assert "1.000 / 1.000" in read.text
    assert "4 / 0 / 0" not in read.text and "2 / 1 / 1" in read.text


def test_runs_that_cannot_be_compared_at_once(world: World, refused: Refused) -> None:
    runs = several(world)
    refused((*runs, runs[0]), "E101", runs[0])
    refused((runs[0],), "E101", "8")
    refused((*(runs * 3),), "E101", "8", "9")
    refused((*runs, "nobody"), "E102", "nobody")
    other = f"{world.scored('delta', 'x', scores=SCORES[0], datasets=('dev',))}.dev"
    refused((*runs, other), "E101", "dev", "test")
    failed = world.register("epsilon", "z")
    world.attempt(failed, verdict="run-error", dataset="test")
    refused((*runs, f"{failed}.test"), "E102", f"{failed}.test")
    refused((*runs, "--measure", "ndgc"), "E102", "ndcg")


def test_who_may_compare_several(world: World, cli: Run, refused: Refused) -> None:
    own, hidden = several(world, "dev", "alpha"), several(world, "test", "alpha")
    team = ("--as", "team:alpha")
    assert "nDCG@10" in cli(*own, *team).out
    refused((*hidden, *team), "E103")
    other = f"{world.scored('beta', 'z', scores=SCORES[1], datasets=('dev',))}.dev"
    refused((*own, other, *team), "E102", other)
    refused((*own, "--as", "public"), "E102", own[0])


def test_what_is_no_mean_is_tested_by_resamples(world: World, cli: Run) -> None:
    runs = []
    for n in range(3):
        drawn = {"drawn": "d" * 64, "values": [0.5 + n / 10 + (k % 7) / 1000 for k in range(400)]}
        one = {"value": 0.5 + n / 10, "topics": 90, "covered": 90, "interval": [0.4, 0.9], "resamples": drawn}
        attempt = world.attempt(world.register("alpha", f"s{n}"))
        world.evaluation(attempt, more={"measures": {"ndcg": one, "rr": one}})
        runs.append(attempt.run_id)
    one = json.loads(cli(*runs, "--json").out)["measures"][0]
    assert not one["means"] and one["topics"] == [] and one["intervals"] == [[0.4, 0.9]] * 3
    assert [pair["p"] for pair in one["pairs"]] == pytest.approx([1 / 401] * 3)
    assert [pair["p_corrected"] for pair in one["pairs"]] == pytest.approx([3 / 401] * 3)
    assert all({"bootstrap", "400"} <= {*pair["test"].split()} for pair in one["pairs"])
    assert "–" in cli(*runs).out
