"""``docker compose --profile debate up``: a participant debates their own server, with the real Compose."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from runner.engines.docker.engine import DockerEngine
from runner.model import config
from runner.model.container import ImageRef
from runner.provision.engine import docker_host
from runner.provision.images import IMAGES, ensure_images, tag
from runner.tasks.load import load_task
from tests.verdicts import cases
from tests.worlds.compose_project import ROOT, Ended, Project, project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]
TASK = "rad-2025-debate"
BASE = "proctor-test/compose-debate-base"


@pytest.fixture(scope="module")
def host() -> str:
    found = docker_host(config.load(cwd=ROOT))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def images(engine: DockerEngine, build_image: Callable[..., ImageRef]) -> dict[str, str]:
    """Names of ours, because Compose takes names and no identities."""
    ensure_images(engine, config.load(cwd=ROOT))
    build_image(f"{BASE}:1")
    return {image.name: tag(image) for image in IMAGES} | {"base": f"{BASE}:1"}


@pytest.fixture
def here(tmp_path: Path, host: str, images: dict[str, str]) -> Iterator[Project]:
    """A project with the task of debates, two claims of it."""
    with project(tmp_path, host, images["evaluator"], images["base"]) as made:
        source, folder = ROOT / "tasks" / TASK, tmp_path / "tasks" / TASK
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.npy"))
        claims = folder / "datasets" / "train" / "inputs" / "claims.jsonl"
        claims.write_text("".join(claims.read_text("utf-8").splitlines(keepends=True)[:2]))
        for team, name in (("baselines", "rad-elastic-python"), ("broken", "rad-html")):
            shutil.copytree(
                ROOT / "submissions" / team / name, tmp_path / "submissions" / team / name, symlinks=True
            )
        yield made
        debate(made, images, "baselines", "rad-elastic-python", "down", "--volumes", "--timeout", "1")


def debate(here: Project, images: dict[str, str], team: str, software: str, *words: str) -> Ended:
    """A call of Compose with the profile."""
    return here.compose(
        "--profile", "debate", *words,
        TASK=TASK, TEAM=team, SOFTWARE=software, SIDECARS_IMAGE=images["sidecars"],
    )  # fmt: skip


@pytest.mark.slow
def test_a_debate_is_held_in_a_closed_room_and_printed(
    here: Project, images: dict[str, str], host: str
) -> None:
    ended = debate(here, images, "baselines", "rad-elastic-python", "up", "--exit-code-from", "transcript")
    assert ended.code == 0, ended.text
    said = [line.split(" | ", 1)[1] for line in ended.text.splitlines() if line.startswith("transcript-1")]
    assert any("1 of 2, demo-001: Homework" in line for line in said)
    assert sum(line.lstrip().startswith("software: ") for line in said) == 10
    figures = dict(line.split()[:2] for line in said if line.startswith("  ") and len(line.split()) == 2)
    assert figures["answered"] == figures["within-word-limit"] == figures["provenance"] == "1.0000"
    assert "TEAM=baselines SOFTWARE=rad-elastic-python" in ended.text, "the command that checks the rest"

    client = docker.DockerClient(base_url=host, timeout=60)
    rooms = {
        name: client.api.inspect_container(f"{here.name}-{name}-1")
        for name in ("search", "user", "relay", "server", "driver", "transcript")
    }
    client.close()
    for name, room in rooms.items():
        asked = room["HostConfig"]
        joined = f"container:{rooms['relay']['Id']}" if name == "server" else "none"
        assert asked["NetworkMode"] == joined
        assert asked["ReadonlyRootfs"] is True and asked["CapDrop"] == ["ALL"] and not asked["CapAdd"]
        assert not asked["PortBindings"]
    server = rooms["server"]
    assert server["Mounts"] == [], "neither claims, output nor sockets"
    limits = load_task(config.load({"RUNNER_ROOT": str(here.folder)}), TASK).limits
    assert server["HostConfig"]["Memory"] == server["HostConfig"]["MemorySwap"] == limits.memory
    assert server["HostConfig"]["PidsLimit"] == limits.pids
    environment = dict(line.split("=", 1) for line in server["Config"]["Env"])
    assert environment["ARGUMENTS_URL"] == "http://127.0.0.1:9200/arguments"
    assert not any("DRIVER" in name for name in environment)


@pytest.mark.slow
def test_a_server_that_answers_pages_is_told_so(here: Project, images: dict[str, str]) -> None:
    ended = debate(here, images, "broken", "rad-html", "up", "--exit-code-from", "transcript")
    assert ended.code == 0, ended.text
    assert ["answered", "0.0000"] in [line.split()[-2:] for line in ended.text.splitlines()]


def test_other_tasks_have_no_room(here: Project, images: dict[str, str]) -> None:
    with_it = here.compose("--profile", "debate", "config", "--services", TASK=cases.TASK)
    without = here.compose("config", "--services", TASK=cases.TASK)
    assert with_it.code == without.code == 0
    assert (
        sorted(with_it.text.split()) == sorted(without.text.split()) == ["evaluator", "prepare", "software"]
    )
    assert here.compose("config", "--services", TASK=TASK).text.split() == []
