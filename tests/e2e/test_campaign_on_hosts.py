"""A campaign on hosts of a cluster, with a real engine: by the commands that people give, the boards are those of one machine."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.execution.cluster.carrying import SCRATCH
from runner.model.container import ImageRef
from runner.provision import daemon
from runner.provision.images import IMAGES, tag
from tests.e2e.test_server import until
from tests.worlds.cluster import Cluster
from tests.worlds.machines import own_engine
from tests.worlds.mini import GOOD, TASK, Project, cli

# Well on public data, and not where it counts.
FAILING = f"""
import os
if "test-1" in open(os.environ["inputDataset"] + "/queries.jsonl").read(): raise SystemExit(3)
{GOOD}"""


@pytest.fixture
def hosts(
    live: Project, engine: DockerEngine, evaluator_image: ImageRef, tmp_path: Path
) -> Iterator[Cluster]:
    """Two hosts; the second has an engine of its own with our image and nothing else (only root can start one)."""
    world = Cluster(tmp_path / "cluster")
    with ExitStack() as open_:
        open_.callback(world.close)
        world.start_scheduler()
        world.start_worker("h1", live.docker_host)
        if os.geteuid() == 0 and daemon.which("dockerd") is not None:
            second = open_.enter_context(own_engine(tmp_path / "second"))
            _give(engine, second, evaluator_image, tmp_path)
        else:
            second = live.docker_host
        world.start_worker("h2", second)
        yield world


def _give(engine: DockerEngine, second: str, image: ImageRef, folder: Path) -> None:
    other, archive = DockerEngine(second, locks=folder / "locks"), folder / "evaluator.tar"
    engine.save(image, archive)
    loaded = other.load(archive, max_bytes=2**32, expect=image.id)
    with other.clients.calling("naming the evaluator") as api:
        assert api.tag(loaded.id, *tag(IMAGES[0]).rsplit(":", 1))
    archive.unlink()
    other.close()


@pytest.fixture
def judges(live: Project, evaluator_image: ImageRef, tmp_path: Path) -> Iterator[Cluster]:
    """A host that evaluates, of another cluster."""
    world = Cluster(tmp_path / "judges", "evaluations")
    try:
        world.start_scheduler()
        world.start_worker("j1", live.docker_host)
        yield world
    finally:
        world.close()


def take_turns(hosts: Cluster) -> None:
    """Whichever host begins first stands still until the other has begun, too.

    Who is there does not wait for who is known a moment later, and would have done all of these short runs by then.
    """

    def at_work(names: Iterable[str]) -> set[str]:
        return {name for name in names if any((hosts.folder / name).glob(f"{SCRATCH}*"))}

    names = {"h1", "h2"}
    begun: set[str] = until(lambda: at_work(names), every=0.02)
    first = min(begun)
    hosts.kill(first, signal.SIGSTOP)
    try:
        until(lambda: at_work(names - {first}), hosts.gone_after - 10, every=0.02)
    finally:
        hosts.processes[first].send_signal(signal.SIGCONT)


MEASURED = ("wall_seconds", "memory_peak", "registered")


def board(project: Project, home: Path) -> list[dict[str, Any]]:
    """The rows of the leaderboard but for what is measured of time and memory."""
    shown = cli(project, "leaderboard", "mini", "--json", env={"RUNNER_HOME": str(home)}).json
    return [{key: value for key, value in row.items() if key not in MEASURED} for row in shown["rows"]]


@pytest.mark.engine
def test_boards_are_those_of_one_machine(
    live: Project, hosts: Cluster, judges: Cluster, tmp_path: Path
) -> None:
    live.write_task(limits={**TASK["limits"], "wall_clock": "120s"})
    live.software("one", team="alpha")
    live.software("two", team="beta")
    live.software("wrong", FAILING, team="gamma")
    there = {f"RUNNER_{name.upper()}": str(at) for name, at in (hosts.settings | judges.settings).items()}
    shown = json.loads(cli(live, "cluster", "show", "--json", env=there).out)
    assert {(one["name"], one["cluster"], one["why_not"]) for one in shown} == {
        ("h1", "software", ""),
        ("h2", "software", ""),
        ("j1", "evaluations", ""),
    }
    homes = {tmp_path / "here": {}, tmp_path / "there": there}
    for home, more in homes.items():
        env = {"RUNNER_HOME": str(home), **more}
        for team in ("alpha", "beta", "gamma"):
            cli(live, "submit", "--team", team, env=env)
        with ThreadPoolExecutor(1) as thread:
            both = thread.submit(take_turns, hosts) if more else None
            said = cli(live, "evaluate", "--all", env=env)
            if both is not None:
                both.result()
        cli(live, "store", "verify", env=env)
    here, elsewhere = (board(live, home) for home in homes)
    assert here == elsewhere and len(here) >= 2
    outputs = [
        {
            path.parent.name + path.name
            for path in (home / "archive" / ".contents").rglob("*")
            if path.is_file()
        }
        for home in homes
    ]
    assert outputs[0] == outputs[1] != set()
    records = [json.loads(path.read_text()) for path in (tmp_path / "there" / "archive").rglob("run.json")]
    assert {one["placed"]["host"] for one in records} == {"h1", "h2"} and len(records) >= 3, said.all
    made = [
        json.loads(path.read_text()) for path in (tmp_path / "there" / "archive").rglob("evaluation.json")
    ]
    assert {one["placed"]["host"] for one in made} == {"j1"} and len(made) >= 2
    truths = [path.read_bytes() for path in live.truths.rglob("*") if path.is_file()]
    brought = [path.read_bytes() for path in hosts.folder.rglob("*") if path.is_file()]
    assert truths and not any(truth in one for truth in truths for one in brought)
    for process in (hosts.processes["h1"], judges.processes["j1"]):
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 0
