"""Small projects for tests: a root with one toy task and submissions, written to a folder of the test's."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.problems import Problems

TASK: dict[str, Any] = {
    "schema_version": 1,
    "id": "toy",
    "title": "Toy",
    "kind": "adhoc",
    "demo": True,
    "datasets": [
        {"id": "dev", "visibility": "public", "topics": "queries.jsonl"},
        {"id": "test", "visibility": "blinded", "topics": "queries.jsonl", "scores": "public"},
    ],
    "measures": [
        {"id": "ndcg_10", "measure": "nDCG@10", "truths": "qrels.txt"},
        {"id": "ap", "measure": "AP", "truths": "qrels.txt"},
    ],
    "tables": [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ap"}],
}


def project(root: Path, *, truths: Path | None = None, private: Path | None = None) -> Config:
    """An empty project in ``root``."""
    (root / "tasks").mkdir(parents=True)
    (root / "submissions").mkdir()
    return Config(root=root, home=root / ".runner", truths=truths, private=private)


def definition(**changes: Any) -> dict[str, Any]:
    """The toy task's definition with some keys changed; None removes one."""
    data = {**deepcopy(TASK), **changes}
    return {key: value for key, value in data.items() if value is not None}


def write_task(
    config: Config, name: str = "toy", *, data: bool = True, text: str | None = None, **changes: Any
) -> Path:
    """Write a task (JSON is YAML) and, with ``data``, its toy files; returns its folder."""
    folder = config.tasks / name
    folder.mkdir()
    (folder / "task.yaml").write_text(
        text if text is not None else json.dumps(definition(id=name, **changes), indent=1)
    )
    for dataset in ("dev", "test") if data else ():
        inputs, truths = folder / "datasets" / dataset / "inputs", folder / "datasets" / dataset / "truths"
        inputs.mkdir(parents=True)
        truths.mkdir()
        (inputs / "queries.jsonl").write_text(json.dumps({"qid": f"{dataset}-1", "query": "x"}) + "\n")
        (inputs / "documents.jsonl").write_text('{"docno": "d1", "text": "x"}\n')
        (truths / "qrels.txt").write_text(f"{dataset}-1 0 d1 1\n")
    return folder


def write_submission(
    config: Config, text: str, team: str = "alpha", software: str = "one", dockerfile: bool = True
) -> Path:
    """Write a submission; returns its folder."""
    folder = config.submissions / team / software
    folder.mkdir(parents=True)
    (folder / "submission.yaml").write_text(text)
    if dockerfile:
        (folder / "Dockerfile").write_text("FROM scratch\n")
    return folder


def told(error: RunnerError) -> str:
    """Everything an error says, for searching."""
    return "\n".join([error.what, error.why, error.fix, *(str(p) for p in error.problems)])


def problems_of(
    check: Callable[[dict[str, Any], Problems], None], data: dict[str, Any]
) -> list[schemas.Problem]:
    """What a check notes about a definition."""
    problems = Problems(schemas.Document("task.yaml", data), "E401")
    check(data, problems)
    return problems.found
