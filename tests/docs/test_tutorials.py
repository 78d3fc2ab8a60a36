"""Tutorials are walked through from an empty folder, command by command, and print what they say."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import docker
import httpx2
import pytest

from tests.docs.walking import Surroundings, walk
from tests.e2e.test_server import form_of, until
from tests.worlds.mini import Project
from tests.worlds.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
TOKEN = re.compile(r"proctor_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")


@pytest.fixture
def walked(live: Project, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder with an empty project, and the environment of a person who has not set anything."""
    root = tmp_path / "empty"
    (root / "tasks").mkdir(parents=True)
    shutil.copytree(ROOT / "submissions/baselines/dirichlet", root / "submissions/baselines/dirichlet")
    environment = live.environment(RUNNER_ROOT=str(root), HOME=str(tmp_path / "person")) | {
        "RUNNER_BASES": ""
    }
    del environment["RUNNER_TRUTHS"], environment["RUNNER_PRIVATE"]
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    environment["PYTHONUNBUFFERED"] = "1"  # what is told and what is printed come in the order of a terminal
    return root, environment


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(900)
def test_a_task_from_a_trec_collection(walked: tuple[Path, dict[str, str]]) -> None:
    root, environment = walked
    printed = walk("trec-collection.md", *walked)
    assert [path.name for path in (root / "tasks").iterdir()] == ["news"]
    assert (Path(environment["HOME"]) / "private/news/test/truths/qrels.txt").is_file()
    assert re.search(r"^ *1 +baselines/news +dirichlet +baseline +\S*1\.0000", printed, re.M), printed


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(900)
def test_a_task_without_an_evaluator(walked: tuple[Path, dict[str, str]]) -> None:
    root, environment = walked
    walk("records.md", *walked)
    assert [path.name for path in (root / "tasks").iterdir()] == ["acts"]
    assert (Path(environment["HOME"]) / "private/acts/test/truths/acts.jsonl").is_file()


@pytest.fixture
def checkout(walked: tuple[Path, dict[str, str]], live: Project) -> Iterator[tuple[Path, dict[str, str]]]:
    """The same with the project's own files, as somebody who has just fetched them has it, and a command docker."""
    root, environment = walked
    for name in ("Makefile", "Dockerfile", "docker-compose.yml", "pyproject.toml", "requirements.lock"):
        shutil.copy2(ROOT / name, root)
    for name in ("baselines/random", "broken/crashes"):
        shutil.copytree(ROOT / "submissions" / name, root / "submissions" / name)
    for name in ("evaluator", "runner", "schemas", "sidecars", "tasks/vaswani"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / ".venv").symlink_to(sys.prefix)
    project = f"proctor-test-{secrets.token_hex(4)}"
    # What is installed stays as it is, however old; Compose is the package's, whatever this machine has.
    environment |= {
        "MAKEFLAGS": "--old-file=.venv/pyvenv.cfg --old-file=.venv/.ready",
        "PATH": f"{root.parent / 'bin'}:{environment['PATH']}",
        "COMPOSE_PROJECT_NAME": project,
        "COMPOSE_ANSI": "never",
        "IMAGE": f"{project}/software",
    }
    command = root.parent / "bin" / "docker"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nshift; exec {sys.prefix}/bin/docker-compose "$@"\n', "utf-8")
    command.chmod(0o755)
    yield root, environment
    down = [command, "compose", "down", "--volumes", "--timeout", "1"]
    subprocess.run(down, cwd=root, env=environment, check=True)
    client = docker.DockerClient(base_url=live.docker_host, timeout=60)
    for image in client.images.list(filters={"reference": f"{project}/software"}):
        client.images.remove(image.id, force=True)
    client.close()


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", ["participant.md", "organiser.md", "host-your-own-task.md"])
def test_from_a_checkout(page: str, checkout: tuple[Path, dict[str, str]]) -> None:
    walk(page, *checkout)


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(1500)
def test_a_task_on_the_web_and_a_team_at_home(walked: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    """One page after the other, at the same server: the organiser's, and with the kit in another home the team's."""
    environment = dict(walked[1])
    del environment["RUNNER_ROOT"], environment["RUNNER_HOME"], environment["RUNNER_NEWS"]
    empty, home = tmp_path / "organiser/empty", tmp_path / "team/empty"
    for folder in (empty, home):
        folder.mkdir(parents=True)
    address = f"127.0.0.1:{free_port()}"
    client = httpx2.Client(base_url=f"http://{address}", trust_env=False, timeout=60, follow_redirects=True)
    tokens: list[str] = []

    def register(printed: str) -> None:
        form = {"team": "alpha", "contact": "ada@example.org"}
        until(lambda: client.get("/tasks/books/register").status_code == 200)
        form["form-token"] = form_of(client.get("/tasks/books/register").text)
        said = client.post("/tasks/books/register", data=form).text
        tokens.extend(TOKEN.findall(said))
        page = re.findall(r"/registrations/\w+", said)[0]
        until(lambda: "waits for the organiser" in client.get(page).text)

    def propose(printed: str) -> None:
        organiser = TOKEN.findall(printed)[0]
        form = {"form-token": form_of(client.get("/sign-in").text), "token": organiser}
        assert client.post("/sign-in", data=form).status_code == 200
        form = {
            "form-token": form_of(client.get("/console").text),
            "action": "publish",
            "dataset": "books/test",
        }
        assert client.post("/console/propose", data=form).status_code == 200
        until(lambda: "publish books test" in client.get("/console").text)

    with ExitStack() as going, client:
        hands = {"runner team waiting": register, "runner requests list": propose}
        beside = Surroundings(going, hands, address)
        walk("on-the-web.md", empty, environment | {"HOME": str(tmp_path / "organiser")}, beside)
        until(lambda: "trial" in client.get("/tasks/books/main").text)  # work publishes after it has answered
        shutil.copy2(empty / "kits/books-kit.tar.gz", home)
        [token] = tokens
        team = environment | {"HOME": str(tmp_path / "team"), "RUNNER_TOKEN": token}
        walk("hand-in-from-home.md", home, team, Surroundings(going, {}, address))
    assert (tmp_path / "organiser/private/books/test/truths/qrels.txt").is_file()
    assert not (home / "books-kit/.runner/archive").exists(), "nothing was run that counts"
