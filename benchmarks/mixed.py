"""``runner evaluate --all`` over runs of very different lengths: how long all take beside list scheduling, where nothing else takes any time.

``python -m benchmarks.mixed [--runs 100] [--slots 4] [--mean 2.0]`` registers softwares that wait (scripted engine; archive, event log and store are
real): most of them shortly, one in ten ten times as long, of ten teams, and prints how long all took, the list-scheduling bound (the same steps in the
order in which they began, each on the slot that is free first), the lower bound of every order, and what one run costs beside waiting.
It ends with 1 when all takes more than 1.05 times the bound.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.planning import EVALUATOR, SOFTWARE, configuration, evaluator, software, write_project
from benchmarks.scale import list_schedule
from runner.engines.fake import FAKE, FakeEngine, Mounts
from runner.execution.coordinator import EvaluationRequest, Silent, coordinating
from runner.execution.machine import Machine
from runner.model.limits import GIB

GOAL = 1.05
TEAMS = 10


def length(number: int, mean: float) -> float:
    """For how long the software of that number waits, the same each time: one in ten ten times as long as the others, each by up to a half more or less."""
    spread = 0.5 + (number * 2654435761 % 4096) / 4096
    return mean * spread * (10 if number * 7 % 10 == 3 else 1) / 1.9


def measure(root: Path, runs: int, slots: int, mean: float) -> tuple[float, float, Sequence[float]]:
    """Seconds that all runs took together, seconds of the processor that went into them, and how long each software waited, in the order in which they began.

    Raises SystemExit where not all are scored.
    """
    begun: list[float] = []

    def waiting(mounts: Mounts, out: Path) -> None:
        assert mounts.spec.command is not None
        seconds = length(int(mounts.spec.command[-1]), mean)
        begun.append(seconds)
        mounts.stopped.wait(seconds)
        software(mounts, out)

    config, request = configuration(root), EvaluationRequest(jobs=slots)
    write_project(root, runs, teams=TEAMS)
    engine = FakeEngine(
        {EVALUATOR: evaluator, SOFTWARE: waiting}, info=replace(FAKE, cpus=slots, memory=8 * GIB * slots)
    )
    used = Machine(config, engine=engine, images={"evaluator": EVALUATOR})
    with coordinating(config, Silent(), machine=used) as coordinator:
        todo = coordinator.plan(request)
        start, before = time.perf_counter(), time.process_time()
        result = coordinator.run(todo, request)
        took, spent = time.perf_counter() - start, time.process_time() - before
    engine.close()
    if [run.outcome.name for run in result.done.values()] != ["scored"] * runs:
        raise SystemExit(f"not scored: {[*result.undone.values()][:3]}")
    return took, spent, begun


def main() -> int:
    """Print the figures, as Markdown; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixed")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--mean", type=float, default=2.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-mixed-") as folder:
        took, spent, lengths = measure(Path(folder), args.runs, args.slots, args.mean)
        for place, _, _ in os.walk(folder):  # the archive is sealed read-only
            Path(place).chmod(0o755)
    bound = list_schedule(lengths, args.slots)
    least = max(sum(lengths) / args.slots, max(lengths))
    beside = (took - bound) * args.slots / args.runs * 1000
    print(f"load {os.getloadavg()[0]:.1f}\n")
    print(
        "| runs | slots | s | list scheduling | ratio | goal | least of any order | a run, beside waiting: ms | CPU ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    sizes = (
        f"{args.runs} | {args.slots} | {took:.1f} | {bound:.1f} | {took / bound:.3f} | {GOAL} | {least:.1f}"
    )
    print(f"| {sizes} | {beside:.0f} | {spent / args.runs * 1000:.0f} |")
    return int(took > GOAL * bound)


if __name__ == "__main__":
    raise SystemExit(main())
