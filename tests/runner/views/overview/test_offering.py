"""Offering data: looked at before it is offered, once, and again when what is hidden has changed."""

from __future__ import annotations

import json
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runner.exchange.pieces import Pieces, keep
from runner.exchange.published import Publisher, file_of
from runner.model.errors import RunnerError
from runner.tasks.load import load_task
from runner.views.overview.offering import Offering, Reader
from tests.worlds.mini import TASK, Project


@pytest.fixture
def offering(project: Project) -> Iterator[tuple[Offering, list[RunnerError]]]:
    dev = {**TASK["datasets"][0], "downloads": {"inputs": "everybody"}}
    project.write_task(datasets=[dev, TASK["datasets"][1]])
    problems: list[RunnerError] = []
    yield Offering(Publisher(project.config.published), problems.append), problems


def offered(made: Offering, project: Project) -> set[str]:
    task = load_task(project.config, "mini")
    made.look([task])
    found = [one.path for one in made.objects(task, Reader()) if one.kind == "file"]
    return {path.removeprefix("data/mini/dev/inputs/") for path in found}


def inputs(project: Project) -> Path:
    return project.root / "tasks/mini/datasets/dev/inputs"


def test_a_file_with_something_hidden_is_told_once_and_never_offered(
    project: Project, offering: tuple[Offering, list[RunnerError]]
) -> None:
    made, problems = offering
    shutil.copy(project.truths / "mini/test/qrels.txt", inputs(project) / "notes.txt")
    for _ in range(2):
        assert offered(made, project) == {"documents.jsonl.gz", "queries.jsonl"}
    assert [one.code for one in problems] == ["E403"]


def test_what_becomes_hidden_later_is_taken_back(
    project: Project, offering: tuple[Offering, list[RunnerError]]
) -> None:
    made, problems = offering
    (inputs(project) / "notes.txt").write_text("words of somebody")
    assert "notes.txt" in offered(made, project) and problems == []
    (project.truths / "mini/test/more.txt").write_text("other words")
    assert "notes.txt" in offered(made, project)
    (project.truths / "mini/test/more.txt").write_text("words of somebody")
    assert "notes.txt" not in offered(made, project) and [one.code for one in problems] == ["E403"]


def test_nothing_is_looked_at_while_hidden_files_are_not_there(
    project: Project, offering: tuple[Offering, list[RunnerError]]
) -> None:
    made, problems = offering
    there = {"documents.jsonl.gz", "queries.jsonl"}
    assert offered(made, project) == there
    shutil.copy(project.truths / "mini/test/qrels.txt", inputs(project) / "notes.txt")
    (project.truths / "mini").rename(project.truths / "away")
    for _ in range(2):
        assert offered(made, project) == there, "what was looked at stays, nothing comes"
    assert [one.code for one in problems] == ["E402"] and "truths" in problems[0].what
    (project.truths / "away").rename(project.truths / "mini")
    assert offered(made, project) == there and [one.code for one in problems] == ["E402", "E403"]


def until(made: Offering, done: int) -> None:
    last = time.monotonic() + 60
    while made.done < done and time.monotonic() < last:
        made.collect()
    assert made.done >= done


def test_an_error_of_the_disk_is_told_once_and_tried_again_and_hostile_bytes_are_refused(
    project: Project, offering: tuple[Offering, list[RunnerError]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fails: list[Exception] = [
        OSError(5, "Input/output error"),
        OSError(5, "Input/output error"),
        struct.error("hm"),
    ]

    def keep_or_fail(to: Publisher, path: Path) -> Pieces:
        if path.name == "queries.jsonl" and fails:
            raise fails.pop(0)
        return keep(to, path)

    monkeypatch.setattr("runner.views.overview.offering.keep", keep_or_fail)
    problems: list[RunnerError] = []
    with closing(Offering(Publisher(project.config.published), problems.append, beside=True)) as made:
        assert offered(made, project) == set()
        until(made, 2)
        assert offered(made, project) == {"documents.jsonl.gz"} and coming(made, project) == 1
        monkeypatch.setattr("runner.views.overview.offering.RETRY", 0.0)
        until(made, 3)  # publishing is told to try again
        offered(made, project)
        until(made, 5)
        assert [one.code for one in problems] == ["E306"]
        offered(made, project)
        until(made, 6)
        assert [one.code for one in problems] == ["E306", "E403"] and "struct" not in problems[1].what
        assert offered(made, project) == {"documents.jsonl.gz"} and coming(made, project) == 0
        with (inputs(project) / "queries.jsonl").open("a") as file:
            file.write("\n")
        assert offered(made, project) == {"documents.jsonl.gz"} and coming(made, project) == 1, (
            "another state"
        )
        until(made, 7)
        assert offered(made, project) == {"documents.jsonl.gz", "queries.jsonl"}


def coming(made: Offering, project: Project) -> int:
    task = load_task(project.config, "mini")
    listed = [one for one in made.objects(task, Reader()) if one.kind == "data"]
    return int(json.loads(file_of(project.config.published, listed[0].data).read_bytes())["coming"])


def test_beside_the_clerk_nothing_is_offered_before_it_was_looked_at(
    project: Project, offering: tuple[Offering, list[RunnerError]]
) -> None:
    with closing(Offering(Publisher(project.config.published), pytest.fail, beside=True)) as made:
        assert offered(made, project) == set() and made.done == 0
        until(made, 2)
        there = {"documents.jsonl.gz", "queries.jsonl"}
        assert offered(made, project) == there
        (project.truths / "mini/test/more.txt").write_text("other words")
        assert offered(made, project) == there, "nobody sees that something hidden has changed"
