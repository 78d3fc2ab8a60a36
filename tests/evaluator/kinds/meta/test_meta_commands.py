"""``evaluator judges`` and ``evaluator leaderboards``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evaluator.__main__ import main
from tests.worlds.judged import CRITERIA, debate, judgments, official, write

DATA = Path(__file__).parent / "data"
LABELS = [[{"quantity": 1, "quality": 0, "relation": 1, "manner": None}] * 2, [{"quantity": 0, "quality": 1, "relation": 1, "manner": 1}]]  # fmt: skip
SCORES = [[{"quantity": 0.9, "quality": 0.5, "relation": 0.2, "manner": 1}] * 2, [{"quantity": 0.1, "quality": 0.6, "relation": 0.9, "manner": 0.8}]]  # fmt: skip
NAMES = [f"{c} {n}" for c in CRITERIA for n in ("precision", "recall", "f1")]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    labels = write(tmp_path / "run-labels.jsonl", LABELS)
    said = write(tmp_path / "evaluations.jsonl", [judgments(turns) for turns in SCORES])
    return ["judges", "--labels", str(labels), "--judgments", str(said)]


def test_the_official_keys_come_first(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(files) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = official(LABELS, SCORES)
    shown = [re.fullmatch(r"(.+?) +([0-9.]+)", line) for line in lines[:13]]
    names = [*NAMES, "score"]
    assert [m and m[1] for m in shown] == names
    assert [m and float(m[2]) for m in shown] == pytest.approx([expected[n] for n in names], abs=5e-5)
    assert "kappa" in lines[14] and lines[15].startswith("quantity")


def test_json_and_files(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "not" / "there"
    assert main([*files, "--json", "--output", str(out)]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = official(LABELS, SCORES)
    assert printed["values"] == pytest.approx(expected)
    assert printed["counts"]["quality"] == {"tp": 1, "fp": 2, "fn": 0, "tn": 0}
    assert json.loads((out / "evaluation.json").read_text("utf-8")) == printed
    prototext = (out / "evaluation.prototext").read_text("utf-8")
    blocks = re.findall(r'measure\{\n  key: "(.+)"\n  value: "(.+)"\n\}\n', prototext)
    assert [key for key, _ in blocks] == [*NAMES, "score"]
    assert {key: float(value) for key, value in blocks} == expected, "numbers in full"
    assert dict(blocks)["quality recall"] == "1.0", "whole numbers as the official evaluator writes them"
    assert {value for key, value in blocks if not expected[key]} <= {"0"}


def test_a_judge_of_one_criterion(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [judgments([{"manner": t["manner"]} for t in turns]) for turns in SCORES]
    write(tmp_path / "evaluations.jsonl", rows)
    assert main(files) == 0
    out = capsys.readouterr()
    assert "quality f1" not in out.out and "Quantity, Quality, Relation" in out.out
    assert "F240" in out.err
    assert main([*files, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed["values"]) == {"manner precision", "manner recall", "manner f1"}
    assert "Quantity" in printed["pending"]["score"]


def test_judgments_that_are_not_valid(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "evaluations.jsonl", [judgments(SCORES[0])])
    assert main(files) == 1
    assert "F233" in capsys.readouterr().err
    assert main([*files, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["status"] == "invalid"


def test_debates_and_the_official_reading(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    debates = write(tmp_path / "debates.jsonl", [debate(1, 2), debate(2, 1)])
    assert main([*files, "--debates", str(debates)]) == 0
    spoilt = [judgments(turns) for turns in SCORES]
    spoilt[1]["userTurnsEvaluations"][0]["Quality"]["score"] = "0.6"
    write(tmp_path / "evaluations.jsonl", spoilt)
    capsys.readouterr()
    assert main([*files, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"]["quality recall"] == 0
    assert main([*files, "--json", "--reading", "official"]) == 0
    assert json.loads(capsys.readouterr().out)["values"]["quality recall"] == 1
    write(tmp_path / "debates.jsonl", [debate(1, 2), debate(2, 2)])
    assert main([*files, "--debates", str(debates)]) == 4, "the organiser's files do not fit"


def leaderboards(*words: str | Path) -> list[str]:
    return ["leaderboards", *map(str, words)]


def test_real_leaderboards(capsys: pytest.CaptureFixture[str]) -> None:
    spot = DATA / "trec-leaderboard.txt"
    both = ["--truth", spot, "--truth-format", "tot", "--judge", spot, "--judge-format", "tot"]
    assert main(leaderboards(*both)) == 0
    header, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    coefficients = ["kendall", "tauap_b", "tau_gap", "spearman", "pearson", "kendall@10"]
    assert header == ["truth", "judge", "runs", *coefficients]
    values = {
        (truth.removeprefix("Measure-"), judge.removeprefix("Measure-")): tau
        for truth, judge, _, tau, *_ in rows
    }
    same, opposite = "1.0000", "-1.0000"
    assert values == {
        ("01", "01"): same, ("01", "02"): opposite, ("02", "01"): opposite, ("02", "02"): same,
    }  # fmt: skip


def test_output_and_chosen_measures(tmp_path: Path) -> None:
    kiddy = DATA / "kiddie_fake.eval.ir_measures.txt"
    judge = tmp_path / "judge.txt"
    judge.write_text("".join(f"run{n} all A {v}\nrun{n} all B 1\n" for n, v in enumerate((3, 4, 2, 1), 1)))
    out = tmp_path / "new" / "corr.jsonl"
    chosen = ["--measures", "kendall", "tauap_b@3", "--output", out]
    call = leaderboards("--truth", kiddy, "--judge", judge, *chosen)
    assert main(call) == 0
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [(r["truth"], r["judge"], r["runs"]) for r in rows] == [("RELEVANCE", m, 4) for m in "AB"]
    assert rows[0]["kendall"] == pytest.approx(2 / 3) and rows[0]["tauap_b@3"] == pytest.approx(0)
    assert rows[1]["kendall"] is None, "undefined, not zero"
    assert main([*call, "--judge-measures", "A"]) == 0
    assert len(out.read_text("utf-8").splitlines()) == 1
    assert main([*call, "--judge-measures", "C"]) == 2


@pytest.mark.parametrize(
    ("on_missing", "code", "runs"), [("error", 4, None), ("warn", 0, 3), ("skip", 0, 3), ("default", 0, 4)]
)
def test_missing_runs(
    on_missing: str, code: int, runs: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = tmp_path / "judge.txt"
    judge.write_text("run1 all A 3\nrun2 all A 2\nrun3 all A 1\nother all A 5\n", encoding="utf-8")
    kiddy = DATA / "kiddie_fake.eval.ir_measures.txt"
    assert (
        main(leaderboards("--truth", kiddy, "--judge", judge, "--on-missing", on_missing, "--json")) == code
    )
    out = capsys.readouterr()
    if runs:
        assert json.loads(out.out)["runs"] == runs
    assert ("run4" in out.err) == (on_missing in ("error", "warn"))


def test_too_few_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge = tmp_path / "judge.txt"
    judge.write_text("run1 all A 3\nrun2 all A 2\n", encoding="utf-8")
    kiddy = DATA / "kiddie_fake.eval.ir_measures.txt"
    assert main(leaderboards("--truth", kiddy, "--judge", judge, "--on-missing", "skip")) == 4
    assert " 3" in capsys.readouterr().err
    assert main(leaderboards("--judge", judge)) == 2
    assert main(leaderboards("--truth", kiddy, "--judge", kiddy, "--measures", "tau")) == 2


@pytest.mark.parametrize("form", ["tot", "ir_measures", "ranking", "rag4reports", "jsonl"])
def test_converting_there_and_back(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spot, there = DATA / "trec-leaderboard.txt", tmp_path / "there"
    from_spot = leaderboards("--judge", spot, "--judge-format", "tot")
    assert main([*from_spot, "--convert", form, "--output", str(there)]) == 0
    assert main(leaderboards("--judge", there, "--judge-format", form, "--convert", "jsonl")) == 0
    back = capsys.readouterr().out
    assert main([*from_spot, "--convert", "jsonl"]) == 0
    assert back == capsys.readouterr().out
