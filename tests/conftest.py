"""What all tests share: no setting of the machine leaks in, a small project, and the command line as a process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from runner.engines import turns
from runner.engines.docker.engine import DockerEngine
from runner.model import config
from runner.model.container import ImageRef
from tests.worlds.mini import Project, Said, call

pytest_plugins = ["tests.leftovers", "tests.engine_fixtures", "tests.golden_texts", "tests.worlds.postgres"]

# The time that an example takes depends on the load of the machine. ``make soak`` asks for the profile "soak".
settings.register_profile("proctor", deadline=None, max_examples=50)
settings.register_profile("soak", deadline=None, max_examples=500)
settings.load_profile("proctor")

_MACHINE = config.load(cwd=Path(__file__).parent)  # before anything is isolated


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every test has a data directory of its own, which it may or may not use; no RUNNER_ variable leaks in."""
    for name in [name for name in os.environ if name.startswith("RUNNER_") and name != "RUNNER_BASE"]:
        monkeypatch.delenv(name)
    # Many tests share one engine: those that are not about it must not wait for one another, or empty its caches.
    monkeypatch.setenv("RUNNER_ENGINE_FOR", "both-without-eviction")
    monkeypatch.setenv("RUNNER_HOME", str(tmp_path_factory.getbasetemp() / "nobody" / "home"))


@pytest.fixture(scope="session", autouse=True)
def no_delay_of_public_runs() -> Iterator[None]:
    """Start public runs at once: tests share an engine. The tests of the delay set both values themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "LOOPBACK_SECONDS", 0.0)
        patch.setattr(turns, "START_GRID_SECONDS", 0.01)
        yield


@pytest.fixture(scope="session")
def evaluator_image(engine: DockerEngine) -> ImageRef:
    """The platform's evaluator image, built anew when its sources have changed."""
    from runner.provision.images import ensure_images

    return ensure_images(engine, _MACHINE)["evaluator"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with the mini task, no software, and nothing registered. No engine is needed for it."""
    made = Project(tmp_path / "project", tmp_path / "home", tmp_path / "truths")
    made.write_task()
    return made


@pytest.fixture
def live(
    project: Project, engine: DockerEngine, evaluator_image: ImageRef, scratch_image: ImageRef
) -> Iterator[Project]:
    """The same, with the real engine; ``project.image`` is an image with sh and python3."""
    project.image = scratch_image.id
    project.docker_host = engine.clients.address
    yield project


@pytest.fixture
def runner_cli(project: Project) -> Callable[..., Said]:
    """Runs ``runner`` as a process in the mini project: ``runner_cli("runs", "--json")``."""

    def run(*arguments: str, **options: object) -> Said:
        return call(project, *arguments, **options)  # type: ignore[arg-type]

    return run
