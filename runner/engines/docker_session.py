"""One attempt on a Docker engine: its keeper, its memory volumes, its containers, and their end."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from runner.engines import collect, meter, sandbox, tarstream
from runner.engines.base import Collected, ContainerSpec, Exit, Mount, Resources, Volume
from runner.engines.client import Clients, explanation
from runner.engines.owner import Slot, default_locks, me
from runner.engines.text import printable
from runner.errors import PlatformError

if TYPE_CHECKING:
    from runner.engines.docker import DockerEngine

POLL = 0.5  # seconds between looks at cancellation and the clock
OUTAGE = 20.0  # seconds that an engine may be away while a container runs
KILL_GRACE = 30.0
TRANSFER = 1800.0  # seconds for moving files in or out
CANCELLED = "-cancelled"  # a container renamed to end in this was cancelled from another process

# How engines say that a container cannot start for a reason in its image or command.
THEIR_FAULT = re.compile(
    r"executable file not found|exec format error|no command specified|is a directory|not a directory"
    r"|exec: .*(permission denied|no such file)|stat .*no such file or directory|chdir to cwd|invalid mount path"
    r"|mount destination|mkdir .*(read-only|file exists)|invalid (mount|volume) specification|destination can't be"
    # Links and VOLUME paths of an image that lead its own mounts astray, and directives that are no such thing.
    r"|because it is (inside /proc|not of type proc)|too many (levels of symbolic )?links|change mount propagation through procfd"
    r"|container init: (error reopening|open|mkdir) /(proc|dev)\b|error mounting \"tmpfs\" to rootfs at .*: (mkdir|open)"
    r"|working directory .* is invalid|environment variable name can't|null byte|merged/.*: invalid argument",
    re.IGNORECASE | re.DOTALL,
)
NO_GPU = re.compile(r"could not select device driver|nvidia-container-cli|unresolvable CDI", re.IGNORECASE)
INIT_FAILED = re.compile(rb"\A\[FATAL tini \(\d+\)\] exec (.*) failed: ([^\n]*)\n?\Z", re.DOTALL)


class DockerSession:
    """See :class:`runner.engines.base.Session`. Made by :meth:`DockerEngine.session`."""

    def __init__(self, engine: DockerEngine, attempt_id: str, labels: Mapping[str, str]) -> None:
        self._engine = engine
        self._clients: Clients = engine.clients
        self._attempt = attempt_id
        self._slot = Slot(default_locks())
        self._labels = dict(labels) | {"proctor.attempt": attempt_id, "proctor.owner": me()}
        self._sizes: dict[str, int] = {}
        self._inodes: dict[str, int] = {}
        self._kept: dict[str, tuple[str, str]] = {}  # volume -> (keeper container, path in it)
        self._handles: list[DockerHandle] = []
        self._tag = secrets.token_hex(6)

    @property
    def uid(self) -> int:
        """The user id of this session's containers; no other live session has it."""
        return self._slot.uid

    def output_volume(self, name: str, *, bytes: int, inodes: int) -> Volume:
        """A memory volume with limits on bytes and files. Name them all before the first start: one keeper serves them."""
        volume = f"proctor-{self._tag}-{name}"
        options = sandbox.tmpfs_volume_options(
            size=bytes, inodes=inodes, uid=self._engine.uid_base + self.uid
        )
        with self._clients.calling("making an output volume") as api:
            api.create_volume(volume, driver="local", driver_opts=options, labels=self._labels)
        self._sizes[volume], self._inodes[volume] = bytes, inodes
        return Volume(volume)

    def start(self, spec: ContainerSpec) -> DockerHandle:
        """Create and start a container; what the image or command make impossible is in the handle's Exit.

        Raises E305 when GPUs are asked for and there are none, E302 for root without user namespaces.
        """
        import docker.errors

        self._check(spec)
        gauge = self._engine.make_meter()
        options = sandbox.software_options if spec.role == "software" else sandbox.evaluator_options
        body = options(
            spec,
            self.uid,
            labels=self._labels | {"proctor.role": spec.role},
            own_profile=self._engine.own_profile,
            cgroup_parent=gauge.parent,
        )
        self._keep()
        handle = DockerHandle(self._clients, spec, gauge, f"proctor-{self._tag}-{len(self._handles)}")
        self._handles.append(handle)
        with self._clients.calling("starting a container") as api:
            try:
                handle.id = api.create_container_from_config(body, name=handle.name)["Id"]
                self._check_mounts(api, spec)
                handle.clock = time.monotonic()
                api.start(handle.id)
            except docker.errors.APIError as error:
                text = explanation(error)
                if NO_GPU.search(text):
                    raise no_gpu() from error
                if not THEIR_FAULT.search(text):
                    raise
                handle.start_error = text
        if handle.start_error is None:
            gauge.started(handle.id)
        return handle

    def copy_out(
        self, volume: Volume, dest: Path, *, allowed: Callable[[str], bool], max_bytes: int, max_files: int
    ) -> Collected:
        """See :func:`runner.engines.collect.collect`; ``dest`` is made if it is missing."""
        self._keep()
        keeper, path = self._kept[volume.name]
        dest.mkdir(parents=True, exist_ok=True)
        full = self._full(volume, keeper, path)
        # Honest files fit into the volume; only sparse ones can read as more.
        cap = max(max_bytes, self._sizes[volume.name]) + (self._inodes[volume.name] + 16) * 2048
        with self._clients.streaming("fetching the output", TRANSFER) as (api, _):
            chunks, _stat = api.get_archive(keeper, path, chunk_size=collect.CHUNK)
            return collect.collect(
                chunks,
                dest,
                allowed=allowed,
                max_bytes=max_bytes,
                max_files=max_files,
                max_stream=cap,
                full=full,
            )

    def copy_in(self, volume: Volume, files: Mapping[str, Path | bytes]) -> None:
        """Write read-only files, owned by this session's user, into a session volume."""
        self._keep()
        keeper, path = self._kept[volume.name]
        with self._clients.streaming("copying files in", TRANSFER) as (api, _):
            api.put_archive(keeper, path, tarstream.stream(sorted(files.items()), uid=self.uid))

    # -- the end ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Remove every container and volume of this session. Raises :class:`PlatformError` if that fails."""
        failure: PlatformError | None = None
        for attempt in range(3):
            if attempt:
                time.sleep(0.5)
            try:
                remove(self._clients, owner_tag(self._labels))
                failure = None
                break
            except PlatformError as error:
                failure = error
        for handle in self._handles:
            handle.meter.close()
        self._slot.release()
        if failure is not None:
            raise failure

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

    def _check_mounts(self, api: Any, spec: ContainerSpec) -> None:
        """An engine silently makes an empty volume for a name it does not know: find that out."""
        import docker.errors

        for mount in spec.mounts:
            name = mount.volume.name
            if name in self._sizes:
                continue
            try:
                labels = api.inspect_volume(name).get("Labels") or {}
            except docker.errors.NotFound:
                labels = {}
            if "proctor.data" not in labels:
                raise PlatformError(
                    "the volume with the inputs has vanished", why=f"{name} was removed meanwhile."
                )

    def _keep(self) -> None:
        """A keeper for the volumes that have none yet."""
        new = [v for v in self._sizes if v not in self._kept]
        if not new:
            return
        mounts = [Mount(Volume(v), f"/kept/{i}", read_only=False) for i, v in enumerate(new)]
        body = sandbox.keeper_options(
            self._engine.keeper(),
            mounts,
            labels=self._labels | {"proctor.role": "keeper"},
            own_profile=self._engine.own_profile,
        )
        with self._clients.calling("starting the keeper of the volumes") as api:
            keeper = api.create_container_from_config(
                body, name=f"proctor-{self._tag}-keeper-{len(self._kept)}"
            )["Id"]
            api.start(keeper)
        self._kept |= {m.volume.name: (keeper, m.target) for m in mounts}

    def _full(self, volume: Volume, keeper: str, path: str) -> bool:
        """Whether the volume has no byte or no file left: from its mount point here, else from the keeper."""
        with self._clients.calling("looking at the output volume") as api:
            if self._engine.local:
                point = str(api.inspect_volume(volume.name).get("Mountpoint") or "")
                with suppress(OSError):
                    if point and os.path.ismount(point):
                        facts = os.statvfs(point)
                        if facts.f_files == self._inodes[volume.name]:
                            return facts.f_bavail == 0 or facts.f_favail == 0
            run = api.exec_create(keeper, ["stat", "-f", "-c", "%a %d", path])
            words = bytes(api.exec_start(run["Id"])).split()
        if len(words) != 2 or not all(w.isdigit() for w in words):
            raise PlatformError(
                "the fill of the output volume cannot be read", why="The keeper's stat failed."
            )
        return b"0" in words


