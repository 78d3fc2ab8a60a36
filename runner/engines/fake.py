"""A scripted engine, for tests of what stands above the engine. It runs no container and no participant's code.

::

    def good(mounts, out):
        (out / "run.txt").write_text("1 Q0 d 1 1.0 tag\\n")

    engine = FakeEngine({"team/good": good, "team/bad": Exit(code=3)})

A script is called with the mounts (a dict: path in the container -> folder here) and the first writable
folder; it returns an :class:`Exit`, an exit code, or None for 0. A plain :class:`Exit` stands for a script
that only ends so; an exception is raised by ``start``. ``mounts`` also has the ``spec``, the ``stopped`` event
(set when the container is asked to end) and ``say``/``complain`` for its two log streams. Containers of one image
differ by ``mounts.spec`` (its role or command); the folders are real, and take Unix sockets.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from runner.engines import tarstream
from runner.engines.base import (
    ROOM,
    ROOM_OUT,
    BuildSpec,
    ContainerSpec,
    EngineInfo,
    Fill,
    Mount,
    Owner,
    Volume,
)
from runner.engines.roles import Sharing
from runner.engines.scripted import FakeBoard, FakeHandle, FakeRoom, Mounts, Script, fetched, write_files
from runner.engines.turns import Turns
from runner.model.config import EngineFor
from runner.model.container import Collected, Exit, ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import GIB, Limits
from runner.model.task import Visibility

__all__ = ["FAKE", "FakeEngine", "FakeSession", "Mounts", "Script", "identity"]

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


class FakeEngine:
    """See the module. ``script`` maps image names to what they do; names that are not in it are missing images.

    ``faults`` maps method names (``resolve``, ``session``, ``start``, ``copy_out``, ``data_volume`` …) to
    errors that are raised by the next calls, one each. ``calls`` records the names of methods as they are
    called (``mark`` and ``evict`` too: there are no caches here), ``started`` every spec. ``registry`` names what
    can be pulled, ``labels`` holds the labels of images by name, ``bytes`` their sizes,
    ``platforms`` what machines they are for.
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
        self.registry: set[str] = set()
        self.labels: dict[str, dict[str, str]] = {}
        self.bytes: dict[str, int] = {}
        self.platforms: dict[str, str] = {}
        self.imported: dict[str, bytes] = {}
        self.built: list[tuple[BuildSpec, set[str]]] = []
        self._info = info
        self._faults = {name: list(errors) for name, errors in (faults or {}).items()}
        self._folder = tempfile.TemporaryDirectory(prefix="fake-engine-")
        self._volumes: dict[str, Path] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        self._data: dict[str, str] = {}
        self._running: dict[str, list[FakeHandle]] = {}
        self._lock = threading.Lock()
        self._count = 0
        self.board = FakeBoard(self._call)
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
            if any(getattr(limit, what) > getattr(self._info, what) for what in ("gpus", "memory", "cpus")):
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
                return self._image(name)
        raise RunnerError("E204", f"the image {image!r} is missing", fix="add it to the script")

    def _image(self, name: str) -> ImageRef:
        labels, size = self.labels.get(name, {}), self.bytes.get(name, 0)
        platform = self.platforms.get(name, ImageRef.platform)
        return ImageRef(id=identity(name), names=(name,), labels=labels, size=size, platform=platform)

    def pull(self, image: str, *, silence: float) -> ImageRef:
        """There is no registry: E204, but for an image in ``registry``, which then is scripted to end at once."""
        self._call("pull")
        if image not in self.registry:
            raise RunnerError("E204", f"the image {image!r} is missing", why="no such host")
        return self._add(image, {})

    def import_root(self, archive: Path, name: str, changes: Sequence[str]) -> ImageRef:
        """An image that ends at once, with the labels of ``changes``; ``imported`` remembers the archive's bytes."""
        self._call("import_root")
        self.imported[name] = archive.read_bytes()
        labels = [change.removeprefix("LABEL ") for change in changes if change.startswith("LABEL ")]
        return self._add(name, dict(label.replace('"', "").split("=", 1) for label in labels))

    def _add(self, name: str, labels: Mapping[str, str]) -> ImageRef:
        self.script.setdefault(name, Exit(code=0))
        self.labels[name] = dict(labels)
        return self._image(name)

    def build(self, spec: BuildSpec, on_line: Callable[[str], None] | None = None) -> ImageRef:
        """An image named by ``tag``, or by the first line ``# fake: NAME`` of the Dockerfile; E203 if it is not scripted.

        ``built`` remembers each :class:`BuildSpec` with the files of its context.
        """
        self._call("build")
        path = spec.context / spec.dockerfile
        first = path.read_text(encoding="utf-8").partition("\n")[0] if path.is_file() else ""
        name = first.removeprefix("# fake:").strip() if first.startswith("# fake:") else spec.tag
        if on_line is not None:
            on_line(f"building {name}")
        files = {p.relative_to(spec.context).as_posix() for p in spec.context.rglob("*") if p.is_file()}
        self.built.append((spec, files))
        if not path.is_file() or name not in self.script:
            raise RunnerError(
                "E203", f"building {spec.context.name} failed", why="There is no script of that name."
            )
        if spec.tag is not None:
            self.script[spec.tag] = self.script[name]
        self.labels[spec.tag or name] = dict(spec.labels)
        return self._image(spec.tag or name)

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

    def data_volume(self, digest: str, fill: Fill) -> Volume:
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
        visibility: Visibility | None = "public",
        cancelled: Callable[[], bool] | None = None,
        stays: bool = False,
    ) -> Iterator[FakeSession]:
        """The scripted containers of one attempt; at the end they are stopped and their volumes removed."""
        self._call("session")
        turn = (
            self.turns.take(visibility, attempt_id, cancelled, stays=stays) if visibility else nullcontext()
        )
        with turn:
            session = FakeSession(self, attempt_id)
            self._running.setdefault(attempt_id, [])
            try:
                yield session
            finally:
                for handle in self._running.pop(attempt_id, []):
                    handle.ask_to_end()
                for name in session.names:
                    shutil.rmtree(self._volumes.pop(name), ignore_errors=True)

    def reap(self, *, prefix: str = "", dry_run: bool = False) -> list[str]:
        """Nothing is ever left behind."""
        self._call("reap")
        return []

    def keep(self, image: ImageRef, name: str) -> None:
        """Scripted images never go away."""
        self._call("keep")

    def follow(self, attempt_id: str, may_cut: object = None) -> Iterator[bytes]:
        """What the first running container of an attempt says on its standard output, as it comes."""
        self._call("follow")
        return next((one.says() for one in self._running.get(attempt_id, [])), iter(()))

    def kill(self, attempt_id: str) -> bool:
        """Cancel the running containers of an attempt."""
        self._call("kill")
        running = [h for h in self._running.get(attempt_id, []) if h.alive()]
        for handle in running:
            handle.cancelled = True
        for handle in running:
            handle.ask_to_end()
        return bool(running)


