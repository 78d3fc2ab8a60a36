"""Outputs of a known order, made from the truths in the evaluator's container on the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.execution.machine import Machine
from runner.execution.trials.prove import prove_order
from runner.model.container import ImageRef
from runner.tasks.load import load_task
from runner.tasks.scaffold import new_task
from tests.worlds.definitions import project


@pytest.mark.engine
def test_the_order_of_outputs_is_proven_and_nothing_is_recorded(
    tmp_path: Path, engine: DockerEngine, evaluator_image: ImageRef
) -> None:
    config = project(tmp_path / "root")
    new_task(config, "mine")
    machine = Machine(config, engine=engine, images={"evaluator": evaluator_image.id})
    task = load_task(config, "mine")
    said: list[str] = []
    found = prove_order(machine, task, said.append)
    assert {one.dataset for one in found} == {c.dataset for t in task.tables.values() for c in t.cells}
    for one in found:
        assert not one.why and not one.wrong and "F012" in one.refused
        assert one.values[next(iter(task.tables.values())).rank_by.first]["perfect"] == 1
    assert not config.home.exists() or not list(config.home.rglob("archive/*"))


@pytest.mark.engine
def test_a_table_that_ranks_upside_down_is_found(
    tmp_path: Path, engine: DockerEngine, evaluator_image: ImageRef
) -> None:
    config = project(tmp_path / "root")
    folder = new_task(config, "mine")
    text = (folder / "task.yaml").read_text()
    assert "measure: nDCG@10," in text
    (folder / "task.yaml").write_text(
        text.replace("measure: nDCG@10,", "measure: nDCG@10, direction: lower,")
    )
    machine = Machine(config, engine=engine, images={"evaluator": evaluator_image.id})
    found = prove_order(machine, load_task(config, "mine"), lambda _: None)
    assert all(any("is better than the perfect one" in what for what in one.wrong) for one in found)


def test_what_cannot_be_made_is_said_without_an_engine(tmp_path: Path) -> None:
    config = project(tmp_path / "root")
    folder = new_task(config, "mine")
    with (folder / "task.yaml").open("a") as file:
        file.write("evaluator: {image: their/evaluator}\n")
    found = prove_order(Machine(config), load_task(config, "mine"), lambda _: None)
    assert found and all(one.why == "its evaluator is an image of its own" for one in found)
