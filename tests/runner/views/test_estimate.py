"""What a campaign would cost, and the budget's warnings at their edges."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from runner.model.limits import Limits
from runner.model.task import Cell, Quota
from runner.records.store.charges import spent
from runner.views.estimate import budget_warning, estimate
from tests.worlds.mini import Project, call
from tests.worlds.records import World, task, write_project


def test_what_baselines_used_times_what_teams_may_hand_in(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    mine = replace(task(quota=Quota(submissions=5), cells=(Cell("dev"), Cell("test"))), limits=Limits(gpus=2))
    found = estimate(world.store, mine, teams=20)
    assert found.processor == found.disk == found.used == 0 and set(found.unmeasured) == {
        "dev/default",
        "test/default",
    }

    id = world.scored("baselines", "bm25", datasets=("test",))
    world.scored("others", "huge", datasets=("test",))  # no baseline: what it used says nothing
    found = estimate(world.store, mine, teams=20)
    (dev, test) = sorted(found.cells, key=lambda one: one.dataset)
    assert (dev.runs, dev.processor, test.runs) == (0, None, 1) and found.unmeasured == ("dev/default",)
    assert test.processor and test.gpu == pytest.approx(1.5 / 3600 * 2)
    assert found.processor == pytest.approx(test.processor * 20 * 5)
    assert found.gpu == pytest.approx(1.5 / 3600 * 2 * 20 * 5)
    attempt = world.archive.attempt("toy", next(run for _, run in world.archive.runs("toy") if id in run), 1)
    assert test.disk == sum(entry["size"] for entry in attempt.manifest().values()) > 0
    assert estimate(world.store, mine, teams=1, submissions=1).processor == test.processor


def test_all_attempts_of_a_task_are_spent_also_those_that_failed(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    assert spent(world.store, "toy") == 0
    one = world.register("alpha", "x")
    world.attempt(one)
    first = spent(world.store, "toy")
    world.attempt(one, verdict="run-error", exit_code=1)
    assert first > 0 and spent(world.store, "toy") == pytest.approx(2 * first)
    assert spent(world.store, "another") == 0


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (69.9, ""),
        (70, "is used to 70 %"),
        (89.9, "is used to 89 %"),
        (90, "is used to 90 %"),
        (100, "is used up"),
        (250, "is used up"),
    ],
)
def test_warnings_at_their_edges(hours: float, said: str) -> None:
    warning = budget_warning(replace(task(), budget_hours=100.0), hours)
    assert (said in warning and "nothing is closed" in warning) if said else warning == ""
    assert budget_warning(task(), hours) == ""


def test_the_commands_say_it(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    write_project(tmp_path, baseline="baselines/bm25")
    world.scored("baselines", "bm25")
    file = tmp_path / "tasks" / "toy" / "task.yaml"
    file.write_text(json.dumps({**json.loads(file.read_text()), "budget": {"hours": 0.0001}}))
    project = Project(tmp_path, world.config.home, tmp_path / "truths")

    shown = call(project, "task", "show", "toy")
    assert "budget     0.0 of 0.0001 hours" in shown.out and "the budget of toy is used up" in shown.err
    assert "budget" not in call(project, "task", "show", "toy", "--as", "public").all

    said = call(project, "task", "estimate", "toy", "--teams", "3", "--submissions", "2")
    assert "3 teams with 2 submissions each" in said.out and "the budget of toy is used up" in said.err
    told = call(project, "task", "estimate", "toy", "--json").json
    assert told["teams"] == 10 and told["budget"] == 0.0001 and told["unmeasured"] == []
    assert "the budget of toy is used up" in call(project, "evaluate", "--all").err
