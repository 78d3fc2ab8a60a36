"""``runner task check --ready``: the list before a task opens, and the alarm for what strangers would see."""

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
from tests.worlds.definitions import project, write_task
from tests.worlds.records import World, write_project

SECRET = "whether owls hunt at noon"
Statuses = dict[str, str]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A task whose blinded dataset has its files outside the tree."""
    truths = tmp_path / "private"
    config = project(tmp_path / "root", truths=truths)
    folder = write_task(config, demo=None)
    hidden = truths / "toy" / "test"
    hidden.mkdir(parents=True, mode=0o700)
    truths.chmod(0o700)
    hidden.joinpath("qrels.txt").write_text("test-1 0 document-of-owls 1\n")
    inputs = folder / "datasets" / "test" / "inputs"
    inputs.joinpath("queries.jsonl").write_text(json.dumps({"qid": "test-1", "query": SECRET}) + "\n")
    for path in sorted((folder / "datasets" / "test" / "truths").iterdir()):
        path.unlink()
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


def test_what_is_missing_is_said_with_what_to_do(look: Any) -> None:
    statuses, said = look()
    for name in ("licence", "terms", "contact", "quota", "dates"):
        assert statuses[name] == "CAUTION", name
    assert statuses["baseline"] == "FAIL" and "baseline: team/software" in said["baseline"]
    assert statuses["strangers: tree"] == "CAUTION" and statuses["strangers: test"] == "PASS"


def test_what_is_done_passes(look: Any, config: Config) -> None:
    words = "Data: own, licence CC BY 4.0. Terms: be fair. Contact: chair@example.org\n"
    (config.tasks / "toy" / "README.md").write_text(words)
    statuses, said = look(
        quota={"submissions": 3}, opens="2026-04-01 00:00 UTC", closes="2026-05-01 23:59 UTC"
    )
    for name in ("licence", "terms", "contact", "quota", "dates", "truths"):
        assert statuses[name] == "PASS", said[name]


def test_the_dates_at_their_edges(look: Any) -> None:
    assert look(closes="2026-03-01 00:00 UTC")[0]["dates"] == "CAUTION", "its last minute"
    assert look(closes="2026-02-28 23:59 UTC")[0]["dates"] == "FAIL"


def test_the_dates_of_datasets_stand_alone(look: Any, config: Config) -> None:
    data = json.loads((config.tasks / "toy" / "task.yaml").read_text())
    data["datasets"][1] |= {"opens": "2026-01-01 00:00 UTC", "closes": "2026-02-28 23:59 UTC"}
    statuses, _ = look(datasets=data["datasets"])
    assert (statuses["dates"], statuses["dates: test"]) == ("CAUTION", "FAIL")


@pytest.mark.parametrize("where", ["README.md", "notes/old.jsonl", "task.yaml"])
def test_hidden_text_that_strangers_see_is_an_alarm(look: Any, config: Config, where: str) -> None:
    changes = {}
    if where == "task.yaml":
        changes = {"description": f"Say {SECRET}."}
    else:
        file = config.tasks / "toy" / where
        file.parent.mkdir(exist_ok=True)
        file.write_text(SECRET if where == "README.md" else json.dumps({"text": SECRET}) + "\n")
    statuses, said = look(**changes)
    assert statuses["strangers: test"] == "FAIL" and "ALARM" in said["strangers: test"]
    assert where in said["strangers: test"] and SECRET not in said["strangers: test"]


def test_a_copy_of_the_truths_is_an_alarm(look: Any, config: Config) -> None:
    (config.tasks / "toy" / "backup.txt").write_text("test-1 0 document-of-owls 1\n")
    assert "backup.txt" in look()[1]["strangers: test"]


def test_a_text_that_is_public_anyway_is_none(look: Any, config: Config) -> None:
    dev = config.tasks / "toy" / "datasets" / "dev" / "inputs" / "queries.jsonl"
    dev.write_text(json.dumps({"qid": "dev-1", "query": SECRET}) + "\n")
    assert look()[0]["strangers: test"] == "PASS"


def board(tmp_path: Path, **changes: Any) -> tuple[World, Callable[[], dict[str, str]]]:
    """A store, and the list for its task, whose blinded topics hold the secret."""
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


def test_a_baseline_has_to_be_scored_in_every_cell_and_within_the_limits(tmp_path: Path) -> None:
    world, look = board(tmp_path, limits={"wall_clock": "10s", "memory": "100MiB", "tmp": "10MiB"})
    assert "runner submit --team baselines --software bm25" in look()["baseline"]
    world.scored("baselines", "bm25")
    assert look()["baseline"].startswith("PASS") and look()["limits"].startswith("PASS")
    later = world.register("baselines", "bm25", version=2)
    world.evaluation(world.attempt(later, wall=8.1), {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}})
    assert look()["limits"].startswith("CAUTION") and "raise wall_clock" in look()["limits"]


def test_hidden_text_on_a_board_is_an_alarm(tmp_path: Path) -> None:
    """A team's software read the topics, and its tag says one of them."""
    world, look = board(tmp_path)
    world.scored("alpha", "quiet")
    assert look()["strangers: test"].startswith("PASS")
    world.scored("alpha", "loud", tag=SECRET)
    assert look()["strangers: test"].startswith("FAIL ALARM") and "board main" in look()["strangers: test"]
