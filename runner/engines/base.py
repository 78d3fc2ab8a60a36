"""Where containers run: the seam between the platform and a container engine.

Two implementations: :mod:`runner.engines.docker.engine` (Docker Engine API) and :mod:`runner.engines.fake`
(scripted, for tests of what stands above); :mod:`runner.engines.registry` finds them. There is no unsandboxed engine. Everything here is data or a
protocol; :mod:`runner.engines.sandbox` turns a :class:`ContainerSpec` into engine options, to which a session
adds host names and single files.

Failures of the platform raise :class:`runner.model.errors.PlatformError`. What the software did is never an
exception: it is in :class:`Exit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, Protocol

from runner.engines.build_spec import BuildSpec as BuildSpec
from runner.model.config import EngineFor
from runner.model.container import Collected, Exit, ImageRef
from runner.model.errors import RunnerError
from runner.model.limits import Exceptions, Limits
from runner.model.task import Visibility

Role = Literal["software", "evaluator", "sidecar", "gateway"]
Owner = Literal["software", "sidecar"]
MayCut = Callable[[Callable[[], None]], object]


class Cancelled(Exception):
    """A person stopped what was still waiting for its turn on the engine: nothing of it was started."""


@dataclass(frozen=True)
class EngineInfo:
    """What the engine says about itself and its machine. Amounts are bytes.

    ``missing`` names limits that it cannot enforce, ``networks`` those that a gateway may be given; ``clock`` is its
    time in ISO 8601, ``data_root`` the folder of its data where that is on this machine.
    """

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
    gpu_kinds: tuple[str, ...] = ()  # as words, such as nvidia-a100-sxm4-40gb
    missing: tuple[str, ...] = ()
    swap: bool = True  # whether swap counts towards the memory limit
    exact_memory: bool = True  # whether peak memory is read exactly, and not sampled
    filters_calls: bool = True  # whether it filters system calls at all
    seccomp: bool = True  # whether it does so by our own profile
    user_namespaces: bool = False
    counts_sockets: bool = True  # whether what sockets hold in the kernel is bounded
    forwards: bool = True  # whether containers with a network reach further than the engine's machine
    networks: tuple[str, ...] = ("bridge", "host")
    clock: str = ""
    data_root: Path | None = None


@dataclass(frozen=True)
class Volume:
    """A volume of the engine, by the engine's name for it."""

    name: str


@dataclass(frozen=True)
class Mount:
    """A volume at a path of the container.

    ``source`` is set if only a part of it is mounted: the path of the part on the engine's machine, without links.
    """

    volume: Volume
    target: str
    read_only: bool = True
    source: str | None = None


@dataclass(frozen=True)
class ContainerSpec:
    """One container to start. ``command`` None means the image's own; a list replaces entrypoint and cmd.

    ``join`` makes it share the loopback (and nothing else) of a running sidecar of the same session, which
    nobody else can join then. ``network`` names a network of the engine (``bridge``, ``host`` or another one):
    for the role ``gateway`` alone. Without either it has a loopback of its own and no network. ``stays`` is set by
    :meth:`Session.room`: nothing in it can be written to but what is mounted.
    """

    role: Role
    image: ImageRef
    command: tuple[str, ...] | None
    limits: Limits
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    exceptions: Exceptions = field(default_factory=Exceptions)
    join: Handle | None = None
    network: str | None = None
    stays: bool = False


class Handle(Protocol):
    """A started container. Its methods may be called from several threads."""

    def wait(self, deadline: float, cancelled: Callable[[], bool] | None = None) -> Exit:
        """Wait at most ``deadline`` seconds from this container's start, then kill it as a whole."""

    def over(self, deadline: float, cancelled: Callable[[], bool] | None = None) -> None:
        """As :meth:`wait`, but how it ended is not asked yet: that takes a moment, in which its output can be fetched."""

    def ended(self) -> bool:
        """Whether it has ended (or never started); does not wait. ``wait`` then returns at once."""

    def stop(self, grace: float = 2.0) -> Exit:
        """SIGTERM, then SIGKILL after ``grace`` seconds; an end that came earlier stays what it was."""

    def logs(self, stream: Literal["stdout", "stderr"], cap: int) -> bytes:
        """The last log bytes of one stream so far, at most ``cap``, also while it runs; raw and hostile."""


# The folders of a program in a room: its files (read-only), what it leaves, and its temporary files.
ROOM = "/room"
ROOM_IN, ROOM_OUT, ROOM_TMP = f"{ROOM}/in", f"{ROOM}/out", f"{ROOM}/tmp"  # noqa: S108 (a program's own)


