"""Software on a host of one cluster and evaluation on a host of another, by the commands that an organiser gives.

The results equal those of one machine: see tests/e2e/test_campaign_on_three_hosts.py.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.model.container import ImageRef
from tests.worlds.cluster import Cluster
from tests.worlds.mini import Project, call, cli


@pytest.fixture
def clusters(live: Project, evaluator_image: ImageRef, tmp_path: Path) -> Iterator[tuple[Cluster, Cluster]]:
    """A host that executes, and a host of another cluster that evaluates."""
    worlds = Cluster(tmp_path / "cluster"), Cluster(tmp_path / "judges", "evaluations")
    try:
        for world, host in zip(worlds, ("h1", "j1"), strict=True):
            world.start_scheduler()
            world.start_worker(host, live.docker_host)
        yield worlds
    finally:
        for world in worlds:
            world.close()


@pytest.mark.slow
@pytest.mark.engine
def test_truths_reach_only_the_hosts_that_evaluate(live: Project, clusters: tuple[Cluster, Cluster]) -> None:
    hosts, judges = clusters
    live.software("one", team="alpha")
    cli(live, "submit", "--team", "alpha", "--no-check")
    live.env |= {f"RUNNER_{name.upper()}": str(at) for name, at in (hosts.settings | judges.settings).items()}
    shown = call(live, "cluster", "show", "--json").json
    assert {(one["name"], one["cluster"], one["why_not"]) for one in shown} == {
        ("h1", "software", ""),
        ("j1", "evaluations", ""),
    }
    call(live, "evaluate", "--all")
    for name, host in (("run.json", "h1"), ("evaluation.json", "j1")):
        records = [json.loads(path.read_text()) for path in live.config.archive.rglob(name)]
        assert [one["placed"]["host"] for one in records] == [host]
    truths = [path.read_bytes() for path in live.truths.rglob("*") if path.is_file()]
    brought = [path.read_bytes() for path in hosts.folder.rglob("*") if path.is_file()]
    assert truths and not any(truth in one for truth in truths for one in brought)
    for process in (hosts.processes["h1"], judges.processes["j1"]):
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 0
