"""Which datasets take a submission: one that requires another wants the same image scored there first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from runner.model.errors import RunnerError
from runner.submissions.bundle import Bundle
from runner.submissions.load import load_submission
from runner.submissions.pack import write
from runner.submissions.register import Receipt, register
from tests.runner.execution.test_pool import EVALUATOR, World, evaluator, good
from tests.worlds.mini import Project


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    files = {"topics": "queries.jsonl", "corpus": "documents.jsonl.gz"}
    cells = [{"dataset": "dev"}, {"dataset": "test"}]
    project.write_task(
        uploads=True,
        tables=[{"id": "main", "cells": cells, "rank_by": "ndcg_10"}],
        datasets=[
            {"id": "dev", "visibility": "public"} | files,
            {"id": "test", "visibility": "blinded", "requires": "dev"} | files,
        ],
    )
    made = World(project)
    yield made
    made.close()


def _bundle(world: World, software: str, *, run: list[str] | None = None, **keys: Any) -> Bundle:
    """The bundle of an image, or of run files for these datasets."""
    project, image = world.project, f"alpha/{software}"
    world.engine.script.setdefault(image, good)
    if run is None:
        project.software(software, team="alpha", image=image, **keys)
    else:
        files = [{"file": f"{name}.txt", "dataset": name} for name in run]
        project.software(software, team="alpha", image=None, command=None, run=files, **keys)
        for name in run:
            folder = project.root / "submissions" / "alpha" / software
            folder.joinpath(f"{name}.txt").write_text(f"{name}-1 Q0 doc-01 1 1.0 tag\n")
    to = project.home / "bundles" / software
    ref = world.engine.resolve(image) if run is None else None
    submission = load_submission(project.config, "alpha", software)
    return write(submission, ref, to, engine=world.engine, check=None, with_archive=False)


def _register(world: World, bundle: Bundle) -> Receipt:
    return register(world.project.config, world.store, world.engine, world.tasks, bundle.folder)


def _early(world: World, bundle: Bundle) -> RunnerError:
    events = len(list(world.store.log))
    with pytest.raises(RunnerError) as caught:
        _register(world, bundle)
    assert caught.value.code == "E218" and len(list(world.store.log)) == events
    return caught.value


def test_a_dataset_requires_a_score_on_another_dataset(world: World) -> None:
    error = _early(world, _bundle(world, "one", datasets=["test"]))
    assert "datasets: [dev]" in error.fix
    first = _register(world, _bundle(world, "one"))
    assert first.left_out == ("test",)
    assert "pending" in _early(world, _bundle(world, "one", datasets=["test"])).why
    world.work()
    assert world.outcome(f"{first.submission}.dev").name == "scored"
    assert _register(world, _bundle(world, "one", datasets=["test"])).new
    _early(world, _bundle(world, "two", datasets=["test"]))


def test_run_files_are_taken_once_their_software_was_scored_there(world: World) -> None:
    """Run files have no image: the name of the software identifies it."""
    error = _early(world, _bundle(world, "one", run=["test"]))
    assert "one" in error.why and "dev" in error.why
    _early(world, _bundle(world, "one", run=["dev", "test"]))

    def invalid(mounts: Any, out: Any) -> None:
        evaluator(mounts, out)
        result = json.loads(out.joinpath("result.json").read_text())
        result |= {"status": "invalid", "measures": {}, "findings": {**result["findings"], "error": 1}}
        out.joinpath("result.json").write_text(json.dumps(result))
        line = {
            "code": "F101",
            "severity": "error",
            "message": "wrong",
            "line": 1,
            "file": "run.txt",
            "fix": "",
        }
        out.joinpath("findings.jsonl").write_text(json.dumps(line) + "\n")

    world.engine.script[EVALUATOR] = invalid
    first = _register(world, _bundle(world, "one", run=["dev"]))
    world.work()
    assert world.outcome(f"{first.submission}.dev").name == "invalid"
    assert "invalid" in _early(world, _bundle(world, "one", run=["test"])).why
    world.engine.script[EVALUATOR] = evaluator
    second = _register(world, _bundle(world, "one", run=["dev"], tag="again"))
    world.work()
    assert world.outcome(f"{second.submission}.dev").name == "scored"
    assert _register(world, _bundle(world, "one", run=["test"])).new
    _early(world, _bundle(world, "two", run=["test"]))