class RoomRun(NamedTuple):
    """How a program in a room ended, the last bytes of what it said, and the files that it left.

    ``collected`` is empty unless it ended with exit code 0.
    """

    exit: Exit
    stdout: bytes
    stderr: bytes
    collected: Collected


class Room(Protocol):
    """A container that stays, in which programs run one after another; none can touch what another one gets or leaves.

    Each runs as a process of its own under a user id that nothing in the room ever had before, and has three folders
    that are its own and go before the next one starts. Nothing else in the room can be written to.
    """

    @property
    def usable(self) -> bool:
        """Whether another program may run in it: all earlier ones ended well and left nothing, and it is not old."""

    def run(
        self,
        command: Sequence[str],
        files: Mapping[str, Path | bytes],
        dest: Path,
        *,
        env: Mapping[str, str],
        deadline: float,
        cancelled: Callable[[], bool],
        allowed: Callable[[str], bool],
        max_bytes: int,
        max_files: int,
    ) -> RoomRun:
        """Run a program to its end; it is killed ``deadline`` seconds after its start, or when ``cancelled``.

        Args:
            command: the program and its arguments.
            files: what lies in :data:`ROOM_IN` (names may have one directory level).
            dest: where the regular files of :data:`ROOM_OUT` go that pass ``allowed``, as with :meth:`Session.copy_out`.
            env: further environment variables.
            deadline: seconds.
            cancelled: asked a few times a second.
            allowed: which names are fetched.
            max_bytes: of all files that are fetched together.
            max_files: how many are fetched.

        Raises:
            PlatformError: the engine fails; the room is not usable then.
            ValueError: the room is not usable.
        """

    def retire(self) -> None:
        """Have it not be usable any more."""


class Session(Protocol):
    """The containers and volumes of one attempt. Leaving it removes everything with its label.

    Softwares and evaluators run under one user id of the session, sidecars and gateways under another; no
    other live session has either. Name the volumes before the first start: one keeper then serves them all.
    """

    def output_volume(self, name: str, *, bytes: int, inodes: int, owner: Owner = "software") -> Volume:
        """A size- and inode-limited volume that the session keeps alive; for ``owner``'s user id alone."""

    def socket_volume(self, name: str) -> Volume:
        """A small volume for Unix sockets: sidecars write to it, everybody can pass it.

        A server mounts it writable and gives its socket the mode 0666; clients mount it read-only, which
        lets them connect and nothing else.
        """

    def start(self, spec: ContainerSpec) -> Handle:
        """Create and start a container. An unknown command gives a handle whose ``wait`` says so.

        Raises ValueError for a join or a network that the role may not have.
        """

    def room(self, spec: ContainerSpec, *, given: int) -> Room:
        """Start a room of the image of ``spec`` with its limits and mounts; its command is not used.

        A program's folders hold together what the limits allow for output and temporary files, and ``given`` bytes more.
        """

    def copy_out(
        self, volume: Volume, dest: Path, *, allowed: Callable[[str], bool], max_bytes: int, max_files: int
    ) -> Collected:
        """Fetch regular files whose names pass ``allowed``, capped, without following links."""

    def copy_in(self, volume: Volume, files: Mapping[str, Path | bytes]) -> None:
        """Write files into a session volume, also while containers use it (names may have one directory level).

        They are read-only and belong to the volume's owner.
        """


# The files of a data volume: (path in it, file here).
Fill = Callable[[], Sequence[tuple[PurePosixPath, Path]]]


class Probe(Protocol):
    """What can be learned about an engine before anything runs on it."""

    def info(self) -> EngineInfo:
        """Facts about the engine; never raises for missing abilities, only E301 when it does not answer."""

    def require(self, limits: Iterable[Limits] = ()) -> None:
        """Raise E302 when the engine cannot enforce the sandbox, E305 when it lacks what ``limits`` ask for."""

    def try_eviction(self) -> float:
        """Empty the caches of the engine's machine, as between blinded and public runs; returns seconds. Raises E311."""


