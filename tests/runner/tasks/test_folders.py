"""Where hidden inputs and truths are found, that ``runner task check`` finds them in the tree, and ``runner task hide``."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.tasks.check_data import check_task, task_problems
from runner.tasks.folders import exposed, tree
from runner.tasks.load import load_task
from runner.tasks.scaffold import hide
from tests.worlds.definitions import project, told, write_task
from tests.worlds.mini import Project, call_here

HIDE = "runner task hide toy"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return project(tmp_path / "root", private=tmp_path / "private")


def rows(**of_test: Any) -> dict[str, Any]:
    """The changes that make the toy task no demo, with keys of its blinded dataset."""
    test = {"id": "test", "visibility": "blinded", **of_test}
    return {"demo": None, "datasets": [{"id": "dev", "visibility": "public"}, test]}


def written(config: Config, text: str) -> Path:
    """The toy task with this task.yaml; its data lie in the tree."""
    folder = write_task(config, **rows())
    (folder / "task.yaml").write_text(text)
    return folder


def fill(folder: Path, name: str, text: str = "test-1 0 d1 1\n") -> None:
    folder.mkdir(parents=True)
    (folder / name).write_text(text)


def found(config: Config) -> dict[str, Path]:
    test = load_task(config, "toy").datasets["test"]
    return {"inputs": test.inputs, "truths": test.truths}


def test_one_private_root_has_inputs_and_truths(config: Config) -> None:
    write_task(config, data=False, **rows())
    private = config.private
    assert private is not None
    both = {side: private / "toy/test" / side for side in ("inputs", "truths")}
    assert found(config) == both, "where they are to be put"
    fill(both["inputs"], "queries.jsonl")
    fill(both["truths"], "qrels.txt")
    assert found(config) == both


def test_the_older_setting_is_a_fallback_for_truths(config: Config, tmp_path: Path) -> None:
    write_task(config, data=False, **rows())
    older = replace(config, truths=tmp_path / "truths")
    fill(tmp_path / "truths/toy/test", "qrels.txt")
    assert found(older)["truths"] == tmp_path / "truths/toy/test"
    assert found(replace(older, private=None))["truths"] == tmp_path / "truths/toy/test"
    fill(tmp_path / "private/toy/test/truths", "qrels.txt")
    assert found(older)["truths"] == tmp_path / "private/toy/test/truths"


def test_the_check_fails_while_hidden_inputs_lie_in_the_tree(config: Config, tmp_path: Path) -> None:
    folder = write_task(config, **rows())
    fill(tmp_path / "private/toy/test/truths", "qrels.txt")
    for path in (folder / "datasets/test/truths").iterdir():
        path.unlink()
    task = load_task(config, "toy")
    assert task.datasets["test"].inputs == folder / "datasets/test/inputs"
    with pytest.raises(RunnerError) as caught:
        check_task(task, config)
    assert caught.value.code == "E411"
    [problem] = caught.value.problems
    assert 'inputs of the blinded dataset "test"' in problem.what
    assert HIDE in problem.fix and "$RUNNER_PRIVATE/toy/test/inputs" in problem.fix
    check_task(task, config, ["dev", "test"])  # a campaign that goes on is not stopped by it


@pytest.mark.parametrize("side", ["inputs", "truths"])
def test_a_copy_that_was_left_in_the_tree_is_found(config: Config, side: str) -> None:
    write_task(config, **rows())
    hide(config, "toy")
    assert task_problems(load_task(config, "toy"), config) == []
    fill(config.tasks / "toy/datasets/test" / side, "left.txt")
    [problem] = task_problems(load_task(config, "toy"), config)
    assert problem.code == {"inputs": "E411", "truths": "E403"}[side] and side in problem.what


def test_before_hiding_each_side_is_named_once_with_one_way_to_move_it(config: Config) -> None:
    """The truths cannot be missing where they belong, and the ones in the tree be unused, at the same time."""
    write_task(config, **rows())
    problems = task_problems(load_task(config, "toy"), config)
    assert [one.code for one in problems] == ["E411", "E403"]
    assert all(HIDE in one.fix for one in problems)
    with pytest.raises(RunnerError):
        check_task(load_task(config, "toy"), config, ["test"])  # nothing is evaluated without the truths
    hide(config, "toy")
    assert task_problems(load_task(config, "toy"), config) == []


def test_hiding_is_advised_with_a_private_root_that_it_accepts(config: Config) -> None:
    write_task(config, **rows())
    unset = replace(config, private=None, truths=None, home=config.root / ".runner")
    for problem in task_problems(load_task(unset, "toy"), unset):
        assert problem.fix.index("RUNNER_PRIVATE") < problem.fix.index(HIDE)
    with pytest.raises(RunnerError, check=lambda error: error.code == "E411"):
        hide(unset, "toy")


def test_the_tree_is_the_repository_around_the_project(config: Config, tmp_path: Path) -> None:
    """A private root beside the project, but in the same repository, is cloned, too."""
    write_task(config, **rows())
    hide(config, "toy")
    assert tree(config) == config.root
    (tmp_path / ".git").mkdir()
    assert tree(config) == tmp_path
    with pytest.raises(RunnerError) as caught:
        load_task(config, "toy")
    assert caught.value.code == "E403" and "RUNNER_PRIVATE" in told(caught.value)


def test_a_demo_is_exempt_and_named(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.write_task(demo=True)
    project.docker_host = "unix:///nonexistent/docker.sock"
    said = call_here(project, ["task", "check", "mini"], capsys)
    assert said.code == 0 and "demo" in said.err and "(test)" in said.err


def test_what_is_hidden_is_moved(config: Config, tmp_path: Path) -> None:
    text = (
        "schema_version: 1 # a comment stays\nid: toy\ntitle: Toy\nkind: adhoc\ndatasets:\n  - id: dev\n    visibility: public\n"
        "  - id: test\n    visibility: blinded\n    inputs: datasets/test/inputs\n    truths: datasets/test/truths # here\n"
        "measures: [{id: ap, measure: AP, truths: qrels.txt}]\ntables: [{id: main, cells: blinded, rank_by: ap}]\n"
    )
    folder = written(config, text)
    moved = hide(config, "toy")
    assert [(one.dataset, one.side) for one in moved] == [("test", "inputs"), ("test", "truths")]
    lines = [line for line in text.splitlines() if "datasets/test" not in line]
    assert (folder / "task.yaml").read_text().splitlines() == lines
    assert sorted(p.name for p in (folder / "datasets").iterdir()) == ["dev"]
    private = tmp_path / "private"
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert found(config) == {side: private / "toy/test" / side for side in ("inputs", "truths")}
    assert task_problems(load_task(config, "toy"), config) == []
    assert hide(config, "toy") == [], "nothing is left to be moved"


@pytest.mark.parametrize(
    "row",
    [
        "{id: test, visibility: blinded, truths: datasets/test/truths}",
        "{truths: datasets/test/truths, id: test, visibility: blinded}",
        '{"id": "test", "truths": "datasets/test/truths", "visibility": "blinded", "inputs": "datasets/test/inputs"}',
    ],
)
def test_keys_in_one_line_are_taken_out(config: Config, row: str) -> None:
    head = "schema_version: 1\nid: toy\ntitle: Toy\nkind: adhoc\n"
    measures = "measures: [{id: ap, measure: AP, truths: qrels.txt}]\ntables: [{id: main, cells: blinded, rank_by: ap}]\n"
    folder = written(config, f"{head}datasets: [{{id: dev, visibility: public}}, {row}]\n{measures}")
    hide(config, "toy")
    left = schemas.load_yaml(folder / "task.yaml").data["datasets"]
    assert left == [{"id": "dev", "visibility": "public"}, {"id": "test", "visibility": "blinded"}]
    assert task_problems(load_task(config, "toy"), config) == []


def test_a_move_that_was_interrupted_goes_on(config: Config, tmp_path: Path) -> None:
    write_task(config, **rows())
    source = config.tasks / "toy/datasets/test/inputs"
    target = tmp_path / "private/toy/test/inputs"
    target.mkdir(parents=True)
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    assert len(hide(config, "toy")) == 2 and not source.exists()


@pytest.mark.parametrize("older", [False, True])
def test_two_different_versions_are_left_for_a_person(config: Config, tmp_path: Path, older: bool) -> None:
    write_task(config, **rows())
    if older:
        config = replace(config, truths=tmp_path / "truths")
    place = tmp_path / ("truths/toy/test" if older else "private/toy/test/truths")
    fill(place, "qrels.txt", "test-1 0 d1 0\n")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(RunnerError) as caught:
        hide(config, "toy")
    assert caught.value.code == "E101" and '"test"' in caught.value.what
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_what_cannot_be_moved_is_refused(config: Config) -> None:
    folder = write_task(config)
    for changes, private, code, words in (
        ({}, config.private, "E101", "demo"),
        (rows(), None, "E411", "RUNNER_PRIVATE"),
        (rows(), config.root / "private", "E411", "private"),
        (rows(inputs="datasets/dev/inputs"), config.private, "E101", "public"),
    ):
        text = json.loads((folder / "task.yaml").read_text()) | changes
        text = {key: value for key, value in text.items() if value is not None}
        (folder / "task.yaml").write_text(json.dumps(text))
        with pytest.raises(RunnerError) as caught:
            hide(replace(config, private=private), "toy")
        assert caught.value.code == code and words in told(caught.value)
        assert (folder / "datasets/test/truths/qrels.txt").is_file()


def test_nothing_of_a_demo_or_of_public_datasets_counts_as_exposed(config: Config) -> None:
    write_task(config)
    task = load_task(config, "toy")
    assert list(exposed(config, task.folder, task.definition)) == []
    write_task(config, "other", **rows(visibility="public"))
    other = load_task(config, "other")
    assert list(exposed(config, other.folder, other.definition)) == []


def test_the_command_shows_the_new_places(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.write_task()
    for side in ("inputs", "truths"):
        (project.root / "tasks/mini/datasets/test").mkdir(exist_ok=True, parents=True)
    (project.private / "mini/test/inputs").rename(project.root / "tasks/mini/datasets/test/inputs")
    refused = call_here(project, ["task", "check", "mini"], capsys)
    assert refused.code == 4 and refused.err.startswith("E411")
    place = f"{project.private}/mini/test/inputs"
    for message in (place, ""):
        hidden = call_here(project, ["task", "hide", "mini"], capsys)
        assert hidden.code == 0 and (place in hidden.err) == bool(message)
    assert call_here(project, ["task", "check", "mini"], capsys).code == 0
