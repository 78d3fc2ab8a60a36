"""Blinded and public runs on one engine, by the command line as an organiser uses it: the default setting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.owner import default_locks, private_folder
from tests.worlds.mini import GOOD, Project, cli

pytestmark = pytest.mark.engine


@pytest.fixture
def alone(live: Project) -> Iterator[Project]:
    """The project with the default setting, and no other test about caches meanwhile."""
    live.env["RUNNER_ENGINE_FOR"] = "both"
    with FileLock(private_folder(default_locks()) / "test-caches.lock"):
        yield live


def test_from_blinded_runs_to_a_public_one_and_to_two_engines(alone: Project, engine: DockerEngine) -> None:
    cells = [{"dataset": "dev"}, {"dataset": "test"}]
    alone.write_task(tables=[{"id": "main", "cells": cells, "rank_by": "ndcg_10"}])
    alone.software("webis_run-1.0", GOOD, team="TeamA_v2.1", datasets=["dev", "test"])
    cli(alone, "submit", "-t", "TeamA_v2.1", "--no-check")

    public = cli(alone, "evaluate", "--all", "--json", env={"RUNNER_ENGINE_FOR": "public"})
    assert [row["dataset"] for row in public.json["done"]] == ["dev"]
    blinded = cli(alone, "evaluate", "--all", "--json", env={"RUNNER_ENGINE_FOR": "blinded"})
    assert [row["dataset"] for row in blinded.json["done"]] == ["test"]
    assert engine.turns.board.marked()

    cli(alone, "try", "-t", "TeamA_v2.1", "-s", "webis_run-1.0")
    assert not engine.turns.board.marked(), "the caches are emptied before software whose log is shown"

    refused = cli(
        alone,
        "try",
        "-t",
        "TeamA_v2.1",
        "-s",
        "webis_run-1.0",
        env={"RUNNER_ENGINE_FOR": "blinded"},
        expect=3,
    )
    assert "E311" in refused.err and "DOCKER_HOST" in refused.err
    wrong = cli(alone, "runs", env={"RUNNER_ENGINE_FOR": "all"}, expect=2)
    assert "RUNNER_ENGINE_FOR" in wrong.err and "both-without-eviction" in wrong.err


def test_doctor_says_whether_they_are_kept_apart(alone: Project, tmp_path: Path) -> None:
    for setting, words in (
        ("both", "emptied in between"),
        ("blinded", "blinded runs only"),
        ("both-without-eviction", "NOT kept apart"),
    ):
        rows = cli(alone, "doctor", "--json", env={"RUNNER_ENGINE_FOR": setting}, expect=None).json
        found = [row for row in rows if row["name"] == "blinded and public runs"]
        assert len(found) == 1 and words in found[0]["detail"], rows
        assert found[0]["status"] == ("CAUTION" if setting == "both-without-eviction" else "PASS")
