"""The cases say things that can be so; the containers are tried elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.__main__ import main as evaluator
from evaluator.codes import CODES
from runner.model import config
from runner.model.verdict import TABLE
from runner.submissions.load import find_submissions
from runner.tasks.check_data import task_problems
from runner.tasks.load import load_task
from tests.verdicts import cases

ALL = cases.load_cases()
OUTCOMES = {"scored", "invalid", "failed"}
UNPACKED = cases.HERE / "task" / "datasets" / cases.DATASET / "inputs"


def test_there_are_enough_of_each_sort() -> None:
    assert len(ALL) >= 50
    seen = {case.verdict for case in ALL}
    # Not from a software on its own: our faults, somebody's Ctrl-C, kills from outside (those are in
    # tests/contracts/test_killed_outside.py), servers (in tests/runner/execution/test_interactive_rooms.py), and limits that
    # this task does not set (in tests/e2e/test_processor_time.py).
    assert seen == TABLE.keys() - {
        "platform-error",
        "cancelled",
        "cpu-limit",
        "killed-outside",
        "unhealthy",
        "disputed",
    }
    assert {case.outcome for case in ALL} == OUTCOMES


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_what_is_expected_can_be(case: cases.Case) -> None:
    assert case.verdict in TABLE
    assert (case.outcome == "failed") == (case.verdict != "ok")
    assert case.blame == ("none" if case.outcome == "scored" else "participant")
    assert case.outcome != "invalid" or case.codes
    for code in case.codes:
        assert CODES[code].severity == ("error" if case.outcome == "invalid" else "warning")
    folder = cases.HERE / case.name
    programs = list(folder.glob("main.*")) + list(folder.glob("software.yaml"))
    assert len(programs) == 1


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize("case", [case for case in ALL if case.codes], ids=lambda case: case.name)
def test_what_it_writes_is_wrong_in_the_way_it_says(
    case: cases.Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that only write a bad file are safe to run here, and the evaluator finds what is expected."""
    env = {
        **os.environ,
        "PYTHONPATH": str(cases.HERE),
        "inputDataset": str(UNPACKED),
        "outputDir": str(tmp_path),
    }
    subprocess.run([sys.executable, cases.HERE / case.name / "main.py"], env=env, check=True, timeout=60)
    (run,) = tmp_path.iterdir()
    request = tmp_path / "request.json"
    request.write_text(json.dumps(_request(tmp_path, run.name)))
    code = evaluator(["check", str(run), "--request", str(request), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == (1 if case.outcome == "invalid" else 0)
    assert answer["status"] == ("invalid" if case.outcome == "invalid" else "valid")
    # Whether ties change a score is seen with the judgments only.
    assert set(case.codes) - {"F023"} <= answer["findings"]["codes"].keys()


def _request(folder: Path, run_file: str) -> dict[str, object]:
    return {
        "schema_version": 1,
        "kind": "adhoc",
        "task": cases.TASK,
        "dataset": cases.DATASET,
        "scenario": "default",
        "visibility": "public",
        "paths": {"run": str(folder), "inputs": str(UNPACKED), "truths": str(folder), "output": str(folder)},
        "run_file": run_file,
        "topics": "queries.jsonl",
        "corpus": "documents.jsonl.gz",
        "measures": [
            {"id": "ap", "measure": "AP", "truths": "qrels.txt", "direction": "higher", "options": {}}
        ],
        "severities": {},
        "options": {"max_documents": 50},
        "score_precision": "float32",
        "limits": {"max_findings": 1000, "max_bytes": 16 * 2**20},
    }


def test_the_project_of_all_cases_is_sound(tmp_path: Path) -> None:
    cases.write_project(tmp_path, "proctor-test/verdicts")
    settings = config.load({"RUNNER_ROOT": str(tmp_path)})
    assert task_problems(load_task(settings, cases.TASK), settings) == []
    found, errors = find_submissions(settings)
    assert not errors
    assert {one.software: one.command for one in found} == {case.name: case.command for case in ALL}


def test_the_images_context_holds_programs_only(tmp_path: Path) -> None:
    context = cases.image_context(tmp_path / "context")
    names = {path.name for path in context.rglob("*") if path.is_file()}
    assert names == {"Dockerfile", "common.py", "main.py", "main.sh"}
