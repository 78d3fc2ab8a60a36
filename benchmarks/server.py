"""The front under load, against its goals: readers of a large board, cached pages, hand-ins at once, open streams, readers during uploads.

``python -m benchmarks.server [--runs 150] [--teams 50] [--seconds 20] [--rounds 3]`` makes a project of so many scored runs over 50 topics with 10
measures by the project's own code (:mod:`benchmarks.server_world`), serves it with ``runner front``, and asks it from another
process (:mod:`benchmarks.server_load`). Medians of the rounds are compared with the goals; it ends with 1 when one is missed. What
the load generator and everything else took of the processors is stated beside: on a busy machine goals say little.

``--only publishing`` measures the cost of publishing alone, without a front; ``--only mixing`` readers alone and during log streams and
uploads, in turn. ``--quick`` is for tests: a small board, a few seconds, and bounds that only something broken misses.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.server_load import generator
from benchmarks.server_world import BOARD, Site
from runner.model.limits import MIB

_TICKS = os.sysconf("SC_CLK_TCK")
GZIP = {"Accept-Encoding": "gzip"}


@dataclass(frozen=True)
class Size:
    """How much is done, and the goals."""

    runs: int
    teams: int
    readers: int
    streams: int
    seconds: float
    rounds: int
    p95: float = 0.100  # seconds
    each: float = 300.0  # pages a second
    memory: float = 200.0  # MiB
    news: float = 10.0  # seconds
    published: float = 2.0  # seconds
    mixed: float = 0.500  # seconds
    log_streams: int = 100
    uploads: int = 50
    upload_bytes: int = 4 * MIB


FULL = Size(150, 50, 100, 500, 20, 3)
QUICK = Size(
    12,
    6,
    20,
    60,
    3,
    1,
    p95=3.0,
    each=10.0,
    memory=400.0,
    news=30.0,
    published=20.0,
    mixed=10.0,
    log_streams=20,
    uploads=6,
    upload_bytes=MIB,
)


@dataclass(frozen=True)
class Line:
    """A line of the table: what was measured, the value in words, its goal, and whether it is reached."""

    what: str
    value: str
    goal: str
    good: bool
    beside: str = ""


@dataclass
class Front:
    """A front that runs."""

    url: str
    pid: int

    def cpu(self) -> float:
        """Seconds of processor time that it took until now."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self) -> float:
        """MiB of memory that it has."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024


@contextmanager
def front(exchange: Path, state: Path) -> Iterator[Front]:
    """``runner front`` over an exchange folder, until the block ends."""
    command = [sys.executable, "-m", "runner", "front", "--exchange", str(exchange), "--state", str(state)]
    process = subprocess.Popen(
        [*command, "--bind", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("ready "):
                yield Front(line.split()[1], process.pid)
                return
        raise SystemExit("the front did not start")
    finally:
        process.terminate()
        process.wait()


def measured(
    front: Front, do: str, meanwhile: Callable[[], None] = lambda: None, **order: Any
) -> dict[str, Any]:
    """What the load generator saw, and shares of the processors meanwhile: ``front``, ``load``, ``others`` and ``idle``."""
    before, machine, began = front.cpu(), _machine(), time.perf_counter()
    with generator() as load:  # its start counts as that of others
        assert load.stdin is not None and load.stdout is not None
        load.stdin.write(json.dumps({"do": do, "url": front.url, **order}) + "\n")
        load.stdin.flush()
        line = load.stdout.readline()
        if line.startswith("open"):
            meanwhile()
            load.stdin.write("\n")
            load.stdin.flush()
            line = load.stdout.readline()
    found: dict[str, Any] = json.loads(line)
    whole = (time.perf_counter() - began) * (os.cpu_count() or 1)
    idle = (_machine() - machine) / _TICKS / whole
    shares = {"front": (front.cpu() - before) / whole, "load": found["cpu"] / whole, "idle": min(1.0, idle)}
    return {**found, **shares, "others": max(0.0, 1 - sum(shares.values()))}


def _machine() -> int:
    """Ticks in which the machine's processors had nothing to do."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[4]) + int(fields[5])


