"""Measured figures about a judge stand beside the scores of the judge that they are about, and of no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator.argue.judges.lexical import LexicalJudge
from evaluator.argue.trust.figures import put_reliability, read_reliability
from evaluator.errors import EvaluatorError
from evaluator.kinds.options import checked_options
from tests.worlds.report_world import World

OPTIONS = {"type": "lexical", "reliability": "judge.json"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path)


def test_figures_stand_beside_every_score(world: World) -> None:
    built_in = world.evaluate(judge={"type": "lexical"}).result["judge"]["reliability"]
    figures = {"same reply again": 1.0, "susceptibility to canaries": 0.03}
    for name, value in figures.items():
        put_reliability(world.truths / "judge.json", LexicalJudge().identity(), {name: value})
    assert built_in and world.evaluate(judge=OPTIONS).result["judge"]["reliability"] == {
        **built_in,
        **figures,
    }


def test_figures_about_another_judge_are_refused(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    put_reliability(world.truths / "judge.json", {"model": "other", "prompts": "sha256:0"}, {"kappa": 1.0})
    result = world.evaluate(judge=OPTIONS).result
    assert result["status"] == "error" and not result["measures"]
    assert "judge.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "data",
    [
        "[]",
        "{}",
        "not json",
        '{"judge": {"model": "m"}, "figures": {"a": "0.5"}}',
        '{"judge": {"model": "m"}, "figures": {"a": true}}',
        '{"judge": {"model": "m"}, "figures": {"<b>": 0.5}}',
        '{"judge": {"model": "m"}, "figures": {"a": 1e999}}',
        json.dumps({"judge": {"model": "m"}, "figures": {f"f{n}": 1 for n in range(15)}}),
    ],
)
def test_files_that_hold_no_figures(tmp_path: Path, data: str) -> None:
    path = tmp_path / "f.json"
    path.write_text(data)
    with pytest.raises(EvaluatorError) as caught:
        read_reliability(path, {"model": "m"})
    assert "f.json" in caught.value.what


def test_a_missing_file_and_a_path_outside(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError):
        read_reliability(tmp_path / "none.json", {"model": "m"})
    with pytest.raises(EvaluatorError) as caught:
        checked_options("report", {"judge": {"type": "lexical", "reliability": "../judge.json"}})
    assert caught.value.why.startswith("judge.reliability: ")
