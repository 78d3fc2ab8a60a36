"""A task with a blinded dataset whose files lie outside the tree, and its list before opening."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runner.doctor.ready import ready
from runner.model.clock import FixedClock
from runner.model.config import Config
from runner.records.store.connect import open_store
from runner.tasks.load import load_task
from runner.tasks.scaffold import hide
from tests.worlds.definitions import project, write_task
from tests.worlds.records import World, write_project

SECRET = "whether owls hunt at noon"
Statuses = dict[str, str]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A task whose blinded dataset has its files outside the tree."""
    config = project(tmp_path / "root", private=tmp_path / "private")
    folder = write_task(config, demo=None)
    for name, text in (
        ("inputs/queries.jsonl", json.dumps({"qid": "test-1", "query": SECRET}) + "\n"),
        ("truths/qrels.txt", "test-1 0 document-of-owls 1\n"),
    ):
        (folder / "datasets" / "test" / name).write_text(text)
    hide(config, "toy")
    return config


@pytest.fixture
def look(config: Config) -> Callable[..., tuple[Statuses, dict[str, str]]]:
    def looked(**changes: Any) -> tuple[Statuses, dict[str, str]]:
        file = config.tasks / "toy" / "task.yaml"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
        with open_store(config) as store:
            clock = FixedClock(datetime(2026, 3, 1, tzinfo=UTC))
            found = ready(config, load_task(config, "toy"), store, clock)
        assert all(
            check.fix for check in found if check.status != "PASS" and "long enough" not in check.detail
        )
        return {c.name: c.status for c in found}, {c.name: f"{c.detail} | {c.fix}" for c in found}

    return looked


@pytest.fixture
def board(tmp_path: Path) -> Callable[..., tuple[World, Callable[[], dict[str, str]]]]:
    """A store, and the list for its task, whose blinded topics hold the secret."""

    def made(**changes: Any) -> tuple[World, Callable[[], dict[str, str]]]:
        world = World.make(tmp_path)
        write_project(tmp_path, baseline="baselines/bm25")
        file = tmp_path / "tasks" / "toy" / "task.yaml"
        data = json.loads(file.read_text())
        data["datasets"][1]["topics"] = "topics.jsonl"
        file.write_text(json.dumps({**{k: v for k, v in data.items() if k != "demo"}, **changes}))
        topics = tmp_path / "tasks" / "toy" / "datasets" / "test" / "inputs" / "topics.jsonl"
        topics.write_text(json.dumps({"qid": "1", "query": SECRET}) + "\n")

        def look() -> dict[str, str]:
            task = load_task(world.config, "toy")
            found = ready(world.config, task, world.store, FixedClock(datetime(2026, 3, 1, tzinfo=UTC)))
            return {check.name: f"{check.status} {check.detail} {check.fix}" for check in found}

        return world, look

    return made
