"""A new task works at once, is the same everywhere, and is never half there."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from runner.model.calendar import is_announced
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.kinds import kinds_with
from runner.model.task import Task
from runner.tasks import compose, scaffold
from runner.tasks import load as tasks
from runner.tasks.data_files import files_digest, folder_files
from runner.views.overview.about import description
from tests.worlds.definitions import project


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return project(tmp_path / "root")


@pytest.mark.parametrize("kind", kinds_with("skeleton"))
def test_a_new_task_is_not_on_the_web_and_may_have_a_number_as_name(config: Config, kind: str) -> None:
    """Its page does not show the to-do list of its organiser either."""
    folder = scaffold.new_task(config, "2024", kind)
    task = tasks.load_task(config, "2024")
    assert task.id == "2024" and not is_announced(task, datetime.now(UTC))
    shown = [task.title, task.description, description(task)]
    for words in ("runner task check", "RUNNER_PRIVATE", "TODO", "change this"):
        assert not any(words in text for text in shown), words
    assert "check 2024 --ready" in (folder / "TODO.md").read_text()


def test_topics_and_judgments_belong_together(config: Config) -> None:
    folder = scaffold.new_task(config, "mine")
    assert "synthetic" in (folder / "README.md").read_text()
    assert [path.name for path in config.tasks.iterdir()] == ["mine"]
    datasets = tasks.load_task(config, "mine").datasets.values()
    assert [dataset.visibility for dataset in datasets] == ["public", "blinded"]
    seen: set[str] = set()
    for dataset in ("dev", "test"):
        place = folder / "datasets" / dataset
        lines = (place / "inputs/queries.jsonl").read_text().splitlines()
        topics = {line.split('"')[3] for line in lines}
        judged = [line.split() for line in (place / "truths/qrels.txt").read_text().splitlines()]
        assert {row[0] for row in judged} == topics == {row[0] for row in judged if row[3] == "1"}
        assert not topics & seen
        seen |= topics


def test_the_same_name_gives_the_same_files(config: Config, tmp_path: Path) -> None:
    other = project(tmp_path / "other")
    first, second = scaffold.new_task(config, "mine"), scaffold.new_task(other, "mine")
    assert files_digest(folder_files(first)) == files_digest(folder_files(second))


def test_an_existing_folder_is_left_alone(config: Config) -> None:
    (config.tasks / "mine").mkdir()
    (config.tasks / "mine" / "keep").write_text("x")
    (config.tasks / "dangling").symlink_to("nowhere")
    for name, code in (("mine", "E101"), ("dangling", "E101"), ("rnine", "E215")):
        with pytest.raises(RunnerError) as caught:
            scaffold.new_task(config, name)
        assert caught.value.code == code and (name != "rnine" or '"mine"' in caught.value.why)
    assert [p.name for p in (config.tasks / "mine").iterdir()] == ["keep"]


@pytest.mark.parametrize(
    ("name", "kind", "like", "code"),
    [
        ("Mine", "adhoc", None, "E208"),
        ("../x", "adhoc", None, "E208"),
        ("", "adhoc", None, "E208"),
        ("mine", "none", None, "E101"),
        ("mine", "\x1b[2J", None, "E101"),
        ("mine", "records", "clasification", "E101"),
        ("mine", "records", "\x1b[2J", "E101"),
        ("mine", "adhoc", "classification", "E101"),
    ],
)
def test_bad_names_and_kinds(config: Config, name: str, kind: str, like: str | None, code: str) -> None:
    with pytest.raises(RunnerError) as caught:
        scaffold.new_task(config, name, kind, like)
    assert caught.value.code == code and caught.value.what.isprintable()
    assert ("classification, qa, generation" in caught.value.why) == (kind == "records")
    assert list(config.tasks.iterdir()) == []


def test_nothing_is_left_when_it_fails(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Task) -> bool:
        raise OSError("disk full")

    monkeypatch.setattr(compose, "write", broken)
    with pytest.raises(OSError):
        scaffold.new_task(config, "mine")
    assert list(config.tasks.iterdir()) == []


def test_the_first_task_of_a_new_project(tmp_path: Path) -> None:
    fresh = Config(root=tmp_path / "fresh", home=tmp_path / "home", truths=None)
    assert (scaffold.new_task(fresh, "mine") / "task.yaml").is_file()
