"""Run files are checked without container and truths, for every kind that can."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.execution.trials import uploads
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.task import Task
from runner.submissions import check_file as checker
from runner.tasks.load import load_task

ROOT = Path(__file__).parents[3]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(Config(root=ROOT, home=tmp_path / "home", truths=None), "perspective-2024")


def predictions(task: Task, into: Path, queries: str) -> Path:
    """Answers to every query of test-1, all alike."""
    inputs = task.datasets["test-1"].inputs
    corpus = [json.loads(line)["argument_id"] for line in (inputs / "corpus.jsonl").open()][:20]
    asked = (inputs / f"{queries}-queries/queries_test.jsonl").open()
    rows = [{"query_id": json.loads(line)["query_id"], "relevant_candidates": corpus} for line in asked]
    into.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return into


def test_predictions_for_a_blinded_dataset(task: Task, tmp_path: Path) -> None:
    file, dataset = predictions(task, tmp_path / "p.jsonl", "perspective"), task.datasets["test-1"]
    for scenario, expected in (("explicit", 0), ("implicit", 0), ("baseline", 1)):
        code, text = checker.ask(task, dataset, file, scenario=scenario)
        assert code == expected and ("F109" in text) == (scenario == "baseline")
    with pytest.raises(RunnerError) as caught:
        checker.ask(task, dataset, file, scenario="none")
    assert caught.value.code == "E102" and "explicit" in caught.value.why


def test_an_upload_of_ones_own_is_checked(task: Task, tmp_path: Path) -> None:
    file, dataset = predictions(task, tmp_path / "p.jsonl", "baseline"), task.datasets["test-1"]
    good = uploads.check_own_form(task, dataset, "baseline", file)
    assert (good.how, good.good) == ("checked", True)
    bad = uploads.check_own_form(task, dataset, "explicit", file)
    assert (bad.how, bad.good) == ("checked", False) and "F109" in bad.text
