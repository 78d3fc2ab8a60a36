"""Leaderboards of ARGUE's scores: written in every format, read by the meta-evaluation, and compared with a true one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator.__main__ import main

SAMPLES = Path(__file__).parents[4] / "evaluator" / "argue" / "samples" / "assets"
NUGGETS = SAMPLES / "sample-inputs" / "sample_nuggets_388.v3.json"
JUDGMENTS = [SAMPLES / "sample-outputs" / f"sample{n}.judgments.jsonl" for n in ("", "_careless")]
FORMATS = ("ir_measures", "tot", "rag4reports", "ranking", "jsonl")


@pytest.fixture
def boards(tmp_path: Path) -> Path:
    """Three runs: the two of the samples, and the careful one under another name with a sentence less."""
    lines = [p.read_text("utf-8") for p in JUDGMENTS]
    third = json.loads(lines[0])
    metadata = third.get("report", {}).get("metadata", third)
    metadata["run_id"] = "shorter"
    third[next(k for k in ("segments", "judgments", "sentence_judgments") if k in third)].pop(1)
    if "report" in third:
        third["report"]["responses"].pop(1)
    stored = tmp_path / "three.judgments.jsonl"
    stored.write_text("".join(lines) + json.dumps(third) + "\n", "utf-8")
    command = ["argue", "score", str(NUGGETS), str(tmp_path / "three"), "--judgments", str(stored)]
    assert main([*command, "--leaderboard", *FORMATS]) == 0
    return tmp_path


@pytest.mark.parametrize("form", FORMATS)
def test_a_leaderboard_agrees_with_itself_in_every_format(
    boards: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    truth, judge = boards / "three.ir_measures.txt", boards / f"three.{form}.txt"
    command = ["leaderboards", "--truth", str(truth), "--judge", str(judge), "--judge-format", form, "--json"]
    chosen = ["--truth-measures", "f1", "--judge-measures", "f1", "--measures", "kendall", "tauap_b"]
    assert main([*command, *chosen]) == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert row["runs"] == 3 and row["kendall"] == row["tauap_b"] == 1.0


def test_another_judge_is_measured_against_the_true_order(
    boards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A judge that takes the careless run for the best one."""
    capsys.readouterr()
    other = boards / "other.txt"
    other.write_text("careless all f1 0.9\ncareful all f1 0.5\nshorter all f1 0.4\n")
    truth = boards / "three.ir_measures.txt"
    command = ["leaderboards", "--truth", str(truth), "--judge", str(other), "--json"]
    assert main([*command, "--truth-measures", "f1", "--measures", "kendall"]) == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    # True order: careful, shorter, careless. One of three pairs is in the right order.
    assert row["kendall"] == pytest.approx(-1 / 3)
