"""One attempt on a Docker engine: its keeper, its memory volumes, its containers, and their end."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.engines import accounts, sandbox
from runner.engines.base import ROOM, ContainerSpec, Mount, Owner, Space, Volume
from runner.engines.docker.client import explanation, ignoring
from runner.engines.docker.facts import no_gpu
from runner.engines.docker.handle import KILL_GRACE, DockerHandle
from runner.engines.docker.owner import Processors, RoomUsers, Slot, default_locks, me
from runner.engines.docker.room import LIFETIME, DockerRoom
from runner.engines.docker.session_volumes import SessionVolumes
from runner.engines.docker.starting import their_fault
from runner.engines.docker.turns import LOOPBACK_LABEL
from runner.engines.docker.volumes import DockerVolumes
from runner.engines.roles import SIDECARS, Sharing
from runner.engines.tarstream import TooMuch
from runner.engines.text import printable
from runner.engines.witness import Witness
from runner.model.container import Collected
from runner.model.errors import PlatformError

SOCKETS = Space(64 * 1024, 32)

NO_GPU = re.compile(r"could not select device driver|nvidia-container-cli|unresolvable CDI", re.IGNORECASE)
NO_NETWORK = re.compile(r"network .* not found|could not find a network|user namespaces", re.IGNORECASE)


class DockerSession:
    """See :class:`runner.engines.base.Session`. Made by the engine's ``session``.

    ``known`` is shared by the sessions of an engine: whether images' account files are refused. ``record_loopback`` is
    called before a container with a loopback starts and after it was removed.
    """

    def __init__(
        self,
        engine: DockerVolumes,
        attempt_id: str,
        labels: Mapping[str, str],
        known: accounts.Accounts,
        cancelled: Callable[[], bool] | None = None,
        record_loopback: Callable[[], None] | None = None,
    ) -> None:
        self._engine = engine
        self._record_loopback = record_loopback
        self._had_loopback = False
        self._accounts = known
        self._clients = engine.clients
        self._attempt = attempt_id
        self._slot = Slot(default_locks())
        # Of the software and evaluator, and of sidecars and gateways; no other live session has them.
        self.uid, self.sidecar_uid = self._slot.uid, self._slot.sidecar_uid
        self._labels = dict(labels) | {"proctor.attempt": attempt_id, "proctor.owner": me()}
        self._handles: list[DockerHandle] = []
        self._sharing = Sharing()
        self._prefix = f"proctor-{secrets.token_hex(6)}"
        self._volumes = SessionVolumes(engine, self._prefix, self._labels)
        self._users: RoomUsers | None = None
        self._processors: Processors | None = None
        self._cancelled = cancelled or (lambda: False)

    def output_volume(self, name: str, *, bytes: int, inodes: int, owner: Owner = "software") -> Volume:
        """A memory volume with limits on bytes and files. Name them all before the first start: one keeper serves them."""
        space, uid = Space(bytes, inodes), self.uid if owner == "software" else self.sidecar_uid
        return self._volumes.make(name, space, uid)

    def socket_volume(self, name: str) -> Volume:
        """A memory volume for the sockets of sidecars, which every user of the session can pass through."""
        return self._volumes.make(name, SOCKETS, self.sidecar_uid, mode="0755")

    def room(self, spec: ContainerSpec, *, given: int) -> DockerRoom:
        """Start a room; its container keeps its volume itself. Raises E303 when its image cannot be started."""
        space = Space(given + spec.limits.output + spec.limits.tmp, sandbox.inodes(spec.limits.tmp))
        volume = self._volumes.make("room", space, 0, mode="0755", keeps_itself=True)
        lasts = str(
            round(LIFETIME + spec.limits.wall_clock + KILL_GRACE)
        )  # if nobody is left who would end it
        mounts = (*spec.mounts, Mount(volume, ROOM, read_only=False))
        handle = self.start(replace(spec, stays=True, command=("sleep", lasts), mounts=mounts))
        if handle.start_error is not None:
            raise PlatformError("a room cannot be started", why=handle.start_error)
        self._users = RoomUsers(default_locks())
        return DockerRoom(
            self._clients,
            handle,
            spec,
            self._users,
            self.uid,
            space.bytes,
            uid_base=self._engine.uid_base,
        )

    def start(self, spec: ContainerSpec) -> DockerHandle:
        """Create and start a container; what the image or command make impossible is in the handle's Exit.

        Raises E305 when GPUs or a network are asked for that are not there, E302 for root without user namespaces,
        ValueError for a join or a network that the role may not have.
        """
        import docker.errors

        self._sharing.check(spec)
        self._check(spec)
        processors = self._pinned(spec)
        # Last: a volume with its files could be removed while it waits for processors.
        spec, files, refusal = self._furnish(spec)
        gauge = self._engine.make_meter()
        body = self._options(spec, files, gauge.parent, processors)
        self._volumes.keep()
        self._note_loopback(spec)
        witness = Witness(processors=processors) if self._engine.local else None
        handle = DockerHandle(self._clients, spec, gauge, f"{self._prefix}-{len(self._handles)}", witness)
        self._handles.append(handle)
        self._sharing.add(spec, handle)
        with self._clients.calling("starting a container") as api:
            try:
                handle.start_error = refusal or self._create(api, handle, body, spec, processors)
                if handle.start_error is not None:
                    return handle
                gauge.created(handle.id, sandbox.socket_memory(spec.limits))
                handle.clock = time.monotonic()
                api.start(handle.id)
                facts = api.inspect_container(handle.id)
                self._check_groups(api, handle.id, body["User"], facts)
                if spec.network is not None:
                    check_network(spec.network, facts)
            except docker.errors.APIError as error:
                text = explanation(error)
                if NO_GPU.search(text):
                    raise no_gpu() from error
                if spec.network is not None and NO_NETWORK.search(text):
                    raise _no_network(spec.network, text) from error
                handle.start_error = their_fault(text)
                if handle.start_error is None:
                    raise
        if handle.start_error is None:
            gauge.started(handle.id)
            if witness is not None:
                witness.started(int(facts["State"]["Pid"]), handle.id)
        return handle

    def _options(
        self,
        spec: ContainerSpec,
        files: list[dict[str, Any]],
        cgroup_parent: str,
        processors: tuple[int, ...],
    ) -> dict[str, Any]:
        """Return the options of a container with mounts of single ``files``."""
        body = sandbox.container_options(
            spec,
            self.sidecar_uid if spec.role in SIDECARS else self.uid,
            joined=spec.join.id if isinstance(spec.join, DockerHandle) else None,
            labels=self._labels | {"proctor.role": spec.role} | self._loopback_label(spec),
            own_profile=self._engine.own_profile,
            cgroup_parent=cgroup_parent,
            processors=processors,
        )
        body["HostConfig"]["Mounts"] += files
        if body["HostConfig"]["NetworkMode"] == "none":
            # Engines name the own address of a container only where it has one.
            body["HostConfig"]["ExtraHosts"] = [f"{body['Hostname']}:127.0.0.1"]
        return body

    def _create(
        self,
        api: Any,
        handle: DockerHandle,
        body: Mapping[str, Any],
        spec: ContainerSpec,
        processors: tuple[int, ...],
    ) -> str | None:
        """Create the container of a handle and check it; returns why its image cannot be run, or None."""
        handle.id = api.create_container_from_config(body, name=handle.name)["Id"]
        self._check_mounts(api, spec)
        self._engine.check_binds(
            handle.id, [mount for mount in body["HostConfig"]["Mounts"] if mount["Type"] == "bind"]
        )
        self._check_pinned(api, handle.id, processors)
        return self._refusal(api, handle.id, spec)

    def copy_out(
        self, volume: Volume, dest: Path, *, allowed: Callable[[str], bool], max_bytes: int, max_files: int
    ) -> Collected:
        """See :func:`runner.engines.collect.collect`; ``dest`` is made if it is missing."""
        return self._volumes.copy_out(
            volume.name,
            dest,
            allowed=allowed,
            max_bytes=max_bytes,
            max_files=max_files,
        )

    def copy_in(self, volume: Volume, files: Mapping[str, Path | bytes]) -> None:
        """Write read-only files, owned by the volume's user, into a session volume."""
        self._volumes.copy_in(volume.name, files)

    # -- the end ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Remove every container and volume of this session. Raises :class:`PlatformError` if that fails."""
        with ExitStack() as steps:  # the last one first; each is done whatever another one raises
            for held in (self._slot, self._processors, self._users):
                if held is not None:
                    steps.callback(held.release)
            for handle in self._handles:
                steps.callback(handle.close)
            steps.callback(self._volumes.close)
            record = self._record_loopback if self._had_loopback else None
            if record is not None:
                steps.callback(record)
            steps.callback(self._remove)
            if record is not None:  # a process killed during the removal leaves no container to record
                steps.callback(record)

    def _remove(self) -> None:
        """Remove the containers and volumes; try again if that fails."""
        for attempts_left in (2, 1, 0):
            try:
                self._clients.remove(attempt=self._attempt, owner=me())
                return
            except PlatformError:
                if not attempts_left:
                    raise
            time.sleep(0.5)

    # -- inside -------------------------------------------------------------------------------------------

    def _check(self, spec: ContainerSpec) -> None:
        info = self._engine.info()
        if spec.limits.gpus > info.gpus:
            raise no_gpu()
        if spec.exceptions.root and not self._engine.user_namespaces:
            raise PlatformError(
                "this engine cannot run software as root safely",
                why="The exception 'root' needs an engine that maps root away (user namespaces).",
                fix="start dockerd with --userns-remap=default, or withdraw the exception",
                code="E302",
            )

    def _loopback_label(self, spec: ContainerSpec) -> dict[str, str]:
        """Return the label of a blinded container that can open TCP sockets; without our seccomp profile all of them can."""
        has_loopback = spec.limits.loopback or not self._engine.own_profile
        return {LOOPBACK_LABEL: "yes"} if has_loopback and self._record_loopback is not None else {}

    def _note_loopback(self, spec: ContainerSpec) -> None:
        """Record the first container with that label."""
        if self._record_loopback is not None and not self._had_loopback and self._loopback_label(spec):
            self._record_loopback()
            self._had_loopback = True

    def _pinned(self, spec: ContainerSpec) -> tuple[int, ...]:
        """The processors of a pinned container; waits until enough are free. Raises E305 where there are never enough."""
        if not spec.limits.pinned:
            return ()
        if self._processors is None:
            machine, there = self._engine.processors
            if (count := spec.limits.processors) > len(there):
                raise PlatformError(
                    "this machine cannot give what the task asks for",
                    why=f"A run is pinned to {count} processors; {len(there)} can be used here.",
                    fix="use a larger machine, or lower the limits in task.yaml",
                    code="E305",
                )
            self._processors = Processors(default_locks(), machine, there, count)
            self._processors.take(self._cancelled)
        return self._processors.numbers

    def _check_pinned(self, api: Any, container: str, processors: tuple[int, ...]) -> None:
        """An engine that cannot pin takes the option and drops it: find that out."""
        found = api.inspect_container(container)["HostConfig"].get("CpusetCpus") or "" if processors else ""
        if found != ",".join(map(str, processors)):
            raise PlatformError(
                "this engine cannot pin a container to processors",
                why="It made one without them.",
                fix="take pinned out of the task's limits, or use an engine whose control groups have cpuset",
                code="E302",
            )

    def _refusal(self, api: Any, container: str, spec: ContainerSpec) -> str | None:
        """Why the account files of an image keep it from being run; None where they do not."""
        places = (*(mount.target for mount in spec.mounts), *spec.exceptions.writable)
        return self._accounts.refusal(api, container, spec.image, places)

    def _furnish(self, spec: ContainerSpec) -> tuple[ContainerSpec, list[dict[str, Any]], str | None]:
        """Return what a container gets in addition: a named user, a home, and the image's hidden folders.

        Returns:
            The container with its environment and read-only volumes, the mounts of single files, and why the image cannot
            run, or None.
        """
        import docker.errors

        bare = sandbox.keeper_options(
            spec.image, (), labels=self._labels, own_profile=self._engine.own_profile
        )
        with self._clients.calling("looking at an image") as api:
            try:
                facts = self._accounts.facts(api, spec.image, bare)
            except docker.errors.APIError as error:
                if (refusal := their_fault(explanation(error))) is None:
                    raise
                return spec, [], refusal
        if facts.refusal is not None or spec.role != "software":
            return spec, [], facts.refusal
        uid = 0 if spec.exceptions.root else self.uid
        home = accounts.home_of(spec.image) or accounts.WRITABLE_HOME
        name, texts = (
            (accounts.USER_NAME, {}) if facts.texts is None else accounts.with_user(facts.texts, uid, home)
        )
        env = {"USER": name, "LOGNAME": name} | dict(entry.partition("=")[::2] for entry in spec.image.env)
        env = {key: env[key] for key in ("USER", "LOGNAME")} | {"HOME": home} | dict(spec.env)
        occupied = [*(mount.target for mount in spec.mounts), *spec.exceptions.writable]
        try:
            mounts = self._engine.image_mounts(spec.image, facts.contents, occupied)
        except TooMuch:
            return spec, [], "the image has a VOLUME or a home folder that is too large to be copied"
        spec = replace(spec, env=env, mounts=(*spec.mounts, *mounts))
        return spec, self._engine.file_mounts(texts), None

    def _check_groups(self, api: Any, container: str, user: str, facts: Mapping[str, Any]) -> None:
        """That the kernel gave the container our group and no other, where its processes can be seen."""
        if not self._engine.local:
            return
        found = accounts.identities(int(facts["State"]["Pid"] or -1))
        if found is None or found == {self._engine.uid_base + int(user.partition(":")[2])}:
            return
        api.kill(container)
        raise PlatformError(
            "a container was given groups that are not ours",
            why=f"It asked for {user} and has the groups {sorted(found)}.",
            fix="report this image to the developers",
            code="E302",
        )

    def _check_mounts(self, api: Any, spec: ContainerSpec) -> None:
        """An engine silently makes an empty volume for a name it does not know: find that out."""
        for name in [mount.volume.name for mount in spec.mounts if mount.volume.name not in self._volumes]:
            labels: Mapping[str, str] = {}
            with ignoring(404):
                labels = api.inspect_volume(name).get("Labels") or {}
            if "proctor.data" not in labels:
                raise PlatformError(
                    "the volume with the inputs has vanished", why=f"{name} was removed meanwhile."
                )


def check_network(name: str, facts: Mapping[str, Any]) -> None:
    """An engine without a bridge takes the word and gives nothing: find that out."""
    if not set(facts["NetworkSettings"].get("Networks") or {}) - {"none"}:
        raise _no_network(name, "The engine gave the container none: it has no bridge.")


def _no_network(name: str, why: str) -> PlatformError:
    """E305 for a gateway whose network the engine does not have."""
    return PlatformError(
        f"this machine has no network {printable(name)} for the gateway",
        why=why,
        fix="name one that it has in task.yaml; an engine without a bridge has services.gateway: {network: host}",
        code="E305",
    )
