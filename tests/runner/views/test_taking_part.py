"""Participation figures and baselines of a task's page: what its open leaderboards say, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.published import Published, Publisher
from runner.tasks.load import load_tasks
from runner.work.publishing import Desk
from tests.worlds import records


def told(made: records.World, root: Path, audience: str = "public") -> dict[str, Any]:
    """What the page of the task says to an audience now."""
    Desk(made.store, load_tasks(made.config)[0], Publisher(root), pytest.fail).publish(["alpha", "beta"])
    view = Published(root).view(audience)
    found = view.get("tasks/toy")
    assert found is not None
    data: dict[str, Any] = view.data(found)
    return data


def toy(made: records.World, **changes: Any) -> None:
    records.write_project(made.config.root, scores="organiser")
    path = made.config.root / "tasks/toy/task.yaml"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def boards(*datasets: str) -> list[dict[str, Any]]:
    return [
        {"id": one, "cells": [{"dataset": one}], "rank_by": "rr", "title": f"On {one}"} for one in datasets
    ]


def test_what_is_closed_is_not_counted_before_it_is_open(tmp_path: Path) -> None:
    made = records.World.make(tmp_path)
    toy(made, tables=boards("dev", "test"))
    made.scored("alpha", "one", datasets=("dev", "test"))
    made.scored("alpha", "two", datasets=("dev", "test"))
    before = told(made, tmp_path / "p")
    made.scored("beta", "hidden", datasets=("test",))
    now = told(made, tmp_path / "p")
    assert [one["id"] for one in now["boards"]] == ["dev"]
    assert now["participation"] == before["participation"], "a run on hidden data moves no figure"
    assert (now["participation"]["teams"], now["participation"]["softwares"]) == (1, 2)
    made.commit("dataset-published", task="toy", dataset="test")
    opened = told(made, tmp_path / "p")
    assert (opened["participation"]["teams"], opened["participation"]["softwares"]) == (2, 3)
    assert opened["participation"]["runs"] > now["participation"]["runs"]


def test_without_an_open_leaderboard_there_are_no_figures(tmp_path: Path) -> None:
    made = records.World.make(tmp_path)
    toy(made, tables=boards("test"))
    made.scored("alpha", "one", datasets=("test",))
    made.scored("baselines", "bm25", datasets=("test",))
    data = told(made, tmp_path / "p")
    assert (data["participation"], data["baselines"]) == (None, [])


def test_baselines_stand_apart_with_their_places(tmp_path: Path) -> None:
    made = records.World.make(tmp_path)
    toy(made, tables=boards("dev"))
    made.scored("alpha", "one", datasets=("dev",))
    made.scored("baselines", "bm25", datasets=("dev",))
    data = told(made, tmp_path / "p")
    assert data["participation"] == {"teams": 1, "softwares": 1, "runs": 1}
    (one,) = data["baselines"]
    assert (one["team"], one["software"]) == ("baselines", "bm25")
    (place,) = one["places"]
    assert (place["table"], place["title"], place["of"]) == ("dev", "On dev", 2)
    assert place["rank"] in (1, 2) and float(place["score"]) >= 0


def test_made_up_names_are_counted_and_stay_made_up(tmp_path: Path) -> None:
    made = records.World.make(tmp_path)
    toy(made, tables=boards("dev"), anonymous={"until": "published"})
    for team in ("alpha", "beta"):
        made.scored(team, "one", datasets=("dev",))
    made.commit("key-drawn", task="toy", key="11" * 32)
    assert told(made, tmp_path / "p")["participation"] == {"teams": 2, "softwares": 2, "runs": 2}
