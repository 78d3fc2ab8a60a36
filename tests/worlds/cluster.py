"""A cluster on this machine: a real scheduler and real hosts as processes, each host with a scripted engine, by TLS on loopback.

``python -m tests.worlds.cluster NAME SCHEDULER ARTEFACTS FOLDER CERTIFICATES ROLE BLINDED AHEAD`` is one of the hosts, whose clock is AHEAD
by so many seconds.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from runner.engines.fake import FakeEngine, Mounts, identity
from runner.execution import stop as at_stop
from runner.execution.cluster.certificates import make
from runner.execution.cluster.host import SCRATCH, Station
from runner.execution.cluster.members import work
from runner.execution.cluster.order import Role
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.cache import Cache
from runner.execution.cluster.storage.stores import store_of_host
from runner.model.clock import SystemClock
from runner.model.container import ImageRef
from runner.model.errors import PlatformError, RunnerError
from tests.runner.execution.test_pool import EVALUATOR
from tests.runner.execution.test_verify_run import scoring

MINUTE = 60.0
ROOT = Path(__file__).parents[2]
GO = "go"  # a file in the folder of the world: softwares that wait go on when it is there
HOLD = "hold"  # the same for evaluators: they wait while it is there and the other is not
PRUNED = "pruned"  # the name of a host that has no images but those that it is brought
AWAY = "away"  # where the store lies while it is away
KEEP = "keep-{}"  # another: the host of that name delivers nothing while it is there


def good(mounts: Mounts, out: Path) -> None:
    """A software that writes a run file."""
    out.joinpath("run.txt").write_text("1 Q0 d 1 1.0 tag\n")


def waiting(
    folder: Path, then: Callable[[Mounts, Path], None] = good, said: str = ""
) -> Callable[[Mounts, Path], None]:
    """A software that says that it has begun and waits until the world lets it go on, or it is stopped; it does something ``then``. What is
    ``said`` is in its log before."""

    def script(mounts: Mounts, out: Path) -> None:
        if said:
            mounts.say(said)
        (folder / f"begun-{os.getpid()}-{time.monotonic_ns()}").touch()
        while not (folder / GO).exists() and not mounts.stopped.wait(0.05):
            pass
        then(mounts, out)

    return script


def holding(folder: Path) -> Callable[[Mounts, Path], None]:
    """An evaluator, which waits where the world holds evaluators."""

    def script(mounts: Mounts, out: Path) -> None:
        (waiting(folder, scoring) if (folder / HOLD).exists() else scoring)(mounts, out)

    return script


def scripts(folder: Path) -> Mapping[str, object]:
    """What the softwares of tests do at hosts, by the names of their images."""
    slow = {f"team{n}/slow": waiting(folder) for n in range(8)}
    slow |= {f"team{n}/sick": good for n in range(2)} | {f"team{n}/unknown": good for n in range(8)}
    slow |= {f"team{n}/loud": waiting(folder, said="first\n\x1b[2Jsecond") for n in range(2)}
    return {f"team{n}/one": good for n in range(8)} | slow | {EVALUATOR: holding(folder)}


class Pruned(FakeEngine):
    """An engine that never has the evaluator's image unless it is brought: somebody removes images that nothing runs in."""

    def resolve(self, image: str) -> ImageRef:
        if image == identity(EVALUATOR):
            raise RunnerError("E204", "the image is missing")
        return super().resolve(image)

    def load(self, archive: Path, *, max_bytes: int, expect: str | None = None) -> ImageRef:
        if expect != identity(EVALUATOR):
            return super().load(archive, max_bytes=max_bytes, expect=expect)
        assert identity(EVALUATOR) in archive.read_text()
        return ImageRef(id=expect, names=(EVALUATOR,))


