"""``evaluator prove``: on the data of the bundled tasks, and where a task is wrong; nothing of the truths is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main
from runner.model.config import load
from runner.tasks.load import load_task
from runner.tasks.request import request

Made = dict[str, Any]


@pytest.fixture
def prove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """What ``evaluator prove`` prints of a bundled task's dataset, with changes of its request."""

    def proven(name: str, dataset: str, scenario: str = "", **changes: Any) -> Made:
        task = load_task(load(), name)
        of = task.datasets[dataset]
        asked = request(task, of, scenario or task.default_scenario().id, task.output)
        folders = {"run": tmp_path, "output": tmp_path, "inputs": of.inputs, "truths": of.truths}
        asked["paths"] = {side: str(path.absolute()) for side, path in folders.items()}
        file = tmp_path / "request.json"
        file.write_text(json.dumps({**asked, **changes}))
        assert main(["prove", "--request", str(file)]) == 0
        assert list(tmp_path.iterdir()) == [file], "what was made is gone"
        made: Made = json.loads(capsys.readouterr().out)
        return made

    return proven


def wrong(made: Made) -> list[str]:
    return [one["wrong"] for one in made["orders"] if one["wrong"]]


@pytest.mark.parametrize(
    ("name", "dataset", "scenario", "measure"),
    [
        ("vaswani", "dev", "", "ndcg_10"),
        ("touche-2021-task1", "sample", "", "condensed_ndcg_5"),
        ("perspective-2024", "dev", "implicit", "ndcg"),
        ("rad-2025-judging", "dev", "", "score"),
        ("penguins", "dev", "", "accuracy"),
        ("report-questions", "dev", "", "token_f1"),
    ],
)
def test_the_perfect_output_is_the_best_of_bundled_tasks(
    prove: Any, name: str, dataset: str, scenario: str, measure: str
) -> None:
    made = prove(name, dataset, scenario)
    assert made["made"] and not wrong(made)
    best, between, worst = next(one for one in made["orders"] if one["measure"] == measure)["values"].values()
    assert best == 1 > between > worst == 0


def test_texts_are_proven_by_characters(prove: Any) -> None:
    made = prove("acl-outcomes", "test")
    assert made["made"] and not wrong(made) and made["unproven"] == ["rouge_l"]
    (found,) = made["orders"]
    best, between, worst = found["values"].values()
    assert found["measure"] == "chrf" and best == pytest.approx(100) and best > between > worst


def test_a_direction_that_is_wrong_is_found(prove: Any) -> None:
    measures = [{"id": "ap", "measure": "AP", "truths": "qrels.txt", "direction": "lower"}]
    (found,) = prove("vaswani", "dev", measures=measures)["orders"]
    assert [what.split()[1] for what in found["wrong"]] == ["shuffled", "empty"]
    assert "1.0000" in found["wrong"][0]


def test_a_perfect_output_that_is_not_scored_is_found(prove: Any) -> None:
    (refused, *_) = prove("vaswani", "dev", limits={"max_bytes": 100})["orders"][0]["wrong"]
    assert refused.split()[1] == "perfect" and "F0" in refused
    (unscored, *_) = prove("vaswani", "dev", corpus="queries.jsonl")["orders"][0]["wrong"]
    assert unscored.split()[1] == "perfect" and "corpus" in unscored


def test_what_has_no_best_output_is_said_not_to_be_proven(prove: Any) -> None:
    assert {"alpha_ndcg", "rkl"} <= set(prove("perspective-2024", "dev", "baseline")["unproven"])


def test_nobody_can_make_the_best_report_or_debate(prove: Any) -> None:
    for name in ("report-generation", "rad-2025-debate"):
        assert not prove(name, "test")["made"]


BOARD = "".join(
    f"run{n} all {m} {v}\n" for m, k in (("nDCG", 1), ("AP", -1)) for n in range(1, 6) for v in [k * n]
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "missing"),
    [
        ("ir_measures", "error"),
        ("tot", "warn"),
        ("rag4reports", "skip"),
        ("ranking", "default"),
        ("jsonl", "error"),
    ],
)
def test_leaderboards_are_made_from_the_truth(prove: Any, tmp_path: Path, form: str, missing: str) -> None:
    """The truth's own leaderboard, under the judge's name of the measure, is the best in every coefficient."""
    truths = tmp_path.with_name(f"{tmp_path.name}-truths")
    truths.mkdir()
    (truths / "board").write_text(BOARD)
    names = ["kendall", "tauap_b", "tau_gap", "spearman", "pearson", "kendall@3"]
    compared = [f"{name}@{both}" for name in names for both in ("nDCG/M", "AP/M", "nDCG/*", "AP/L")]
    measures = [{"id": f"m{n}", "measure": one, "truths": "board"} for n, one in enumerate(compared)]
    paths = {"run": tmp_path, "output": tmp_path, "inputs": tmp_path, "truths": truths}
    options = {"form": "leaderboard", "format": form, "on_missing": missing}
    sides = {side: str(path) for side, path in paths.items()} | {"services": None, "gateway": None}
    made = prove("rad-2025-judging", "dev", options=options, measures=measures, paths=sides)
    assert made["made"] and not made["unproven"] and not wrong(made)
    for one in made["orders"]:
        best, between, worst = one["values"].values()
        deep = "kendall@3" in compared[int(one["measure"][1:])]
        assert best == pytest.approx(1) and worst < 0 and (worst < between < best or deep), one


def test_a_leaderboard_of_one_run_cannot_be_made(prove: Any) -> None:
    options = {"form": "leaderboard", "format": "trec_eval"}
    made = prove("rad-2025-judging", "dev", options=options, measures=[])
    assert made == {"made": False, "orders": [], "unproven": []}


def test_nothing_of_the_truths_is_printed(prove: Any) -> None:
    """Measures, names of outputs, codes and numbers: every other word would be a leak."""
    made = prove("touche-2021-task1", "sample")
    words = {word for one in made["orders"] for word in (one["measure"], *one["values"])}
    task = load_task(load(), "touche-2021-task1")
    allowed = {"perfect", "shuffled", "empty", *task.measures}
    assert words <= allowed
