"""A campaign on a cluster of many slots in few processes: what the coordinator itself takes, and how well the slots are used.

``python -m benchmarks.scale [--slots 1000] [--runs 20000] [--seconds 15]`` starts a real scheduler and real hosts (processes with a
scripted engine whose softwares wait; TLS on loopback), and has a coordinator in a process of its own do all runs: archive, event log,
store, artefact store and the line to the scheduler are real, on one disk. Hosts have their own folders in memory, as other machines have disks of
their own, and evaluators answered beforehand (:mod:`benchmarks.answers`), since they would compute in containers. It prints the coordinator's own
processor time a run, its memory on the way, and how long all took beside list scheduling of the same runs on the same slots, where nothing costs anything. It ends with 1 when a goal is
missed. ``--quick`` is a small size (40 slots, 160 runs of 0.5 s, two hosts) with the same goals, which so few runs miss. The tests do not call it: they measure a
smaller one (24 slots, 48 runs) with wide bounds on processor time and memory. ``--profile FILE`` keeps a profile of the coordinator.
"""

from __future__ import annotations

import argparse
import cProfile
import heapq
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.answers import AnsweringEngine, packed
from benchmarks.planning import (
    EVALUATOR,
    SOFTWARE,
    TOPICS,
    configuration,
    leave_scores,
    software,
    write_project,
)
from runner.engines.fake import FAKE, FakeEngine, Mounts
from runner.execution.coordinator import EvaluationRequest, Silent, coordinating
from runner.execution.machine import Machine
from runner.execution.pool import RunProgress
from runner.model.limits import GIB

GOAL_MS, GOAL_GROWTH, GOAL_MAKESPAN = 5.0, 1.1, 1.05
ROOT = Path(__file__).parents[1]
SCHEDULER = "tls://127.0.0.1:0"
MEMORY = Path("/dev/shm")  # where hosts have their folders, if there is one
ANSWERS = 64  # different ones of evaluators
OWN = ("MainThread", "sending", "taking", "line")  # threads of the coordinator, as they are called


def duration(number: int, mean: float) -> float:
    """For how long the software of that number waits: between half and one and a half times the mean, the same each time."""
    return mean * (0.5 + (number * 2654435761 % 4096) / 4096)


def list_schedule(durations: Sequence[float], slots: int) -> float:
    """When the last run ends, where the next one begins on the slot that is free first, and nothing else takes any time."""
    free = [0.0] * slots
    for seconds in durations:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def host(
    name: str, slots: int, mean: float, address: str, artefacts: str, folder: Path, certificates: Path
) -> None:
    """Be one of the hosts, until it is ended."""
    from runner.execution.cluster.host import Station
    from runner.execution.cluster.members import work
    from runner.execution.cluster.storage.artefacts import Artefacts
    from runner.execution.cluster.storage.cache import Cache

    def waiting(mounts: Mounts, out: Path) -> None:
        assert mounts.spec.command is not None
        mounts.stopped.wait(duration(int(mounts.spec.command[-1]), mean))
        software(mounts, out)

    info = replace(FAKE, cpus=slots, memory=4 * GIB * slots)
    store = Artefacts(artefacts)
    engine = FakeEngine({SOFTWARE: waiting}, info=info)
    station = Station(name, engine, store, Cache(folder / "cache", store, 1 << 30), steps=slots)
    work(station, address, certificates, lambda text: print(text, file=sys.stderr, flush=True))


@dataclass
class Watch:
    """Looks at the coordinator while it works.

    ``memory`` is in MiB, by how many runs were done; ``own`` are the processor seconds of its own threads, without those that evaluate,
    which wait for containers where there is a real engine.
    """

    runs: int
    begun: float = 0.0
    done: int = 0
    own: float = 0.0
    threads: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)

    def heard(self, progress: RunProgress) -> None:
        """Count a run that is done."""
        if progress.kind == "started":
            self.begun = self.begun or time.monotonic()
        elif progress.kind == "done":
            self.done += 1
            for name, share in (("tenth", 0.1), ("half", 0.5), ("end", 1.0)):
                if self.done == max(1, round(self.runs * share)):
                    self.memory[name] = resident()
            if self.done == self.runs:
                for one in threading.enumerate():
                    name = one.name.partition("_")[0]
                    spent = processor(f"self/task/{one.native_id}")
                    self.threads[name] = self.threads.get(name, 0.0) + spent
                self.own = sum(spent for name, spent in self.threads.items() if name in OWN)


