"""The Docker Engine API behind :class:`runner.engines.base.Engine`.

Works with a local or a remote engine: nothing is bind-mounted, every file goes through the engine's API.
The SDK is imported on the first call, never with this module.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from runner.engines import moving, sandbox, tarstream
from runner.engines.base import EngineInfo, Mount, Volume
from runner.engines.docker import meter
from runner.engines.docker.client import Clients, explanation, labels_filter
from runner.engines.docker.evict import evict
from runner.engines.docker.handle import CANCELLED
from runner.engines.docker.owner import alive, default_locks, me, private_folder
from runner.engines.docker.session import DockerSession, no_gpu, remove
from runner.engines.docker.turns import DockerBoard
from runner.engines.text import printable
from runner.engines.turns import Turns
from runner.model.config import EngineFor
from runner.model.container import ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import GIB, MIB, Limits
from runner.model.task import Visibility
from schemas.files import atomic_file

BASES = (
    "proctor/base:bookworm",
    "python:3.11-slim",
)  # what the keeper is made from without the evaluator's image
FILL = 6 * 3600.0  # seconds for filling a data volume
PATIENCE = 900.0  # seconds that one process waits for another one that fills the same volume
PULL = 3600.0
TRANSFER = 3600.0
FOLLOW = 24 * 3600.0
LAST_LINES = 20

IMAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,500}")
IMAGE_ID = re.compile(r"(sha256:)?[0-9a-f]{12,64}")
ATTEMPT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


class DockerEngine:
    """An engine of the Docker API.

    ``docker_host`` is its address (default: ``DOCKER_HOST``, else the usual socket). ``locks`` is a folder on
    this machine for locks on data volumes (default: one for this user). ``keeper_image`` is the image of
    the keeper, which needs ``sleep`` and ``stat`` (default: the evaluator's, else the base image).
    ``local`` False keeps it from reading this machine's control groups; ``build_network`` names the network of
    builds that may use one (default: the engine's bridge, or the host's where the bridge leads nowhere).
    ``engine_for`` and ``tell``: see :class:`runner.engines.turns.Turns`.
    """

    def __init__(
        self,
        docker_host: str | None = None,
        *,
        locks: Path | None = None,
        keeper_image: str | None = None,
        local: bool | None = None,
        build_network: str | None = None,
        engine_for: EngineFor = "both",
        tell: Callable[[str], None] = lambda _: None,
        stall: float = moving.STALL,
        patience: float = PATIENCE,
    ) -> None:
        self.clients = Clients(docker_host)
        self._stall, self._patience = stall, patience
        board = DockerBoard(self)
        self.turns = Turns(board, board.gate, engine_for, tell)
        self.locks = locks or default_locks()
        self._keeper_image = keeper_image
        self._keeper: ImageRef | None = None
        self._local = local
        self._build_network = build_network
        self.refusals: dict[
            str, str | None
        ] = {}  # image id -> why its account files are refused, if they are

    def close(self) -> None:
        """Close the connections to the engine."""
        self.clients.close()

    # -- facts --------------------------------------------------------------------------------------------

    @cached_property
    def _raw(self) -> dict[str, Any]:
        with self.clients.calling("asking for its abilities") as api:
            return dict(api.info()) | {"_version": dict(api.version())}

    @cached_property
    def local(self) -> bool:
        """Whether this machine's control groups and mount points are the engine's."""
        return meter.is_local(self.clients, self._raw) if self._local is None else self._local

    @property
    def own_profile(self) -> bool:
        """Whether containers get our seccomp profile (else the engine's default)."""
        return sandbox.own_seccomp(str(self._raw.get("Architecture", "")))

    @property
    def user_namespaces(self) -> bool:
        """Whether root in a container is nobody outside."""
        return any("name=userns" in option for option in self._raw.get("SecurityOptions") or [])

    @property
    def uid_base(self) -> int:
        """What the engine adds to the user ids of containers (0 without user namespaces)."""
        found = re.search(r"/(\d+)\.\d+/?$", str(self._raw.get("DockerRootDir", "")))
        return int(found[1]) if found and self.user_namespaces else 0

    @property
    def identity(self) -> str:
        """A word for this engine, the same for all who reach it, by whatever address."""
        # Daemons of one machine may have one ID (it comes from a file in /etc), but never one folder for their data.
        said = [str(self._raw.get(key, "")) for key in ("ID", "Name", "DockerRootDir")]
        return hashlib.sha256("|".join(said).encode()).hexdigest()[:24]

    def make_meter(self) -> meter.Meter:
        """A meter for one container."""
        return meter.make(self.clients, self._raw, self.local)

    def info(self) -> EngineInfo:
        """Facts about the engine; E301 when it does not answer."""
        raw = self._raw
        version = raw["_version"]
        security = raw.get("SecurityOptions") or []
        components = [str(c.get("Name", "")) for c in version.get("Components") or []]
        name = next((c for c in components if "podman" in c.lower()), "") or "docker"
        system = f"{raw.get('OSType', 'linux')}/{_architecture(str(raw.get('Architecture', '')))}"
        return EngineInfo(
            name="podman" if "podman" in name.lower() else "docker",
            version=str(raw.get("ServerVersion", "")),
            api_version=str(version.get("ApiVersion", "")),
            cgroup_version=str(raw.get("CgroupVersion", "1")),
            cgroup_driver=str(raw.get("CgroupDriver", "")),
            cpus=int(raw.get("NCPU") or 0),
            memory=int(raw.get("MemTotal") or 0),
            platform=system,
            storage_driver=str(raw.get("Driver", "")),
            rootless=any("name=rootless" in option for option in security),
            gpus=_gpus(raw, self.local),
            missing=tuple(_missing(raw, components)),
            seccomp=self.own_profile and any("name=seccomp" in option for option in security),
            user_namespaces=self.user_namespaces,
            counts_sockets=self._counts_sockets(),
        )

    def _counts_sockets(self) -> bool:
        driver, version = str(self._raw.get("CgroupDriver", "")), str(self._raw.get("CgroupVersion", "1"))
        return version == "2" or (self.local and meter.counts_sockets_apart(driver, version))

    def require(self, limits: Iterable[Limits] = ()) -> None:
        """Raise E302 when the engine ignores limits, E305 when its machine is too small for ``limits``."""
        info = self.info()
        if info.missing:
            raise PlatformError(
                "the container engine cannot enforce the limits",
                why=f"{info.name} {info.version} at {self.clients.address}: " + "; ".join(info.missing) + ".",
                fix="use Docker Engine as root (or with user namespaces), or a machine with cgroup v2; see runner doctor",
                code="E302",
            )
        for limit in limits:
            if limit.gpus > info.gpus:
                raise no_gpu()
            for have, want, what in (
                (info.memory, limit.memory, "bytes of memory"),
                (info.cpus, limit.cpus, "processors"),
            ):
                if want > have:
                    raise PlatformError(
                        "this machine cannot give what the task asks for",
                        why=f"The task asks for {want:g} {what}; the engine's machine has {have:g}.",
                        fix="use a larger machine, or lower the limits in task.yaml",
                        code="E305",
                    )

    def try_eviction(self) -> float:
        """See :func:`runner.engines.docker.evict.evict`."""
        return evict(self)

    # -- images -------------------------------------------------------------------------------------------

    def resolve(self, image: str) -> ImageRef:
        """The image by identity.

        It is pulled only when it is named by digest or with its registry: a bare name that is not here may be
        a local image of ours, and a stranger may hold that name in a public registry. Raises E204.
        """
        import docker.errors

        if not IMAGE_NAME.fullmatch(image):
            raise _missing_image(image, "That is not an image's name.")
        with self.clients.calling("looking for an image") as api:
            with suppress(docker.errors.NotFound):
                return reference(api.inspect_image(image), image)
            first = image.partition("/")[0] if "/" in image else ""
            if "@sha256:" not in image and not ("." in first or ":" in first or first == "localhost"):
                raise _missing_image(image, "The engine has no image of that name.")
        return self._pull(image)

    def _pull(self, image: str) -> ImageRef:
        import docker.errors

        name, _, digest = image.partition("@")
        repository, tag = (name, digest) if digest else _split_tag(name)
        try:
            with self.clients.streaming("pulling an image", PULL) as (api, _):
                for line in api.pull(repository, tag=tag, stream=True, decode=True):
                    if "error" in line:
                        raise _missing_image(
                            image, f"It could not be pulled: {printable(str(line['error']), 300)}."
                        )
                return reference(api.inspect_image(image), image)
        except PlatformError as error:
            if isinstance(error.__cause__, docker.errors.APIError):
                raise _missing_image(image, f"It could not be pulled: {error.why}.") from error
            raise

    def keep(self, image: ImageRef, name: str) -> None:
        """Give the image a name of ours, so that nobody's clean-up of nameless images takes it away."""
        repository, tag = _split_tag(name)
        with self.clients.calling("naming an image") as api:
            api.tag(image.id, repository, tag)

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
        """Build an image with the engine's classic builder; for the own machine of whoever wrote the Dockerfile.

        The context leaves out what ``.dockerignore`` names and never follows a link. Raises E202 for a
        Dockerfile outside the folder, E203 with the last lines, E303 when the engine fails.
        """
        from runner.engines.docker.build_context import pack

        lines: list[str] = []
        image = ""

        def failed(why: str) -> RunnerError:
            last = "\n".join(lines[-LAST_LINES:])
            return RunnerError(
                "E203",
                f"building {printable(tag or context.name)} failed",
                why=why + (f" The last lines were:\n{last}" if last else ""),
                fix="correct the Dockerfile; 'docker build' in the same folder shows the whole output",
            )

        # What a Dockerfile runs can look at what is cached as well as any software, and its words are read here.
        turn = self.turns.take("public", f"build-{secrets.token_hex(6)}", building=True)
        with pack(context, dockerfile) as archive, turn:
            arguments = {
                "fileobj": archive,
                "custom_context": True,
                "dockerfile": dockerfile,
                "tag": tag,
                "target": target,
                "buildargs": dict(build_args or {}),
                "labels": dict(labels or {}),
                "network_mode": self._network() if network else "none",
                "container_limits": {"memory": memory, "memswap": memory},
                "rm": True,
                "forcerm": True,
                "decode": True,
                "timeout": timeout,
            }
            try:
                with self.clients.streaming("building an image", timeout) as (api, deadline):
                    import docker.errors

                    try:
                        for event in api.build(**arguments):
                            for line in str(event.get("stream", "")).splitlines():
                                if line.strip():
                                    lines.append(printable(line, 500))
                                    if on_line is not None:
                                        on_line(lines[-1])
                            image = str((event.get("aux") or {}).get("ID", image))
                            if "error" in event:
                                raise failed(f"The engine says: {printable(str(event['error']), 500)}.")
                    except docker.errors.APIError as error:
                        if (
                            error.status_code is not None
                            and error.status_code < 600
                            and not error.is_server_error()
                        ):
                            raise failed(f"The engine says: {explanation(error)}.") from error
                        if "dockerfile" in str(error).lower():
                            raise failed(f"The engine says: {explanation(error)}.") from error
                        raise
            except PlatformError as error:
                if deadline.passed or "took too long" in error.what:
                    raise failed(f"It was not done after {timeout:g} s and was stopped.") from error
                raise
            if deadline.passed:
                raise failed(f"It was not done after {timeout:g} s and was stopped.")
        if not image:
            raise failed("The engine named no image at the end.")
        return self.resolve(image)

    def _network(self) -> str:
        if self._build_network is not None:
            return self._build_network
        # An engine that does not forward packets has a bridge that leads nowhere.
        return "default" if self._raw.get("IPv4Forwarding", True) else "host"

    def save(self, image: ImageRef, to: Path) -> None:
        """Write the image's archive; asked for by identity, it holds no tags."""
        with (
            atomic_file(to) as file,
            self.clients.streaming("saving an image", TRANSFER) as (api, deadline),
        ):
            for chunk in api.get_image(image.id, chunk_size=MIB):
                file.write(chunk)
            if deadline.passed:
                raise PlatformError("the container engine took too long while saving an image")

    def load(self, archive: Path, *, max_bytes: int, expect: str | None = None) -> ImageRef:
        """Load an image archive, tags stripped; see :mod:`runner.engines.docker.image_archives`. Raises E205."""
        import docker.errors

        from runner.engines.docker.image_archives import Archive, refuse

        with Archive(archive, max_bytes=max_bytes) as checked:
            if expect is not None and expect not in checked.identities:
                raise refuse(f"It holds the image {checked.image_id}, not {printable(expect)}.")
            with self.clients.calling("looking for an image") as api:
                for known in checked.identities:
                    with suppress(docker.errors.NotFound):
                        return reference(api.inspect_image(known), known)
            said = ""
            with self.clients.streaming("loading an image", TRANSFER) as (api, _):
                for event in api.load_image(checked.stream(), quiet=True):
                    said += str(event.get("stream", ""))
                    if "no space left" in str(event.get("error", "")):
                        raise PlatformError(
                            "the disk of the container engine is full", why="Loading an image failed."
                        )
                    if "error" in event:
                        raise refuse(f"The engine refused it: {printable(str(event['error']), 300)}.")
            # Engines that identify images by manifest give it an identity of their own: compare what is in it.
            own = re.findall(r"sha256:[0-9a-f]{64}", said)
            with self.clients.calling("looking for the loaded image") as api:
                for known in (*checked.identities, *own):
                    with suppress(docker.errors.NotFound):
                        facts = api.inspect_image(known)
                        if (facts.get("RootFS") or {}).get("Layers") == checked.diff_ids:
                            return reference(facts, known)
        raise refuse("The engine loaded it under another identity than it claims.")

    # -- volumes ------------------------------------------------------------------------------------------

    def data_volume(self, digest: str, fill: Callable[[], Sequence[tuple[PurePosixPath, Path]]]) -> Volume:
        """A volume with the files of ``fill``, made once for ``digest``; also under concurrency and kills.

        Content goes into a volume of a new name. When it is complete, a second, empty volume is made whose
        name follows from the digest and whose label names the first: that call is atomic in the engine, so a
        half-filled volume is never found, and of two that were filled at once one wins.
        """
        from filelock import FileLock, Timeout

        digest = digest.removeprefix("sha256:")
        if not re.fullmatch(r"[0-9a-f]{32,128}", digest):
            raise ValueError(f"not a digest: {digest!r}")
        found = self._ready(digest)
        if found is not None:
            return found
        # The lock only saves work: correctness does not need it. Its holder may have been stopped in the middle.
        lock = FileLock(private_folder(self.locks) / f"data-{digest[:32]}.lock")
        with suppress(Timeout):
            lock.acquire(timeout=self._patience)
        try:
            return self._ready(digest) or self._fill(digest, fill)
        finally:
            lock.release()

    def _ready(self, digest: str) -> Volume | None:
        import docker.errors

        with self.clients.calling("looking for a data volume") as api:
            try:
                name = (api.inspect_volume(_marker(digest)).get("Labels") or {}).get("proctor.ready", "")
                labels = api.inspect_volume(name).get("Labels") or {} if name else {}
            except docker.errors.NotFound:
                labels = {}
            if labels.get("proctor.data") == digest:
                return Volume(name)
            with suppress(docker.errors.NotFound):  # a marker whose volume is gone
                api.remove_volume(_marker(digest))
        return None

    def _fill(self, digest: str, fill: Callable[[], Sequence[tuple[PurePosixPath, Path]]]) -> Volume:
        name = f"proctor-data-{digest[:32]}-{secrets.token_hex(4)}"
        labels = {"proctor.data": digest, "proctor.owner": me()}
        filters = {"label": [f"proctor.filling={name}"]}
        done = False
        try:
            with self.clients.calling("making a data volume") as api:
                api.create_volume(name, driver="local", labels=labels)
                body = sandbox.keeper_options(
                    self.keeper(),
                    [Mount(Volume(name), "/data", read_only=False)],
                    labels=labels | {"proctor.filling": name},
                    own_profile=self.own_profile,
                )
                helper = api.create_container_from_config(body, name=f"proctor-fill-{secrets.token_hex(6)}")[
                    "Id"
                ]
            files = sorted((str(path), source) for path, source in fill())
            with self.clients.streaming("filling a data volume", FILL) as (api, _):
                chunks = tarstream.stream(files)
                sent = moving.moving(chunks, "filling a data volume", stall=self._stall, seconds=FILL)
                with closing(sent):
                    api.put_archive(helper, "/data", sent)
            remove(self.clients, filters)
            with self.clients.calling("finishing a data volume") as api:
                marker = api.create_volume(_marker(digest), driver="local", labels={"proctor.ready": name})
                winner = (marker.get("Labels") or {}).get("proctor.ready")
            done = winner == name
            if not winner:
                raise PlatformError("a data volume could not be finished", why="Its marker has no label.")
            return Volume(winner)
        finally:
            remove(self.clients, filters)
            if not done:
                self._drop(name)

    def _drop(self, name: str) -> bool:
        """Remove a volume; False when it is in use."""
        import docker.errors

        with self.clients.calling("removing a volume") as api:
            try:
                api.remove_volume(name)
            except docker.errors.NotFound:
                return True
            except docker.errors.APIError as error:
                if error.status_code == 409:
                    return False
                raise
        return True

    def keeper(self) -> ImageRef:
        """The image of our own helper containers. Raises E304."""
        if self._keeper is None:
            names = (
                (self._keeper_image,) if self._keeper_image else (f"proctor/evaluator:{_version()}", *BASES)
            )
            for name in names:
                with suppress(RunnerError):
                    self._keeper = self.resolve(name)
                    break
            else:
                raise PlatformError(
                    "our own image is missing",
                    why=f"The engine at {self.clients.address} has none of: {', '.join(names)}.",
                    fix="run 'make setup'",
                    code="E304",
                )
        return self._keeper

    # -- attempts -----------------------------------------------------------------------------------------

    @contextmanager
    def session(
        self,
        attempt_id: str,
        *,
        labels: Mapping[str, str] | None = None,
        visibility: Visibility = "public",
        cancelled: Callable[[], bool] | None = None,
    ) -> Iterator[DockerSession]:
        """The containers of one attempt; everything is removed at the end, also after Ctrl-C."""
        if not ATTEMPT_ID.fullmatch(attempt_id):
            raise ValueError(f"not an attempt's id: {attempt_id!r}")
        with self.turns.take(visibility, attempt_id, cancelled):
            session = DockerSession(self, attempt_id, dict(labels or {}) | self.turns.labels(visibility))
            try:
                yield session
            except BaseException as error:
                try:
                    session.close()
                except PlatformError as second:  # the first error is the one to be told
                    error.add_note(f"cleaning up failed too: {second}")
                raise
            session.close()

    def reap(self, *, prefix: str = "") -> list[str]:
        """Remove what dead processes of this machine left; never what a live process owns. Returns attempt ids."""
        gone: set[str] = set()
        with self.clients.calling("looking for leftovers") as api:
            found = [c["Labels"] for c in api.containers(all=True, filters=labels_filter(owner=None))]
            volumes = api.volumes(filters=labels_filter(owner=None)).get("Volumes") or []
            found += [v.get("Labels") or {} for v in volumes]
        for labels in found:
            attempt, owner = labels.get("proctor.attempt", ""), labels.get("proctor.owner", "")
            if alive(owner) or not attempt.startswith(prefix):
                continue
            if attempt:
                remove(self.clients, {"label": [f"proctor.attempt={attempt}", f"proctor.owner={owner}"]})
                gone.add(attempt)
            elif not prefix and "proctor.data" in labels:
                remove(self.clients, {"label": ["proctor.filling", f"proctor.owner={owner}"]})
        if not prefix:
            ready = self._markers()
            for volume in volumes:
                labels = volume.get("Labels") or {}
                if (
                    "proctor.data" in labels
                    and volume["Name"] not in ready
                    and not alive(labels.get("proctor.owner", ""))
                ):
                    self._drop(volume["Name"])
        if self.local:
            meter.clean_up(self._raw)
        return sorted(gone)

    def _markers(self) -> dict[str, str]:
        """Complete data volumes and the markers that say so."""
        with self.clients.calling("listing data volumes") as api:
            volumes = api.volumes(filters=labels_filter(ready=None)).get("Volumes") or []
        return {v["Labels"]["proctor.ready"]: v["Name"] for v in volumes}

    def follow(self, attempt_id: str) -> Iterator[bytes]:
        """What the software (or the evaluator) of an attempt writes, as it comes, until it ends; raw and hostile."""
        with self.clients.calling("looking for a running container") as api:
            listed = api.containers(filters=labels_filter(attempt=attempt_id))
        roles = {c["Labels"].get("proctor.role"): c["Id"] for c in listed}
        for container in [roles[role] for role in ("software", "evaluator") if role in roles][:1]:
            with self.clients.streaming("following a log", FOLLOW) as (api, _):
                yield from api.logs(container, stdout=True, stderr=True, stream=True, follow=True)

    def kill(self, attempt_id: str) -> bool:
        """Kill the running containers of an attempt; its own process then reads ``cancel``."""
        import docker.errors

        killed = False
        with self.clients.calling("cancelling an attempt") as api:
            running = [
                c
                for c in api.containers(filters=labels_filter(attempt=attempt_id))
                if c["Labels"].get("proctor.role") != "keeper"
            ]
            for found in running:
                with suppress(docker.errors.APIError):
                    # The name tells the process that waits for it, wherever that runs, that this was a person.
                    # All are renamed before the first ends: else one would be seen to die without a reason.
                    api.rename(found["Id"], found["Names"][0].strip("/") + CANCELLED)
            for found in running:
                with suppress(docker.errors.NotFound):
                    try:
                        api.kill(found["Id"], "SIGKILL")
                        killed = True
                    except docker.errors.APIError as error:
                        if error.status_code != 409:
                            raise
        return killed

    def gc(self, *, keep_digests: Iterable[str], dry_run: bool = False) -> list[str]:
        """Remove complete data volumes of other digests that nothing uses; returns their names."""
        keep = {digest.removeprefix("sha256:")[:32] for digest in keep_digests}
        ready = self._markers()
        with self.clients.calling("listing data volumes") as api:
            volumes = api.volumes(filters=labels_filter(data=None)).get("Volumes") or []
        removed = []
        for volume in volumes:
            name, digest = volume["Name"], volume["Labels"]["proctor.data"]
            if digest[:32] in keep or name not in ready:
                continue
            if dry_run:
                removed.append(name)
            elif self._drop(name):
                self._drop(ready[name])
                removed.append(name)
        return sorted(removed)


def reference(facts: Mapping[str, Any], asked: str = "") -> ImageRef:
    """An :class:`ImageRef` from the engine's description of an image."""
    config = facts.get("Config") or {}
    digests = sorted(facts.get("RepoDigests") or [])
    repository = _split_tag(asked.partition("@")[0])[0]
    chosen = next(
        (d for d in digests if d == asked or d.startswith(repository + "@")), digests[0] if digests else None
    )
    variant = f"/{facts['Variant']}" if facts.get("Variant") else ""
    health = (config.get("Healthcheck") or {}).get("Test") or []
    return ImageRef(
        id=str(facts["Id"]),
        repo_digest=chosen,
        platform=f"{facts.get('Os') or 'linux'}/{facts.get('Architecture') or 'amd64'}{variant}",
        entrypoint=tuple(config.get("Entrypoint") or ()),
        cmd=tuple(config.get("Cmd") or ()),
        workdir=str(config.get("WorkingDir") or ""),
        user=str(config.get("User") or ""),
        env=tuple(config.get("Env") or ()),
        volumes=tuple(sorted(config.get("Volumes") or ())),
        has_healthcheck=bool(health) and health[0] != "NONE",
        size=int(facts.get("Size") or 0),
        names=(*sorted(facts.get("RepoTags") or []), *digests),
        labels=dict(config.get("Labels") or {}),
        onbuild=tuple(config.get("OnBuild") or ()),
    )


def _split_tag(name: str) -> tuple[str, str]:
    head, slash, last = name.rpartition("/")
    base, _, tag = last.partition(":")
    return f"{head}{slash}{base}", tag or "latest"


def _missing_image(image: str, why: str) -> RunnerError:
    return RunnerError(
        "E204",
        f"the image {printable(image)} is missing",
        why=why,
        fix="build it or pull it on this machine first, or name it with its digest (repository@sha256:…)",
    )


def _marker(digest: str) -> str:
    return f"proctor-ready-{digest[:32]}-{hashlib.sha256(digest.encode()).hexdigest()[:8]}"


def _version() -> str:
    from importlib.metadata import version

    return version("proctor-ir")


def _architecture(machine: str) -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _missing(raw: Mapping[str, Any], components: Iterable[str]) -> Iterator[str]:
    """What the engine cannot enforce, in words."""
    rootless = any("name=rootless" in option for option in raw.get("SecurityOptions") or [])
    if any("podman" in c.lower() for c in components):
        yield "Podman cannot limit the size of output volumes"
    if raw.get("CgroupDriver") == "none" or (rootless and str(raw.get("CgroupVersion", "1")) == "1"):
        yield "without control groups (rootless on cgroup v1) every limit is ignored"
    for key, what in (
        ("MemoryLimit", "memory"),
        ("SwapLimit", "swap"),
        ("PidsLimit", "the number of processes"),
        ("CpuCfsQuota", "processor time"),
    ):
        # Some versions spell it CPUCfsQuota.
        value = raw.get(key, raw.get("CPUCfsQuota") if key == "CpuCfsQuota" else None)
        if value is not True:
            yield f"it does not limit {what} ({key} is off)"
    if raw.get("OSType", "linux") != "linux":
        yield "it does not run Linux containers"


def _gpus(raw: Mapping[str, Any], local: bool) -> int:
    """How many GPUs the engine can hand out: its runtimes say whether, the driver of this machine how many."""
    if "nvidia" not in (raw.get("Runtimes") or {}):
        return 0
    cards = Path("/proc/driver/nvidia/gpus")
    return len(list(cards.iterdir())) if local and cards.is_dir() else 1
