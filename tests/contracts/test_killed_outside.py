"""Containers that a call to the engine, the machine, or the software itself ends. Real engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from runner.engines.base import ContainerSpec
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.handle import DockerHandle
from runner.engines.witness import PAUSED, Witness
from runner.model.container import Exit, ImageRef
from runner.model.limits import MIB, Limits
from runner.model.verdict import FREE, PART, Facts, decide
from tests.contracts.conftest import wait_for_line

pytestmark = pytest.mark.engine
LIMITS = Limits(memory=128 * MIB, pids=64, wall_clock=60, output=4 * MIB, tmp=16 * MIB, shm=8 * MIB)
WAITS = "import time; print('begun', flush=True); time.sleep(50)"
LISTENS = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('begun', flush=True); time.sleep(50)"
)
KILLS_ITSELF = "import os, time; time.sleep(1); os.kill(os.getpid(), 9)"
KILLS_INIT = "import os, time; time.sleep(1); os.kill(1, 9); time.sleep(1); os.kill(os.getpid(), 9)"
# A limit that only the kernel enforces, by a SIGKILL in nobody's name; the init has to work to reach it.
LIMITS_INIT = (
    "import os, resource, signal, time\n"
    "time.sleep(1)\n"
    "print(resource.prlimit(1, resource.RLIMIT_CPU))\n"
    "try: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))\n"  # at once: nobody would see it before it kills
    "except PermissionError: print('denied')\n"
    "end = time.monotonic() + 3\n"
    "while time.monotonic() < end: os.kill(1, signal.SIGWINCH)\n"
    "os.kill(os.getpid(), 9)"
)
EATS = "held = [bytearray(1 << 20) for _ in range(400)]"

Act = Callable[[DockerHandle, int], object]


@pytest.fixture
def ended(engine: DockerEngine, scratch_image: ImageRef, attempt: str) -> Callable[..., Exit]:
    """Run a program, do something to it from outside when it says ``begun``, and return how it ended."""

    def run(program: str, act: Act | None = None, deadline: float = 60.0) -> Exit:
        with engine.session(attempt) as session:
            handle = session.start(
                ContainerSpec("software", scratch_image, ("python3", "-c", program), LIMITS)
            )
            if act is None:
                return handle.wait(deadline)
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(handle.wait, deadline)
                wait_for_line(handle, "begun")
                facts = engine.clients.get().inspect_container(handle.id)
                act(handle, int(facts["State"]["Pid"]))
                return waiting.result(90)

    return run


def verdict(end: Exit) -> str:
    return decide(Facts(end, output_present=end.code == 0, output_full=False), LIMITS, "run.txt").name


# The program, the call that ends it, the deadline, the exit codes, the limit that it reaches, and the recorded signal.
# Half a run file would be scored if a stop that the software obeys was a good end. Python turns SIGINT into an exception.
CALLS = {
    "SIGKILL": (WAITS, lambda api, id: api.kill(id, signal.SIGKILL), 60.0, (137,), None, 9),
    "SIGTERM": (WAITS, lambda api, id: api.kill(id, signal.SIGTERM), 60.0, (143,), None, 15),
    "SIGINT": (WAITS, lambda api, id: api.kill(id, signal.SIGINT), 60.0, (130, 1), None, 2),
    "stop": (LISTENS, lambda api, id: api.stop(id, timeout=20), 60.0, (0,), None, 15),
    "pause": (WAITS, lambda api, id: api.pause(id), 5.0, (137,), "time", None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_who_calls_the_engine_is_outside(engine: DockerEngine, ended: Callable[..., Exit], name: str) -> None:
    program, call, deadline, codes, killed, number = CALLS[name]
    end = ended(program, lambda handle, _: call(engine.clients.get(), handle.id), deadline)
    assert (end.killed, verdict(end)) == (killed, "killed-outside")
    assert end.code in codes
    if number is None:
        assert end.outside == PAUSED
    else:
        assert numbers(end.outside) == [number]


def numbers(outside: str | None) -> list[int]:
    """Return the signals that a reason names."""
    return [int(word) for word in str(outside).split() if word.isdigit()]


def test_a_kill_from_the_machine(engine: DockerEngine, ended: Callable[..., Exit]) -> None:
    if not engine.local:
        pytest.fail("this test kills by process id: it needs an engine on this machine", pytrace=False)
    end = ended(WAITS, lambda _, pid: os.kill(pid, signal.SIGKILL))
    assert end.code == 137
    if not _kernel_tells():  # Linux before 6.15: it cannot be known, and is not guessed
        assert (end.outside, verdict(end)) == (None, "signal")
        return
    assert end.outside and end.outside != PAUSED and numbers(end.outside) == []
    assert verdict(end) == "killed-outside"


def _kernel_tells() -> bool:
    """Whether the kernel says how a process ended that is not ours; asked about a child of this test."""
    watch = Witness()
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    watch.started(child, "")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        return watch.first_process_killed()
    finally:
        watch.close()


@pytest.mark.slow
@pytest.mark.parametrize("program", [KILLS_ITSELF, KILLS_INIT, LIMITS_INIT], ids=["itself", "init", "limit"])
def test_what_a_software_does_to_itself_stays_its_own(ended: Callable[..., Exit], program: str) -> None:
    end = ended(program)
    assert (end.code, end.killed, end.outside, verdict(end)) == (137, None, None, "signal")


@pytest.mark.slow
def test_its_own_limits_stay_its_own(ended: Callable[..., Exit]) -> None:
    assert verdict(ended(EATS)) == "memory-limit"
    late = ended(WAITS, deadline=2.0)
    assert (late.killed, late.outside, verdict(late)) == ("time", None, "time-limit")


MACHINE = (
    "6,1,1,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
    "task_memcg=/proctor/1x2/{id},task={task},pid=7,uid=20000\n"
)
GROUP = (
    "6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset={id},mems_allowed=0,"
    "oom_memcg=/proctor/1x2/{id},task_memcg=/proctor/1x2/{id},task={task},pid=7,uid=20000\n"
)


@pytest.mark.parametrize(
    ("line", "container", "told"),
    [
        (MACHINE, "c" * 64, True),
        (MACHINE, "d" * 64, False),
        (GROUP, "c" * 64, False),
        # The name of a process is its own choice.
        (GROUP.replace("{task}", ",global_oom,ta"), "c" * 64, False),
    ],
)
def test_the_kernels_log_of_memory_kills(tmp_path: Path, line: str, container: str, told: bool) -> None:
    """The lines are a real kernel's; a machine without memory cannot be had for a test."""
    log = tmp_path / "kmsg"
    log.write_text(MACHINE.format(id=container, task="before"))
    watch = Witness(log)
    with log.open("a") as file:
        file.write(line.replace("{id}", "c" * 64).replace("{task}", "python3"))
    assert watch.machine_out_of_memory(container) is told
    watch.close()


