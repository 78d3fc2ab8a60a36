"""The leaderboards that tasks define, those of single cells among them, as people find them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.model.config import Config
from runner.tasks.load import load_task
from runner.tasks.tables import expanded

ROOT = Path(__file__).parents[3]


def test_a_leaderboard_of_one_cell_says_of_which() -> None:
    data = {
        "datasets": [{"id": "dev"}, {"id": "test-1.0"}],
        "scenarios": [{"id": "plain"}, {"id": "full"}],
        "tables": [
            {"id": "main", "title": "Relevance", "cells": "all", "per_cell": True},
            {"id": "bare", "cells": [{"dataset": "dev", "scenario": "full"}], "per_cell": True},
        ],
    }
    titles = {one["id"]: one.get("title") for one in expanded(data)}
    assert titles["main"] == "Relevance" and titles["main.test-1.0.full"] == "Relevance: test-1.0, full"
    assert titles["bare.dev.full"] == "bare: dev, full"


def test_a_leaderboard_over_one_scenario_names_none() -> None:
    data = {
        "datasets": [{"id": "dev"}, {"id": "test"}],
        "tables": [{"id": "main", "title": "Relevance", "cells": "all", "per_cell": True}],
    }
    assert [one["title"] for one in expanded(data)] == ["Relevance", "Relevance: dev", "Relevance: test"]


@pytest.mark.parametrize("task", sorted(path.parent.name for path in (ROOT / "tasks").glob("*/task.yaml")))
def test_no_two_leaderboards_of_a_task_are_called_the_same(tmp_path: Path, task: str) -> None:
    loaded = load_task(Config(root=ROOT, home=tmp_path / "home", truths=None), task)
    titles = [table.title or table.id for table in loaded.tables.values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("task", sorted(path.parent.name for path in (ROOT / "tasks").glob("*/task.yaml")))
def test_a_leaderboard_of_one_cell_says_nothing_of_a_mean_over_cells(tmp_path: Path, task: str) -> None:
    loaded = load_task(Config(root=ROOT, home=tmp_path / "home", truths=None), task)
    for table in loaded.tables.values():
        over = re.search(r"over (the )?(scenarios|test sets|datasets)", table.description)
        assert len(table.cells) > 1 or not over, table.id
