"""The containers of ours beside an interactive software (design.md 8): index, simulated user, relay, driver.

Each hop is a Unix socket on a small volume of its own, which the client mounts read-only. The software shares the
relay's loopback and has none of these volumes: neither claims nor output nor sockets are there for it to find.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import schemas
from runner.engines.base import ContainerSpec, Engine, Handle, Mount, Session, Volume
from runner.execution.job import Job
from runner.execution.workflows.batch import inputs_volume, model_mounts
from runner.execution.workflows.gateway import GatewayRoom, prepare_gateway
from runner.execution.workflows.starting import PARTS, REFUSED, WORDS, refused
from runner.model.container import ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import MIB, Exceptions, Limits
from runner.model.service import Interaction, Service
from runner.tasks.data_files import files_digest, folder_files
from runner.tasks.services import (
    DRIVER_LIMITS,
    RELAY_LIMITS,
    WATCH_LIMITS,
    data_digest,
    driver_settings,
    gateway_key,
    search_port,
)

KIB = 1024
LOG_BYTES = 32 * MIB  # at most, of what the index notes down about the questions it was asked
SERVED, TURNS, REPORT, ENDED = "served.jsonl", "turns.jsonl", "driver.json", "software-ended"
SEARCH_READY = (
    120.0  # seconds; an index of hundreds of thousands of arguments is prepared, or takes some of them
)
PATIENCE = 30.0  # seconds that the index may give no sign of health
OURS_READY = 30.0
USER_READY = 60.0  # what the driver gives the user before the first debate
LINE_BYTES = 4 * KIB  # of one record beside what the software said
RELAY_CHILDREN = 32


class Servers:
    """The room of one interactive run. Its volumes are named at once; the containers are started one by one."""

    def __init__(self, job: Job, engine: Engine, session: Session) -> None:
        assert job.sidecars is not None and job.task.interaction is not None
        self.job, self.engine, self.session = job, engine, session
        self.talk: Interaction = job.task.interaction
        self.image: ImageRef = engine.resolve(job.sidecars)
        self.handles: dict[str, Handle] = {}
        self.search = job.services.get("search")
        self.user = job.services.get("user")
        self.sockets = {
            name: session.socket_volume(f"{name}-socket")
            for name in ("software", "search", "user")
            if name == "software" or name in job.services
        }
        # All that is handed to the evaluator has to fit into limits.output: run file, records, and this log.
        self.output_bytes = job.limits.output // 2
        self.log_bytes = max(min(LOG_BYTES, job.limits.output // 4), MIB)
        self.room = self.output_bytes * 2 + _beside(job, self.talk)
        self._in = session.output_volume("in", bytes=MIB, inodes=16, owner="sidecar")
        self.out = session.output_volume(
            "out", bytes=self.room, inodes=_inodes(job, self.talk), owner="sidecar"
        )
        self.log: Volume | None = None
        if self.search is not None:
            self.log = session.output_volume(
                "search-log", bytes=self.log_bytes + MIB, inodes=16, owner="sidecar"
            )
        self.gateway: GatewayRoom | None = None
        if "gateway" in job.services:
            service = job.services["gateway"]
            self.gateway = prepare_gateway(
                session, service, self.image, key=gateway_key(service), known=job.replies
            )

    # -- the containers, in the order in which they start -------------------------------------------------

    def start_search(self, wait: Callable[[Handle, str, float], None]) -> None:
        """Start the argument index and what watches it, until it is healthy. Raises :class:`PlatformError`."""
        if self.search is None:
            return
        if self.search.image is None:
            path = "/healthz"
            self._start_own_search(self.search)
        else:
            path = str(self.search.options.get("health", "/"))
            self._start_foreign_search(self.search, wait)
        command = ["sidecars.watch", "--socket", "/search/search.sock", "--path", path]
        command += ["--ready", f"{SEARCH_READY:g}", "--patience", f"{PATIENCE:g}"]
        mounts = [Mount(self.sockets["search"], "/search")]
        watch = self._start("watch", command, WATCH_LIMITS, mounts)
        wait(watch, "argument index", SEARCH_READY + 10)

    def _start_own_search(self, service: Service) -> None:
        assert service.data is not None and self.log is not None
        command = ["sidecars.search", "serve", "--data", "/data", "--socket", "/search/search.sock"]
        command += ["--index", str(service.options.get("index", "claimrev"))]
        command += ["--prefix", str(service.options.get("prefix", "/arguments"))]
        command += ["--log", f"/log/{SERVED}", "--log-bytes", str(self.log_bytes)]
        mounts = [
            Mount(self._data(service), "/data"),
            Mount(self.sockets["search"], "/search", read_only=False),
            Mount(self.log, "/log", read_only=False),
        ]
        self._start("search", command, replace(service.limits, output=self.log_bytes + MIB), mounts)

    def _start_foreign_search(self, service: Service, wait: Callable[[Handle, str, float], None]) -> None:
        """A server that only speaks TCP gets a relay of its own, which shares its loopback."""
        assert service.image is not None
        spec = ContainerSpec(
            role="sidecar",
            image=self.engine.resolve(service.image),
            command=tuple(service.options["command"]) if "command" in service.options else None,
            limits=service.limits,
            mounts=(Mount(self._data(service), "/data"),) if service.data is not None else (),
            env={str(k): str(v) for k, v in service.options.get("env", {}).items()},
            exceptions=Exceptions(writable=tuple(service.options.get("writable", ()))),
        )
        self.handles["search"] = server = self.session.start(spec)
        port = int(service.options.get("server_port", search_port(service)))
        command = ["sidecars.relay", "--listen-socket", "/search/search.sock", "--to-port", str(port)]
        mounts = [Mount(self.sockets["search"], "/search", read_only=False)]
        relay = self._start("search-relay", command, RELAY_LIMITS, mounts, join=server)
        wait(relay, "relay of the argument index", OURS_READY)

    def start_user(self) -> None:
        """Start the simulated user, and the gateway before it when it asks a model. Raises :class:`PlatformError`."""
        if self.user is None:
            return
        options = self.user.options
        command = ["sidecars.user", "serve", "--socket", "/user/user.sock", "--seed", str(self.talk.seed)]
        command += ["--model", str(options.get("model", "base-user"))]
        mounts = [Mount(self.sockets["user"], "/user", read_only=False)]
        if self.user.data is not None:
            command += ["--data", "/data"]
            mounts.append(Mount(self._data(self.user), "/data"))
        if self.gateway is not None:
            self.handles["gateway"] = self.gateway.start()
            self.gateway.ready()
            mounts.append(self.gateway.mount)
            command += ["--llm-socket", f"{self.gateway.mount.target}/gateway.sock"]
            command += ["--llm-model", str(options["llm"]["model"])]
            if self.user.prompts is not None:
                files = partial(folder_files, self.user.prompts)
                mounts.append(Mount(self.engine.data_volume(files_digest(files()), files), "/prompts"))
                command += ["--prompts", "/prompts"]
        self._start("user", command, self.user.limits, mounts)

    def start_relay(self, wait: Callable[[Handle, str, float], None]) -> Handle:
        """Start the relay that the software joins; it has every port of ours before the software comes."""
        command = [
            "sidecars.relay",
            "--listen-socket",
            "/sock/software.sock",
            "--to-port",
            str(self.talk.port),
        ]
        command += ["--max-children", str(max(RELAY_CHILDREN, 2 * self.talk.concurrency))]
        mounts = [Mount(self.sockets["software"], "/sock", read_only=False)]
        if self.search is not None:
            command += ["--listen-port", str(search_port(self.search)), "--to-socket", "/search/search.sock"]
            mounts.append(Mount(self.sockets["search"], "/search"))
        relay = self._start("relay", command, RELAY_LIMITS, mounts)
        wait(relay, "relay", OURS_READY)
        return relay

    def start_software(self, relay: Handle) -> Handle:
        """Start the software on the relay's loopback. It mounts nothing but the task's models."""
        job = self.job
        assert job.image is not None
        spec = ContainerSpec(
            role="software",
            image=self.engine.resolve(job.image),
            command=job.command,
            limits=job.limits,
            mounts=tuple(model_mounts(job, self.engine)),
            env=job.env,
            exceptions=job.exceptions,
            join=relay,
        )
        return self.session.start(spec)

    def start_driver(self, seconds: float) -> Handle:
        """Start the driver, which has ``seconds`` for the whole run."""
        told = driver_settings(
            self.talk,
            self.user,
            seconds=max(seconds, 1.0),
            output_bytes=self.output_bytes,
            ended=f"/in/{ENDED}",
            output="/out",
        )
        self.session.copy_in(self._in, {REPORT: json.dumps(told).encode()})
        mounts = [
            Mount(inputs_volume(self.job, self.engine), "/inputs"),
            Mount(self._in, "/in"),
            Mount(self.out, "/out", read_only=False),
            Mount(self.sockets["software"], "/software"),
        ]
        if self.user is not None:
            mounts.append(Mount(self.sockets["user"], "/user"))
        # What it writes lies in memory, which counts as the driver's own.
        memory = max(DRIVER_LIMITS.memory, self.room + 256 * MIB)
        limits = replace(DRIVER_LIMITS, memory=memory, output=self.room)
        return self._start("driver", ["sidecars.driver", "--config", f"/in/{REPORT}"], limits, mounts)

    # -- while they run -----------------------------------------------------------------------------------

    def mark_ended(self) -> None:
        """Tell the driver that the software's container has ended."""
        self.session.copy_in(self._in, {ENDED: b""})

    def last_words(self, name: str, most: int = 1) -> str:
        """The last ``most`` lines that a container complained, escaped, in one line."""
        text = self.handles[name].logs("stderr", 4 * KIB).decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return "; ".join(schemas.show(line, 300) for line in lines[-most:])

    def refuses(self, name: str) -> bool:
        """Whether a server of ours that has ended did so because of the data or options that task.yaml gives it."""
        end = self.handles[name].wait(0)
        foreign = name == "search" and self.search is not None and self.search.image is not None
        return not foreign and end.killed is None and not end.oom_killed and end.code == REFUSED.get(name)

    def ended_early(self, name: str) -> PlatformError:
        """What to say of a container that has ended before there was a software.

        E402 when it says that the task's own data or options are no use to it: then it would end so again.
        """
        words = self.last_words(name, WORDS)
        if self.refuses(name):
            return refused(PARTS[name], words)
        if name == "watch":  # what it looks after may have said more
            words = f"{words}. {self.last_words('search', WORDS)}".strip(". ")
        end = self.handles[name].wait(0)
        how = "It ran out of memory" if end.oom_killed else f"It ended with exit code {end.code}"
        how = f"It was ended from outside: {end.outside}" if end.outside else how
        return PlatformError(f"the {PARTS[name]} did not start", why=f"{how}. {words}".strip())

    def keep_logs(self, folder: Path) -> None:
        """Write ``<name>.log`` of every container of ours (the gateway's is written by its own room)."""
        for name, handle in self.handles.items():
            if name != "gateway":
                text = b"".join(handle.logs(stream, 256 * KIB) for stream in ("stdout", "stderr"))  # type: ignore[arg-type]
                (folder / f"{name}.log").write_bytes(text)

    # -- inside -------------------------------------------------------------------------------------------

    def _start(
        self,
        name: str,
        command: Sequence[str],
        limits: Limits,
        mounts: Sequence[Mount],
        join: Handle | None = None,
    ) -> Handle:
        spec = ContainerSpec(
            role="sidecar",
            image=self.image,
            command=("python3", "-m", *command),
            limits=limits,
            mounts=tuple(mounts),
            join=join,
        )
        self.handles[name] = handle = self.session.start(spec)
        return handle

    def _data(self, service: Service) -> Volume:
        digest = data_digest(service)
        assert service.data is not None and digest is not None
        return self.engine.data_volume(digest, partial(folder_files, service.data))


def _input_size(job: Job, talk: Interaction) -> tuple[int, int]:
    """Bytes and lines of what the driver reads. Raises E402 when it is not there."""
    path = job.dataset.inputs / talk.input
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunnerError(
            "E402",
            f"{talk.input} of {job.task.id}/{job.dataset.id} is missing",
            why=f"The inputs of an interactive run in mode {talk.mode} are that file.",
            fix="put it into the dataset's inputs",
        ) from error
    return len(data), data.count(b"\n") + 1


def _beside(job: Job, talk: Interaction) -> int:
    """Bytes of the output volume beside what the software says (in run file and records)."""
    size, lines = _input_size(job, talk)
    asked = lines * (talk.turns if talk.mode == "debate" else 32)
    return 2 * size + asked * LINE_BYTES + 16 * MIB


def _inodes(job: Job, talk: Interaction) -> int:
    return 2 * _input_size(job, talk)[1] + 64
