"""Software on a host of one cluster and evaluation on a host of another, by the commands that an organiser gives."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.model.container import ImageRef
from tests.worlds.cluster import Cluster
from tests.worlds.mini import GOOD, Project, call, cli
from tests.worlds.tables import without_measured


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


def scores(project: Project, home: Path) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Return the rows of the leaderboard, and the scores of each evaluation."""
    board = cli(project, "leaderboard", "mini", "--format", "csv", env={"RUNNER_HOME": str(home)}).out
    rows = without_measured(board)
    found = (home / "archive").glob("mini/*/attempts/*/evaluations/*/scores.jsonl")
    files = {str(path.relative_to(home)): path.read_text() for path in found}
    assert len(rows) == len(set(files.values())) == 2, "the scores of the two systems differ"
    return rows, files


@pytest.mark.slow
@pytest.mark.engine
def test_scores_are_those_of_one_machine_and_truths_reach_only_the_hosts_that_evaluate(
    live: Project, clusters: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    hosts, judges = clusters
    live.software("one", team="alpha")
    live.software("two", team="beta", command=["python3", "-c", GOOD, "reversed"])
    cli(live, "submit", "--all-teams", "--no-check")
    here = {"RUNNER_HOME": str(tmp_path / "here")}
    shutil.copytree(live.home, here["RUNNER_HOME"], symlinks=True)
    cli(live, "evaluate", "--all", env=here)
    live.env |= {f"RUNNER_{name.upper()}": str(at) for name, at in (hosts.settings | judges.settings).items()}
    shown = call(live, "cluster", "show", "--json").json
    assert {(one["name"], one["cluster"], one["why_not"]) for one in shown} == {
        ("h1", "software", ""),
        ("j1", "evaluations", ""),
    }
    call(live, "evaluate", "--all")
    for name, host in (("run.json", "h1"), ("evaluation.json", "j1")):
        records = [json.loads(path.read_text()) for path in live.config.archive.rglob(name)]
        assert len(records) == 2 and {one["placed"]["host"] for one in records} == {host}
    assert scores(live, live.home) == scores(live, Path(here["RUNNER_HOME"]))
    truths = [path.read_bytes() for path in live.truths.rglob("*") if path.is_file()]
    brought = [path.read_bytes() for path in hosts.folder.rglob("*") if path.is_file()]
    assert truths and not any(truth in one for truth in truths for one in brought)
    for process in (hosts.processes["h1"], judges.processes["j1"]):
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 0
