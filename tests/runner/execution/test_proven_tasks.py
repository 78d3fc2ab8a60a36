"""Outputs of a known order, made from the truths in the evaluator's container on the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.execution.machine import Machine
from runner.execution.trials.prove import prove_order, shows_something
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
    assert all(any("perfect" in what for what in one.wrong) for one in found)


@pytest.mark.parametrize(
    ("direction", "value", "good"), [("lower", 0, True), ("higher", 0, False), ("higher", 0.1, True)]
)
def test_no_error_at_all_shows_as_much_as_any_figure(
    tmp_path: Path, direction: str, value: float, good: bool
) -> None:
    config = project(tmp_path / "root")
    folder = new_task(config, "mine")
    text = (folder / "task.yaml").read_text()
    (folder / "task.yaml").write_text(
        text.replace("measure: nDCG@10,", f"measure: nDCG@10, direction: {direction},")
    )
    task = load_task(config, "mine")
    first = next(iter(task.tables.values())).rank_by.first
    assert shows_something(task, {first: value}) is good
    assert not shows_something(task, {})


def test_what_cannot_be_made_is_said_without_an_engine(tmp_path: Path) -> None:
    config = project(tmp_path / "root")
    folder = new_task(config, "mine")
    with (folder / "task.yaml").open("a") as file:
        file.write("evaluator: {image: their/evaluator}\n")
    found = prove_order(Machine(config), load_task(config, "mine"), lambda _: None)
    assert found and all(one.why and not one.values for one in found)


@pytest.mark.engine
def test_reports_are_proven_by_fixtures_though_a_model_judges_them(
    tmp_path: Path, engine: DockerEngine, evaluator_image: ImageRef
) -> None:
    """Once for all datasets, without a model and without a key; in a direction that is wrong, too."""
    config = project(tmp_path / "root")
    file = new_task(config, "mine", "report") / "task.yaml"
    gateway = "services: {gateway: {base_url: https://models.example/v1, models: [m], key: NO_KEY, tokens: 1000, calls: 10}}\n"
    judged = file.read_text().replace("type: lexical", "type: openai, model: m")
    file.write_text(f"{judged}{gateway}evaluator: {{gateway: true}}\n")
    machine = Machine(config, engine=engine, images={"evaluator": evaluator_image.id})
    (found,) = prove_order(machine, load_task(config, "mine"), lambda _: None)
    assert found.fixtures and not found.why and not found.wrong and "F301" in found.refused
    assert found.values["f1"] == {"good": 1, "worse": 0.5, "empty": 0}
    file.write_text(file.read_text().replace("measure: f1@macro,", "measure: f1@macro, direction: lower,"))
    (found,) = prove_order(machine, load_task(config, "mine"), lambda _: None)
    assert any("good" in what for what in found.wrong)
