"""The compose file of the front, on a real engine: pages answer, a hand-in gets through to work outside, and it has nothing else."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import httpx2
import pytest

from runner.model.container import ImageRef
from tests.deploy.proxied import running
from tests.e2e.test_server import NOBODY, SCRIPTED_WORK, until
from tests.e2e.test_uploads_scored import run_text
from tests.worlds.compose_project import BINARY
from tests.worlds.mini import Project, call

FILE = Path(__file__).parents[2] / "deploy" / "compose.yaml"
COMPOSE = [str(BINARY), "-f", str(FILE)]


def settings(live: Project, **more: str) -> dict[str, str]:
    """The environment of Compose for a front of its own."""
    return {
        "PATH": os.environ["PATH"],
        "DOCKER_HOST": live.docker_host,
        "COMPOSE_PROJECT_NAME": f"proctor-front-{secrets.token_hex(4)}",
        "FRONT_USER": f"{NOBODY}:{NOBODY}",
        **more,
    }


@dataclass
class Site:
    """A front in a container: where it is called, what Docker says of it, and the folders that it has."""

    url: str
    container: Any
    folder: Path

    def run(self, *command: str) -> str:
        """What a command says in its container."""
        return str(self.container.exec_run(list(command)).output.decode())


@pytest.fixture
def site(live: Project, front_image: ImageRef, tmp_path: Path) -> Iterator[Site]:
    live.write_task(uploads=True)
    folder, state, subnet = tmp_path / "task", tmp_path / "state", f"172.30.{secrets.randbelow(254)}"
    for made, owner in ((folder / "published", 0), (folder / "inbox", NOBODY), (state, NOBODY)):
        made.mkdir(parents=True)
        shutil.chown(made, owner, owner)
    url = f"http://{subnet}.2:8080"
    places = {"TASK_FOLDER": str(folder), "STATE_FOLDER": str(state), "URL": url}
    environment = settings(live, FRONT_IMAGE=front_image.id, FRONT_NETWORK=subnet, **places)
    work = [sys.executable, "-c", SCRIPTED_WORK]
    try:
        subprocess.run([*COMPOSE, "up", "--detach"], env=environment, check=True, timeout=120)
        id = subprocess.run([*COMPOSE, "ps", "-q"], env=environment, capture_output=True, text=True).stdout
        client = docker.DockerClient(base_url=live.docker_host, timeout=60)
        with running(work, env=live.environment(RUNNER_WEB=str(folder)), cwd=FILE.parents[1]):
            yield Site(url, client.containers.get(id.strip()), folder)
        client.close()
    finally:
        subprocess.run([*COMPOSE, "down", "--timeout", "5"], env=environment, check=True, timeout=120)


@pytest.mark.slow
@pytest.mark.engine
def test_a_front_in_a_container_has_its_folders_and_nothing_else(site: Site, live: Project) -> None:
    with httpx2.Client(base_url=site.url, trust_env=False, timeout=30) as client:
        until(lambda: answers(client) and "Mini" in client.get("/").text, 60)
        token = call(live, "team", "add", "alpha", env={"RUNNER_WEB": str(site.folder)}).out.strip()
        headers = {"authorization": f"Bearer {token}"}
        fields, file = {"software": "one", "dataset": "dev"}, {"file": ("run.txt", run_text("dev", "one"))}
        taken = client.post("/tasks/mini/hand-in", data=fields, files=file, headers=headers).json()
        answer = until(lambda: client.get(taken["at"], headers=headers).json()["answer"], 60)
        assert answer["accepted"], answer
    host = site.container.attrs["HostConfig"]
    assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"] and not host["Privileged"]
    mounts = {one["Destination"]: one["RW"] for one in site.container.attrs["Mounts"]}
    assert mounts == {"/srv/task/published": False, "/srv/task/inbox": True, "/state": True}
    status = site.run("cat", "/proc/1/status")
    assert (
        f"Uid:\t{NOBODY}" in status and "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status
    )
    for place in ("/srv/task/published/x", "/opt/proctor/x", "/tmp/x", "/etc/x"):
        assert "Read-only file system" in site.run("touch", place), place
    (door,) = site.container.attrs["NetworkSettings"]["Networks"].values()
    assert site.container.client.networks.get(door["NetworkID"]).attrs["Internal"], "it can call nobody"


def answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/").status_code == 200
    except httpx2.TransportError:
        return False


@pytest.mark.engine
def test_an_image_that_is_not_there_is_neither_made_nor_pulled_under_its_name(
    live: Project, tmp_path: Path
) -> None:
    """What FRONT_IMAGE names may be another's, and the name of ours at a registry is nobody's yet."""
    for name in ("published", "inbox"):
        (tmp_path / name).mkdir()
    image = f"localhost:1/{secrets.token_hex(8)}/front:1"
    places = {"TASK_FOLDER": str(tmp_path), "STATE_FOLDER": str(tmp_path), "URL": "http://127.0.0.1"}
    network = f"172.30.{secrets.randbelow(254)}"
    environment = settings(live, FRONT_IMAGE=image, FRONT_NETWORK=network, **places)
    create, down = ([*COMPOSE, *one] for one in (("create", "--build"), ("down", "--timeout", "5")))
    said = subprocess.run(create, env=environment, capture_output=True, text=True, timeout=120)
    subprocess.run(down, env=environment, check=True, timeout=120, capture_output=True)
    assert said.returncode != 0 and "No such image" in said.stderr, said.stderr
    client = docker.DockerClient(base_url=live.docker_host, timeout=60)
    assert not client.images.list(name=image)
    client.close()


def test_the_compose_file_names_no_other_version_than_this_one() -> None:
    from importlib.metadata import version

    assert f"proctor/front:{version('proctor-ir')}" in FILE.read_text()
