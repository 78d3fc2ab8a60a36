"""Blinded and public runs on one engine, by the command line as an organiser uses it: the default setting."""

from __future__ import annotations

from collections.abc import Iterator

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


@pytest.mark.slow
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

    command = ("try", "-t", "TeamA_v2.1", "-s", "webis_run-1.0")
    cli(alone, *command)
    assert not engine.turns.board.marked(), "the caches are emptied before software whose log is shown"

    refused = cli(alone, *command, env={"RUNNER_ENGINE_FOR": "blinded"}, expect=3)
    assert "E311" in refused.err and "DOCKER_HOST" in refused.err
    wrong = cli(alone, "runs", env={"RUNNER_ENGINE_FOR": "all"}, expect=2)
    assert "RUNNER_ENGINE_FOR" in wrong.err and "both-without-eviction" in wrong.err


@pytest.mark.slow
def test_doctor_warns_if_caches_are_not_emptied_between_blinded_and_public_runs(alone: Project) -> None:
    details = set()
    for setting, status in (("both", "PASS"), ("blinded", "PASS"), ("both-without-eviction", "CAUTION")):
        rows = cli(alone, "doctor", "--json", env={"RUNNER_ENGINE_FOR": setting}, expect=None).json
        [row] = [row for row in rows if row["name"] == "blinded and public runs"]
        assert row["status"] == status, row
        details.add(row["detail"])
    assert len(details) == 3, "each setting is described"
