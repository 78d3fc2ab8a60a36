"""The demo tasks of records: their data are what their READMEs say, and their baselines score what submissions/baselines says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from evaluator.__main__ import main as evaluator

ROOT = Path(__file__).resolve().parents[2]
# By task: the records of dev and test, and of each measure the score of its baseline on test.
TASKS = {
    "penguins": ({"dev": 114, "test": 228}, {"f1": 0.9726, "accuracy": 0.9781, "mae": 300.3105}),
    "report-questions": ({"dev": 5, "test": 13}, {"token_f1": 0.3138, "exact_match": 0.2308}),
    "acl-outcomes": ({"dev": 70, "test": 42}, {"chrf": 42.0555, "rouge_l": 0.2734}),
}


def ids_of(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", TASKS)
def test_inputs_and_truths_are_about_the_same_records(name: str) -> None:
    task = yaml.safe_load((ROOT / "tasks" / name / "task.yaml").read_text("utf-8"))
    ids: dict[str, list[str]] = {}
    for dataset in task["datasets"]:
        inputs, truths = (ROOT / "tasks" / name / dataset[side] for side in ("inputs", "truths"))
        ids[dataset["id"]] = ids_of(inputs / dataset["topics"])
        assert ids_of(truths / task["measures"][0]["truths"]) == ids[dataset["id"]]
    assert {dataset: len(found) for dataset, found in ids.items()} == TASKS[name][0]
    assert len({*ids["dev"], *ids["test"]}) == sum(TASKS[name][0].values())


@pytest.mark.parametrize("name", TASKS)
def test_baselines_have_their_scores(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "tasks" / name
    task = yaml.safe_load((folder / "task.yaml").read_text("utf-8"))
    test = next(dataset for dataset in task["datasets"] if dataset["id"] == "test")
    baseline = ROOT / "submissions" / task["tables"][0]["baseline"]
    (program,) = baseline.glob("*.py")
    given = {"inputDataset": str(folder / test["inputs"]), "outputDir": str(tmp_path)}
    subprocess.run([sys.executable, program], env=given, check=True, timeout=120)
    (output,) = task["options"]["outputs"]
    measures = {one["id"]: one["measure"] for one in task["measures"]}
    truths = folder / test["truths"] / task["measures"][0]["truths"]
    asked = [part for measure in measures.values() for part in ("-m", measure)]
    command = ["records", str(tmp_path / output["path"]), "--schema", str(folder / output["schema"])]
    assert evaluator([*command, "--truths", str(truths), "--json", *asked]) == 0
    printed = json.loads(capsys.readouterr().out)
    values = [round(found["value"], 4) for found in printed["measures"].values()]
    scores = dict(zip(measures, values, strict=True))
    assert scores == TASKS[name][1]
    told = (baseline.parent / "README.md").read_text("utf-8")
    row = next(line for line in told.splitlines() if line.startswith(f"| [`{baseline.name}`]"))
    assert f"{scores[task['tables'][0]['rank_by']]:.4f}" in row