STAT = """cpu  100 0 100 700 50 0 10 {steal} 0 0
cpu0 90 0 90 {idle} 0 0 0 0 5 0
cpu1 10 0 10 600 50 0 10 40 0 0
intr 1 2 3
"""


def test_how_much_of_the_processors_was_free(tmp_path: Path) -> None:
    """Of all of them, or of those that a container is pinned to; what the machine's host took counts as used."""
    stat = tmp_path / "stat"
    stat.write_text(STAT.format(steal=40, idle=100))
    every, first, none = (Witness(processors=of, stat=stat) for of in ((), (0,), (7,)))
    assert every.idle() is None, "no time has passed"
    stat.write_text(STAT.format(steal=140, idle=200).replace("700", "1000"))
    assert every.idle() == 0.75 and first.idle() == 1.0 and none.idle() is None
    stat.write_text("")
    assert every.idle() is None
    for watch in (every, first, none):
        watch.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "found"), [("while True: pass", "platform-error"), ("import time; time.sleep(60)", "time-limit")]
)
def test_who_ran_into_the_wall_clock_on_a_busy_machine(
    engine: DockerEngine, scratch_image: ImageRef, code: str, found: str
) -> None:
    """Others take the processor that it is pinned to: who works all the time gets little of it, who sleeps wants none."""
    # what waits is looked at now and then, late on a busy machine
    limits = replace(LIMITS, pinned=True, wall_clock=8.0)
    spec = ContainerSpec("software", scratch_image, ("python3", "-c", code), limits)
    with engine.session(f"test-busy-{uuid4().hex}") as session, ExitStack() as stack:
        handle = session.start(spec)
        pinned = engine.clients.get().inspect_container(handle.id)["HostConfig"]["CpusetCpus"]
        for _ in range(8):
            code = f"import os\nos.sched_setaffinity(0, {{{pinned}}})\nwhile True: pass"
            stack.callback(subprocess.Popen([sys.executable, "-c", code]).kill)
        end = handle.wait(limits.wall_clock)
    assert end.killed == "time" and end.idle is not None and end.idle < FREE, end
    assert end.resources.cpu_seconds is not None and end.waited is not None
    assert end.resources.cpu_seconds < PART * end.resources.wall_seconds, end
    facts = Facts(end, output_present=False, output_full=False)
    assert decide(facts, limits, "run.txt").name == found, end
