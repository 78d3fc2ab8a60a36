"""One RUN step of an isolated build: a container in the sandbox, watched until it ends, and committed."""

from __future__ import annotations

import errno
import os
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.engines.base import BuildSpec
from runner.engines.build_sandbox import image_config, step_options
from runner.engines.docker.building.builder import BuildLog
from runner.engines.docker.client import ignoring
from runner.engines.docker.facts import DockerFacts
from runner.engines.docker.owner import me
from runner.model.errors import PlatformError, disk_error
from runner.model.limits import GIB, MIB, Limits, in_units

WATCH_SECONDS = 0.25
LOOKS_BETWEEN_COUNTS = 8  # counting files takes longer
MIN_FREE_BYTES = 5 * GIB  # on the engine's disk
MAX_DEPTH = 256  # of folders; each level keeps a file open
KILLED = 137
UNMEASURED = "could not be measured"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class BuildStep:
    """One command to run on an image.

    Args:
        engine: the engine.
        spec: the build.
        attempt: its id, on everything that it makes.
        image: the identity of the image.
        config: the configuration of the image, as the engine describes it.
        command: program and arguments.
        shown: the command in messages.
    """

    engine: DockerFacts
    spec: BuildSpec
    attempt: str
    image: str
    config: Mapping[str, Any]
    command: Sequence[str]
    shown: str

    def run(self, *, disk: int, seconds: float, log: BuildLog) -> str:
        """Run the command; return the identity of the new image.

        Args:
            disk: bytes that the step may write.
            seconds: time limit.
            log: the output is written there.

        Raises:
            RunnerError: E203 if the command fails or exceeds a limit.
            TookTooLong: the time is over.
        """
        clients = self.engine.clients
        with _created(self.engine, self._options(disk)) as container:
            watch = LayerWatch(self.engine, container, disk, self.spec.files)
            with clients.calling("starting a build step") as api:
                api.start(container)
            with watch, clients.streaming("running a build step", seconds) as (api, _):
                for piece in api.logs(container, stdout=True, stderr=True, stream=True, follow=True):
                    log.write(piece.decode("utf-8", "replace"))
                api.wait(container, timeout=seconds)
            log.finish_line()
            watch.check_end()
            with clients.calling("reading the end of a build step") as api:
                state = api.inspect_container(container)["State"]
            code = int(state.get("ExitCode", -1))
            if watch.exceeded:
                raise log.failure(f"The command {self.shown} {watch.exceeded}.")
            if code != 0:
                limit = f" It may use {in_units(self.spec.memory)} of memory." if code == KILLED else ""
                raise log.failure(f"The command {self.shown} returned a non-zero code: {code}.{limit}")
            with clients.streaming("committing a build step", seconds) as (api, _):
                return str(api.commit(container, pause=False, conf=image_config(self.config))["Id"])

    def _options(self, disk: int) -> dict[str, Any]:
        cpus = float(self.engine.info().cpus)
        return step_options(
            self.image,
            self.config,
            self.command,
            Limits(memory=self.spec.memory, cpus=cpus, pids=self.spec.pids, log=MIB),
            labels=_labels(self.attempt),
            own_profile=self.engine.own_profile,
            # Never the network of the engine's machine: a team may not use the services there.
            network="bridge" if self.spec.network else "none",
            largest_file=disk,
        )


def remove_triggers(engine: DockerFacts, attempt: str, image: str) -> str:
    """Return a new image that has no triggers (ONBUILD) and equals ``image`` otherwise."""
    with engine.clients.calling("reading an image's configuration") as api:
        config = dict(api.inspect_image(image).get("Config") or {})
    # The container is never started, so that its command can be anything.
    body = {"Image": image, "Entrypoint": ["true"], "Cmd": [], "Labels": _labels(attempt)}
    with _created(engine, body) as container, engine.clients.calling("committing an image") as api:
        return str(api.commit(container, pause=False, conf=image_config(config))["Id"])


def _labels(attempt: str) -> dict[str, str]:
    return {"proctor.attempt": attempt, "proctor.owner": me(), "proctor.role": "build"}


@contextmanager
def _created(engine: DockerFacts, body: dict[str, Any]) -> Iterator[str]:
    """Create a container, and remove it at the end."""
    name = f"proctor-build-{secrets.token_hex(8)}"
    with engine.clients.calling("creating a build step") as api:
        container = str(api.create_container_from_config(body, name=name)["Id"])
    try:
        yield container
    finally:
        with engine.clients.calling("removing a build step") as api, ignoring(404, 409):
            api.remove_container(container, force=True, v=True)


