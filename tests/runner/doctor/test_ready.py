"""``runner task check --ready``: the list before a task opens."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runner.doctor.ready import ready
from runner.doctor.tasks import budget_check, budget_checks, kernel_check
from runner.model.clock import FixedClock
from runner.model.config import Config
from runner.model.kinds import kinds_with
from runner.records.store.connect import open_store
from runner.tasks.load import load_task
from runner.tasks.scaffold import new_task
from tests.worlds.definitions import project, write_task


def test_what_is_missing_is_said_with_what_to_do(look: Any, config: Config) -> None:
    statuses, said = look()
    for name in ("licence", "terms", "contact", "quota", "dates", "budget", "shared kernel"):
        assert statuses[name] == "CAUTION", name
    assert statuses["baseline"] == "FAIL" and "baseline: team/software" in said["baseline"]
    assert "strangers: tree" not in statuses and statuses["strangers: test"] == "PASS"
    assert "estimate toy" in said["budget"] and budget_checks(config, [load_task(config, "toy")]) == []


@pytest.mark.parametrize(
    ("engine_for", "changes", "status"),
    [
        ("both", {}, "CAUTION"),
        ("both-without-eviction", {}, "CAUTION"),
        ("public", {}, "PASS"),
        ("blinded", {}, "PASS"),
        ("both", {"workflow": "upload", "demo": True}, "PASS"),
        ("both", {"demo": True}, "PASS"),
    ],
)
def test_public_and_blinded_runs_on_one_kernel_are_named(
    config: Config, engine_for: Any, changes: dict[str, Any], status: str
) -> None:
    write_task(config, "other", **{"demo": None, **changes})
    check = kernel_check(replace(config, engine_for=engine_for), [load_task(config, "other")])
    assert check.status == status and (status == "PASS" or "two-engines.md" in check.fix)


STATED = {"licence": "CC BY 4.0", "terms": "https://example.org/terms", "contact": "chair@example.org"}


def test_what_is_done_passes(look: Any) -> None:
    dates = {"opens": "2026-04-01 00:00 UTC", "closes": "2026-05-01 23:59 UTC"}
    statuses, said = look(quota={"submissions": 3}, budget={"hours": 10}, **dates, **STATED)
    for name in (*STATED, "quota", "budget", "dates", "hidden data"):
        assert statuses[name] == "PASS", said[name]
    assert "chair@example.org" in said["contact"] and "0.0 of 10 hours" in said["budget"]


def test_a_task_that_was_never_named_is_found(tmp_path: Path) -> None:
    """As `runner task new` makes it, of every kind."""
    config = project(tmp_path / "root")
    with open_store(config) as store:
        for kind in kinds_with("skeleton"):
            new_task(config, f"new-{kind}", kind)
            task, clock = load_task(config, f"new-{kind}"), FixedClock(datetime(2026, 3, 1, tzinfo=UTC))
            unsaid = {check.name for check in ready(config, task, store, clock) if check.status == "CAUTION"}
            assert {"title", "licence", "terms", "contact", "demo"} <= unsaid


def test_a_dataset_may_say_it_for_itself(look: Any, config: Config) -> None:
    data = json.loads((config.tasks / "toy" / "task.yaml").read_text())
    data["datasets"][0]["licence"] = "CC0"
    statuses, said = look(datasets=data["datasets"])
    assert statuses["licence"] == "CAUTION" and "test" in said["licence"].split(" | ")[0]
    data["datasets"][1]["licence"] = "reserved"
    statuses, said = look(datasets=data["datasets"])
    assert statuses["licence"] == "PASS" and said["licence"].startswith("CC0; reserved")


@pytest.mark.parametrize(
    ("hours", "status"), [(0.69, "PASS"), (0.7, "CAUTION"), (0.99, "CAUTION"), (1.5, "CAUTION")]
)
def test_the_share_of_the_budget_that_is_used(board: Any, hours: float, status: str) -> None:
    """In the list of the task and in that of the machine, which leaves out tasks without a budget."""
    world, look = board(budget={"hours": 1})
    world.attempt(world.register("alpha", "busy"), wall=hours * 7200)  # half of it on the processor
    budget = look()["budget"]
    assert budget.startswith(f"{status} {hours:.1f} of 1 ") and f"({hours:.0%})" in budget
    task = load_task(world.config, "toy")
    (one,) = budget_checks(world.config, [task])
    assert one.status == status and "toy" in one.name
    assert one.detail == budget_check(task, world.store).detail


def test_the_dates_at_their_edges(look: Any) -> None:
    assert look(closes="2026-03-01 00:00 UTC")[0]["dates"] == "CAUTION", "its last minute"
    assert look(closes="2026-02-28 23:59 UTC")[0]["dates"] == "FAIL"


def test_the_dates_of_datasets_stand_alone(look: Any, config: Config) -> None:
    data = json.loads((config.tasks / "toy" / "task.yaml").read_text())
    data["datasets"][1] |= {"opens": "2026-01-01 00:00 UTC", "closes": "2026-02-28 23:59 UTC"}
    statuses, _ = look(datasets=data["datasets"])
    assert (statuses["dates"], statuses["dates: test"]) == ("CAUTION", "FAIL")


def test_a_baseline_has_to_be_scored_in_every_cell_and_within_the_limits(board: Any) -> None:
    world, look = board(limits={"wall_clock": "10s", "memory": "100MiB", "tmp": "10MiB"})
    assert "--team baselines --software bm25" in look()["baseline"]
    world.scored("baselines", "bm25")
    assert look()["baseline"].startswith("PASS") and look()["limits"].startswith("PASS")
    later = world.register("baselines", "bm25", version=2)
    world.evaluation(world.attempt(later, wall=8.1), {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}})
    assert look()["limits"].startswith("CAUTION") and "raise wall_clock" in look()["limits"]
