"""What sessions, turns and evictions ask of the engine that they belong to."""

from __future__ import annotations

from typing import Protocol

from runner.engines.base import EngineInfo
from runner.engines.docker.client import Clients
from runner.engines.docker.meter import Meter
from runner.model.container import ImageRef


class Host(Protocol):
    """A Docker engine, as far as its sessions, turns and evictions need it."""

    @property
    def clients(self) -> Clients:
        """Connections to the engine."""
        ...

    @property
    def refusals(self) -> dict[str, str | None]:
        """By image: why its account files are refused, None if they are not; filled in by the sessions."""
        ...

    @property
    def local(self) -> bool:
        """Whether the engine's processes and mount points can be seen from here."""
        ...

    @property
    def own_profile(self) -> bool:
        """Whether the engine takes our own seccomp profile."""
        ...

    @property
    def user_namespaces(self) -> bool:
        """Whether the engine maps users away."""
        ...

    @property
    def uid_base(self) -> int:
        """What the engine adds to a container's user ids; 0 without user namespaces."""
        ...

    @property
    def identity(self) -> str:
        """A word for this engine, the same for all who reach it, by whatever address."""
        ...

    def info(self) -> EngineInfo:
        """What the engine is and can do."""
        ...

    def make_meter(self) -> Meter:
        """What measures one container."""
        ...

    def keeper(self) -> ImageRef:
        """The image of the container that keeps volumes alive."""
        ...