class Listening(Silent):
    """A listener that counts."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def say(self, text: str) -> None:
        """To standard error."""
        print(text, file=sys.stderr, flush=True)

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[[RunProgress], None]]:
        """See :class:`runner.execution.coordinator.Listener`."""
        yield self._watch.heard


def resident(pid: int | str = "self") -> float:
    """The memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def processor(pid: int | str) -> float:
    """The processor seconds of a process that runs, or of a thread of it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answers() -> list[bytes]:
    """What evaluators answer, as an engine sends it."""
    found = []
    for number in range(ANSWERS):
        with tempfile.TemporaryDirectory() as name:
            leave_scores(
                Path(name),
                {"ndcg_10": [round((number * 0.013 + topic * 0.7) % 1, 4) for topic in range(TOPICS)]},
            )
            found.append(packed(Path(name)))
    return found


def coordinate(
    root: Path, runs: int, address: str, artefacts: str, certificates: Path, profile: Path | None
) -> dict[str, Any]:
    """Do all runs of a project on the cluster; returns what it took."""
    config = replace(configuration(root), cluster=address, artefacts=artefacts, certificates=certificates)
    engine = AnsweringEngine({EVALUATOR: software, SOFTWARE: software}, answers())
    used = Machine(config, engine=engine, images={"evaluator": EVALUATOR})
    watch = Watch(runs)
    with coordinating(config, Listening(watch), machine=used) as coordinator:
        request = EvaluationRequest()
        todo = coordinator.plan(request)
        numbers = [int(one.run.submission.software[1:]) for one in todo.work]
        whole, before = time.process_time(), processor("self/task/" + str(threading.get_native_id()))
        profiling = cProfile.Profile(time.thread_time) if profile else None
        with _everywhere(profiling, profile) if profiling and profile else nullcontext():
            result = coordinator.run(todo, request)
        ended, evaluating = time.monotonic(), time.process_time() - whole - (watch.own - before)
    engine.close()
    good = sum(run.outcome.name == "scored" for run in result.done.values())
    line = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "good": good, "makespan": ended - watch.begun, "own": watch.own - before, "evaluating": evaluating,
        "memory": watch.memory, "threads": watch.threads,
        "line": line.ru_utime + line.ru_stime, "order": numbers, "failed": [why for why, _ in result.undone.values()][:3],
    }  # fmt: skip


@contextmanager
def _everywhere(profiling: cProfile.Profile, path: Path) -> Iterator[None]:
    """Profile this thread and those that it begins, each with a profile of its own, and add them up in a file."""
    import pstats

    others: list[cProfile.Profile] = []
    run = threading.Thread.run

    def profiled(thread: threading.Thread) -> None:
        own = cProfile.Profile(time.thread_time)
        others.append(own)
        own.runcall(run, thread)

    threading.Thread.run = profiled  # type: ignore[method-assign, assignment]
    try:
        with profiling:
            yield
    finally:
        threading.Thread.run = run  # type: ignore[method-assign]
        total = pstats.Stats(profiling)
        for one in others:
            total.add(one)
        total.dump_stats(path)


class World:
    """The scheduler and the hosts, as processes that write what they say to files in ``folder``."""

    def __init__(self, folder: Path, theirs: Path, slots: int, hosts: int, mean: float) -> None:
        from runner.execution.cluster.certificates import make

        make(folder / "tls", ["127.0.0.1"])
        self.certificates, self.artefacts = folder / "tls" / "127.0.0.1", f"file://{folder / 'store'}"
        self.folder, self.processes = folder, dict[str, subprocess.Popen[bytes]]()
        tls = ("--certificates", str(self.certificates))
        self._start("scheduler", "runner", "cluster", "scheduler", "--listen", SCHEDULER, *tls)
        self.address = self._said("scheduler", r"scheduler at (\S+)")
        for number in range(hosts):
            own = theirs / f"h{number}"
            own.mkdir()
            share = slots // hosts + (number < slots % hosts)
            self._start(own.name, "benchmarks.scale", "--seconds", str(mean), "--host", own.name, str(share), self.address,
                        self.artefacts, str(own), str(self.certificates), scratch=own)  # fmt: skip
        for number in range(hosts):
            self._said(f"h{number}", "(takes)")

    def spent(self) -> dict[str, float]:
        """Processor seconds so far."""
        return {name: processor(process.pid) for name, process in self.processes.items()}

    def close(self) -> None:
        """End all of it."""
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()

    def _start(self, name: str, *command: str, scratch: Path | None = None) -> None:
        own = {"TMPDIR": str(scratch)} if scratch else {}
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env=os.environ | own,
                stderr=log,
                start_new_session=True,
            )

    def _said(self, name: str, pattern: str, seconds: float = 120) -> str:
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.processes[name].poll() is None:
            if match := re.search(pattern, (self.folder / f"{name}.log").read_text()):
                return match[1]
            time.sleep(0.1)
        raise SystemExit(f"{name}: {(self.folder / f'{name}.log').read_text()}")


def measure(slots: int, runs: int, hosts: int, mean: float, profile: Path | None = None) -> dict[str, Any]:
    """What a campaign takes; see the module. Everything is ended and removed at the end."""
    memory = MEMORY if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="bench-scale-") as name,
        tempfile.TemporaryDirectory(prefix="bench-scale-", dir=memory) as theirs,
    ):
        folder, root = Path(name), Path(name, "project")
        root.mkdir()
        write_project(root, runs)
        world = World(folder, Path(theirs), slots, hosts, mean)
        try:
            before = world.spent()
            command = [
                "-m",
                "benchmarks.scale",
                "--coordinate",
                str(root),
                str(runs),
                world.address,
                world.artefacts,
                str(world.certificates),
            ]
            command += ["--profile", str(profile)] if profile else []
            ended = subprocess.run(
                [sys.executable, *command], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
            )
            found: dict[str, Any] = json.loads(ended.stdout)
            spent = {one: seconds - before[one] for one, seconds in world.spent().items()}
        finally:
            world.close()
            for place, _, _ in os.walk(folder):  # the archive is sealed read-only
                Path(place).chmod(0o755)
    if found["good"] != runs:
        raise SystemExit(f"{found['good']} of {runs} runs are scored: {found['failed']}")
    bound = list_schedule([duration(number, mean) for number in found.pop("order")], slots)
    hosting = math.fsum(seconds for one, seconds in spent.items() if one != "scheduler")
    return found | {"bound": bound, "scheduler": spent["scheduler"], "hosting": hosting}


def report(found: dict[str, Any], runs: int) -> dict[str, tuple[float, float]]:
    """Print it as Markdown; returns what has a goal, each with the goal."""
    each = {name: found[name] / runs * 1000 for name in ("own", "evaluating", "line", "scheduler", "hosting")}
    memory = found["memory"]
    print(
        "| processor ms a run: coordinator | evaluations in it | its line | scheduler | hosts | MiB at a tenth, half, end | list scheduling s | makespan s | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    cells = [f"{each[name]:.2f}" for name in each]
    cells.append(", ".join(f"{memory[name]:.0f}" for name in ("tenth", "half", "end")))
    ratio = found["makespan"] / found["bound"]
    print(f"| {' | '.join(cells)} | {found['bound']:.1f} | {found['makespan']:.1f} | {ratio:.3f} |")
    threads = sorted((name, seconds / runs * 1000) for name, seconds in found["threads"].items())
    print("\nms a run by thread:", ", ".join(f"{name} {ms:.2f}" for name, ms in threads if ms >= 0.01))
    growth = memory["end"] / memory["half"]
    return {"ms of the coordinator a run": (each["own"], GOAL_MS), "growth of memory": (growth, GOAL_GROWTH),
            "makespan / list scheduling": (ratio, GOAL_MAKESPAN)}  # fmt: skip


def main() -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=15.0, help="for which a software waits on average")
    parser.add_argument("--profile", type=Path)
    parser.add_argument(
        "--quick", action="store_true", help="40 slots, 160 runs, two hosts, 0.5 s; the same goals"
    )
    parser.add_argument("--host", nargs=6)
    parser.add_argument("--coordinate", nargs=5)
    args = parser.parse_args()
    if args.host:
        name, slots, address, artefacts, own, certificates = args.host
        host(name, int(slots), args.seconds, address, artefacts, Path(own), Path(certificates))
        return 0
    if args.coordinate:
        root, runs, address, artefacts, certificates = args.coordinate
        print(
            json.dumps(
                coordinate(Path(root), int(runs), address, artefacts, Path(certificates), args.profile)
            )
        )
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended then, too
    if args.quick:
        args.slots, args.runs, args.hosts, args.seconds = 40, 160, 2, 0.5
    goals = report(measure(args.slots, args.runs, args.hosts, args.seconds, args.profile), args.runs)
    missed = [name for name, (value, goal) in goals.items() if value > goal]
    for name in missed:
        print(f"missed: {name}: {goals[name][0]:.3g} (goal: {goals[name][1]:g})", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
