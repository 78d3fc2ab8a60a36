"""The containers of :mod:`runner.engines.fake`: scripts in threads of this process, and what a script sees."""

from __future__ import annotations

import io
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from runner.engines import collect, tarstream
from runner.engines.base import ROOM, ROOM_IN, ROOM_OUT, ContainerSpec, RoomRun
from runner.engines.turns import Board
from runner.model.container import Collected, Exit, Killed, Resources


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
POLL_SECONDS = 0.1  # between two looks at cancellation and the deadline


class FakeHandle:
    """A script that runs in a thread. It cannot be killed, only asked to end (``mounts.stopped``) and left alone."""

    def __init__(self, script: Script | Exit, mounts: Mounts, out: Path) -> None:
        self.cancelled = False
        self._mounts = mounts
        self._result: Exit | int | None = None
        self._failure: BaseException | None = None
        self._exit: Exit | None = None
        self._stopping = False
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._clock = time.monotonic()
        self._started = datetime.now(UTC).isoformat()
        self._thread = threading.Thread(target=self._run, args=(script, mounts, out), daemon=True)
        self._thread.start()

    def _run(self, script: Script | Exit, mounts: Mounts, out: Path) -> None:
        try:
            self._result = script if isinstance(script, Exit) else script(mounts, out)
        except BaseException as error:  # noqa: BLE001  (a thread's border: wait() raises it again)
            self._failure = error
        self._over.set()

    def alive(self) -> bool:
        """Whether the script still runs."""
        return self._exit is None and not self._over.is_set()

    def says(self) -> Iterator[bytes]:
        """What comes on the standard output, until the script ends."""
        at, alive = 0, True
        while alive:
            alive = self.alive()  # before looking
            if new := bytes(self._mounts.stdout[at:]):
                at += len(new)
                yield new
            elif alive:
                time.sleep(0.01)

    def ended(self) -> bool:
        """Whether the script has ended."""
        return not self.alive()

    def ask_to_end(self, seconds: float = 1.0) -> None:
        """Ask the script to end, and wait ``seconds`` for it."""
        self._mounts.stopped.set()
        self._over.wait(seconds)

    def stop(self, grace: float = 2.0) -> Exit:
        """Ask the script to end: one that still runs after ``grace`` seconds counts as killed."""
        if self.alive():
            self._stopping = True
            self.ask_to_end(grace)
            if not self._over.is_set():
                self._conclude("stop")
        return self.wait(0)

    def over(self, deadline: float, cancelled: Callable[[], bool] | None = None) -> None:
        """Wait for the end."""
        self.wait(deadline, cancelled)

    def wait(self, deadline: float, cancelled: Callable[[], bool] | None = None) -> Exit:
        """The scripted end, or ours at the deadline or when cancelled."""
        killed: Killed | None = None
        while self.alive():
            left = deadline - (time.monotonic() - self._clock)
            if cancelled is not None and cancelled():
                killed = "cancel"
            elif left <= 0:
                killed = "time"
            if killed is not None:
                self.ask_to_end()
                break
            self._over.wait(min(left, POLL_SECONDS))
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
        used, limit = ended.resources, self._mounts.spec.limits.cpu_time
        if killed is None and limit is not None and (used.cpu_seconds or 0.0) >= limit:
            ended = Exit(code=137, killed="processor")
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


class FakeRoom:
    """See :class:`runner.engines.base.Room`. Scripts find its folders under ``/in`` and ``/out`` as well."""

    def __init__(self, mounts: Mounts, begin: Callable[[], FakeHandle], call: Callable[[], None]) -> None:
        self.usable = True
        self._mounts, self._begin, self._call = mounts, begin, call
        for name in ("in", "out", "tmp"):
            mounts[f"{ROOM}/{name}"] = mounts[ROOM] / name
        mounts["/in"], mounts["/out"] = mounts[ROOM_IN], mounts[ROOM_OUT]

    def retire(self) -> None:
        """Have it not be usable any more."""
        self.usable = False

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
        """Make the folders anew and run the script of the image."""
        if not self.usable:
            raise ValueError("nothing more may run in this room")
        self.usable, collected = False, Collected()
        for name in ("in", "out", "tmp"):
            shutil.rmtree(self._mounts[ROOM] / name, ignore_errors=True)
            (self._mounts[ROOM] / name).mkdir()
        write_files(self._mounts[ROOM_IN], files)
        self._mounts.stdout.clear()
        self._mounts.stderr.clear()
        handle = self._begin()
        ended = handle.wait(deadline, cancelled)
        if ended.code == 0 and ended.killed is None:
            self._call()
            collected = fetched(
                self._mounts[ROOM_OUT], dest, allowed=allowed, max_bytes=max_bytes, max_files=max_files
            )
            self.usable = not ended.oom_killed
        cap = self._mounts.spec.limits.log
        return RoomRun(ended, handle.logs("stdout", cap), handle.logs("stderr", cap), collected)


def write_files(folder: Path, files: Mapping[str, Path | bytes]) -> None:
    """Write ``files`` below ``folder``."""
    for name, content in files.items():
        target = folder / tarstream.checked(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.read_bytes())


def fetched(
    folder: Path,
    dest: Path,
    *,
    allowed: Callable[[str], bool],
    max_bytes: int,
    max_files: int,
    full: bool = False,
) -> Collected:
    """The files of ``folder`` through the same reader that real output passes."""
    dest.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    # As the engine writes it: without a second header for fractions of seconds.
    with tarfile.open(fileobj=buffer, mode="w", dereference=False, format=tarfile.GNU_FORMAT) as tar:
        tar.add(folder, arcname="output")
    return collect.collect(
        [buffer.getvalue()],
        dest,
        allowed=allowed,
        max_bytes=max_bytes,
        max_files=max_files,
        max_stream=len(buffer.getvalue()),
        full=full,
    )


class FakeBoard(Board):
    """Records that a mark or an eviction was asked for, or raises the scripted fault."""

    def __init__(self, call: Callable[[str], None]) -> None:
        super().__init__()
        self._call = call

    def mark(self) -> None:
        """Note the call, and mark."""
        self._call("mark")
        super().mark()

    def evict(self) -> None:
        """Note the call only: nothing is evicted."""
        self._call("evict")