def shares(of: Mapping[str, float]) -> str:
    """Who had the processors, in words."""
    return ", ".join(f"{name} {of[name]:.0%}" for name in ("front", "load", "others", "idle"))


def at(waits: list[float], part: float) -> float:
    """The wait that so large a part of them does not exceed."""
    return sorted(waits)[max(0, math.ceil(part * len(waits)) - 1)]


def reading(front: Front, site: Site, size: Size) -> Iterator[Line]:
    """Readers, each a page a second; then pages as fast as they come."""
    rounds = []
    for _ in range(size.rounds):
        site.alive()
        order: dict[str, Any] = {
            "path": BOARD,
            "count": size.readers,
            "seconds": size.seconds,
            "headers": GZIP,
        }
        rounds.append(measured(front, "readers", **order))
    p95 = statistics.median(at(one["waits"], 0.95) for one in rounds)
    median = statistics.median(at(one["waits"], 0.5) for one in rounds)
    good = all(set(one["statuses"]) == {"200"} for one in rounds)
    what = f"{size.readers} readers, a page a second each, {size.runs} runs: p95"
    beside = f"median {median * 1000:.0f} ms, {rounds[0]['bytes']:,} bytes a page; {shares(rounds[-1])}"
    yield Line(what, f"{p95 * 1000:.0f} ms", f"≤ {size.p95 * 1000:.0f} ms", good and p95 <= size.p95, beside)
    for name, headers in (
        ("304", {**GZIP, "Cached": "yes"}),
        ("200, gzip", GZIP),
        ("200, as it is", {}),
    ):
        done = []
        for _ in range(size.rounds):
            site.alive()
            order = {"path": BOARD, "count": 16, "seconds": size.seconds / 2, "headers": headers}
            done.append(measured(front, "busy", **order))
        each = statistics.median(one["each"] for one in done)
        good = all(set(one["statuses"]) == {name[:3]} for one in done)
        beside = f"{done[0]['bytes']:,} bytes; {shares(done[-1])}"
        yield Line(
            f"cached pages a second, {name}",
            f"{each:,.0f}",
            f"≥ {size.each:.0f}",
            good and each >= size.each,
            beside,
        )


def handing_in(front: Front, site: Site, size: Size) -> Iterator[Line]:
    """Every team hands in at once, each the same file twice; then work decides."""
    before = site.handed_in()
    tokens = {team: str(token) for team, token in site.tokens.items()}
    said = measured(front, "hand_ins", path="/api/v1/tasks/bench/run-files", tokens=tokens, times=2)
    answers = said["answers"]
    taken = [one for one in answers if one["status"] == 202]
    ids = {one["request"] for one in taken}
    seconds = site.decide()
    after = site.handed_in()
    one_more = all(after.get(team, 0) == before.get(team, 0) + 1 for team in tokens)
    good = len(ids) == len(answers) == 2 * len(tokens) and one_more
    yield Line(
        f"{len(tokens)} teams hand in at once, each twice: kept",
        f"{len(ids)} requests, {sum(after.values()) - sum(before.values())} submissions",
        f"{2 * len(tokens)} and {len(tokens)}",
        good,
        f"answered in {at(said['waits'], 0.95) * 1000:.0f} ms (p95), decided in {seconds:.1f} s; {shares(said)}",
    )


def following(front: Front, site: Site, size: Size) -> Iterator[Line]:
    """Open pages that ask whether they changed, and a change for all of them."""
    base, most = front.memory(), [0.0]

    def meanwhile() -> None:
        most[0] = front.memory()
        site.another()

    said = measured(front, "streams", meanwhile, path=BOARD, count=size.streams)
    late = at(said["waits"], 1.0) if said["waits"] else math.inf
    memory = max(most[0], front.memory())
    good = said["open"] == said["heard"] == size.streams and memory <= size.memory
    yield Line(
        f"{size.streams} open pages: memory of the front",
        f"{memory:.0f} MiB",
        f"≤ {size.memory:.0f} MiB",
        good,
        f"{base:.0f} MiB before; {said['heard']} heard of another board, the last after {late:.1f} s; {shares(said)}",
    )