@dataclass(frozen=True)
class _Logs:
    stdout: bytes
    stderr: bytes
    truncated: bool


class DockerHandle:
    """See :class:`runner.engines.base.Handle`."""

    def __init__(self, clients: Clients, spec: ContainerSpec, gauge: meter.Meter, name: str) -> None:
        self.id = ""
        self.name = name
        self.meter = gauge
        self.clock = time.monotonic()
        self.start_error: str | None = None
        self._clients = clients
        self._spec = spec
        self._exit: Exit | None = None
        self._logs: _Logs | None = None

    def wait(self, deadline: float, cancelled: Callable[[], bool] | None = None) -> Exit:
        """How it ended; killed as a whole after ``deadline`` seconds from the start or when ``cancelled``."""
        if self._exit is None:
            if self.start_error is not None:
                self._exit = Exit(code=None, start_error=self.start_error)
            else:
                killed = self._watch(deadline, cancelled)
                self._exit = self._read_exit(killed)
        return self._exit

    def logs(self, stream: Literal["stdout", "stderr"], cap: int) -> bytes:
        """The last ``cap`` bytes of one stream (of what the engine kept)."""
        if not self.id or self.start_error is not None or cap <= 0:
            return b""
        if self._logs is not None and cap <= self._spec.limits.log:
            return getattr(self._logs, stream)[-cap:]  # type: ignore[no-any-return]
        return self._fetch(stream)[-cap:]

    def alive(self) -> bool:
        """Whether the container runs now."""
        with self._clients.calling("looking at a container") as api:
            return bool(api.inspect_container(self.id)["State"]["Running"])

    def _watch(
        self, deadline: float, cancelled: Callable[[], bool] | None
    ) -> Literal["time", "cancel"] | None:
        away_since: float | None = None
        while True:
            left = deadline - (time.monotonic() - self.clock)
            if cancelled is not None and cancelled():
                return "cancel" if self._kill() else None
            if left <= 0:
                return "time" if self._kill() else None
            try:
                if self._ended(min(POLL, left)):
                    if away_since is not None:
                        raise PlatformError("the container engine was away while the software ran")
                    return None
            except PlatformError as error:
                if error.code != "E301":
                    raise
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since > OUTAGE:
                    raise
                time.sleep(POLL)
            self.meter.poll()

    def _ended(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for the end."""
        import requests.exceptions

        with self._clients.calling("waiting for a container") as api:
            try:
                api.wait(self.id, timeout=max(seconds, 0.01))
            except requests.exceptions.Timeout:
                return False
            except requests.exceptions.ConnectionError as error:
                if "timed out" in str(error):
                    return False
                raise
        return True

    def _kill(self) -> bool:
        """Kill everything in the container. False when it had ended by itself already."""
        import docker.errors

        with self._clients.calling("killing a container") as api:
            try:
                api.kill(self.id, "SIGKILL")
            except docker.errors.APIError as error:
                if error.status_code == 409:
                    return False
                raise
        end = time.monotonic() + KILL_GRACE
        while not self._ended(POLL):
            if time.monotonic() > end:
                raise PlatformError("a container cannot be killed", why="It still runs after SIGKILL.")
        return True

    def _read_exit(self, killed: Literal["time", "cancel"] | None) -> Exit:
        with self._clients.calling("reading how a container ended") as api:
            facts = api.inspect_container(self.id)
        state = facts["State"]
        if state["Running"] or state["Status"] not in ("exited", "dead"):
            raise PlatformError(
                "the engine lost a container", why=f"Its state is {printable(str(state['Status']))}."
            )
        if killed is None and facts["Name"].endswith(CANCELLED):
            killed = "cancel"
        code = int(state["ExitCode"])
        memory, cpu, source = self.meter.finish()
        oom = bool(state["OOMKilled"]) or self.meter.oom_kills() > 0
        # The engine misses the flag now and then (once in 40 kills here). A SIGKILL that is not ours, at the
        # very limit of memory, is one.
        if code == 137 and killed is None and source == "exact" and memory is not None:
            oom = oom or memory >= self._spec.limits.memory
        started, finished = str(state["StartedAt"]), str(state["FinishedAt"])
        self._logs = logs = self._all_logs()
        start_error = None
        failed = INIT_FAILED.match(logs.stderr) if code in (126, 127) and not logs.stdout else None
        if failed is not None:
            what, why = (printable(part.decode(errors="backslashreplace")) for part in failed.groups())
            start_error = f"{what}: {why}"
        return Exit(
            code=None if start_error is not None else code,
            oom_killed=oom,
            killed=killed,
            start_error=start_error,
            started=started,
            finished=finished,
            resources=Resources(seconds_between(started, finished), cpu, memory, source),
            log_truncated=logs.truncated,
        )

    def _all_logs(self) -> _Logs:
        cap = self._spec.limits.log
        streams = {name: self._fetch(name) for name in ("stdout", "stderr")}
        # About what the engine's own format adds to every entry of at most 16 KiB.
        stored = sum(len(s) + 24 * (s.count(b"\n") + len(s) // 16384) for s in streams.values())
        truncated = stored >= sandbox.log_file_size(cap) * 0.9 or any(len(s) > cap for s in streams.values())
        return _Logs(streams["stdout"][-cap:], streams["stderr"][-cap:], truncated)

    def _fetch(self, stream: str) -> bytes:
        with self._clients.calling("reading a log") as api:
            return bytes(
                api.logs(self.id, stdout=stream == "stdout", stderr=stream == "stderr", stream=False)
            )


def no_gpu() -> PlatformError:
    """E305 for a task that wants GPUs."""
    return PlatformError(
        "this machine has not the GPUs that the task asks for",
        why="The container engine offers fewer GPUs than limits.gpus.",
        fix="use a machine with GPUs and the engine's GPU runtime, or set limits.gpus to 0",
        code="E305",
    )


def owner_tag(labels: Mapping[str, str]) -> dict[str, list[str]]:
    """The filter for everything of one session."""
    return {"label": [f"{k}={labels[k]}" for k in ("proctor.attempt", "proctor.owner")]}


def remove(clients: Clients, filters: Mapping[str, list[str]]) -> None:
    """Remove all containers, then all volumes, that match."""
    import docker.errors

    with clients.calling("removing containers") as api:
        for found in api.containers(all=True, filters=filters):
            with suppress(docker.errors.NotFound):
                try:
                    api.remove_container(found["Id"], force=True, v=True)
                except docker.errors.APIError as error:
                    if error.status_code != 409:  # 409: its removal is under way
                        raise
        for volume in api.volumes(filters=filters).get("Volumes") or []:
            with suppress(docker.errors.NotFound):
                api.remove_volume(volume["Name"])


def seconds_between(started: str, finished: str) -> float:
    """Seconds between two time stamps of the engine (RFC 3339, nanoseconds); 0 when one is missing."""

    def parse(text: str) -> float:
        found = re.fullmatch(r"(.{19})(\.\d+)?(Z|[+-]\d\d:\d\d)", text)
        if found is None:
            raise ValueError(text)
        whole = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00")).timestamp()
        return whole + float(found[2] or 0)

    try:
        return max(0.0, round(parse(finished) - parse(started), 6))
    except ValueError:
        return 0.0
