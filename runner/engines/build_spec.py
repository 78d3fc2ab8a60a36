"""The description of one image build, as every engine takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runner.model.limits import GIB


@dataclass(frozen=True)
class BuildSpec:
    """One image to build from the folder ``context``, which holds ``dockerfile``.

    ``tag`` names the image, ``target`` a stage of the Dockerfile to stop at. The build has no network unless
    ``network``; ``memory`` (bytes) bounds each of its steps, ``timeout`` (seconds) the whole.

    An ``isolated`` build uses no cache, and runs its steps in the sandbox: each has at most ``pids`` processes, and what the
    build adds to its base images has at most ``disk`` bytes and ``files`` files.
    """

    context: Path
    dockerfile: str = "Dockerfile"
    tag: str | None = None
    target: str | None = None
    args: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    memory: int = 4 * GIB
    timeout: float = 1800.0
    isolated: bool = False
    pids: int = 1024
    disk: int = 32 * GIB
    files: int = 1_000_000