def mixing(front: Front, site: Site, size: Size) -> Iterator[Line]:
    """Readers alone, and in turn the same readers during log streams and uploads."""
    tokens = {team: str(token) for team, token in site.tokens.items()}
    pages = site.follow_logs()
    order: dict[str, Any] = {
        "path": BOARD,
        "count": size.readers,
        "seconds": size.seconds,
        "headers": GZIP,
    }
    mix = {
        "tokens": {team: tokens[team] for team in pages},
        "pages": pages,
        "streams": size.log_streams,
        "uploads": size.uploads,
        "size": size.upload_bytes,
    }
    alone, mixed, loads = [], [], []
    for _ in range(size.rounds):
        site.alive()
        alone.append(measured(front, "readers", **order))
        with writing_logs(site):
            load = measured(front, "mix", lambda: mixed.append(measured(front, "readers", **order)), **mix)
        loads.append(load)
    p95_alone = statistics.median(at(reading["waits"], 0.95) for reading in alone)
    p95 = statistics.median(at(reading["waits"], 0.95) for reading in mixed)
    megabytes = statistics.median(load["sent"] for load in loads) / MIB
    upload_count = sum(load["uploads"] for load in loads)
    is_answered = all(set(reading["statuses"]) == {"200"} for reading in mixed)
    is_loaded = all(load["streams"] == size.log_streams and load["events"] for load in loads)
    yield Line(
        f"the same readers during {size.log_streams} log streams and {size.uploads} uploads: p95",
        f"{p95 * 1000:.0f} ms",
        f"≤ {size.mixed * 1000:.0f} ms",
        is_answered and is_loaded and p95 <= size.mixed,
        f"{p95_alone * 1000:.0f} ms alone in turn, {p95 / p95_alone:.1f} times; {upload_count} uploads, "
        f"{megabytes:.0f} MiB a round, {loads[-1]['events']} events; load {os.getloadavg()[0]:.1f}; {shares(mixed[-1])}",
    )


@contextmanager
def writing_logs(site: Site) -> Iterator[None]:
    """Have the logs of all teams grow every second, until the block ends."""
    stop = threading.Event()

    def write() -> None:
        for second in count(1):
            if stop.wait(1.0):
                return
            site.write_logs(second)
            site.alive()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def publishing(site: Site, size: Size) -> Iterator[Line]:
    """What publishing takes when there is one run more; beside it everything anew, and nothing new."""
    site.publish()
    seconds = statistics.median(site.one_more() for _ in range(size.rounds))
    site.kept.clear()
    anew = site.publish()
    again = site.publish()
    yield Line(
        f"publishing one run more to {len(site.tokens)} teams",
        f"{seconds:.1f} s",
        f"≤ {size.published:.0f} s",
        seconds <= size.published,
        f"seconds of the processor; everything anew {anew:.1f} s, and nothing new {again:.1f} s",
    )


def main() -> int:
    """Print one table, as Markdown; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server")
    parser.add_argument("--quick", action="store_true", help="a small board and wide bounds, for tests")
    parser.add_argument("--only", choices=("publishing", "mixing"), help="measure this alone")
    for name in ("runs", "teams", "readers", "streams", "rounds"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--seconds", type=float)
    args = vars(parser.parse_args())
    plain, only = QUICK if args.pop("quick") else FULL, args.pop("only")
    size = Size(**{**vars(plain), **{name: value for name, value in args.items() if value is not None}})
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="bench-server-") as folder:
        site = Site.make(Path(folder, "project"), size.runs, size.teams)
        if only != "mixing":
            lines += publishing(site, size)
        if only != "publishing":
            parts = (mixing,) if only == "mixing" else (reading, handing_in, following, mixing)
            with front(site.config.exchange, Path(folder, "state")) as one:
                for part in parts:
                    lines += part(one, site, size)
        site.open_again()
    print("| what | found | goal | reached | beside |\n|---|---|---|---|---|")
    for line in lines:
        print(
            f"| {line.what} | {line.value} | {line.goal} | {'yes' if line.good else 'NO'} | {line.beside} |"
        )
    made = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in site.seconds.items())
    print(f"\n{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; {made}.")
    return 0 if all(line.good for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
