"""Three hosts with an engine each, in networks of their own: a campaign on them is that on one machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.model.container import ImageRef
from tests.worlds.mini import GOOD, Project, call
from tests.worlds.tables import without_measured
from tests.worlds.three_hosts import HOSTS, ThreeHosts, three_hosts

# Well on public data, and not where it counts.
HIDDEN = """
import os
if "test-1" in open(os.environ["inputDataset"] + "/queries.jsonl").read():
    """
FAILING = f"{HIDDEN}raise SystemExit(3)\n{GOOD}"
HUNGRY = f"{HIDDEN}held = [bytearray(b'x' * 2**20) for _ in range(10_000)]\n{GOOD}"
AGAIN = "cp $inputRun/run.txt $outputDir/run.txt"


@pytest.fixture(scope="module")
def hosts(engine: DockerEngine, evaluator_image: ImageRef, scratch_image: ImageRef) -> Iterator[ThreeHosts]:
    with three_hosts(engine, evaluator_image, scratch_image) as world:
        yield world


def handed_in(project: Project, folder: Path) -> tuple[Path, Path]:
    """Two data directories in which all softwares are handed in."""
    here, there = folder / "here", folder / "there"
    call(project, "submit", "--all-teams", env={"RUNNER_HOME": str(here)}, timeout=300)
    shutil.copytree(here, there, symlinks=True)
    return here, there


def evaluated(project: Project, home: Path, world: ThreeHosts | None = None) -> dict[str, str]:
    """Evaluate all there is, on hosts or here; returns the leaderboards as text, and each run's record of its output."""
    env = {"RUNNER_HOME": str(home)}
    if world is not None:
        settings = {f"RUNNER_{key.upper()}": str(value) for key, value in world.cluster.settings.items()}
        env |= settings
    if world is None:
        call(project, "evaluate", "--all", env=env, timeout=400)
    else:
        with world.desk.inside():
            call(project, "evaluate", "--all", env=env, timeout=400)
    call(project, "store", "verify", env=env)
    found = {}
    shown = call(project, "leaderboard", "mini", "--format", "csv", env={"RUNNER_HOME": str(home)}).out
    found["mini"] = json.dumps(without_measured(shown))
    for path in sorted((home / "archive" / "mini").glob("*/attempts/*/run.json")):
        record = json.loads(path.read_text())
        kept = {key: record[key] for key in ("run_id", "attempt", "lock_digest", "output")}
        found[str(path.relative_to(home))] = json.dumps(
            [kept, record["verdict"]["name"], record["exit"]["code"]]
        )
    return found


def placed(home: Path) -> dict[str, list[str]]:
    """Where the attempts of each run were executed."""
    found: dict[str, list[str]] = {}
    for path in sorted((home / "archive" / "mini").glob("*/attempts/*/run.json")):
        record = json.loads(path.read_text())
        found.setdefault(record["run_id"], []).append(record.get("placed", {}).get("host", ""))
    return found


@pytest.mark.engine
def test_a_campaign_on_three_hosts_is_that_on_one(live: Project, hosts: ThreeHosts, tmp_path: Path) -> None:
    live.docker_host = hosts.docker_host(HOSTS[0])
    live.env["TMPDIR"] = str(
        hosts.folder / HOSTS[0] / "tmp"
    )  # where the locks are of all who use that engine
    live.write_task()
    live.software("one", team="alpha")
    live.software("two", team="beta", command=["python3", "-c", GOOD, "reversed"])
    live.software("wrong", FAILING, team="gamma")
    live.software("hungry", HUNGRY, team="delta")
    live.software("first", team="epsilon")
    live.software("second", team="epsilon", inputs={"ranking": "first"}, command=AGAIN)
    home, elsewhere = handed_in(live, tmp_path)
    here, there = evaluated(live, home), evaluated(live, elsewhere, hosts)
    assert here == there and len(here) >= 7
    at = placed(elsewhere)
    assert {host for found in at.values() for host in found} == set(HOSTS)
    assert all(len(found) == 1 for found in at.values())
    assert all(hosts.containers(name) == [] for name in HOSTS) and not hosts.cluster.left()
    run = next(run for run in at if run.startswith("alpha."))
    other = next(name for name in HOSTS if [name] != at[run])
    places = {f"RUNNER_{key.upper()}": str(value) for key, value in hosts.cluster.settings.items()}
    with hosts.desk.inside():
        said = call(live, "verify", run, "--on", other, env={"RUNNER_HOME": str(elsewhere), **places})
    assert "the same output" in said.out and f"executed at: {other}" in said.out
