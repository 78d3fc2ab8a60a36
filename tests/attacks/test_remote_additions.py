"""A Dockerfile that lets the builder fetch from a service on the loopback of the organiser's machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.engines.base import BuildSpec
from runner.engines.docker.engine import DockerEngine
from runner.model import config
from runner.model.config import BASES
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.model.names import BASELINES
from runner.submissions import origins
from runner.submissions.load import load_submission
from runner.submissions.pack import image_of
from tests.contracts.conftest import WebServer, web_server
from tests.worlds.mini import Project, call, call_here

pytestmark = pytest.mark.engine


@pytest.fixture
def service() -> Iterator[WebServer]:
    with web_server(b"secret") as server:
        yield server


@pytest.fixture
def project(engine: DockerEngine, base_image: ImageRef, tmp_path: Path) -> Project:
    project = Project(
        tmp_path / "project", tmp_path / "home", tmp_path / "truths", docker_host=engine.clients.address
    )
    project.write_task()
    base = next(name for name in base_image.names if name in BASES)
    project.env["RUNNER_BASE"] = "registry" if base == BASES[0] else "local"
    return project


def write_system(project: Project, team: str, addition: str, **build: object) -> None:
    """A system of ``team`` whose Dockerfile has ``addition`` as its only instruction after FROM."""
    project.software("fetcher", team=team, image=None, build={"context": ".", **build})
    folder = project.root / "submissions" / team / "fetcher"
    (folder / "Dockerfile").write_text(f"ARG BASE_IMAGE\nFROM ${{BASE_IMAGE}}\n{addition}\n")


def build(engine: DockerEngine, project: Project, *, submit: bool) -> ImageRef | None:
    """Build the system of alpha in this process, as pack does, or as submit does with submissions of several teams."""
    settings = config.load(project.environment(), cwd=project.root)
    submission = load_submission(settings, "alpha", "fetcher")
    return image_of(replace(settings, handing_in=submit), engine, submission)


ADDITIONS = {
    "url": "ADD http://127.0.0.1:{port}/secret /secret",
    "expansion": "ARG A=http:\nENV B=//127.0.0.1\nADD $A$B:{port}/secret /secret",
    "continuation": "aDd --chown=0:0 \\\n  [\"http\\u003a//127.0.0.1:{port}/secret\", \\\n \"/secret\"]",
}  # fmt: skip


@pytest.mark.parametrize("name", ADDITIONS)
def test_a_teams_build_fetches_nothing(
    engine: DockerEngine,
    project: Project,
    service: WebServer,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """The builder itself would fetch all of them, because ADD has the network of the engine."""
    write_system(project, "alpha", ADDITIONS[name].format(port=service.port), network=True)
    for command in (("pack", "--no-check"), ("submit", "--no-check"), ("try",)):
        words = [command[0], "-t", "alpha", "-s", "fetcher", *command[1:]]
        result = call(project, *words, expect=2)
        assert "E212" in result.err and "fetcher/Dockerfile:" in result.err
    assert service.paths == []
    monkeypatch.setattr(origins, "unproven_additions", lambda _: [])
    assert build(engine, project, submit=False)
    assert "/secret" in service.paths


def test_the_isolated_build_fetches_nothing_without_the_check(
    engine: DockerEngine, project: Project, service: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADD never reaches the builder where submissions of several teams are built."""
    write_system(project, "alpha", ADDITIONS["url"].format(port=service.port))
    monkeypatch.setattr(origins, "unproven_additions", lambda _: [])
    with pytest.raises(RunnerError) as caught:
        build(engine, project, submit=True)
    assert caught.value.code == "E203"
    assert service.paths == []


def test_the_organiser_may_fetch_with_a_network(
    project: Project, service: WebServer, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["pack", "-t", BASELINES, "-s", "fetcher", "--no-check"]
    write_system(project, BASELINES, ADDITIONS["url"].format(port=service.port))
    refused = call_here(project, command, capsys)
    assert refused.code == 2 and "E212" in refused.err
    assert service.paths == []
    write_system(project, BASELINES, ADDITIONS["url"].format(port=service.port), network=True)
    assert call_here(project, command, capsys).code == 0
    assert "/secret" in service.paths


def test_a_trigger_of_a_base_image_fetches_nothing(
    engine: DockerEngine, base_image: ImageRef, service: WebServer, tmp_path: Path
) -> None:
    """The instructions of ONBUILD are carried out like those of the Dockerfile."""
    (tmp_path / "Dockerfile").write_text(
        f"FROM {base_image.id} AS one\nONBUILD ADD http://127.0.0.1:{service.port}/secret /secret\nFROM one\n"
    )
    with pytest.raises(RunnerError) as caught:
        engine.build(BuildSpec(tmp_path, timeout=60, isolated=True))
    assert caught.value.code == "E203"
    assert service.paths == []
    engine.build(BuildSpec(tmp_path, timeout=60))
    assert "/secret" in service.paths
