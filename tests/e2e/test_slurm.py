"""Hosts that Slurm starts, as docs/how-to/slurm.md says it, with Debian's Slurm and a real engine: a container outlives scancel, and
the epilogue removes it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.model.container import ImageRef
from tests.worlds.cluster import ROOT, Cluster
from tests.worlds.mini import GOOD, Project, cli
from tests.worlds.slurm import Slurm, slurm

# Quick on public data, and not where it counts.
LONG = f"""
import os, time
if "test-1" in open(os.environ["inputDataset"] + "/queries.jsonl").read(): time.sleep(600)
{GOOD}"""
NAME = f"outlives-{os.getpid()}"
RUNNER = Path(sys.executable).with_name("runner")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler without hosts."""
    found = Cluster(tmp_path / "cluster")
    try:
        found.start_scheduler()
        yield found
    finally:
        found.close()


@pytest.fixture
def batch(live: Project) -> Iterator[Slurm]:
    """A Slurm with the epilogue that we give out, which finds this checkout and the engine of the tests."""
    text = (ROOT / "deploy" / "slurm" / "epilog").read_text()
    settings = (
        f'PROCTOR="{RUNNER}"; DOCKER_HOST="{live.docker_host}"\nexec >>"$(dirname "$0")/epilog.log" 2>&1\n'
    )
    with slurm(text.replace("export DOCKER_HOST", f"{settings}export DOCKER_HOST", 1)) as found:
        yield found


def submitted(batch: Slurm, live: Project, world: Cluster) -> str:
    """Have Slurm start a worker by the script that we give out; returns the job's number."""
    settings = {
        "PROCTOR": str(RUNNER), "PROCTOR_STATE": str(batch.folder / "worker"), "DOCKER_HOST": live.docker_host,
        "RUNNER_ARTEFACTS": world.artefacts, "RUNNER_CERTIFICATES": str(world.certificates),
    }  # fmt: skip
    return batch.ask(
        "sbatch", "--parsable", str(ROOT / "deploy" / "slurm" / "worker.sbatch"), world.address, **settings
    )


def softwares(engine: DockerEngine) -> set[str]:
    """The attempts of the long software that have containers or volumes."""
    found = (labels.get("proctor.attempt", "") for labels in engine.clients.labelled(owner=None))
    return {attempt for attempt in found if NAME in attempt}


def records(live: Project) -> list[Any]:
    """What stands of attempts in the archive."""
    found = (live.home / "archive").glob("mini/*/attempts/*/run.json")
    return [json.loads(path.read_text()) for path in found]


@pytest.mark.slow
@pytest.mark.engine
def test_what_scancel_leaves_is_removed_by_the_epilogue(
    live: Project,
    engine: DockerEngine,
    evaluator_image: ImageRef,
    world: Cluster,
    batch: Slurm,
    tmp_path: Path,
) -> None:
    live.write_task()
    there = {
        "RUNNER_CLUSTER": world.address,
        "RUNNER_ARTEFACTS": world.artefacts,
        "RUNNER_CERTIFICATES": str(world.certificates),
    }
    for team, name, code in (("alpha", "one", GOOD), ("beta", NAME, LONG)):
        live.software(name, code, team=team)
        cli(live, "submit", "--team", team, env=there)
    job = submitted(batch, live, world)
    with (tmp_path / "evaluate.log").open("wb") as log:
        command = [sys.executable, "-m", "runner", "evaluate", "--all"]
        evaluating = subprocess.Popen(command, env=live.environment(**there), stderr=log, stdout=log)
    try:
        batch.until(lambda: softwares(engine) and records(live), 150)
        assert {one["placed"]["host"] for one in records(live)} == {batch.host}
        before = softwares(engine)
        batch.ask("scancel", job)
        batch.ended(job)
        assert not before & softwares(engine), "a job has ended when its epilogue has"
        log = (batch.folder / "epilog.log").read_text()
        assert log and "Traceback" not in log and not re.search(r"\bE3\d\d\b", log)
    finally:
        evaluating.send_signal(signal.SIGINT)
        evaluating.wait(90)
