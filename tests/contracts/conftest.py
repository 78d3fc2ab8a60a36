"""Two engines under one suite: each program is written twice, as Python for a container and as a script."""

from __future__ import annotations

import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from runner.engines.base import ContainerSpec, Engine, Handle, Mount
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.owner import default_locks, private_folder
from runner.engines.fake import FakeEngine, Mounts, Script
from runner.model.container import Collected, Exit, ImageRef, Resources
from runner.model.limits import MIB, Limits

LIMITS = Limits(
    loopback=True,
    memory=192 * MIB,
    pids=64,
    wall_clock=30,
    output=4 * MIB,
    tmp=16 * MIB,
    shm=8 * MIB,
    log=64 * 1024,
)


@dataclass
class Ran:
    """A container that ran to its end, and what it wrote."""

    exit: Exit
    stdout: bytes
    stderr: bytes
    out: Collected
    seconds: float
    inspected: dict[str, Any] = field(default_factory=dict)


def run_software(
    engine: DockerEngine,
    image: ImageRef,
    command: tuple[str, ...] | str | None,
    dest: Path,
    limits: Limits = LIMITS,
    **changes: Any,
) -> Ran:
    """Run a command, or Python text, with a read-only /in and a writable /out, and fetch ``run.txt``."""
    words = ("python3", "-c", command) if isinstance(command, str) else command
    with engine.session(f"test-{secrets.token_hex(6)}-1") as session:
        inputs = session.output_volume("in", bytes=MIB, inodes=8)
        out = session.output_volume("output", bytes=limits.output, inodes=64)
        session.copy_in(inputs, {"queries.txt": b"1 a query\n"})
        mounts = (Mount(inputs, "/in"), Mount(out, "/out", read_only=False))
        handle = session.start(ContainerSpec("software", image, words, limits, mounts, **changes))
        ended = handle.wait(limits.wall_clock)
        seconds = time.monotonic() - handle.clock
        facts = engine.clients.get().inspect_container(handle.id) if handle.id else {}
        logs = handle.logs("stdout", 60_000), handle.logs("stderr", 60_000)
        files = session.copy_out(
            out, dest, allowed=lambda name: name == "run.txt", max_bytes=limits.output, max_files=4
        )
    return Ran(ended, *logs, files, seconds, facts)


def wait_for_line(handle: Handle, start: str, seconds: float = 40.0) -> str:
    """Return the first line that the container prints with this beginning, as soon as it is there."""
    end = time.monotonic() + seconds
    while True:
        for text in handle.logs("stdout", 256 * 1024).decode().splitlines():
            if text.startswith(start):
                return text
        assert time.monotonic() < end, handle.logs("stderr", 5000)
        time.sleep(0.02)


@contextmanager
def raises_in(module: str) -> Iterator[pytest.ExceptionInfo[ValueError]]:
    """Expect a ValueError of the module with this file name."""
    with pytest.raises(ValueError) as caught:
        yield caught
    assert caught.traceback[-1].path.name == module, caught.value


def run_at_once(run: Callable[[int], Any], numbers: Iterable[int] = range(3)) -> list[Any]:
    """Call ``run`` with each number in a thread of its own, all at the same time; return the results."""
    calls = list(numbers)
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls, timeout=120))


@dataclass
class WebServer:
    """A server that answers everything with one body, and the paths that it was asked for."""

    port: int
    paths: list[str] = field(default_factory=list)


@contextmanager
def web_server(body: bytes, host: str = "127.0.0.1") -> Iterator[WebServer]:
    """Serve ``body`` on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            facts.paths.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer((host, 0), Handler) as server:
        facts = WebServer(server.server_port)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield facts
        server.shutdown()


def caches_lock() -> FileLock:
    """The lock of the tests that empty the machine's caches, or need them left alone."""
    return FileLock(private_folder(default_locks()) / "test-caches.lock")


@contextmanager
def guarded_engine(engine: DockerEngine, **options: Any) -> Iterator[DockerEngine]:
    """The same engine, which keeps public and blinded runs apart. No other such test runs meanwhile."""
    with caches_lock(), closing(DockerEngine(engine.clients.host, **options)) as guarded:
        yield guarded


BLINDED_RUN = """
import sys, time
from runner.engines.base import ContainerSpec
from runner.engines.docker.engine import DockerEngine
from runner.model.limits import MIB, Limits
host, attempt, image, loopback = sys.argv[1:]
engine = DockerEngine(host)
with engine.session(attempt, visibility="blinded") as session:
    limits = Limits(memory=64 * MIB, pids=16, loopback=loopback == "True")
    session.start(ContainerSpec("software", engine.resolve(image), ("sleep", "600"), limits))
    print("running", flush=True)
    time.sleep(600)
"""


