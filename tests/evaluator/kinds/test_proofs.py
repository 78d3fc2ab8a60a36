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
    return [one["wrong"] for key in ("orders", "broken") for one in made[key] if one["wrong"]]


@pytest.mark.parametrize(
    ("name", "dataset", "scenario", "measure"),
    [
        ("vaswani", "dev", "", "ndcg_10"),
        ("touche-2021-task1", "sample", "", "condensed_ndcg_5"),
        ("perspective-2024", "dev", "implicit", "ndcg"),
        ("rad-2025-judging", "dev", "", "score"),
    ],
)
def test_the_perfect_output_is_the_best_of_bundled_tasks(
    prove: Any, name: str, dataset: str, scenario: str, measure: str
) -> None:
    made = prove(name, dataset, scenario)
    assert made["made"] and made["broken"] and not wrong(made)
    best, between, worst = next(one for one in made["orders"] if one["measure"] == measure)["values"].values()
    assert best == 1 > between > worst == 0


def test_a_direction_that_is_wrong_is_found(prove: Any) -> None:
    measures = [{"id": "ap", "measure": "AP", "truths": "qrels.txt", "direction": "lower"}]
    (found,) = prove("vaswani", "dev", measures=measures)["orders"]
    assert [what.partition(" (")[0] for what in found["wrong"]] == [
        "the shuffled output",
        "the empty output",
    ]
    assert "is better than the perfect one (1.0000)" in found["wrong"][0]


def test_a_rule_that_refuses_the_perfect_output_is_found(prove: Any) -> None:
    made = prove("vaswani", "dev", limits={"max_bytes": 100})
    assert made["orders"][0]["wrong"][0].startswith("the perfect output is refused (F0")


def test_data_with_which_nothing_can_be_scored_are_found(prove: Any) -> None:
    made = prove("vaswani", "dev", corpus="queries.jsonl")
    assert made["orders"][0]["wrong"][0].startswith("the perfect output is not scored: the corpus")


def test_what_has_no_best_output_is_said_not_to_be_proven(prove: Any) -> None:
    assert {"alpha_ndcg", "rkl"} <= set(prove("perspective-2024", "dev", "baseline")["unproven"])
    assert prove("report-generation", "train") == {
        "made": False,
        "orders": [],
        "unproven": [],
        "broken": [],
    }


def test_a_code_that_a_task_takes_lightly_need_not_refuse(prove: Any) -> None:
    made = prove("vaswani", "dev", severities={"F012": "warning", "F015": "ignore"})
    codes = {one["code"] for one in made["broken"]}
    assert not wrong(made) and "F012" in codes and "F015" not in codes


def test_nothing_of_the_truths_is_printed(prove: Any) -> None:
    """Measures, names of outputs, codes and numbers: every other word would be a leak."""
    made = prove("touche-2021-task1", "sample")
    words = {word for one in made["orders"] for word in (one["measure"], *one["values"])}
    words |= {one["code"] for one in made["broken"]}
    task = load_task(load(), "touche-2021-task1")
    allowed = {"perfect", "shuffled", "empty", *task.measures}
    assert {word for word in words if not word.startswith("F0")} <= allowed
