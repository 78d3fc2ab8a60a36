"""``runner gc`` on a real engine: what it says before is what it removes, and nothing of anybody else's goes."""

from __future__ import annotations

import io
import os
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.engines.docker import owner
from runner.engines.docker.engine import DockerEngine
from tests.worlds.machines import own_engine
from tests.worlds.mini import Project, cli

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        os.geteuid() != 0,
        reason="what others use must not be removed: only root can start an engine of its own",
    ),
]
BASE = "proctor/base:bookworm"  # what our helper containers are made of


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[DockerEngine]:
    """An engine of its own, with an image that cannot do anything."""
    with own_engine(tmp_path / "engine-home") as host:
        engine = DockerEngine(host, locks=tmp_path / "locks", engine_for="both-without-eviction")
        archive = tmp_path / "root.tar"
        with tarfile.open(archive, "w") as tar:
            tar.addfile(tarfile.TarInfo("nothing"), io.BytesIO())
        engine.import_root(archive, BASE, ['CMD ["/nothing"]'])
        yield engine
        engine.close()


def everything(engine: DockerEngine) -> set[str]:
    """The names of all containers, volumes and images."""
    with engine.clients.calling("looking") as api:
        containers = {name.lstrip("/") for c in api.containers(all=True) for name in c["Names"]}
        volumes = {v["Name"] for v in api.volumes()["Volumes"] or []}
        return containers | volumes | {image["Id"] for image in api.images()}


def put(engine: DockerEngine, name: str, volume: str = "", **labels: str) -> None:
    """A container of that name that has the volume, or without one a volume of that name."""
    with engine.clients.calling("putting something there") as api:
        marks = {f"proctor.{key}": value for key, value in labels.items()}
        if volume:
            host: Any = api.create_host_config(binds={volume: {"bind": "/data"}})
            api.create_container(BASE, name=name, labels=marks, host_config=host, volumes=["/data"])
        else:
            api.create_volume(name, labels=marks)


def test_what_it_names_is_what_it_removes(alone: DockerEngine, project: Project) -> None:
    project.docker_host = alone.clients.address
    dead = f"{socket.gethostname()}|another boot|1|2"
    old, used = "a" * 64, "b" * 64
    complete = alone.data_volume(old, lambda: [("old.txt", b"of inputs that no task has any more")])
    busy = alone.data_volume(used, lambda: [("used.txt", b"of somebody's run")])
    put(alone, "somebodys", volume=busy.name)
    put(alone, "proctor-data-unfinished", data="c" * 64, owner=dead)
    put(alone, "proctor-left-volume", attempt="left-1", owner=dead)
    put(alone, "proctor-left", volume="proctor-left-volume", attempt="left-1", owner=dead)
    put(alone, "proctor-living", attempt="living-1", owner=owner.me())
    put(alone, "foreign-volume")
    put(alone, "foreign", volume="foreign-volume")
    before = everything(alone)

    promised = cli(project, "gc", "--dry-run", "--json").json
    assert everything(alone) == before, "only looked"
    assert promised["volumes"] == [complete.name]
    assert promised["attempts"] == ["left-1", "proctor-data-unfinished"]
    said = cli(project, "gc", "--dry-run").out
    assert all(name in said for name in (complete.name, "left-1", "proctor-data-unfinished"))

    assert cli(project, "gc", "--json").json == promised
    gone = before - everything(alone)
    ready = {name for name in gone if name.startswith("proctor-ready-")}
    assert len(ready) == 1, "what said that the volume was complete"
    assert gone - ready == {complete.name, "proctor-data-unfinished", "proctor-left", "proctor-left-volume"}
    again = cli(project, "gc", "--dry-run", "--json").json
    assert again["volumes"] == [] and again["attempts"] == []
