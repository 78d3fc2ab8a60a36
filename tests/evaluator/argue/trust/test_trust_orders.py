"""Orders of runs under two judges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.argue.trust.correlation import correlation, read_side
from evaluator.errors import EvaluatorError
from tests.worlds.trust_play import NUGGETS, cited, report, written


def scores(path: Path, values: dict[str, float], measure: str = "f1_macro") -> Path:
    rows = [f"{run}\tall\t{measure}\t{value}\n{run}\tall\tf1_micro\t0.5\n" for run, value in values.items()]
    path.write_text("run_id\trequest_id\tmetric\tvalue\n" + "".join(rows))
    return path


def test_one_swapped_pair_of_four_runs(tmp_path: Path) -> None:
    truth = scores(tmp_path / "t.tsv", {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1})
    judge = scores(tmp_path / "j.tsv", {"a": 0.4, "b": 0.3, "c": 0.1, "d": 0.2})
    (row,) = correlation(read_side([truth], None), read_side([judge], None))
    assert (row["measure"], row["runs"]) == ("f1", 4)
    # 5 of 6 pairs agree, so tau is (5 - 1) / 6. Walking down, the shares are 1, 1 and 2/3, from both sides.
    assert row["kendall"] == pytest.approx(4 / 6)
    assert row["tauap_b"] == pytest.approx(2 / 3 * (1 + 1 + 2 / 3) - 1)
    assert row["spearman"] == pytest.approx(0.8)


def test_agrees_with_the_command_for_leaderboards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = scores(tmp_path / "t.tsv", {"a": 0.4, "b": 0.35, "c": 0.2, "d": 0.1}, "f1")
    judge = scores(tmp_path / "j.tsv", {"a": 0.1, "b": 0.5, "c": 0.2, "d": 0.1}, "f1")
    names = ["kendall", "tauap_b", "spearman", "pearson"]
    assert main(["argue", "correlation", "--truth", str(truth), "--judge", str(judge), "--json"]) == 0
    (ours,) = json.loads(capsys.readouterr().out)["correlations"]
    words = ["leaderboards", "--truth", str(truth), "--judge", str(judge), "--truth-measures", "f1"]
    assert main([*words, "--judge-measures", "f1", "--measures", *names, "--json"]) == 0
    theirs = json.loads(capsys.readouterr().out)
    assert {n: ours[n] for n in names} == {n: theirs[n] for n in names}


def test_several_files_are_one_side_and_judgments_are_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [
        scores(tmp_path / f"{n}.tsv", {n: v}, "sentence_support")
        for n, v in (("a", 0.1), ("b", 0.6), ("c", 0.9))
    ]
    judged = written(
        tmp_path / "j.jsonl",
        report(cited("x", "d", False), cited("y", "d", False), run="a"),
        report(cited("x", "d", True), cited("y", "d", False), run="b"),
        report(cited("x", "d", True), cited("y", "d", True), run="c"),
    )
    words = ["argue", "correlation", "--truth", *map(str, parts), "--judge", str(judged)]
    assert main(words) == 2
    assert "--nuggets" in capsys.readouterr().err
    assert main([*words, "--nuggets", str(NUGGETS)]) == 0
    text = capsys.readouterr().out
    assert "sentence_support" in text and "1.0000" in text


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = scores(tmp_path / "two.tsv", {"a": 0.4, "b": 0.3})
    assert main(["argue", "correlation", "--truth", str(two), "--judge", str(two)]) != 0
    assert "a correlation needs 3" in capsys.readouterr().err
    other = scores(tmp_path / "o.tsv", {"a": 0.4, "b": 0.3, "c": 0.1}, "length")
    with pytest.raises(EvaluatorError, match="no measure in common"):
        correlation(read_side([two], None), read_side([other], None))
    with pytest.raises(EvaluatorError, match="cannot be used"):
        read_side([two, two], None)
    words = ["argue", "correlation", "--truth", str(other), "--judge", str(other), "--measures", "length"]
    assert main([*words, "--coefficients", "kendal"]) == 2
    assert "there is no coefficient" in capsys.readouterr().err
    assert main([*words, "--coefficients", "kendall", "tau_gap", "kendall@2"]) == 0
