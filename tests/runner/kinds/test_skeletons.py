"""A new task of every kind that has a skeleton is right at once, and its baseline scores in it on the real engine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from runner.engines.docker.engine import DockerEngine
from runner.execution.machine import Machine
from runner.execution.trials.prove import prove, prove_order
from runner.model.config import Config
from runner.model.container import ImageRef
from runner.model.kinds import kinds_with
from runner.tasks import compose
from runner.tasks.check_contents import read_contents
from runner.tasks.check_data import task_problems
from runner.tasks.load import load_task
from runner.tasks.scaffold import new_task
from tests.worlds.definitions import project

BASELINES = Path(__file__).resolve().parents[3] / "submissions" / "baselines"
# The baseline of each skeleton, and the folders that it takes files from.
OF = {
    "adhoc": ("dirichlet", ()),
    "diversity": ("perspective-bm25", ()),
    "meta": ("rad-judge-heuristic-batch", ("rad-judge-heuristic", "rad-judge-1")),
    "report": ("report-extractive", ()),
}


def test_every_skeleton_has_a_baseline_here() -> None:
    assert set(kinds_with("skeleton")) == set(OF)


@pytest.mark.parametrize("kind", sorted(OF))
def test_a_new_task_has_no_fault_and_no_warning(kind: str, tmp_path: Path) -> None:
    config = project(tmp_path / "root")
    new_task(config, "mine", kind)
    task = load_task(config, "mine")
    assert task_problems(task, config) == [] and compose.outdated({"mine": task}) == []
    for one in read_contents(task, config, lambda _: None):
        assert not one.unchecked and not one.problems and not one.warnings, one
    assert OF[kind][0] in (task.folder / "README.md").read_text() or kind == "adhoc"


def with_baseline(config: Config, kind: str) -> None:
    """Copy the baseline, as the README of a new task says, and name it in the tables."""
    name, others = OF[kind]
    more = {"scenarios": ["baseline"]} if kind == "diversity" else {}
    for one in (name, *others):
        shutil.copytree(BASELINES / one, config.submissions / "baselines" / one)
    file = config.submissions / "baselines" / name / "submission.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "task": "mine", **more}))
    definition = config.tasks / "mine" / "task.yaml"
    data = yaml.safe_load(definition.read_text())
    for table in data["tables"]:
        table["baseline"] = f"baselines/{name}"
    definition.write_text(yaml.safe_dump(data))


@pytest.mark.engine
@pytest.mark.parametrize("kind", sorted(OF))
def test_its_baseline_scores_in_a_new_task(
    kind: str, tmp_path: Path, engine: DockerEngine, evaluator_image: ImageRef, base_image: ImageRef
) -> None:
    config = project(tmp_path / "root")
    new_task(config, "mine", kind)
    with_baseline(config, kind)
    machine = Machine(config, engine=engine, images={"evaluator": evaluator_image.id})
    task = load_task(config, "mine")
    rows = prove(machine, task, lambda _: None)
    assert [row["dataset"] for row in rows] == ["dev", "test"] and all(row["good"] for row in rows), rows
    assert not [one.wrong for one in prove_order(machine, task, lambda _: None) if one.wrong]
