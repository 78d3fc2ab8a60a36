"""Orders of runs under two judges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.argue.trust.correlation import correlation, read_side
from evaluator.errors import EvaluatorError
from tests.evaluator.argue.conftest import Argue
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


def test_agrees_with_the_command_for_leaderboards(
    argue: Argue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = scores(tmp_path / "t.tsv", {"a": 0.4, "b": 0.35, "c": 0.2, "d": 0.1}, "f1")
    judge = scores(tmp_path / "j.tsv", {"a": 0.1, "b": 0.5, "c": 0.2, "d": 0.1}, "f1")
    names = ["kendall", "tauap_b", "spearman", "pearson"]
    (ours,) = argue("correlation", "--truth", truth, "--judge", judge, "--json").json["correlations"]
    words = ["leaderboards", "--truth", str(truth), "--judge", str(judge), "--truth-measures", "f1"]
    assert main([*words, "--judge-measures", "f1", "--measures", *names, "--json"]) == 0
    theirs = json.loads(capsys.readouterr().out)
    assert {n: ours[n] for n in names} == {n: theirs[n] for n in names}


def test_several_files_are_one_side_and_judgments_are_scored(argue: Argue, tmp_path: Path) -> None:
    parts = [
        scores(tmp_path / f"{n}.tsv", {n: v}, "sentence_support")
        for n, v in (("a", 0.1), ("b", 0.6), ("c", 0.9))
    ]
    support = {"a": (False, False), "b": (True, False), "c": (True, True)}
    runs = [report(cited("x", "d", x), cited("y", "d", y), run=run) for run, (x, y) in support.items()]
    words = ("correlation", "--judge", written(tmp_path / "j.jsonl", *runs), "--truth", *parts)
    said = argue(*words)
    assert said.code == 2 and "--nuggets" in said.err
    said = argue(*words, "--nuggets", NUGGETS)
    assert said.code == 0 and "sentence_support" in said.out and "1.0000" in said.out


def test_mistakes(argue: Argue, tmp_path: Path) -> None:
    two = scores(tmp_path / "two.tsv", {"a": 0.4, "b": 0.3})
    said = argue("correlation", "--truth", two, "--judge", two)
    assert said.code != 0 and "3" in said.err
    other = scores(tmp_path / "o.tsv", {"a": 0.4, "b": 0.3, "c": 0.1}, "length")
    with pytest.raises(EvaluatorError):
        correlation(read_side([two], None), read_side([other], None))
    with pytest.raises(EvaluatorError):
        read_side([two, two], None)
    words = ("correlation", "--truth", other, "--judge", other, "--measures", "length", "--coefficients")
    said = argue(*words, "kendal")
    assert said.code == 2 and "kendal" in said.err
    assert argue(*words, "kendall", "tau_gap", "kendall@2").code == 0
