"""``runner task check`` as an organiser meets it: data that do not fit together, truths in reach, limits, linked folders."""

from __future__ import annotations

import gzip
import lzma
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.tasks.check_contents import read_contents
from runner.tasks.check_data import task_problems
from runner.tasks.load import load_task
from tests.worlds.definitions import project, told, write_submission, write_task
from tests.worlds.mini import Project, Said, call_here


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return project(tmp_path / "project")


def checked(config: Config, capsys: pytest.CaptureFixture[str], *options: str) -> Said:
    project = Project(config.root, config.home, config.root.parent / "truths")
    return call_here(project, ["task", "check", "toy", *options], capsys)


def test_statistics_and_warnings_are_printed(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_task(config)
    (folder / "datasets/dev/truths/qrels.txt").write_text("dev-1 0 d1 1\ndev-1 0 d2 -2\n")
    done = checked(config, capsys)
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    dev, judgments = done.out.splitlines()[:2]
    assert dev.startswith("dev: 1 ") and " ".join(re.findall(r"-?\d+", judgments)) == "2 2 1 -2 1 1 1"
    assert "warning: tasks/toy/datasets/dev/truths/qrels.txt:2: " in done.err
    contents = checked(config, capsys, "--json").json["contents"]
    assert [one["statistics"]["topics"] for one in contents] == [1, 1] and len(contents[0]["warnings"]) == 1


def test_all_problems_have_their_lines(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    datasets = [
        {"id": name, "visibility": visibility, "topics": "queries.jsonl", "corpus": "documents.jsonl"}
        for name, visibility in (("dev", "public"), ("test", "blinded"))
    ]
    tables = [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ap", "baseline": "alpha/one"}]
    folder = write_task(config, datasets=datasets, tables=tables, limits={"memory": "1B"})
    write_submission(config, "schema_version: 1\ntask: toy\nimage: x\nbuilt: 1\n")
    (folder / "datasets/test/truths/qrels.txt").write_text("test-1 0 d1 1\ntest-9 0 d8 1\n")
    done = checked(config, capsys)
    assert done.code == 4 and "E40" in done.err, done.err
    place = "tasks/toy/datasets/test/truths/qrels.txt:2: "
    for part in (f'{place}the topic "test-9"', f"warning: {place}1 of 2 ", "memory: ", "submission.yaml:4"):
        assert part in done.err, (part, done.err)


def test_a_file_that_is_still_to_come_is_not_read(config: Config) -> None:
    datasets = [{"id": "dev", "visibility": "public", "sources": [{"path": "inputs/more.txt"}]}]
    tables = [{"id": "main", "cells": [{"dataset": "dev"}], "rank_by": "ap"}]
    write_task(config, datasets=datasets, tables=tables)
    (found,) = read_contents(load_task(config, "toy"), config, lambda _: None)
    assert found.unchecked and found.statistics is None


@pytest.mark.parametrize("form", ["plain", "gzip", "xz", "zip", "tar", "tar.gz", "tar.xz", "packed truths"])
def test_truths_are_found_among_inputs_however_they_are_packed(config: Config, form: str) -> None:
    folder = write_task(config)
    inputs, truths = folder / "datasets/test/inputs", folder / "datasets/test/truths/qrels.txt"
    data = truths.read_bytes()
    if form == "zip":
        with zipfile.ZipFile(inputs / "extra.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner/anything.txt", data)
    elif form.startswith("tar"):
        with tarfile.open(inputs / f"extra.{form}", f"w:{form[4:]}") as archive:
            archive.add(truths, "inner/anything.txt")
            archive.add(inputs, "inner/inputs", recursive=False)
    elif form == "packed truths":
        (inputs / "extra").write_bytes(data)
        truths.write_bytes(gzip.compress(data))
    else:
        pack = {"plain": bytes, "gzip": gzip.compress, "xz": lzma.compress}[form]
        (inputs / "extra").write_bytes(pack(data))
    (problem,) = task_problems(load_task(config, "toy"), config)
    assert problem.code == "E403" and 'inputs of "test"' in problem.what and "extra" in problem.what


def test_truths_of_a_blinded_dataset_are_found_in_a_public_one(config: Config) -> None:
    folder = write_task(config)
    shutil.copy(folder / "datasets/test/truths/qrels.txt", folder / "datasets/dev/truths/qrels.txt")
    (problem,) = task_problems(load_task(config, "toy"), config)
    assert problem.code == "E403" and '"dev"' in problem.what
    # What no measure reads, such as a licence, may be the same.
    (folder / "datasets/dev/truths/qrels.txt").write_text("dev-1 0 d1 1\n")
    for dataset in ("dev", "test"):
        (folder / f"datasets/{dataset}/truths/LICENSE").write_text("free\n")
    assert task_problems(load_task(config, "toy"), config) == []


@pytest.mark.parametrize("side", ["inputs", "truths"])
@pytest.mark.parametrize("target", ["outside", "itself"])
def test_linked_folders_are_a_problem(config: Config, tmp_path: Path, side: str, target: str) -> None:
    place = write_task(config) / "datasets/dev" / side
    shutil.move(place, tmp_path / "outside")
    place.symlink_to(tmp_path / "outside" if target == "outside" else place)
    with pytest.raises(RunnerError) as error:
        load_task(config, "toy")
    assert error.value.code == "E401" and f"datasets/dev/{side}" in told(error.value)


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        ({"memory": "1MiB"}, "memory"),
        ({"wall_clock": "9999d"}, "wall_clock"),
        ({"cpus": 0.001}, "cpus"),
        ({"memory": "64MiB", "output": "1GiB"}, "output"),
    ],
)
def test_absurd_limits_have_their_line(config: Config, limits: dict[str, object], word: str) -> None:
    folder = write_task(config, limits=limits)
    found = task_problems(load_task(config, "toy"), config)
    text = (folder / "task.yaml").read_text().splitlines()
    assert any(f'"{word}"' in text[(problem.line or 0) - 1] and word in problem.what for problem in found)


def test_truths_are_found_among_the_inputs_of_another_task(config: Config) -> None:
    folder, other = write_task(config), write_task(config, "other")
    for dataset in ("dev", "test"):
        (other / f"datasets/{dataset}/truths/qrels.txt").write_text(
            f"{dataset}-1 0 d1 1\n{dataset}-1 0 d2 0\n"
        )
    hidden = folder / "datasets/test/truths/qrels.txt"
    (other / "datasets/dev/inputs/training.gz").write_bytes(gzip.compress(hidden.read_bytes()))
    (problem,) = task_problems(load_task(config, "toy"), config)
    assert problem.code == "E403" and '"dev"' in problem.what and '"other"' in problem.what
    # What is public here may stand there, too, and a task that cannot be read says so itself.
    shutil.copy(folder / "datasets/dev/truths/qrels.txt", other / "datasets/dev/inputs/training.gz")
    (config.tasks / "broken").mkdir()
    (config.tasks / "broken/task.yaml").write_text("id: [")
    assert task_problems(load_task(config, "toy"), config) == []
