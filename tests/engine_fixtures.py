"""A real container engine for tests. A pytest plugin: a missing engine fails the tests that need one."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from runner import config
from runner.engines.base import ImageRef
from runner.engines.docker import BASES, DockerEngine
from runner.engines.owner import default_locks, private_folder
from runner.errors import RunnerError

SCRATCH = "proctor/test-scratch"


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerEngine]:
    """The engine that answers; the tests fail when there is none."""
    from runner.setup.engine import docker_host

    try:
        host = docker_host(config.load(cwd=Path(__file__).parent))
        if host is None:
            pytest.fail("no container engine answers: run `make setup`", pytrace=False)
        found = DockerEngine(host)
        found.require()
    except RunnerError as error:
        pytest.fail(f"no usable container engine: {error.what}. {error.why} Run `make setup`.", pytrace=False)
    yield found
    found.close()


@pytest.fixture(scope="session")
def base_image(engine: DockerEngine) -> ImageRef:
    """The base image that is present: Debian with python3."""
    for name in BASES:
        try:
            return engine.resolve(name)
        except RunnerError:
            continue
    pytest.fail(f"the engine has none of {', '.join(BASES)}: run `make setup`", pytrace=False)


@pytest.fixture(scope="session")
def build_image(
    engine: DockerEngine, base_image: ImageRef, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., ImageRef]:
    """A function that builds an image: ``build_image(tag, 'VOLUME /data', ...)`` on the base image."""

    def build(tag: str, *lines: str) -> ImageRef:
        folder = tmp_path_factory.mktemp("context")
        folder.joinpath("Dockerfile").write_text("\n".join([f"FROM {base_image.id}", *lines]) + "\n")
        with FileLock(private_folder(default_locks()) / "test-build.lock"):
            return engine.build(folder, tag=tag, timeout=120)

    return build


@pytest.fixture(scope="session")
def scratch_image(build_image: Callable[..., ImageRef]) -> ImageRef:
    """A small image to run tests in: sh, the usual tools and python3."""
    return build_image(SCRATCH, 'CMD ["python3"]')


@pytest.fixture
def attempt() -> str:
    """An attempt id that no other test has."""
    return f"test-{secrets.token_hex(6)}-1"
