"""A scripted engine, for tests of what stands above the engine. It runs no container and no stranger's code.

::

    def good(mounts, out):
        (out / "run.txt").write_text("1 Q0 d 1 1.0 tag\\n")

    engine = FakeEngine({"team/good": good, "team/bad": Exit(code=3)})

A script is called with the mounts (a dict: path in the container -> folder here) and the first writable
folder; it returns an :class:`Exit`, an exit code, or None for 0. A plain :class:`Exit` stands for a script
that only ends so; an exception is raised by ``start``. ``mounts`` also has the ``spec``, the ``stopped`` event
(set when the container is told to end) and ``say``/``complain`` for its two log streams. Containers of one image
are told apart by ``mounts.spec`` (its role or command); the folders are real, so scripts can talk over Unix
sockets in them.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from runner.engines import collect, tarstream
from runner.engines.base import ContainerSpec, EngineInfo, Owner, Volume
from runner.engines.roles import Room
from runner.engines.turns import Turns
from runner.model.config import EngineFor
from runner.model.container import Collected, Exit, ImageRef, Killed, Resources
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import GIB, Limits
from runner.model.task import Visibility

FAKE = EngineInfo(
    name="fake",
    version="1",
    api_version="1",
    cgroup_version="2",
    cgroup_driver="fake",
    cpus=8,
    memory=32 * GIB,
    platform="linux/amd64",
)


class Mounts(dict[str, Path]):
    """What a script sees of its container."""

    def __init__(self, spec: ContainerSpec, folders: Mapping[str, Path]) -> None:
        super().__init__({m.target: folders[m.volume.name] for m in spec.mounts})
        self.spec = spec
        self.stopped = threading.Event()
        self.stdout = bytearray()
        self.stderr = bytearray()

    def say(self, text: str) -> None:
        """Write a line to the standard output of the container."""
        self.stdout += text.encode() + b"\n"

    def complain(self, text: str) -> None:
        """Write a line to the standard error of the container."""
        self.stderr += text.encode() + b"\n"


Script = Callable[[Mounts, Path], Exit | int | None]


class FakeEngine:
    """See the module. ``script`` maps image names to what they do; names that are not in it are missing images.

    ``faults`` maps method names (``resolve``, ``session``, ``start``, ``copy_out``, ``data_volume`` …) to
    errors that are raised by the next calls, one each. ``calls`` records the names of methods as they are
    called (``mark`` and ``evict`` too: there are no caches here), ``started`` every spec.
    """

    def __init__(
        self,
        script: Mapping[str, Script | Exit | BaseException],
        *,
        info: EngineInfo = FAKE,
        faults: Mapping[str, Iterable[BaseException]] | None = None,
        engine_for: EngineFor = "both",
    ) -> None:
        self.script = dict(script)
        self.calls: list[str] = []
        self.started: list[ContainerSpec] = []
        self._info = info
        self._faults = {name: list(errors) for name, errors in (faults or {}).items()}
        self._folder = tempfile.TemporaryDirectory(prefix="fake-engine-")
        self._volumes: dict[str, Path] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        self._data: dict[str, str] = {}
        self._running: dict[str, list[FakeHandle]] = {}
        self._lock = threading.Lock()
        self._count = 0
        self.board = FakeBoard(self)
        gate = Path(self._folder.name) / "turn.lock"
        self.turns = Turns(self.board, lambda: gate, engine_for)

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self._faults.get(name):
            raise self._faults[name].pop(0)

    def close(self) -> None:
        """Remove all temporary files."""
        self._folder.cleanup()

    # -- facts and images ---------------------------------------------------------------------------------

    def info(self) -> EngineInfo:
        """The facts given to the constructor."""
        self._call("info")
        return self._info

    def require(self, limits: Iterable[Limits] = ()) -> None:
        """E302 and E305 from the facts given to the constructor."""
        self._call("require")
        if self._info.missing:
            raise PlatformError(
                "the container engine cannot enforce the limits",
                why="; ".join(self._info.missing),
                code="E302",
            )
        for limit in limits:
            if (
                limit.gpus > self._info.gpus
                or limit.memory > self._info.memory
                or limit.cpus > self._info.cpus
            ):
                raise PlatformError("this machine cannot give what the task asks for", code="E305")

    def try_eviction(self) -> float:
        """Nothing but a line in ``calls``, or the scripted fault."""
        self._call("evict")
        return 0.0

    def resolve(self, image: str) -> ImageRef:
        """The image of that name or id. Raises E204."""
        self._call("resolve")
        for name in self.script:
            if image in (name, identity(name)):
                return ImageRef(id=identity(name), names=(name,))
        raise RunnerError("E204", f"the image {image!r} is missing", fix="add it to the script")

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
        """An image named by ``tag``, or by the first line ``# fake: NAME`` of the Dockerfile; E203 if it is not scripted."""
        self._call("build")
        path = context / dockerfile
        first = path.read_text(encoding="utf-8").partition("\n")[0] if path.is_file() else ""
        name = first.removeprefix("# fake:").strip() if first.startswith("# fake:") else tag
        if on_line is not None:
            on_line(f"building {name}")
        if not path.is_file() or name not in self.script:
            raise RunnerError(
                "E203", f"building {context.name} failed", why="There is no script of that name."
            )
        if tag is not None:
            self.script[tag] = self.script[name]
        return ImageRef(id=identity(tag or name))

    def save(self, image: ImageRef, to: Path) -> None:
        """Write a small file that :meth:`load` understands."""
        self._call("save")
        to.write_text(json.dumps({"fake": image.id}), encoding="utf-8")

    def load(self, archive: Path, *, max_bytes: int, expect: str | None = None) -> ImageRef:
        """The image of a file that :meth:`save` wrote. Raises E205."""
        self._call("load")
        try:
            found = str(json.loads(archive.read_text(encoding="utf-8"))["fake"])
            if archive.stat().st_size > max_bytes or (expect is not None and found != expect):
                raise ValueError(found)
            return self.resolve(found)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunnerError("E205", "the image archive is not valid", why=str(error)) from error

    # -- volumes ------------------------------------------------------------------------------------------

    def _volume(self, name: str) -> Path:
        self._volumes[name] = path = Path(self._folder.name) / name
        path.mkdir(parents=True)
        return path

    def data_volume(self, digest: str, fill: Callable[[], Sequence[tuple[PurePosixPath, Path]]]) -> Volume:
        """A folder with copies of the files, made once a digest."""
        self._call("data_volume")
        digest = digest.removeprefix("sha256:")
        with self._lock:
            if digest not in self._data:
                name = f"proctor-data-{digest[:32]}"
                folder = self._volume(name)
                try:
                    for path, source in fill():
                        target = folder / tarstream.checked(str(path))
                        target.parent.mkdir(parents=True, exist_ok=True)
                        try:
                            shutil.copyfile(source, target)
                        except OSError as error:
                            raise PlatformError(f"{source.name} cannot be read", why=str(error)) from error
                except BaseException:
                    shutil.rmtree(self._volumes.pop(name))
                    raise
                self._data[digest] = name
        return Volume(self._data[digest])

    def gc(self, *, keep_digests: Iterable[str], dry_run: bool = False) -> list[str]:
        """Forget data volumes of other digests."""
        self._call("gc")
        keep = {d.removeprefix("sha256:")[:32] for d in keep_digests}
        old = {digest: name for digest, name in self._data.items() if digest[:32] not in keep}
        if not dry_run:
            for digest, name in old.items():
                del self._data[digest]
                shutil.rmtree(self._volumes.pop(name))
        return sorted(old.values())

    # -- attempts -----------------------------------------------------------------------------------------

    @contextmanager
    def session(
        self,
        attempt_id: str,
        *,
        labels: Mapping[str, str] | None = None,
        visibility: Visibility = "public",
        cancelled: Callable[[], bool] | None = None,
    ) -> Iterator[FakeSession]:
        """The scripted containers of one attempt; at the end they are stopped and their volumes removed."""
        self._call("session")
        with self.turns.take(visibility, attempt_id, cancelled):
            session = FakeSession(self, attempt_id)
            self._running.setdefault(attempt_id, [])
            try:
                yield session
            finally:
                for handle in self._running.pop(attempt_id, []):
                    handle.tell()
                for name in session.names:
                    shutil.rmtree(self._volumes.pop(name), ignore_errors=True)

    def reap(self, *, prefix: str = "") -> list[str]:
        """Nothing is ever left behind."""
        self._call("reap")
        return []

    def keep(self, image: ImageRef, name: str) -> None:
        """Scripted images never go away."""
        self._call("keep")

    def follow(self, attempt_id: str) -> Iterator[bytes]:
        """Scripted containers are not followed."""
        self._call("follow")
        return iter(())

    def kill(self, attempt_id: str) -> bool:
        """Cancel the running containers of an attempt."""
        self._call("kill")
        running = [h for h in self._running.get(attempt_id, []) if h.alive()]
        for handle in running:
            handle.cancelled = True
        for handle in running:
            handle.tell()
        return bool(running)


