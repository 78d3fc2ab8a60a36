"""The leaderboards that tasks define, those of single cells among them, as people find them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.model.config import Config
from runner.tasks.load import load_task
from runner.tasks.tables import expanded

ROOT = Path(__file__).parents[3]


def test_the_title_of_a_leaderboard_of_one_cell_names_the_cell() -> None:
    main = {"id": "main", "title": "Relevance", "cells": "all", "per_cell": True}
    bare = {"id": "bare", "cells": [{"dataset": "dev", "scenario": "full"}], "per_cell": True}
    data = {
        "datasets": [{"id": "dev"}, {"id": "test-1.0"}],
        "scenarios": [{"id": "plain"}, {"id": "full"}],
        "tables": [main, bare],
    }
    titles = {one["id"]: one.get("title") for one in expanded(data)}
    assert titles["main"] == "Relevance" and titles["main.test-1.0.full"] == "Relevance: test-1.0, full"
    assert titles["bare.dev.full"].startswith("bare: dev")
    data = {"datasets": [{"id": "dev"}, {"id": "test"}], "tables": [main]}
    assert [one["title"] for one in expanded(data)] == ["Relevance", "Relevance: dev", "Relevance: test"]


@pytest.mark.parametrize("task", sorted(path.parent.name for path in (ROOT / "tasks").glob("*/task.yaml")))
def test_leaderboards_of_a_bundled_task_have_their_own_titles(tmp_path: Path, task: str) -> None:
    loaded = load_task(Config(root=ROOT, home=tmp_path / "home", truths=None), task)
    titles = [table.title or table.id for table in loaded.tables.values()]
    assert len(set(titles)) == len(titles)
    for table in loaded.tables.values():
        over = re.search(r"over (the )?(scenarios|test sets|datasets)", table.description)
        assert len(table.cells) > 1 or not over, table.id