class Images(Protocol):
    """The images in an engine: found, fetched, built, and moved as files."""

    def resolve(self, image: str) -> ImageRef:
        """The image by id, tag or ``repo@sha256:…`` (pulled if it is named with its registry or digest). Raises E204."""

    def pull(self, image: str, *, silence: float) -> ImageRef:
        """The image of a registry, given up when nothing is heard for ``silence`` seconds. Raises E204, E303."""

    def import_root(self, archive: Path, name: str, changes: Sequence[str]) -> ImageRef:
        """An image of one layer from a tar archive of a root file system.

        Args:
            archive: the tar archive.
            name: ``repository:tag`` of the image.
            changes: lines of a Dockerfile that set its configuration (``ENV``, ``CMD``, ``LABEL``).

        Raises:
            PlatformError: E303, the engine refuses it.
        """

    def build(self, spec: BuildSpec, on_line: Callable[[str], None] | None = None) -> ImageRef:
        """Build an image; ``on_line`` is given each line of output, made printable.

        Raises:
            RunnerError: E202 the Dockerfile lies outside the context, E203 with the last lines of output.
            PlatformError: E303 the engine fails.
        """

    def save(self, image: ImageRef, to: Path) -> None:
        """Write the image as an archive (``docker save`` form), tags left out."""

    def load(self, archive: Path, *, max_bytes: int, expect: str | None = None) -> ImageRef:
        """Load an image archive through a capped reader, tags stripped; must be the image ``expect``.

        Raises E205 for an archive that is no image, too large, or another image than ``expect``.
        """

    def keep(self, image: ImageRef, name: str) -> None:
        """Give the image a name of ours, so that nobody's clean-up of nameless images takes it away."""


def find_image(engine: Images, name: str) -> ImageRef | None:
    """The image of that name in ``engine``, None when it has none. Never pulls a name without registry and digest."""
    try:
        return engine.resolve(name)
    except RunnerError as error:
        if error.code != "E204":
            raise
        return None


class Filled(Protocol):
    """What keeps data in volumes named by their digests."""

    def data_volume(self, digest: str, fill: Fill) -> Volume:
        """A digest-named volume, filled once through the engine's API, to be mounted read-only."""


class Space(NamedTuple):
    """How much fits into an output volume."""

    bytes: int
    inodes: int


class Engine(Filled, Probe, Images, Protocol):
    """A container engine that can enforce the sandbox."""

    def session(
        self,
        attempt_id: str,
        *,
        labels: Mapping[str, str] | None = None,
        visibility: Visibility | None = "public",
        cancelled: Callable[[], bool] | None = None,
        stays: bool = False,
    ) -> AbstractContextManager[Session]:
        """The containers of one attempt, on data of that ``visibility``; see :mod:`runner.engines.turns`.

        It waits until no session of the other visibility is live on the engine. With None it waits for nothing: for
        programs of ours alone, on data that everybody may have.

        Args:
            attempt_id: letters, digits, ``.``, ``_`` and ``-``; its own at any time.
            labels: labels of everything that is made, added to our own.
            visibility: of the data that the containers are given.
            cancelled: asked while it waits.
            stays: it may be left by another thread than entered it, and does not count as this thread's turn.

        Raises:
            Cancelled: ``cancelled`` became true while it waited.
            PlatformError: E311, blinded and public runs cannot be kept apart there.
        """

    def reap(self, *, prefix: str = "", dry_run: bool = False) -> list[str]:
        """Remove containers and volumes that killed processes of ours left.

        Returns ids of attempts, and names of data volumes that were never filled to the end. With ``prefix`` only of attempts whose id begins so; with ``dry_run`` they are only listed.
        """

    def follow(self, attempt_id: str, may_cut: MayCut = lambda _: None) -> Iterator[bytes]:
        """What the software (or the evaluator) of an attempt writes, as it comes, until it ends; raw and hostile. ``may_cut`` is given what ends that from another thread (a PlatformError then), where it is possible."""

    def kill(self, attempt_id: str) -> bool:
        """Kill the running containers of an attempt (cancel from another process). True if there was one."""

    def gc(self, *, keep_digests: Iterable[str], dry_run: bool = False) -> list[str]:
        """Remove digest-named data volumes not in ``keep_digests``; returns their names."""

    def close(self) -> None:
        """Give up the connections to the engine."""


class EngineType(Protocol):
    """A kind of engine, as :mod:`runner.engines.registry` lists it: called with an address it gives the engine there."""

    def __call__(
        self,
        address: str,
        /,
        *,
        locks: Path | None = None,
        engine_for: EngineFor = "both",
        tell: Callable[[str], None] = ...,
    ) -> Engine:
        """The engine at ``address``; nothing is asked of it yet."""

    def answers(self, address: str, timeout: float) -> bool:
        """Whether an engine answers at ``address`` within ``timeout`` seconds. Never raises."""