class LayerWatch:
    """A thread that kills a container when its writable layer exceeds a limit, which engines cannot enforce.

    The size of a layer does not include files that are open and have no name any more. Where the engine is on this
    machine, a step also ends when the file system has too little space left.
    """

    def __init__(self, engine: DockerFacts, container: str, disk: int, files: int) -> None:
        self.exceeded = ""
        self._engine, self._container = engine, container
        self._disk, self._files = disk, files
        self._layer = self._find_layer() if engine.local else None
        self._free_at_least = min(MIN_FREE_BYTES, free_bytes(self._layer) // 2) if self._layer else 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def check(self, *, count_files: bool = True) -> None:
        """Compare what the container has written with the limits; note the limit that it exceeds. Raises PlatformError."""
        written = self._written()
        if written is None:
            self.exceeded = UNMEASURED
        elif written > self._disk:
            left = in_units(self._disk)
            self.exceeded = f"wrote {in_units(written)}; {left} are left of the build's disk limit"
        elif self._layer is not None and free_bytes(self._layer) < self._free_at_least:
            self.exceeded = "left too little space on the engine's disk"
        elif count_files and self._has_too_many_files():
            self.exceeded = f"made more than {self._files} files"

    def check_end(self) -> None:
        """Do the same once the container has ended."""
        if not self.exceeded:
            try:
                self.check()
            except PlatformError:
                self.exceeded = UNMEASURED

    def _watch(self) -> None:
        failures = looks = 0
        while not self._ended.wait(WATCH_SECONDS):
            looks += 1
            try:
                if not self.exceeded:
                    self.check(count_files=looks % LOOKS_BETWEEN_COUNTS == 0)
                if self.exceeded:
                    self._kill()
                    return
                failures = 0
            except (PlatformError, OSError):
                failures += 1  # one answer may be missing; without any the step is not bounded
            if failures > 3 and not self.exceeded:
                self.exceeded = UNMEASURED

    def _kill(self) -> None:
        with self._engine.clients.calling("ending a build step") as api, ignoring(404, 409):
            api.kill(self._container, "SIGKILL")

    def _written(self) -> int | None:
        """Return the bytes of the layer; None if the engine cannot tell them, such as for paths that are too long."""
        with self._engine.clients.calling("measuring a build step") as api:
            listed = api.containers(all=True, size=True, filters={"id": self._container})
        # A list leaves out a size of 0; the size of the whole container shows that the engine measured it.
        if len(listed) != 1 or listed[0].get("SizeRootFs", 0) <= 0:
            return None
        size = int(listed[0].get("SizeRw", 0))
        return None if size < 0 else size

    def _has_too_many_files(self) -> bool:
        if self._layer is not None:
            with suppress(OSError):  # the engine may read more than this process
                return has_more_files(self._layer, self._files)
        with self._engine.clients.calling("counting the files of a build step") as api:
            return len(api.diff(self._container) or ()) > self._files

    def _find_layer(self) -> Path | None:
        with self._engine.clients.calling("looking at a build step") as api:
            graph = api.inspect_container(self._container).get("GraphDriver") or {}
        folder = (graph.get("Data") or {}).get("UpperDir")
        return Path(folder) if folder and os.access(folder, os.R_OK | os.X_OK) else None


def free_bytes(folder: Path) -> int:
    """Return the free bytes of a folder's file system. Raises E306 if the system refuses."""
    try:
        facts = os.statvfs(folder)
    except OSError as error:
        raise disk_error("the free space for a build step cannot be measured", error, folder) from error
    return facts.f_bavail * facts.f_frsize


def has_more_files(folder: Path, most: int) -> bool:
    """True if there are more than ``most`` files and folders below a folder, which software may change meanwhile.

    Raises:
        OSError: A folder cannot be read, or folders are nested too deeply.
    """
    descriptor = os.open(folder, _FOLDER)
    try:
        return _count_files(descriptor, most, MAX_DEPTH) > most
    finally:
        os.close(descriptor)


def _count_files(folder: int, most: int, depth: int) -> int:
    """Return the number of files and folders below an open folder; more than ``most`` are not counted to the end.

    os.walk() would need whole paths, which may be too long, and os.fwalk() may open a pipe that replaced a folder, and wait.
    """
    if depth == 0:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    count, subfolders = 0, []
    with os.scandir(folder) as entries:
        for entry in entries:
            count += 1
            if count > most:
                return count
            if entry.is_dir(follow_symlinks=False):
                subfolders.append(entry.name)
    for name in subfolders:
        try:
            subfolder = os.open(name, _FOLDER, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):  # removed or replaced meanwhile
            continue
        try:
            count += _count_files(subfolder, most - count, depth - 1)
        finally:
            os.close(subfolder)
        if count > most:
            break
    return count
