"""Where containers run: the seam between the platform and a container engine.

Two implementations: :mod:`runner.engines.docker` (Docker Engine API) and :mod:`runner.engines.fake`
(scripted, for tests of what stands above). There is no unsandboxed engine. Everything here is data or a
protocol; the only place that turns a :class:`ContainerSpec` into engine options is
:mod:`runner.engines.sandbox`.

Failures of the platform raise :class:`runner.errors.PlatformError`. What the software did is never an
exception: it is in :class:`Exit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, Protocol

MIB = 1024 * 1024
GIB = 1024 * MIB

Role = Literal["software", "evaluator", "sidecar", "gateway"]
Owner = Literal["software", "sidecar"]
Killed = Literal["time", "cancel", "stop"]
Visibility = Literal["public", "blinded"]


class Cancelled(Exception):
    """A person stopped what was still waiting for its turn on the engine: nothing of it was started."""


@dataclass(frozen=True)
class Limits:
    """What one container may use. Bytes and seconds; the defaults are the strict ones of ``task.yaml``."""

    memory: int = 2 * GIB
    cpus: float = 1.0
    pids: int = 256
    wall_clock: float = 600.0
    output: int = 64 * MIB
    output_files: int = 64
    tmp: int = 128 * MIB
    shm: int = 64 * MIB
    log: int = MIB
    open_files: int = 1024
    gpus: int = 0
    tmp_exec: bool = False
    loopback: bool = True  # False: no TCP and no UDP at all, not even inside the container


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
class EngineInfo:
    """What the engine says about itself and its machine. ``missing`` names limits it cannot enforce."""

    name: str
    version: str
    api_version: str
    cgroup_version: str
    cgroup_driver: str
    cpus: int
    memory: int
    platform: str
    storage_driver: str = ""
    rootless: bool = False
    gpus: int = 0
    missing: tuple[str, ...] = ()
    seccomp: bool = True
    user_namespaces: bool = False
    counts_sockets: bool = True  # whether what sockets hold in the kernel is bounded


@dataclass(frozen=True)
class Volume:
    """A volume of the engine, by the engine's name for it."""

    name: str


@dataclass(frozen=True)
class Mount:
    """A volume at a path of the container; ``subpath`` never leaves the volume."""

    volume: Volume
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class Exceptions:
    """What the organiser granted to one software beyond the strict sandbox; named on the run.

    ``writable`` are extra tmpfs paths (with ``writable_bytes`` each); ``root`` runs as uid 0, which is
    allowed only where the engine maps it away (user namespaces).
    """

    writable: tuple[str, ...] = ()
    writable_bytes: int = 64 * MIB
    root: bool = False


@dataclass(frozen=True)
class ContainerSpec:
    """One container to start. ``command`` None means the image's own; a list replaces entrypoint and cmd.

    ``join`` makes it share the loopback (and nothing else) of a running sidecar of the same session, which
    nobody else can join then. ``network`` names a network of the engine (``bridge``, ``host`` or another one):
    for the role ``gateway`` alone. Without either it has a loopback of its own and no network.
    """

    role: Role
    image: ImageRef
    command: tuple[str, ...] | None
    limits: Limits
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    exceptions: Exceptions = Exceptions()
    join: Handle | None = None
    network: str | None = None


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
    """How a container ended: raw facts, no judgement (that is :mod:`runner.verdicts`).

    ``code`` is the exit code (128+n when killed by signal n), None when it could not be started for a
    reason in the software (``start_error`` says which, for example an unknown command). ``killed`` is who
    ended it: ``time`` (wall clock), ``cancel`` (a person), ``stop`` (it was not needed any more), or None.
    ``outside`` says how somebody or something else on the machine ended it, where that is certain: neither we, nor
    its own limits, nor a process inside.
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


@dataclass(frozen=True)
class Collected:
    """What came out of an output volume: files written under ``dest``, what was refused, and fullness."""

    files: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # (name with control characters escaped, reason)
    bytes: int = 0
    full: bool = False  # the volume had no byte or no inode left


class Handle(Protocol):
    """A started container. Its methods may be called from several threads."""

    def wait(self, deadline: float, cancelled: Callable[[], bool] | None = None) -> Exit:
        """Wait at most ``deadline`` seconds from this container's start, then kill it as a whole."""
        ...

    def ended(self) -> bool:
        """Whether it has ended (or never started); does not wait. ``wait`` then returns at once."""
        ...

    def stop(self, grace: float = 2.0) -> Exit:
        """SIGTERM, then SIGKILL after ``grace`` seconds; an end that came earlier stays what it was."""
        ...

    def logs(self, stream: Literal["stdout", "stderr"], cap: int) -> bytes:
        """The last log bytes of one stream so far, at most ``cap``, also while it runs; raw and hostile."""
        ...


