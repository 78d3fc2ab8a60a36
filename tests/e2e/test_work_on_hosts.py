"""The server with a cluster: a system runs on a host, and its page shows the log meanwhile."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.model.container import ImageRef
from tests.e2e.test_server import serving, until
from tests.worlds.cluster import Cluster
from tests.worlds.mini import GOOD, TASK, Project, cli

# It says what it begins with, and goes on when it is let.
TALKING = """
import os, time
print("{canary}-first", flush=True)
while not os.path.exists("/tmp/go"): time.sleep(0.05)
print("{canary}-second", flush=True)
while not os.path.exists("/tmp/end"): time.sleep(0.05)
"""


@pytest.fixture
def host(live: Project, evaluator_image: ImageRef, tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler, and a host with the engine of these tests."""
    world = Cluster(tmp_path / "cluster")
    try:
        world.start_scheduler()
        world.start_worker("h1", live.docker_host)
        yield world
    finally:
        world.close()


def touch(project: Project, canary: str, path: str) -> None:
    """Make a file in the container of the software that has a word in its command."""
    docker = ["docker", "-H", project.docker_host]
    listed = [*docker, "ps", "--no-trunc", "--format", "{{.ID}} {{.Command}}"]
    said = subprocess.run(listed, capture_output=True, text=True, check=True, timeout=60).stdout
    [found] = re.findall(rf"(?m)^([0-9a-f]+) .*{canary}", said)
    subprocess.run([*docker, "exec", found, "touch", path], check=True, timeout=60)


def shown(client: Any, path: str, text: str) -> bool:
    """True if the page holds the text. The page must exist."""
    answer = client.get(path)
    assert answer.status_code == 200
    return text in answer.text


@pytest.mark.slow
@pytest.mark.engine
def test_the_page_of_a_run_on_a_host_shows_its_log_and_then_its_verdict(live: Project, host: Cluster) -> None:
    """By the settings of the cluster alone; what is on the page is there until the attempt's own log is."""
    canary = f"canary{secrets.token_hex(8)}"
    tables = [{**TASK["tables"][0], "cells": [{"dataset": "dev"}]}]
    live.write_task(tables=tables, limits={**TASK["limits"], "wall_clock": "200s"})
    live.env |= {f"RUNNER_{name.upper()}": str(at) for name, at in host.settings.items()}
    live.software("one", TALKING.format(canary=canary) + GOOD, team="alpha")
    cli(live, "submit", "--team", "alpha", "--no-check")
    token = cli(live, "team", "add", "alpha").out.strip()
    with serving(live) as server:
        team, public = server.signed_in(token), server.client()
        page = until(lambda: re.search(r'href="(/runs/alpha\.one\.[^"]+)"', team.get("/team").text))[1]
        until(lambda: shown(team, page, f"{canary}-first"))
        assert not shown(team, page, "scored")
        assert not shown(public, "/tasks/mini/main", "alpha")
        touch(live, canary, "/tmp/go")
        until(lambda: shown(team, page, f"{canary}-second"))
        touch(live, canary, "/tmp/end")
        while not shown(team, page, "scored"):
            assert shown(team, page, f"{canary}-second"), "neither what it writes nor its log is there"
        assert shown(team, page, f"{canary}-second") and shown(team, page, "all done")
        until(lambda: shown(public, "/tasks/mini/main", "alpha"))
    [row] = cli(live, "runs", "--json").json
    assert row["outcome"]["name"] == "scored"
    [record] = (json.loads(path.read_text()) for path in live.home.glob("archive/**/run.json"))
    assert record["placed"]["host"] == "h1"
