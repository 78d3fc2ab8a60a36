"""Our evaluator beside the tools that people would use instead, on whole processes, in turn.

``python -m benchmarks.trec [--sizes small,medium,large] [--pairs 5]`` prints medians and ratios. Ours also
validates; the others only score. The files come from :mod:`benchmarks.generate`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple

from benchmarks.generate import SIZES

MEASURES = ("nDCG@5", "nDCG@10", "AP", "RR", "P@10", "R@1000")
OURS = "evaluator trec"


class Cost(NamedTuple):
    """What one process took: seconds, CPU seconds, peak memory in MiB."""

    wall: float
    cpu: float
    peak: float


def cost(command: list[str], fine: Container[int] = (0,)) -> Cost:
    """Run a command to its end, and measure it. Raises RuntimeError if it ends with another code than those that are ``fine``."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in fine:
        raise RuntimeError(f"{command[:3]} ended with {child.returncode}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def commands(run: Path, qrels: Path) -> dict[str, list[str]]:
    """The command of every tool."""
    ours = [sys.executable, "-m", "evaluator", "trec", str(qrels), str(run)]
    for measure in MEASURES:
        ours += ["-m", measure]
    return {
        OURS: ours,
        "ir_measures": [sys.executable, "-m", "ir_measures", str(qrels), str(run), *MEASURES],
        "pytrec_eval, by hand": [sys.executable, "-m", "benchmarks.hand_loader", str(qrels), str(run)],
    }


def compare(run: Path, qrels: Path, pairs: int) -> dict[str, Cost]:
    """The median cost of every tool over ``pairs`` rounds, after one round that warms the caches."""
    tools = commands(run, qrels)
    seen: dict[str, list[Cost]] = {name: [] for name in tools}
    for round_ in range(pairs + 1):
        for name, command in tools.items():
            result = cost(command)
            if round_:
                seen[name].append(result)
    return {
        name: Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))
        for name, costs in seen.items()
    }


def main() -> int:
    """Print one table, as Markdown."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.trec", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--sizes", default="small,medium,large")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir(), "proctor-benchmarks"))
    args = parser.parse_args()
    print("| size | topics | tool | wall s | CPU s | peak MiB | ours / it: wall | CPU | peak |")
    print("|---|---|---|---|---|---|---|---|---|")
    slower = False
    for size in args.sizes.split(","):
        # In a process of its own: the peak memory of a child begins at that of the process that started it.
        maker = [sys.executable, "-m", "benchmarks.generate", str(args.data), "--sizes", size]
        subprocess.run(maker, check=True, stdout=subprocess.DEVNULL)
        costs = compare(args.data / f"{size}.run", args.data / f"{size}.qrels", args.pairs)
        ours = costs[OURS]
        for name, c in costs.items():
            ratios = (
                "| | |"
                if name == OURS
                else f"{ours.wall / c.wall:.2f} | {ours.cpu / c.cpu:.2f} | {ours.peak / c.peak:.2f} |"
            )
            print(
                f"| {size} | {SIZES[size].topics:,} | {name} | {c.wall:.3f} | {c.cpu:.3f} | {c.peak:.0f} | {ratios}",
                flush=True,
            )
        peer = costs["ir_measures"]
        slower = slower or ours.cpu > peer.cpu or ours.peak > peer.peak / 2
    if slower:
        print("GOAL MISSED: slower than ir_measures, or more than half its memory", file=sys.stderr)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
