"""Which engines there are, by the scheme of their address. Other packages add theirs as entry points ``proctor.engines``."""

from __future__ import annotations

from importlib.metadata import entry_points
from urllib.parse import urlsplit

from runner.engines.base import EngineType
from runner.model.errors import PlatformError

GROUP = "proctor.engines"  # the name of an entry point is a scheme, its object an EngineType
DOCKER = ("unix", "tcp", "http", "https", "ssh", "npipe")


def engine_type(address: str) -> EngineType:
    """What opens the engine at ``address``. Raises E301 for a scheme that nobody knows."""
    scheme = urlsplit(address).scheme
    if scheme in DOCKER:
        from runner.engines.docker.engine import DockerEngine

        return DockerEngine
    for found in entry_points(group=GROUP, name=scheme):
        known: EngineType = found.load()
        return known
    raise PlatformError(
        "no container engine answers",
        why=f"{address!r} is no address of an engine that is known here.",
        fix="set DOCKER_HOST to one that begins with unix:// or tcp://",
        code="E301",
    )


def answers(address: str, timeout: float = 3.0) -> bool:
    """Whether an engine answers at ``address`` within ``timeout`` seconds. Never raises."""
    try:
        return engine_type(address).answers(address, timeout)
    except PlatformError:
        return False
