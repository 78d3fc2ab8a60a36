"""`runner check` takes the dataset that can only be meant, and names files that have not been fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.model.errors import RunnerError
from runner.model.task import Task
from runner.submissions.check_file import dataset_to_check
from runner.tasks.load import load_task
from tests.worlds.definitions import project, write_task

LATER = {"sources": [{"path": "inputs/queries2.jsonl"}], "topics": "queries2.jsonl"}


def task(tmp_path: Path, **datasets: dict[str, Any]) -> Task:
    config = project(tmp_path / "project")
    rows = [{"id": name, "topics": "queries.jsonl", **row} for name, row in datasets.items()]
    table = {"id": "main", "cells": [{"dataset": rows[0]["id"]}], "rank_by": "ap"}
    write_task(config, datasets=rows, tables=[table])
    return load_task(config, "toy")


def test_the_first_public_dataset_or_the_only_complete_one_is_checked(tmp_path: Path) -> None:
    one = task(tmp_path / "a", test={"visibility": "blinded"}, dev={"visibility": "public"})
    assert dataset_to_check(one).id == "dev" and dataset_to_check(one, "test").id == "test"
    one = task(tmp_path / "b", dev={"visibility": "public", **LATER}, test={"visibility": "blinded"})
    assert dataset_to_check(one).id == "test"


def test_several_that_may_be_meant_are_named(tmp_path: Path) -> None:
    with pytest.raises(RunnerError) as error:
        dataset_to_check(task(tmp_path, dev={"visibility": "blinded"}, test={"visibility": "blinded"}))
    assert error.value.code == "E102" and "dev, test" in error.value.why


def test_files_that_were_not_fetched_are_named(tmp_path: Path) -> None:
    one = task(tmp_path, dev={"visibility": "public", **LATER})
    for wanted in (None, "dev"):
        with pytest.raises(RunnerError) as error:
            dataset_to_check(one, wanted)
        assert error.value.code == "E402" and "inputs/queries2.jsonl" in error.value.why
        assert "import toy dev" in error.value.fix