class FakeSession:
    """See :class:`runner.engines.base.Session`."""

    def __init__(self, engine: FakeEngine, attempt_id: str) -> None:
        self._engine = engine
        self._attempt = attempt_id
        self.names: list[str] = []
        self._sharing = Sharing()

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

    def room(self, spec: ContainerSpec, *, given: int) -> FakeRoom:
        """A folder in which the script of the image runs again and again; ``started`` has the room alone."""
        folder = self._volume("room", given, 0)
        mounts = (*spec.mounts, Mount(folder, ROOM, read_only=False))
        script, mounted = self._script(spec := replace(spec, stays=True, mounts=mounts))

        def begin() -> FakeHandle:
            handle = FakeHandle(script, mounted, mounted[ROOM_OUT])
            self._engine._running[self._attempt] = [handle]  # the one before has ended; a room may last long
            return handle

        return FakeRoom(mounted, begin, lambda: self._engine._call("copy_out"))

    def start(self, spec: ContainerSpec) -> FakeHandle:
        """Start the script of the image."""
        script, mounts = self._script(spec)
        writable = next(
            (mounts[m.target] for m in spec.mounts if not m.read_only), Path(self._engine._folder.name)
        )
        handle = FakeHandle(script, mounts, writable)
        self._engine._running.setdefault(self._attempt, []).append(handle)
        self._sharing.add(spec, handle)
        return handle

    def _script(self, spec: ContainerSpec) -> tuple[Script | Exit, Mounts]:
        """What runs in a container, and what it sees; checked and noted as a start."""
        engine = self._engine
        engine._call("start")
        self._sharing.check(spec)
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
        return script, Mounts(spec, engine._volumes)

    def copy_out(
        self, volume: Volume, dest: Path, *, allowed: Callable[[str], bool], max_bytes: int, max_files: int
    ) -> Collected:
        """The folder through the same reader that real output passes."""
        self._engine._call("copy_out")
        folder = self._engine._volumes[volume.name]
        size, inodes = self._engine._sizes[volume.name]
        dest.mkdir(parents=True, exist_ok=True)
        used = sum(p.lstat().st_size for p in folder.rglob("*"))
        full = used >= size or len(list(folder.rglob("*"))) + 1 >= inodes
        return fetched(folder, dest, allowed=allowed, max_bytes=max_bytes, max_files=max_files, full=full)

    def copy_in(self, volume: Volume, files: Mapping[str, Path | bytes]) -> None:
        """Write files into the folder."""
        self._engine._call("copy_in")
        write_files(self._engine._volumes[volume.name], files)


def identity(name: str) -> str:
    """The id of the fake image of that name."""
    return "sha256:" + hashlib.sha256(name.encode()).hexdigest()
