"""Three hosts with an engine each, in networks of their own: a campaign on them is that on one machine."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.model.container import ImageRef
from tests.e2e.test_server import until
from tests.worlds.demo_tasks import DATASETS, write_demo
from tests.worlds.mini import GOOD, TASK, Project, Said, call, cli
from tests.worlds.small_disk import small_disk
from tests.worlds.tables import boards, without_measured
from tests.worlds.three_hosts import HOSTS, ThreeHosts, three_hosts

# Well on public data, and not where it counts.
HIDDEN = """
import os
if "test-1" in open(os.environ["inputDataset"] + "/queries.jsonl").read():
    """
FAILING = f"{HIDDEN}raise SystemExit(3)\n{GOOD}"
HUNGRY = f"{HIDDEN}held = [bytearray(b'x' * 2**20) for _ in range(10_000)]\n{GOOD}"
WAITS = f"{HIDDEN}import time\n    while not os.path.exists('/tmp/go'): time.sleep(0.05)\n{GOOD}"
AGAIN = "cp $inputRun/run.txt $outputDir/run.txt"


@pytest.fixture(scope="module")
def hosts(
    engine: DockerEngine, evaluator_image: ImageRef, sidecars_image: ImageRef, scratch_image: ImageRef
) -> Iterator[ThreeHosts]:
    with three_hosts(engine, [evaluator_image, sidecars_image], scratch_image) as world:
        yield world


def use_engine_of(project: Project, hosts: ThreeHosts) -> None:
    """Have the coordinator use the engine of the first host."""
    project.docker_host = hosts.docker_host(HOSTS[0])
    project.env["TMPDIR"] = str(hosts.folder / HOSTS[0] / "tmp")  # where the locks are of all who use it


def settings(hosts: ThreeHosts) -> dict[str, str]:
    return {f"RUNNER_{key.upper()}": str(value) for key, value in hosts.cluster.settings.items()}


def submitted(project: Project, folder: Path) -> tuple[Path, Path]:
    """Return two data directories to which all software was submitted."""
    here, there = folder / "here", folder / "there"
    call(project, "submit", "--all-teams", "--no-check", env={"RUNNER_HOME": str(here)}, timeout=300)
    shutil.copytree(here, there, symlinks=True)
    return here, there


def on_hosts(project: Project, home: Path, world: ThreeHosts, *command: str) -> Said:
    """Run a command on the coordinator's machine, which has the hosts."""
    with world.coordinator.inside():
        return call(project, *command, env={"RUNNER_HOME": str(home), **settings(world)}, timeout=600)


def results(project: Project, home: Path) -> dict[str, str]:
    """Return the leaderboard, and each run's record of its output."""
    env = {"RUNNER_HOME": str(home)}
    cli(project, "store", "verify", env=env)
    shown = cli(project, "leaderboard", "mini", "--format", "csv", env=env).out
    found = {"mini": json.dumps(without_measured(shown))}
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
    for path in sorted((home / "archive").glob("*/*/attempts/*/run.json")):
        record = json.loads(path.read_text())
        found.setdefault(record["run_id"], []).append(record.get("placed", {}).get("host", ""))
    return found