class Hurried:
    """Time, in the place of the module: it passes at once for who waits for a store that is away, which is back after a minute of it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._own = folder, threading.local()

    def monotonic(self) -> float:
        """The steady clock of this thread."""
        return time.monotonic() + getattr(self._own, "waited", 0.0)

    def sleep(self, seconds: float) -> None:
        """Wait, or have the store be back sooner."""
        store, waited = self._folder / "store", getattr(self._own, "waited", 0.0)
        if store.is_dir() and not waited:
            return time.sleep(seconds)
        self._own.waited = waited + seconds
        if self._own.waited >= MINUTE and not store.is_dir():
            (back := self._folder / f"back-{threading.get_ident()}").symlink_to(self._folder / AWAY)
            back.rename(store)
        return None


class Slow(Artefacts):
    """The store as a slow host has it: what it delivers waits."""

    held: Path

    def deliver(self, *args: Any) -> None:
        while self.held.exists():
            time.sleep(0.05)
        super().deliver(*args)


def set_clock(ahead: timedelta) -> None:
    """Have the clock of this process be ahead by so much."""
    SystemClock.now = lambda _: datetime.now(UTC) + ahead  # type: ignore[method-assign]


class Cluster:
    """The world: ``address`` and ``certificates`` are what a coordinator needs, ``artefacts`` is the address of the store."""

    def __init__(self, folder: Path, role: str = "software") -> None:
        self.folder, self.role = folder, role
        for made in (folder, folder / "store", folder / "tmp"):
            made.mkdir()
        self.artefacts = f"file://{folder / 'store'}"
        self.gone_after = 60  # seconds after which a host that says nothing is lost; fewer where one is to be
        self.credentials: Path | None = None  # of the coordinator, for the store
        self.origins: tuple[str, ...] = ()  # where hosts work by grants; none: they have credentials
        self.blinded = ""  # the address of the store for hidden data, where there is one
        make(folder / "tls", ["127.0.0.1"])
        self.certificates = folder / "tls" / "127.0.0.1"
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.address = "tls://127.0.0.1:0"

    @property
    def settings(self) -> dict[str, Any]:
        """What a configuration says of it."""
        places = {"cluster": self.address, "artefacts": self.artefacts, "certificates": self.certificates}
        places |= {"blinded_artefacts": self.blinded} if self.blinded else {}
        prefix = "" if self.role == "software" else "evaluation_"
        found = {prefix + name: at for name, at in places.items()}
        return found | ({"store_credentials": self.credentials} if self.credentials else {})

    def start_scheduler(self) -> None:
        """Start it, at the address that it had before."""
        command = ["-m", "runner", "cluster", "scheduler", "--listen", self.address]
        command += ["--gone-after", str(self.gone_after), "--certificates", str(self.certificates)]
        self._start("scheduler", command, TMPDIR=str(self.folder / "tmp"))
        self.address = self._said("scheduler", r"scheduler at (\S+)")

    def start_host(
        self, name: str, ahead: timedelta = timedelta(0), *, hidden: bool = True, twin: str = ""
    ) -> None:
        """Start a host, whose clock is ahead by so much; it is there when this returns. ``hidden``: with the store for hidden data, where
        there is one. ``twin``: a process of that name that is called as one that is there, for whose answer nobody waits."""
        own = self.folder / name
        own.mkdir(exist_ok=True)
        places = [self.address, self.artefacts, str(own), str(self.certificates), self.role]
        places += [self.blinded if hidden else "", str(ahead.total_seconds())]
        # Of its own, so that nothing is left where it is killed; those of one engine share the system's, where its locks are.
        self._start(
            twin or name,
            ["-m", "tests.worlds.cluster", name, *places],
            TMPDIR=str(self.folder / "tmp"),
            ORIGINS=" ".join(self.origins),
        )
        if not twin:
            self._said(name, "takes")

    def start_worker(self, name: str, docker_host: str, **more: str) -> None:
        """Start a host with a real engine, by the command that people give."""
        command = ["-m", "runner", "worker", self.address, "--artefacts", self.artefacts]
        command += ["--name", name, "--jobs", "1"]
        command += ["--certificates", str(self.certificates), "--state", str(self.folder / name)]
        command += ["--evaluations"] if self.role == "evaluations" else []
        self._start(name, command, DOCKER_HOST=docker_host, **more)
        self._said(name, "takes")

    def said(self, name: str, pattern: str) -> str:
        """Wait until a process of the world says something; returns it."""
        return self._said(name, pattern)

    def left(self) -> list[str]:
        """What is left of attempts at the hosts, and of deliveries in the store."""
        found = [*self.folder.glob(f"*/{SCRATCH}*"), *(self.folder / "store" / "attempts").glob("*/*")]
        return [str(path.relative_to(self.folder)) for path in found]

    def take_store_away(self) -> None:
        """Have the store be away for a minute, by the clock of who waits for it, which waits no minute for that."""
        store = self.folder / "store"
        store.rename(self.folder / AWAY)
        store.symlink_to("nowhere")  # so that nobody makes it anew

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """End a process of the world, with no word to anybody (or by another signal)."""
        self.processes[name].send_signal(number)
        if number != signal.SIGSTOP:
            self.processes[name].wait(100)

    def begun(self, at_least: int, seconds: float = 60) -> int:
        """Wait until so many softwares that wait have begun; returns how many have."""
        until = time.monotonic() + seconds
        while (found := len(list(self.folder.glob("begun-*")))) < at_least:
            assert time.monotonic() < until, f"{found} of {at_least} have begun"
            time.sleep(0.05)
        return found

    def go(self) -> None:
        """Let softwares go on."""
        (self.folder / GO).touch()

    def hold(self) -> None:
        """Have evaluators wait until they may go on."""
        (self.folder / HOLD).touch()

    def forget(self) -> None:
        """Forget what earlier softwares did: those that wait do so again."""
        for path in (self.folder / GO, self.folder / HOLD, *self.folder.glob("begun-*")):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """End all of it."""
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _start(self, name: str, command: list[str], **more: str) -> subprocess.Popen[str]:
        # Not into a pipe: nobody reads it later, and a full one stops who writes.
        with self._log(name).open("w") as log:
            self.processes[name] = process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=os.environ | more,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        return process

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _said(self, name: str, pattern: str, seconds: float = 120) -> str:
        until, process = time.monotonic() + seconds, self.processes[name]
        while True:
            ended = process.poll() is not None or time.monotonic() > until
            said = self._log(name).read_text()
            if match := re.search(pattern, said):
                return match[match.re.groups]
            assert not ended, said
            time.sleep(0.05)


@contextmanager
def cluster(folder: Path, *hosts: str, role: str = "software", gone_after: int = 60) -> Iterator[Cluster]:
    """A scheduler and hosts of those names, for that, until the context ends; ``gone_after`` as many seconds a host is lost."""
    world = Cluster(folder, role)
    world.gone_after = gone_after
    try:
        world.start_scheduler()
        for name in hosts:
            world.start_host(name)
        yield world
    finally:
        world.close()


def _host(
    name: str, address: str, artefacts: str, folder: Path, certificates: Path, role: Role, blinded: str
) -> None:
    at_stop.time = Hurried(folder.parent)  # type: ignore[assignment]
    gone = PlatformError("the container engine is gone", code="E301")
    script = dict(scripts(folder.parent))
    if name == "h1":
        script |= {f"team{n}/sick": gone for n in range(2)}  # what starts them fails
        unknown = RunnerError("E204", "the registry does not answer")  # as where nobody has signed in to it
        script |= {f"team{n}/unknown": unknown for n in range(8)}
    kind = Pruned if name == PRUNED else FakeEngine
    engine = kind(script)  # type: ignore[arg-type]
    origins = os.environ["ORIGINS"].split()
    store = store_of_host(artefacts, None, origins) if origins else Slow(artefacts)
    if isinstance(store, Slow):
        store.held = folder.parent / KEEP.format(name)
    station = Station(name, engine, store, Cache(folder / "cache", store, 1 << 30), steps=2, role=role)
    station.labels = (f"card-of-{name}",)
    station.blinded = store_of_host(blinded, None, origins) if blinded else None
    work(station, address, certificates, lambda text: print(text, file=sys.stderr, flush=True))


if __name__ == "__main__":
    name_, address_, store_, folder_, certificates_, role_, blinded_, ahead_ = sys.argv[1:]
    set_clock(timedelta(seconds=float(ahead_)))
    _host(name_, address_, store_, Path(folder_), Path(certificates_), cast(Role, role_), blinded_)
