"""What it costs that caches are emptied between blinded and public runs: the same small run, side by side.

A public run is started (1) after a public one, without the rules of turns, (2) after a public one, with them, (3) after
a blinded one, with them: then the caches are emptied first, and everything is read from the disk again. ``python -m
benchmarks.eviction`` needs the container engine and the platform's images (``make setup``). It ends with 1 when keeping
the rules costs a run that follows its like more than half of its time.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import sys
import time
from dataclasses import dataclass

from runner.engines.base import ContainerSpec
from runner.engines.docker.engine import DockerEngine
from runner.model import config
from runner.model.container import ImageRef
from runner.model.limits import MIB, Limits
from runner.model.task import Visibility
from runner.provision.engine import engine_host

LIMITS = Limits(memory=256 * MIB, wall_clock=120)
PROGRAM = "import asyncio, ctypes, decimal, email.message, http.client, json, sqlite3, ssl, xml.dom.minidom"
BAR = 1.5


@dataclass
class Bench:
    """One engine with the rules and without."""

    guarded: DockerEngine
    plain: DockerEngine
    image: ImageRef

    def run(self, engine: DockerEngine, visibility: Visibility) -> float:
        """Seconds for one run, from asking for its turn to everything removed."""
        begun = time.perf_counter()
        with engine.session(f"bench-{secrets.token_hex(6)}", visibility=visibility) as session:
            spec = ContainerSpec("software", self.image, ("python3", "-c", PROGRAM), LIMITS)
            ended = session.start(spec).wait(LIMITS.wall_clock)
        if ended.code != 0:
            raise SystemExit(f"the run ended with {ended}")
        return time.perf_counter() - begun

    def case(self, engine: DockerEngine, before: Visibility) -> float:
        """Seconds for a public run after a run on data of the visibility ``before``."""
        self.run(engine, before)
        return self.run(engine, "public")


def main() -> int:
    """Print medians and ratios; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    host = engine_host(config.load())
    # Whoever else uses the engine meanwhile is waited for, which spoils the figures: that is said.
    guarded = DockerEngine(
        host, tell=lambda line: None if "emptying" in line else print(line, file=sys.stderr)
    )
    plain = DockerEngine(host, engine_for="both-without-eviction")
    bench = Bench(guarded, plain, guarded.keeper())
    cases = {
        "after a public run, without the rules": (plain, "public"),
        "after a public run, with them": (guarded, "public"),
        "after a blinded run, with them": (guarded, "blinded"),
    }
    for engine, before in cases.values():  # a round to warm up, which also leaves no mark for the first case
        bench.case(engine, before)  # type: ignore[arg-type]
    times: dict[str, list[float]] = {name: [] for name in cases}
    evictions = []
    for _ in range(rounds):
        for name, (engine, before) in cases.items():
            times[name].append(bench.case(engine, before))  # type: ignore[arg-type]
        bench.run(guarded, "public")
        evictions.append(guarded.try_eviction())
    medians = {name: statistics.median(each) for name, each in times.items()}
    least = next(iter(medians.values()))
    print("| a public run | s | ratio |\n|---|---|---|")
    for name, median in medians.items():
        print(f"| {name} | {median:.2f} | {median / least:.2f} |")
    print(f"\nThe eviction itself: {statistics.median(evictions):.2f} s (median of {rounds}).")
    ratio = medians["after a public run, with them"] / least
    for one in (guarded, plain):
        one.close()
    if ratio > BAR:
        print(f"the rules cost too much where nothing has to be emptied: {ratio:.2f}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