@pytest.mark.slow
@pytest.mark.engine
def test_a_campaign_on_three_hosts_is_that_on_one(live: Project, hosts: ThreeHosts, tmp_path: Path) -> None:
    use_engine_of(live, hosts)
    live.write_task()
    live.software("one", team="alpha")
    live.software("two", team="beta", command=["python3", "-c", GOOD, "reversed"])
    live.software("wrong", FAILING, team="gamma")
    live.software("hungry", HUNGRY, team="delta")
    live.software("first", team="epsilon")
    live.software("second", team="epsilon", inputs={"ranking": "first"}, command=AGAIN)
    home, elsewhere = submitted(live, tmp_path)
    call(live, "evaluate", "--all", env={"RUNNER_HOME": str(home)}, timeout=400)
    on_hosts(live, elsewhere, hosts, "evaluate", "--all")
    here = results(live, home)
    assert here == results(live, elsewhere) and len(here) >= 7
    at = placed(elsewhere)
    assert {host for found in at.values() for host in found} == set(HOSTS)
    assert all(len(found) == 1 for found in at.values())
    assert all(hosts.containers(name) == [] for name in HOSTS) and not hosts.cluster.left()
    run = next(run for run in at if run.startswith("alpha."))
    other = next(name for name in HOSTS if [name] != at[run])
    verified = on_hosts(live, elsewhere, hosts, "verify", run, "--on", other, "--json").json
    assert (verified["same"], verified["identical"], verified["host"]) == (True, True, other)


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(600)
def test_a_host_that_is_killed_one_that_is_cut_off_and_one_that_is_full_change_nothing(
    live: Project, hosts: ThreeHosts, tmp_path: Path
) -> None:
    """Each run ends once, and no engine has a container or an output of them any more."""
    killed, off, full = HOSTS
    use_engine_of(live, hosts)
    live.write_task(limits={**TASK["limits"], "wall_clock": "10min"})
    for name in ("one", "two"):
        live.software(name, WAITS, team="alpha")
    live.software("late", team="beta")
    home, elsewhere = submitted(live, tmp_path)

    def again(before: set[str]) -> set[str]:
        return until(lambda: hosts.softwares(killed) - before, 120)

    def fault() -> None:
        until(lambda: hosts.softwares(killed) and hosts.softwares(off), 120)
        (first,) = hosts.softwares(killed)
        hosts.cluster.kill(killed)
        hosts.start_worker(killed)
        (second,) = again({first})
        hosts.cut(off, off=True)
        hosts.go(killed)
        again({first, second})  # which the other host was at
        hosts.go(killed)

    hosts.cluster.kill(full, signal.SIGTERM)
    with small_disk(hosts.cluster.folder / full, 4) as disk, ThreadPoolExecutor(1) as thread:
        hosts.start_worker(full)
        disk.fill()
        other = thread.submit(fault)
        said = on_hosts(live, elsewhere, hosts, "evaluate", "--team", "alpha").err
        other.result()
        assert [line for line in said.splitlines() if full in line.split()], "the full host is named"
        assert placed(elsewhere).values() and all(at == [killed] for at in placed(elsewhere).values())
        hosts.cluster.kill(full, signal.SIGTERM)
    hosts.start_worker(full)
    hosts.cut(off, off=False)
    hosts.go(off)  # what it delivers now is taken by nobody
    on_hosts(live, elsewhere, hosts, "evaluate", "--all")
    there = results(live, elsewhere)
    until(lambda: not any(hosts.containers(name) or hosts.outputs(name) for name in HOSTS))
    until(lambda: not hosts.cluster.left())
    with ThreadPoolExecutor(1) as thread:
        here = thread.submit(call, live, "evaluate", "--all", env={"RUNNER_HOME": str(home)}, timeout=400)
        until(lambda: hosts.go(killed) or here.done())
        here.result()
    assert there == results(live, home) and len(there) == 4


@pytest.mark.soak
@pytest.mark.engine
@pytest.mark.timeout(1800)
def test_the_demo_on_three_hosts_is_that_on_one(live: Project, hosts: ThreeHosts, tmp_path: Path) -> None:
    """All four shared tasks, also servers with a simulated user and the argument index beside them."""
    use_engine_of(live, hosts)
    write_demo(live)
    home, elsewhere = submitted(live, tmp_path)
    words = ["demo", *(word for task in DATASETS for word in ("--task", task))]
    call(live, *words, env={"RUNNER_HOME": str(home)}, timeout=600)
    on_hosts(live, elsewhere, hosts, *words)
    here = boards(live, home, DATASETS)
    assert here == boards(live, elsewhere, DATASETS) and len(here) > 100
    at = placed(elsewhere)
    assert len(at) == 8 and {host for found in at.values() for host in found} == set(HOSTS), at
    # The image of what stands beside a server is brought to a host that lacks it; how long each turn took is in the output, too.
    run = next(run for run in at if ".rad-judge-1." in run)
    verified = on_hosts(live, elsewhere, hosts, "verify", run, "--on", HOSTS[-1], "--json").json
    assert (verified["same"], verified["host"]) == (True, HOSTS[-1]), verified
    until(lambda: not any(hosts.containers(name) for name in HOSTS) and not hosts.cluster.left())
