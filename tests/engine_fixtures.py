"""A real container engine for tests. A pytest plugin: a missing engine fails the tests that need one."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from runner.engines.base import BuildSpec
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.owner import default_locks, private_folder
from runner.engines.docker.volumes import BASES
from runner.model import config
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from tests.leftovers import KEPT

SCRATCH = "proctor/test-scratch"
_MACHINE = config.load(cwd=Path(__file__).parent)  # before anything is isolated


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerEngine]:
    """The engine that answers; the tests fail when there is none."""
    from runner.provision.engine import docker_host

    try:
        host = docker_host(config.load(cwd=Path(__file__).parent))
        if host is None:
            pytest.fail("no container engine answers: run `make setup`", pytrace=False)
        found = DockerEngine(host, engine_for="both-without-eviction")  # see tests/conftest.py
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
            return engine.build(BuildSpec(folder, tag=tag, timeout=120, labels=KEPT))

    return build


@pytest.fixture(scope="session")
def scratch_image(build_image: Callable[..., ImageRef]) -> ImageRef:
    """A small image to run tests in: sh, the usual tools and python3."""
    return build_image(SCRATCH, 'CMD ["python3"]')


@pytest.fixture(scope="session")
def sidecars_image(engine: DockerEngine) -> ImageRef:
    """The platform's image of the sidecars, built anew when its sources have changed."""
    from runner.provision.images import ensure_images

    return ensure_images(engine, _MACHINE)["sidecars"]


def _is_here(address: str) -> bool:
    """Whether an interface of this machine has an address already."""
    with socket.socket() as sock:
        try:
            sock.bind((address, 0))
        except OSError:
            return False
    return True


@pytest.fixture(scope="session")
def gateway_network(engine: DockerEngine) -> Iterator[tuple[str, str]]:
    """A network for gateways, and this machine's address in it: ``(name, address)``.

    A test's server that listens on that address can be reached from a gateway's container with
    ``network=name``. It works where the engine forwards nothing, and where it has no bridge of its own.
    """
    from docker.errors import APIError
    from docker.types import IPAMConfig, IPAMPool

    api = engine.clients.get()
    name = f"proctor-test-{secrets.token_hex(6)}"
    for _ in range(20):
        # Of the engine's own pools some may be in use on this machine; these are rarely.
        prefix = f"172.29.{128 + secrets.randbelow(120)}"
        if _is_here(f"{prefix}.1"):
            continue  # another engine has it, or had it when it was killed: answers would go astray
        pool = IPAMPool(subnet=f"{prefix}.0/24", gateway=f"{prefix}.1")
        try:
            made = api.create_network(
                name, driver="bridge", ipam=IPAMConfig(pool_configs=[pool]), labels={"proctor.test": "yes"}
            )
            break
        except APIError as error:
            if "overlap" not in str(error).lower():
                raise
    else:
        pytest.fail("no address is free for a test network", pytrace=False)
    try:
        yield name, f"{prefix}.1"
    finally:
        engine.clients.get().remove_network(made["Id"])


@pytest.fixture
def attempt() -> str:
    """An attempt id that no other test has."""
    return f"test-{secrets.token_hex(6)}-1"


@pytest.fixture(scope="session")
def front_image(engine: DockerEngine) -> ImageRef:
    """The image of the front, built anew when its sources have changed."""
    from runner.provision.images import FRONT, ensure_images

    return ensure_images(engine, _MACHINE, wanted=[FRONT])["front"]
