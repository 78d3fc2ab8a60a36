"""Predictions are checked without truths, and get the findings that the evaluation gives them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main
from evaluator.commands.runs import run_request
from evaluator.errors import EvaluatorError
from evaluator.kinds.base import checker
from evaluator.request import Request
from evaluator.scores import Sink
from tests.worlds.releases import argument, lines, other, write

CORPUS = [argument(11), argument(12), other(13), argument(14, age="65+")]
MEASURES = [{"id": "n", "measure": "nDCG@2,3", "truths": "corpus.jsonl"}]
OPTIONS = {
    "split": {"d": "dev"},
    "scenarios": {"baseline": {"queries": "baseline"}, "explicit": {"queries": "perspective"}},
    "max_candidates": 3,
}


def query(number: int, secret: bool, **more: Any) -> dict[str, Any]:
    return {"query_id": number, "text": "?", **more, **({"relevant_candidates": [11]} if secret else {})}


def release(folder: Path, *, secret: bool) -> None:
    corpus = CORPUS if secret else [{"argument_id": a["argument_id"], "argument": "x"} for a in CORPUS]
    asked = {"demographic_property": {"age_bin": "18-34"}}
    write(folder, corpus, [query(0, secret), query(1, secret)], [query(7, secret, **asked)])


def request(tmp_path: Path, scenario: str = "baseline", **changes: Any) -> Path:
    for name, secret in (("inputs", False), ("truths", True)):
        if not (tmp_path / name).exists():
            release(tmp_path / name, secret=secret)
    (tmp_path / "out").mkdir(exist_ok=True)
    paths = {"run": tmp_path, **{n: tmp_path / n for n in ("inputs", "truths")}, "output": tmp_path / "out"}
    data = {
        "schema_version": 1, "kind": "diversity", "dataset": "d", "visibility": "blinded", "scenario": scenario, "run_file": "p.jsonl",
        "paths": {k: str(v) for k, v in paths.items()}, "measures": MEASURES, "options": OPTIONS, **changes,
    }  # fmt: skip
    return lines(tmp_path / "request.json", [data])


RUNS: list[list[Any]] = [
    [{"query_id": 0, "relevant_candidates": [11, 12, 13]}, {"query_id": 1, "relevant_candidates": []}],
    [{"query_id": 0, "relevant_candidates": [11, 11, 99]}, {"query_id": 0, "relevant_candidates": [11]}],
    [{"query_id": 7, "relevant_candidates": [11, "12", 13, 14]}, 3, {"query_id": 1}],
    [],
]


@pytest.mark.parametrize("rows", RUNS)
@pytest.mark.parametrize("scenario", ["baseline", "explicit"])
@pytest.mark.parametrize("severities", [{}, {"F110": "warning", "F115": "error", "F112": "defect"}])
def test_the_same_findings_as_the_evaluation(
    tmp_path: Path, rows: list[Any], scenario: str, severities: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = request(tmp_path, scenario, severities=severities)
    run = lines(tmp_path / "p.jsonl", rows)
    assert run_request(path) == 0
    result = json.loads((tmp_path / "out/result.json").read_text())
    graded = [json.loads(line) for line in (tmp_path / "out/findings.jsonl").read_text().splitlines()]
    for file in (tmp_path / "truths").rglob("*.jsonl"):
        file.unlink()  # the check reads none of them
    capsys.readouterr()
    code = main(["check", str(run), "--request", str(path), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert code == (result["status"] == "invalid") and said["status"] == result["status"]
    kept = said["findings"].pop("kept")
    assert said["findings"] == result["findings"]
    assert [{**f, "file": ""} for f in kept] == [{**f, "file": ""} for f in graded]
    assert said["run_tag"] is None


def test_it_counts_answers_and_knows_scenarios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = lines(tmp_path / "p.jsonl", RUNS[0])
    assert main(["check", str(run), "--request", str(request(tmp_path)), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["topics"] == 2
    assert main(["check", str(run), "--request", str(request(tmp_path, "explicit"))]) == 1
    assert "F109" in capsys.readouterr().out
    assert main(["check", str(run), "--request", str(request(tmp_path, "other"))]) == 4
    assert main(["check", str(run), "--request", str(request(tmp_path)), "--max-docs", "3"]) == 2


def test_wrong_inputs_are_the_organisers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, path = lines(tmp_path / "p.jsonl", RUNS[0]), request(tmp_path)
    lines(tmp_path / "inputs/corpus.jsonl", [{"argument_id": 1}, {"argument_id": 1}])
    assert main(["check", str(run), "--request", str(path)]) == 4
    assert "corpus.jsonl:2: argument_id " in capsys.readouterr().err


def test_a_kind_without_a_check_says_so() -> None:
    class Plain:
        name, measures = "plain", ""

        def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None: ...

    with pytest.raises(EvaluatorError) as caught:
        checker(Plain())
    assert "plain" in caught.value.what
