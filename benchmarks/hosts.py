"""The real path on three hosts, with a container engine each: how well the slots are used, and whether the demo's boards are those of one host.

``python -m benchmarks.hosts [--runs 18] [--seconds 40] [--demo]`` makes three hosts on this machine (network namespaces, a Docker Engine each;
only root can) and has ``runner evaluate`` do a campaign on them whose softwares wait: packing, containers, artefact store by TLS, evaluations and commits
are real. It prints how long that took beside list scheduling of the same runs, by what each of them took in its container, and ends with 1 where it
is more than 1.10 times that. ``--demo`` has the demo's four shared tasks executed by one host and by three instead, with all their baselines and
broken softwares (their images are built, so a registry or what is kept of it has to be there), and ends with 1 where any board, or any score of a topic, differs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from benchmarks.scale import duration, list_schedule
from runner.engines.docker.engine import DockerEngine
from runner.model.config import load
from runner.model.container import ImageRef
from runner.provision.engine import docker_host
from runner.provision.images import ensure_images
from tests.worlds.demo_tasks import DATASETS
from tests.worlds.mini import GOOD, TASK, Project, call
from tests.worlds.tables import boards
from tests.worlds.three_hosts import HOSTS, ThreeHosts, three_hosts

GOAL = 1.10
ROOT = Path(__file__).parents[1]


def campaign(project: Project, hosts: ThreeHosts, runs: int, mean: float) -> float:
    """Have hosts do so many runs of softwares that wait; prints a row and returns how often list scheduling's time it took."""
    project.write_task(limits={**TASK["limits"], "wall_clock": "10min"}, quota={"submissions": runs})
    for number in range(runs):
        code = f"import time; time.sleep({duration(number, mean):.1f})\n{GOOD}"
        project.software(f"waits-{number}", code, team=f"team-{number % 6}")
    call(project, "submit", "--all-teams", "--no-check", timeout=3000)
    started = time.monotonic()
    with hosts.coordinator.inside():
        call(project, "evaluate", "--task", "mini", "--dataset", "test", env=_settings(hosts), timeout=3000)
    took = time.monotonic() - started
    records = [json.loads(path.read_text()) for path in project.home.rglob("run.json")]
    assert len(records) == runs and {one["placed"]["host"] for one in records} == set(HOSTS)
    records.sort(key=lambda one: str(one["started"]))
    bound = list_schedule([one["resources"]["wall_seconds"] for one in records], len(HOSTS))
    print("| runs | slots | s in containers, mean | s | list scheduling, s | times | load |")
    print("|---|---|---|---|---|---|---|")
    inside = sum(one["resources"]["wall_seconds"] for one in records) / runs
    load_now = os.getloadavg()[0]
    print(
        f"| {runs} | {len(HOSTS)} | {inside:.1f} | {took:.0f} | {bound:.0f} | {took / bound:.2f} | {load_now:.0f} |"
    )
    return took / bound


def demo(project: Project, hosts: ThreeHosts) -> list[str]:
    """Have one host and three do the whole demo of the four shared tasks; prints a row and returns which boards and scores differ."""
    for path in sorted((ROOT / "submissions").glob("*/*/submission.yaml")):
        if yaml.safe_load(path.read_text("utf-8"))["task"] in DATASETS:
            software = path.parent.relative_to(ROOT)
            shutil.copytree(path.parent, project.root / software)
    for task in DATASETS:
        shutil.copytree(ROOT / "tasks" / task, project.root / "tasks" / task)
    words = ["demo", *(word for task in DATASETS for word in ("--task", task))]
    call(project, "submit", "--team", "baselines", "--no-check", expect=None, timeout=3000)
    call(project, "submit", "--team", "broken", "--no-check", expect=None, timeout=3000)
    there = project.home.with_name("there")
    shutil.copytree(project.home, there, symlinks=True)
    took = []
    for home, settings in ((project.home, {}), (there, _settings(hosts))):
        started = time.monotonic()
        with hosts.coordinator.inside():
            said = call(
                project, *words, env={"RUNNER_HOME": str(home), **settings}, timeout=3000, expect=None
            )
        took.append(time.monotonic() - started)
        print(said.err, file=sys.stderr)
    one, three = (boards(project, home, DATASETS, scored=False) for home in (project.home, there))
    records = [json.loads(path.read_text()) for path in there.rglob("run.json")]
    at = {name: sum(one.get("placed", {}).get("host") == name for one in records) for name in HOSTS}
    differing = sorted(name for name in one.keys() | three.keys() if one.get(name) != three.get(name))
    print(f"{len(records)} attempts, at {at}; one host {took[0]:.0f} s, three {took[1]:.0f} s")
    print(f"{len(one)} boards and scores by topic: {len(differing)} differ {differing[:20]}")
    return differing


def _settings(hosts: ThreeHosts) -> dict[str, str]:
    return {f"RUNNER_{key.upper()}": str(value) for key, value in hosts.cluster.settings.items()}


def _images(engine: DockerEngine, root: Path) -> Sequence[ImageRef]:
    found = ensure_images(engine, load(cwd=root))
    return [found["evaluator"], found["sidecars"]]


def main() -> int:
    """Print what was measured. Returns 1 when the goal is missed, or the demo's boards differ."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hosts", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--runs", type=int, default=18)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--demo", action="store_true")
    args = parser.parse_args()
    address = docker_host(load(cwd=ROOT))
    if address is None:
        sys.exit("no container engine answers: run `make setup`")
    engine = DockerEngine(address, engine_for="both-without-eviction")
    ours = _images(engine, ROOT)
    with (
        tempfile.TemporaryDirectory(prefix="proctor-hosts-") as scratch,
        three_hosts(engine, ours, ours[0]) as hosts,
    ):
        folder = Path(scratch)
        project = Project(folder / "project", folder / "home", folder / "truths", image=ours[0].id)
        project.docker_host = address
        if args.demo:
            return 1 if demo(project, hosts) else 0
        times = campaign(project, hosts, args.runs, args.seconds)
    if times > GOAL:
        print(f"GOAL MISSED: {times:.2f} times list scheduling, not {GOAL}", file=sys.stderr)
    return 1 if times > GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