def kill_during_blinded_run(
    engine: DockerEngine, attempt: str, image: ImageRef, *, loopback: bool, after: float = 0
) -> None:
    """Start a blinded run in a process of its own, and kill the process ``after`` seconds; the container stays."""
    command = [sys.executable, "-c", BLINDED_RUN, str(engine.clients.host), attempt, image.id, str(loopback)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"running\n"
            time.sleep(after)
        finally:
            process.kill()


@pytest.fixture
def far_engine(engine: DockerEngine) -> Iterator[DockerEngine]:
    """The same engine, used like an engine on another machine."""
    host = engine.clients.host
    with closing(DockerEngine(host, local=False, engine_for="both-without-eviction")) as far:
        yield far


@pytest.fixture
def keeper_engine(engine: DockerEngine) -> Iterator[DockerEngine]:
    """The same engine for a process that may not mount volumes on its machine."""
    with closing(DockerEngine(engine.clients.host, engine_for="both-without-eviction")) as restricted:
        restricted.mounts_memory = False
        yield restricted


def _copy(mounts: Mounts, out: Path) -> None:
    out.joinpath("run.txt").write_bytes(mounts["/in"].joinpath("deep/queries.txt").read_bytes())
    mounts.say("hello")
    mounts.complain("warned")


def _sleep(mounts: Mounts, out: Path) -> None:
    out.joinpath("begun").touch()
    mounts.stopped.wait(60)


def _odd(mounts: Mounts, out: Path) -> None:
    out.joinpath("run.txt").symlink_to("/etc/passwd")
    out.joinpath("folder").mkdir()
    out.joinpath("evil\x1b[2J\n").touch()
    out.joinpath("extra.txt").touch()
    out.joinpath("good.txt").write_text("good")


def _loud(mounts: Mounts, out: Path) -> None:
    mounts.stdout += (b"x" * 99 + b"\n") * 10_000
    mounts.say("the end")


def _absent(mounts: Mounts, out: Path) -> int:
    mounts.stderr += b"[FATAL tini (7)] exec nope failed: No such file or directory\n"
    return 127


def _fill(mounts: Mounts, out: Path) -> int:
    out.joinpath("run.txt").write_bytes(b"\0" * 4 * MIB)
    return 1


def _polite(mounts: Mounts, out: Path) -> int:
    mounts.say("begun")
    mounts.stopped.wait(60)
    mounts.say("ending")
    return 7


def _stubborn(mounts: Mounts, out: Path) -> None:
    mounts.say("begun")
    mounts.stopped.wait(60)
    time.sleep(2)


def _look(mounts: Mounts, out: Path) -> None:
    end = time.monotonic() + 60
    while not mounts["/in"].joinpath("note").exists() and time.monotonic() < end:
        time.sleep(0.02)
    mounts.say(mounts["/in"].joinpath("note").read_text())


# name -> (Python for a container, script for the fake)
PROGRAMS: dict[str, tuple[str, Script | Exit]] = {
    "copy": (
        "import sys; open('/out/run.txt','wb').write(open('/in/deep/queries.txt','rb').read());"
        "print('hello'); print('warned', file=sys.stderr)",
        _copy,
    ),
    "fail": ("import sys; sys.exit(3)", Exit(code=3)),
    "work": ("while True: pass", Exit(code=0, resources=Resources(2.0, 2.0, MIB, "exact"))),
    "sleep": ("import time; open('/out/begun','w'); time.sleep(60)", _sleep),
    "odd": (
        "import os; os.chdir('/out'); os.symlink('/etc/passwd','run.txt'); os.mkdir('folder');"
        "open('evil\\x1b[2J\\n','w'); open('extra.txt','w'); open('good.txt','w').write('good')",
        _odd,
    ),
    "loud": ("print(('x'*99+'\\n')*10000, end=''); print('the end')", _loud),
    "fill": (
        "f=open('/out/run.txt','wb',0); n=f.write(bytes(3<<20)); f.write(bytes(3<<20)); f.write(b'x')",
        _fill,
    ),
    "polite": (
        "import signal, sys, time\n"
        "def end(*_): print('ending', flush=True); sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, end); print('begun', flush=True); time.sleep(60)",
        _polite,
    ),
    "stubborn": (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('begun', flush=True); time.sleep(60)",
        _stubborn,
    ),
    "look": (
        "import os, time\nwhile not os.path.exists('/in/note'): time.sleep(0.02)\nprint(open('/in/note').read())",
        _look,
    ),
    "absent": ("", _absent),
    "refused": (
        "",
        Exit(code=None, start_error="the command and the environment of the image are too large"),
    ),
}


@dataclass
class World:
    """An engine and a way to start the programs on it."""

    engine: Engine
    image: Callable[[str], ImageRef]
    real: bool

    def spec(self, program: str, *mounts: Mount, limits: Limits = LIMITS, **changes: object) -> ContainerSpec:
        odd = {"absent": ("nope",), "refused": ("true", "x" * 200_000)}
        command = odd.get(program) or ("python3", "-c", PROGRAMS[program][0])
        spec = ContainerSpec("software", self.image(program), command, limits, mounts)
        return replace(spec, **changes)  # type: ignore[arg-type]


@pytest.fixture(params=["fake", pytest.param("docker", marks=pytest.mark.engine)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Every test that takes this runs on both engines."""
    if request.param == "docker":
        image: ImageRef = request.getfixturevalue("scratch_image")
        yield World(request.getfixturevalue("engine"), lambda _program: image, True)
        return
    fake = FakeEngine({name: script for name, (_, script) in PROGRAMS.items()})
    yield World(fake, fake.resolve, False)
    fake.close()
