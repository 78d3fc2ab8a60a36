"""Every kind has a skeleton; the new task is right at once, and proven with its baseline on the real engine."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from evaluator import registry
from runner.engines.docker.engine import DockerEngine
from runner.execution.machine import Machine
from runner.execution.trials.prove import prove, prove_order
from runner.model.config import Config
from runner.model.container import ImageRef
from runner.model.kinds import kind_spec, kinds_with
from runner.tasks import compose
from runner.tasks.check_contents import read_contents
from runner.tasks.check_data import task_problems
from runner.tasks.load import load_task
from runner.tasks.scaffold import new_task
from tests.worlds.definitions import project

BASELINES = Path(__file__).resolve().parents[3] / "submissions" / "baselines"
KINDS = registry.built_in()
# Each kind, and each of its skeletons by its own name.
SKELETONS = [(kind, like) for kind in KINDS for like in (None, *kind_spec(kind).likes)]
PROVEN = [(kind, like) for kind, like in SKELETONS if like or not kind_spec(kind).likes]  # no skeleton twice


def test_every_kind_has_a_skeleton() -> None:
    assert kinds_with("skeleton") == KINDS


@pytest.mark.parametrize(("kind", "like"), SKELETONS)
def test_a_new_task_has_no_fault_and_no_warning(kind: str, like: str | None, tmp_path: Path) -> None:
    config = project(tmp_path / "root")
    new_task(config, "mine", kind, like)
    task = load_task(config, "mine")
    assert task_problems(task, config) == [] and compose.outdated({"mine": task}) == []
    for one in read_contents(task, config, lambda _: None):
        assert not one.unchecked and not one.problems and not one.warnings, one


def with_baseline(config: Config) -> None:
    """Copy the baseline, and change it, as the TODO.md of the new task says; name it in the tables."""
    told = (config.tasks / "mine" / "TODO.md").read_text()
    (name,) = re.findall(r"copy `submissions/baselines/([a-z0-9-]+)`", told)
    shutil.copytree(
        BASELINES, config.submissions / "baselines", dirs_exist_ok=True
    )  # some take files of others
    more = {"scenarios": found} if (found := re.findall(r"its scenarios to `\[(\w+)\]`", told)) else {}
    file = config.submissions / "baselines" / name / "submission.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "task": "mine", **more}))
    definition = config.tasks / "mine" / "task.yaml"
    data = yaml.safe_load(definition.read_text())
    for table in data["tables"]:
        table["baseline"] = f"baselines/{name}"
    definition.write_text(yaml.safe_dump(data))


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize(("kind", "like"), PROVEN)
def test_its_baseline_and_its_order_are_proven(
    kind: str,
    like: str | None,
    tmp_path: Path,
    engine: DockerEngine,
    evaluator_image: ImageRef,
    sidecars_image: ImageRef,
    base_image: ImageRef,
) -> None:
    config = project(tmp_path / "root")
    new_task(config, "mine", kind, like)
    with_baseline(config)
    images = {"evaluator": evaluator_image.id, "sidecars": sidecars_image.id}
    machine = Machine(config, engine=engine, images=images)
    task = load_task(config, "mine")
    rows = prove(machine, task, lambda _: None)
    assert [row["dataset"] for row in rows] == ["dev", "test"] and all(row["good"] for row in rows), rows
    ordered = prove_order(machine, task, lambda _: None)
    assert ordered and not [one for one in ordered if one.wrong]
    if kind in ("debate", "report"):  # nobody can make the best output
        assert all(one.why for one in ordered)
        return
    assert not [one for one in ordered if one.why]
    ranked = {measure for table in task.tables.values() for measure in table.rank_by.measures}
    assert all(ranked <= one.values.keys() for one in ordered)
