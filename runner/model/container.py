"""What is known of an image and of a container's life: facts, no judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Killed = Literal["time", "processor", "cancel", "stop"]


@dataclass(frozen=True)
class ImageRef:
    """An image by identity. Containers are always started from ``id``, never from a tag.

    ``names`` are the tags and registry digests that the engine has for it, ``onbuild`` the instructions that run when
    another image is built on it.
    """

    id: str
    repo_digest: str | None = None
    platform: str = "linux/amd64"
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    workdir: str = ""
    user: str = ""
    env: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    has_healthcheck: bool = False
    size: int = 0
    names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    onbuild: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resources:
    """What a container used. Bytes and seconds; None where it could not be measured.

    ``memory_source`` says how the peak was read: ``exact`` (from the cgroup after the end) or ``sampled``.
    """

    wall_seconds: float = 0.0
    cpu_seconds: float | None = None
    memory_peak: int | None = None
    memory_source: Literal["exact", "sampled", "none"] = "none"


@dataclass(frozen=True)
class Exit:
    """How a container ended: raw facts, no judgement (that is :mod:`runner.model.verdict`).

    ``code`` is the exit code (128+n when killed by signal n), None when it could not be started for a
    reason in the software (``start_error`` says which, for example an unknown command). ``killed`` is who
    ended it: ``time`` (wall clock), ``processor`` (its limit of processor time), ``cancel`` (a person), ``stop`` (it was not needed any more), or None.
    ``outside`` says how somebody or something else on the machine ended it, where that is certain: neither we, nor
    its own limits, nor a process inside. ``idle`` is the share of the time of its processors that nobody used meanwhile,
    ``waited`` for how many seconds its threads together were ready to run and had none.
    """

    code: int | None
    oom_killed: bool = False
    killed: Killed | None = None
    start_error: str | None = None
    started: str = ""
    finished: str = ""
    resources: Resources = Resources()
    log_truncated: bool = False
    outside: str | None = None
    idle: float | None = None
    waited: float | None = None


@dataclass(frozen=True)
class Collected:
    """What came out of an output volume: files written under ``dest``, what was refused, and fullness."""

    files: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # (name with control characters escaped, reason)
    bytes: int = 0
    full: bool = False  # the volume had no byte or no inode left
