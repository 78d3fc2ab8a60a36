"""Checks of a task: its evaluator computes every measure, and outputs of a known order are ranked so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.engines.fake import FakeEngine, Mounts
from runner.execution import check_measures as measurechecks
from runner.execution.machine import Machine
from runner.execution.trials.prove import prove_order, shows_something
from runner.model.container import ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.task import Task
from runner.tasks.load import load_task
from runner.tasks.scaffold import new_task
from tests.worlds.definitions import project, write_task

OURS, THEIRS = "proctor/evaluator", "their/evaluator"
MEASURES = [
    {"id": "ndcg_10", "measure": "nDCG@10", "truths": "qrels.txt"},
    {"id": "ap", "measure": "AP", "truths": "qrels.txt"},
    {"id": "sdcg", "measure": "SDCG(max_rel=3)@5", "truths": "qrels.txt"},
]


def evaluator(fails: Callable[[list[str]], str]) -> Any:
    """An evaluator that says what ``fails`` says of the measures it is asked for, and nothing else of a run without lines."""

    def script(mounts: Mounts, out: Path) -> None:
        request = json.loads(mounts["/in"].joinpath("request.json").read_text())
        assert mounts["/in"].joinpath("run", request["run_file"]).read_bytes() == b""
        why = fails([m["measure"] for m in request["measures"]])
        findings = {"error": 0, "defect": 0, "warning": 0, "codes": {}}
        result = {"schema_version": 1, "status": "error" if why else "invalid", "evaluator": {"name": "x", "version": "1"},
                  "measures": {}, "findings": findings, "run_tag": None, "message": why}  # fmt: skip
        out.joinpath("result.json").write_text(json.dumps(result))
        for name in ("scores.jsonl", "findings.jsonl"):
            out.joinpath(name).touch()

    return script


def guilty(measures: list[str]) -> str:
    return "SDCG cannot be computed; it needs cwl_eval" if "SDCG(max_rel=3)@5" in measures else ""


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Task]:
    config = project(tmp_path / "project")

    def made(**changes: Any) -> Task:
        write_task(config, measures=MEASURES, **changes)
        return load_task(config, "toy")

    return made


def asked(task: Task, fails: Callable[[list[str]], str]) -> tuple[dict[str, bool | None], FakeEngine]:
    engine = FakeEngine({OURS: evaluator(fails), THEIRS: evaluator(fails)})
    answers = measurechecks.ask(engine, task, OURS)
    engine.close()
    return {one.id: one.computed for one in answers}, engine


def test_only_the_guilty_measure_is_named_with_its_line(load: Callable[..., Task]) -> None:
    task = load()
    engine = FakeEngine({OURS: evaluator(guilty)})
    answers = measurechecks.ask(engine, task, OURS)
    engine.close()
    assert {one.id: one.computed for one in answers} == {"ndcg_10": True, "ap": True, "sdcg": False}
    error = measurechecks.refusal(task, answers)
    assert error is not None and error.code == "E404"
    (problem,) = error.problems
    line = (task.folder / "task.yaml").read_text().splitlines()[int(problem.where.rsplit(":", 1)[1]) - 1]
    assert "SDCG(max_rel=3)@5" in line and "cwl_eval" in problem.what


def test_nothing_is_asked_twice_where_all_is_well(load: Callable[..., Task]) -> None:
    task = load()
    found, engine = asked(task, lambda _: "")
    assert set(found.values()) == {True} and len(engine.started) == 1
    answers = measurechecks.ask(FakeEngine({OURS: evaluator(lambda _: "")}), task, OURS)
    assert measurechecks.refusal(task, answers) is None


def test_a_strangers_evaluator_is_blamed_only_for_what_it_says_of_single_measures(
    load: Callable[..., Task],
) -> None:
    task = load(evaluator={"image": THEIRS})
    assert asked(task, guilty)[0] == {"ndcg_10": True, "ap": True, "sdcg": False}
    assert set(asked(task, lambda _: "no lines")[0].values()) == {None}
    assert set(asked(task, lambda measures: "too many" if len(measures) > 1 else "")[0].values()) == {None}


def test_a_public_dataset_is_asked_about_first(load: Callable[..., Task]) -> None:
    """So that the question waits for no run on hidden data, and no cache has to be emptied after it."""
    datasets = [{"id": "test", "visibility": "blinded"}, {"id": "dev", "visibility": "public"}]
    seen: list[str] = []

    def script(mounts: Mounts, out: Path) -> None:
        seen.append(json.loads(mounts["/in"].joinpath("request.json").read_text())["dataset"])
        evaluator(lambda _: "")(mounts, out)

    measurechecks.ask(FakeEngine({OURS: script}), load(datasets=datasets), OURS)
    assert seen == ["dev"]


def test_our_own_evaluator_is_believed(load: Callable[..., Task]) -> None:
    assert set(asked(load(), lambda _: "qrels.txt is invalid")[0].values()) == {False}


def test_a_missing_image_and_a_failing_engine_are_raised(load: Callable[..., Task]) -> None:
    task = load()
    with pytest.raises(RunnerError) as told:
        measurechecks.ask(FakeEngine({}), task, OURS)
    assert told.value.code == "E304"
    engine = FakeEngine({OURS: evaluator(guilty)}, faults={"session": [PlatformError("gone", code="E301")]})
    with pytest.raises(PlatformError):
        measurechecks.ask(engine, task, OURS)


def test_without_a_dataset_that_is_complete_nobody_is_asked(load: Callable[..., Task]) -> None:
    task = load()
    for dataset in task.datasets.values():
        for path in dataset.truths.iterdir():
            path.unlink()
        dataset.truths.rmdir()
    answers = measurechecks.ask(FakeEngine({}), task, OURS)
    assert {one.computed for one in answers} == {None} and answers[0].why


@pytest.mark.slow
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
        assert not one.why and not one.wrong
        assert one.values[next(iter(task.tables.values())).rank_by.first]["perfect"] == 1
    assert not config.home.exists() or not list(config.home.rglob("archive/*"))


@pytest.mark.slow
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