class FakeBoard:
    """See :class:`runner.engines.turns.Board`: nobody but this process uses the engine."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine
        self._here: dict[str, Visibility] = {}
        self._mark = False

    def announce(self, visibility: Visibility, attempt_id: str) -> None:
        """Remember it."""
        self._here[attempt_id] = visibility

    def withdraw(self, attempt_id: str) -> None:
        """Forget it."""
        self._here.pop(attempt_id, None)

    def present(self, visibility: Visibility) -> list[str]:
        """Attempts of that visibility."""
        return sorted(name for name, kind in dict(self._here).items() if kind == visibility)

    def mark(self) -> None:
        """Remember it."""
        self._engine._call("mark")
        self._mark = True

    def marked(self) -> bool:
        """Whether it is remembered."""
        return self._mark

    def unmark(self) -> None:
        """Forget it."""
        self._mark = False

    def evict(self) -> None:
        """Nothing but a line in ``calls``, or the scripted fault."""
        self._engine._call("evict")


class FakeSession:
    """See :class:`runner.engines.base.Session`."""

    def __init__(self, engine: FakeEngine, attempt_id: str) -> None:
        self._engine = engine
        self._attempt = attempt_id
        self.names: list[str] = []
        self._room = Room()

    def output_volume(self, name: str, *, bytes: int, inodes: int, owner: Owner = "software") -> Volume:
        """An empty folder; its limits show only as ``full`` after the end."""
        self._engine._call("output_volume")
        return self._volume(name, bytes, inodes)

    def socket_volume(self, name: str) -> Volume:
        """An empty folder."""
        self._engine._call("socket_volume")
        return self._volume(name, 64 * 1024, 32)

    def _volume(self, name: str, bytes: int, inodes: int) -> Volume:
        with self._engine._lock:
            self._engine._count += 1
            full = f"volume-{self._engine._count}-{name}"
            self._engine._volume(full)
        self._engine._sizes[full] = (bytes, inodes)
        self.names.append(full)
        return Volume(full)

    def start(self, spec: ContainerSpec) -> FakeHandle:
        """Start the script of the image."""
        engine = self._engine
        engine._call("start")
        self._room.check(spec)
        engine.started.append(spec)
        if spec.join is not None and spec.join.ended():
            raise PlatformError(
                "the container engine failed while starting a container", why="What it joins has ended."
            )
        if spec.limits.gpus > engine._info.gpus:
            raise PlatformError("this machine has not the GPUs that the task asks for", code="E305")
        script = next((s for name, s in engine.script.items() if identity(name) == spec.image.id), None)
        if script is None:
            raise PlatformError(
                "the container engine failed while starting a container", why="No such image."
            )
        if isinstance(script, BaseException):
            raise script
        mounts = Mounts(spec, engine._volumes)
        writable = next((mounts[m.target] for m in spec.mounts if not m.read_only), Path(engine._folder.name))
        handle = FakeHandle(script, mounts, writable)
        engine._running.setdefault(self._attempt, []).append(handle)
        self._room.add(spec, handle)
        return handle

    def copy_out(
        self, volume: Volume, dest: Path, *, allowed: Callable[[str], bool], max_bytes: int, max_files: int
    ) -> Collected:
        """The folder through the same reader that real output passes."""
        self._engine._call("copy_out")
        folder = self._engine._volumes[volume.name]
        size, inodes = self._engine._sizes[volume.name]
        dest.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", dereference=False) as tar:
            tar.add(folder, arcname="output")
        used = sum(p.lstat().st_size for p in folder.rglob("*"))
        full = used >= size or len(list(folder.rglob("*"))) + 1 >= inodes
        return collect.collect(
            [buffer.getvalue()],
            dest,
            allowed=allowed,
            max_bytes=max_bytes,
            max_files=max_files,
            max_stream=len(buffer.getvalue()),
            full=full,
        )

    def copy_in(self, volume: Volume, files: Mapping[str, Path | bytes]) -> None:
        """Write files into the folder."""
        self._engine._call("copy_in")
        for name, content in files.items():
            target = self._engine._volumes[volume.name] / tarstream.checked(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.read_bytes())


class FakeHandle:
    """A script that runs in a thread. It cannot be killed, only told (``mounts.stopped``) and left alone."""

    def __init__(self, script: Script | Exit, mounts: Mounts, out: Path) -> None:
        self.cancelled = False
        self._mounts = mounts
        self._result: Exit | int | None = None
        self._failure: BaseException | None = None
        self._exit: Exit | None = None
        self._stopping = False
        self._lock = threading.Lock()
        self._clock = time.monotonic()
        self._started = datetime.now(UTC).isoformat()
        self._thread = threading.Thread(target=self._run, args=(script, mounts, out), daemon=True)
        self._thread.start()

    def _run(self, script: Script | Exit, mounts: Mounts, out: Path) -> None:
        try:
            self._result = script if isinstance(script, Exit) else script(mounts, out)
        except BaseException as error:  # noqa: BLE001  (a thread's border: wait() raises it again)
            self._failure = error

    def alive(self) -> bool:
        """Whether the script still runs."""
        return self._exit is None and self._thread.is_alive()

    def ended(self) -> bool:
        """Whether the script has ended."""
        return not self.alive()

    def tell(self, seconds: float = 1.0) -> None:
        """Tell the script to end, and give it some time."""
        self._mounts.stopped.set()
        self._thread.join(timeout=seconds)

    def stop(self, grace: float = 2.0) -> Exit:
        """Tell the script to end: one that still runs after ``grace`` seconds counts as killed."""
        if self.alive():
            self._stopping = True
            self.tell(grace)
            if self._thread.is_alive():
                self._conclude("stop")
        return self.wait(0)

    def wait(self, deadline: float, cancelled: Callable[[], bool] | None = None) -> Exit:
        """The scripted end, or ours at the deadline or when cancelled."""
        killed: Killed | None = None
        while self._exit is None and self._thread.is_alive():
            if cancelled is not None and cancelled():
                killed = "cancel"
            elif time.monotonic() - self._clock >= deadline:
                killed = "time"
            if killed is not None:
                self.tell()
                break
            self._thread.join(timeout=0.01)
        return self._conclude(killed)

    def _conclude(self, killed: Killed | None) -> Exit:
        with self._lock:
            if self._exit is None:
                if self._failure is not None and killed is None:
                    raise self._failure
                self._exit = self._end("cancel" if self.cancelled else killed)
            return self._exit

    def _end(self, killed: Killed | None) -> Exit:
        result: Any = self._result
        ended = result if isinstance(result, Exit) else Exit(code=result or 0)
        if killed is None and self._stopping:
            ended = replace(ended, killed="stop")
        elif killed is not None:
            ended = Exit(code=137, killed=killed)
        used = ended.resources
        if used == Resources():
            used = Resources(time.monotonic() - self._clock, 0.0, 0, "none")
        cap = self._mounts.spec.limits.log
        return replace(
            ended,
            started=ended.started or self._started,
            finished=ended.finished or datetime.now(UTC).isoformat(),
            resources=used,
            log_truncated=ended.log_truncated
            or max(len(self._mounts.stdout), len(self._mounts.stderr)) > cap,
        )

    def logs(self, stream: Literal["stdout", "stderr"], cap: int) -> bytes:
        """The last bytes that the script said."""
        text = self._mounts.stdout if stream == "stdout" else self._mounts.stderr
        return bytes(text)[-cap:] if cap > 0 else b""


def identity(name: str) -> str:
    """The id of the fake image of that name."""
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()
