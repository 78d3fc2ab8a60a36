"""The containers of ours beside an interactive software: services, relay and driver (:mod:`runner.model.sidecars`).

Each hop is a Unix socket on a small volume of its own, which the client mounts read-only. The software shares the
relay's loopback and has none of these volumes: neither claims nor output nor sockets are there for it to find.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from runner.engines.base import Cancelled, ContainerSpec, Engine, Handle, Mount, Session, Volume
from runner.execution.job import Job
from runner.execution.workflows.batch import inputs_volume, model_mounts, software_spec
from runner.execution.workflows.beside import SERVED, Sizes, files_of, service_mounts, with_files
from runner.execution.workflows.gateway import GatewayRoom
from runner.execution.workflows.starting import WORDS, keep_log, last_words, unusable, wait_ready
from runner.model.container import ImageRef
from runner.model.errors import PlatformError
from runner.model.limits import MIB, Exceptions, Limits
from runner.model.sidecars import SIDECARS, Interaction, Service, port_of, services_with_port, socket_path
from runner.tasks.services import driver_settings, gateway_key

KIB = 1024
REPORT, ENDED = "driver.json", "software-ended"
PATIENCE = 30.0  # seconds that a watched service may give no sign of health


class Servers:
    """The sidecars of one interactive run. Their volumes are named at once; the containers are started one by one.

    Args:
        job: The run.
        engine: Where images and data volumes are.
        session: Where the containers run.
        cancelled: Whether a person wants the run to stop.
    """

    def __init__(self, job: Job, engine: Engine, session: Session, cancelled: Callable[[], bool]) -> None:
        assert job.sidecars is not None and job.task.interaction is not None
        self.job = with_files(job)
        self.engine, self.session, self.cancelled = engine, session, cancelled
        self.talk: Interaction = job.task.interaction
        self.image: ImageRef = engine.resolve(job.sidecars)
        self.handles: dict[str, Handle] = {}
        # The gateway names its own.
        names = ["software", *(name for name in job.services if SIDECARS[name].socket)]
        self.sockets = {name: session.socket_volume(f"{name}-socket") for name in names}
        self.files, self.sizes = files_of(self.job), Sizes.of(self.job)
        output_volume = partial(session.output_volume, owner="sidecar")
        self._in = output_volume("in", bytes=MIB, inodes=16)
        self.out = output_volume("out", bytes=self.sizes.room, inodes=2 * self.files.input_lines + 64)
        self.log: Volume | None = None
        if "search" in job.services:
            self.log = output_volume("search-log", bytes=self.sizes.log + MIB, inodes=16)
        self.gateway: GatewayRoom | None = None
        if "gateway" in job.services:
            service = job.services["gateway"]
            key = gateway_key(service)
            self.gateway = GatewayRoom(session, service, self.image, key=key, known=job.replies)

    # -- the containers, in the order in which they start -------------------------------------------------

    def start_all(self) -> Handle:
        """Start everything that has to be there before the software; returns the relay, whose loopback it joins.

        Raises:
            Cancelled: A person wants the run to stop.
            PlatformError: One of them did not start; E402 when it cannot use what the task gives it.
        """
        try:
            self.check_cancelled()
            if self.gateway is not None:
                self.handles["gateway"] = self.gateway.start()
                self.gateway.ready()
            # Those that the software can reach come last: they have to be healthy before it starts.
            for service in sorted(
                self.job.services.values(), key=lambda one: SIDECARS[one.name].port is not None
            ):
                if service.name != "gateway":
                    self._start_service(service)
                    self.check_cancelled()
            self._start("relay")
            self.wait_ready("relay")
            return self.handles["relay"]
        except PlatformError as error:
            if error.code != "E301":
                self.check()  # what is said of one that cannot be joined is less than why it has ended
            raise

    def _start_service(self, service: Service) -> None:
        spec, health = SIDECARS[service.name], "/healthz"
        if service.image is not None:
            health = str(service.options.get("health", "/"))
            self._start_foreign(service)
        elif service.name == "search":
            assert self.log is not None
            extra = ["--log", f"/log/{SERVED}", "--log-bytes", str(self.sizes.log)]
            limits = replace(service.limits, output=self.sizes.log + MIB)
            self._start("search", extra, [Mount(self.log, "/log", read_only=False)], limits)
        else:
            self._start(service.name)
        if spec.watch is not None:
            extra = ["--socket", socket_path(service.name), "--path", health]
            extra += ["--ready", f"{spec.ready:g}", "--patience", f"{PATIENCE:g}"]
            self._start(spec.watch, extra, [Mount(self.sockets[service.name], f"/{service.name}")])
            self.wait_ready(spec.watch)

    def _start_foreign(self, service: Service) -> None:
        """A server that only speaks TCP gets a relay of its own, which shares its loopback."""
        assert service.image is not None
        spec = ContainerSpec(
            role="sidecar",
            image=self.engine.resolve(service.image),
            command=tuple(service.options["command"]) if "command" in service.options else None,
            limits=service.limits,
            mounts=tuple(service_mounts(service, self.files, self.engine)),
            env={str(k): str(v) for k, v in service.options.get("env", {}).items()},
            exceptions=Exceptions(writable=tuple(service.options.get("writable", ()))),
        )
        server = self.handles[service.name] = self.session.start(spec)
        port = int(service.options.get("server_port", port_of(service)))
        relay = f"{service.name}-relay"
        self._start(
            relay, ["--listen-socket", socket_path(service.name), "--to-port", str(port)], join=server
        )
        self.wait_ready(relay)

    def start_software(self, relay: Handle) -> Handle:
        """Start the software on the relay's loopback. It mounts nothing but the task's models."""
        assert self.job.image is not None
        image = self.engine.resolve(self.job.image)
        return self.session.start(software_spec(self.job, image, model_mounts(self.job, self.engine), relay))

    def start_driver(self, seconds: float) -> Handle:
        """Start the driver, which has ``seconds`` for the whole run."""
        settings = driver_settings(
            self.talk,
            self.job.services.get("user"),
            seconds=max(seconds, 1.0),
            output_bytes=self.sizes.answers,
            ended=f"/in/{ENDED}",
            output="/out",
        )
        self.session.copy_in(self._in, {REPORT: json.dumps(settings).encode()})
        inputs = Mount(inputs_volume(self.job, self.engine), "/inputs")
        mounts = [inputs, Mount(self._in, "/in"), Mount(self.out, "/out", read_only=False)]
        # What it writes lies in memory, which counts as the driver's own.
        limits = SIDECARS["driver"].limits
        room = self.sizes.room
        limits = replace(limits, memory=max(limits.memory, room + 256 * MIB), output=room)
        return self._start("driver", mounts=mounts, limits=limits)

    # -- while they run -----------------------------------------------------------------------------------

    def check_cancelled(self) -> None:
        """Raise :class:`Cancelled` when a person wants the run to stop."""
        if self.cancelled():
            raise Cancelled

    def check(self) -> None:
        """Raise when a person wants the run to stop, or a container has ended that has to be there."""
        self.check_cancelled()
        for name, handle in self.handles.items():
            if handle.ended():
                if handle.wait(0).killed == "cancel":
                    raise Cancelled
                raise self._ended_early(name)

    def wait_ready(self, name: str) -> None:
        """Wait until a sidecar says that it is ready. Raises as :meth:`check`, and when it takes too long."""
        handle, spec = self.handles[name], SIDECARS[name]
        wait_ready(
            handle, self.title(name), spec.ready, self.check, speaker=self.handles.get(self._watched(name))
        )

    def mark_ended(self) -> None:
        """Tell the driver that the software's container has ended."""
        self.session.copy_in(self._in, {ENDED: b""})

    def last_words(self, name: str, most: int = 1) -> str:
        """The last ``most`` lines that a container complained, escaped, in one line."""
        return last_words(self.handles[name], most)

    def refuses(self, name: str) -> bool:
        """Whether a server of ours that has ended did so because of the data or options that task.yaml gives it."""
        end, service = self.handles[name].wait(0), self.job.services.get(name)
        foreign = service is not None and service.image is not None
        return (
            not foreign and end.killed is None and not end.oom_killed and end.code == SIDECARS[name].refuses
        )

    def _ended_early(self, name: str) -> PlatformError:
        """What to say of a container that has ended before there was a software."""
        title, words = self.title(name), self.last_words(name, WORDS)
        if self.refuses(name):
            return unusable(title, words)
        if watched := self._watched(name):  # what it looks after may have said more
            words = f"{words}. {self.last_words(watched, WORDS)}".strip(". ")
        end = self.handles[name].wait(0)
        how = "It ran out of memory" if end.oom_killed else f"It ended with exit code {end.code}"
        how = f"It was ended from outside: {end.outside}" if end.outside else how
        return PlatformError(f"the {title} did not start", why=f"{how}. {words}".strip())

    def _watched(self, name: str) -> str:
        """The service that the sidecar of that name watches; empty when it watches none."""
        return next((service for service in self.job.services if SIDECARS[service].watch == name), "")

    def title(self, name: str) -> str:
        """What people call a sidecar; one that watches a service is called as that."""
        return SIDECARS[self._watched(name) or name].title

    def keep_logs(self, folder: Path) -> None:
        """Write ``<name>.log`` of every container of ours (the gateway's is written by its own room)."""
        for name, handle in self.handles.items():
            if name != "gateway":
                keep_log(handle, folder / f"{name}.log", 256 * KIB)

    # -- inside -------------------------------------------------------------------------------------------

    def _start(
        self,
        name: str,
        extra: Sequence[str] = (),
        mounts: Sequence[Mount] = (),
        limits: Limits | None = None,
        join: Handle | None = None,
    ) -> Handle:
        """Start a sidecar with what its entry says, and with further words, mounts, or other limits."""
        spec, service = SIDECARS[name], self.job.services.get(name)
        words = spec.arguments(self.talk, self.job.services)
        container = ContainerSpec(
            role="sidecar",
            image=self.image,
            command=("python3", "-m", f"sidecars.{spec.program}", *words, *extra),
            limits=limits or (service.limits if service is not None else spec.limits),
            mounts=(*self._mounts(name, service), *mounts),
            join=join,
        )
        self.handles[name] = handle = self.session.start(container)
        return handle

    def _mounts(self, name: str, service: Service | None) -> list[Mount]:
        """The socket that a sidecar listens on, those that it connects to, and its data."""
        spec = SIDECARS[name]
        asks = [one.name for one in services_with_port(self.job.services)] if name == "relay" else spec.asks
        mounts = [Mount(self.sockets[spec.socket], f"/{spec.socket}", read_only=False)] if spec.socket else []
        mounts += [Mount(self.sockets[one], f"/{one}") for one in asks if one in self.sockets]
        if "gateway" in asks and self.gateway is not None:
            mounts.append(self.gateway.mount)
        if service is not None:
            mounts += service_mounts(service, self.files, self.engine)
        return mounts
