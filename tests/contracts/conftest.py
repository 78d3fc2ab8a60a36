"""Two engines under one suite: what a program does is written twice, as Python for a container and as a script."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from runner.engines.base import ContainerSpec, Engine, Mount
from runner.engines.fake import FakeEngine, Mounts, Script
from runner.model.container import Exit, ImageRef, Resources
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