class Session(Protocol):
    """The containers and volumes of one attempt. Leaving it removes everything with its label.

    Softwares and evaluators run under one user id of the session, sidecars and gateways under another; no
    other live session has either. Name the volumes before the first start: one keeper then serves them all.
    """

    def output_volume(self, name: str, *, bytes: int, inodes: int, owner: Owner = "software") -> Volume:
        """A size- and inode-limited volume that the session keeps alive; for ``owner``'s user id alone."""
        ...

    def socket_volume(self, name: str) -> Volume:
        """A small volume for Unix sockets: sidecars write to it, everybody can pass it.

        A server mounts it writable and gives its socket the mode 0666; clients mount it read-only, which
        lets them connect and nothing else.
        """
        ...

    def start(self, spec: ContainerSpec) -> Handle:
        """Create and start a container. An unknown command gives a handle whose ``wait`` says so.

        Raises ValueError for a join or a network that the role may not have.
        """
        ...

    def copy_out(
        self, volume: Volume, dest: Path, *, allowed: Callable[[str], bool], max_bytes: int, max_files: int
    ) -> Collected:
        """Fetch regular files whose names pass ``allowed``, capped, without following links."""
        ...

    def copy_in(self, volume: Volume, files: Mapping[str, Path | bytes]) -> None:
        """Write files into a session volume, also while containers use it (names may have one directory level).

        They are read-only and belong to the volume's owner.
        """
        ...


class Engine(Protocol):
    """A container engine that can enforce the sandbox."""

    def info(self) -> EngineInfo:
        """Facts about the engine; never raises for missing abilities, only when it does not answer."""
        ...

    def require(self, limits: Iterable[Limits] = ()) -> None:
        """Raise E302 when the engine cannot enforce the sandbox, E305 when it lacks what limits ask for."""
        ...

    def try_eviction(self) -> float:
        """Empty the caches of the engine's machine, as between blinded and public runs; returns seconds. Raises E311."""
        ...

    def resolve(self, image: str) -> ImageRef:
        """The image by id, tag or ``repo@sha256:…`` (pulled if the registry answers). Raises E204."""
        ...

    def build(
        self,
        context: Path,
        *,
        dockerfile: str = "Dockerfile",
        tag: str | None = None,
        target: str | None = None,
        build_args: Mapping[str, str] | None = None,
        network: bool = False,
        memory: int = 4 * GIB,
        timeout: float = 1800.0,
        on_line: Callable[[str], None] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ImageRef:
        """Build an image. Raises :class:`runner.errors.RunnerError` E203 with the last lines."""
        ...

    def save(self, image: ImageRef, to: Path) -> None:
        """Write the image as an archive (``docker save`` form), tags left out."""
        ...

    def load(self, archive: Path, *, max_bytes: int, expect: str | None = None) -> ImageRef:
        """Load an image archive through a capped reader, tags stripped; must be the image ``expect``.

        Raises E205 for an archive that is no image, too large, or another image than ``expect``.
        """
        ...

    def keep(self, image: ImageRef, name: str) -> None:
        """Give the image a name of ours, so that nobody's clean-up of nameless images takes it away."""
        ...

    def data_volume(self, digest: str, fill: Callable[[], Sequence[tuple[PurePosixPath, Path]]]) -> Volume:
        """A digest-named volume, filled once through the engine's API, to be mounted read-only."""
        ...

    def session(
        self,
        attempt_id: str,
        *,
        labels: Mapping[str, str] | None = None,
        visibility: Visibility = "public",
        cancelled: Callable[[], bool] | None = None,
    ) -> AbstractContextManager[Session]:
        """The containers of one attempt, on data of that ``visibility``; see :mod:`runner.engines.turns`.

        It waits until no session of the other visibility is live on the engine. Raises :class:`Cancelled` when
        ``cancelled`` becomes true meanwhile, E311 when blinded and public runs cannot be kept apart there.
        """
        ...

    def reap(self, *, prefix: str = "") -> list[str]:
        """Remove containers and volumes that an earlier, killed process of ours left; returns attempt ids."""
        ...

    def follow(self, attempt_id: str) -> Iterator[bytes]:
        """What the software (or the evaluator) of an attempt writes, as it comes, until it ends; raw and hostile."""
        ...

    def kill(self, attempt_id: str) -> bool:
        """Kill the running containers of an attempt (cancel from another process). True if there was one."""
        ...

    def gc(self, *, keep_digests: Iterable[str], dry_run: bool = False) -> list[str]:
        """Remove digest-named data volumes not in ``keep_digests``; returns their names."""
        ...
