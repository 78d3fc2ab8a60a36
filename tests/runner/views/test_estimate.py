"""What a campaign would cost, and the budget's warnings at their edges."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner.model.limits import Limits
from runner.model.task import Cell, Quota
from runner.records.store.charges import spent
from runner.views.estimate import budget_warning, estimate
from tests.worlds.commands import At
from tests.worlds.records import World, task, write_project


def test_what_baselines_used_times_what_teams_may_hand_in(world: World) -> None:
    mine = replace(task(quota=Quota(submissions=5), cells=(Cell("dev"), Cell("test"))), limits=Limits(gpus=2))
    found = estimate(world.store, mine, teams=20)
    assert found.processor == found.disk == found.used == 0
    assert set(found.unmeasured) == {"dev/default", "test/default"}

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


def test_all_attempts_of_a_task_are_spent_also_those_that_failed(world: World) -> None:
    assert spent(world.store, "toy") == 0
    one = world.register("alpha", "x")
    world.attempt(one)
    first = spent(world.store, "toy")
    world.attempt(one, verdict="run-error", exit_code=1)
    assert first > 0 and spent(world.store, "toy") == pytest.approx(2 * first)
    assert spent(world.store, "another") == 0


@pytest.mark.parametrize(("hours", "percent"), [(70, 70), (89.9, 89), (90, 90)])
def test_warnings_at_their_edges(hours: float, percent: int) -> None:
    limited = replace(task(), budget_hours=100.0)
    assert f" {percent} %" in budget_warning(limited, hours) and budget_warning(task(), hours) == ""
    assert budget_warning(limited, 69.9) == "" and "%" not in budget_warning(limited, 100)
    assert budget_warning(limited, 100) == budget_warning(limited, 250).replace("250.0", "100.0")


def test_commands_show_the_budget_to_the_organiser(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    world = World.make(tmp_path)
    write_project(tmp_path, baseline="baselines/bm25")
    world.scored("baselines", "bm25")
    file = tmp_path / "tasks" / "toy" / "task.yaml"
    file.write_text(json.dumps({**json.loads(file.read_text()), "budget": {"hours": 0.0001}}))
    at = At(tmp_path, world)
    said = at.run("task", "estimate", "toy", "--teams", "3", "--submissions", "2")
    golden("estimate.txt", re.sub(r"[0-9.]+ (?=[KM]iB)", "N ", f"{said.out}\n{said.err}"))
    warning = budget_warning(replace(task(), budget_hours=0.0001), 0.0002)
    for words in ("task show toy", "task estimate toy", "evaluate --all"):
        assert warning.partition(":")[0] in at.run(*words.split()).err, words
    assert "budget" not in at.run("task", "show", "toy", "--as", "public").text
    told = json.loads(at.run("task", "estimate", "toy", "--json").out)
    assert told["teams"] == 10 and told["budget"] == 0.0001 and told["unmeasured"] == []
