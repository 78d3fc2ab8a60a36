"""All pairs of many runs: Fisher's randomisation test with 100,000 sign patterns and Holm's correction, as a leaderboard has them.

``python -m benchmarks.significance [--runs 100] [--topics 50] [--rounds 3]`` times the tests of made-up values in processes of their own, whose
imports are not counted. It ends with 1 when they take more than twice the goal of 3 processor seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time

GOAL = 3.0


def timed(runs: int, topics: int) -> float:
    """Processor seconds for all pairs, imports left out."""
    import numpy as np

    from runner.model.comparing.topics import holm
    from runner.views.leaderboard.significance import between

    dice = random.Random(1)
    data = np.array([[round(dice.betavariate(2, 3), 4) for _ in range(topics)] for _ in range(runs)])
    _ = data @ data.T  # starts the threads of numpy's own library
    begun = time.process_time()
    holm([*between(data).values()])
    return time.process_time() - begun


def main() -> int:
    """Print one line, as Markdown; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.significance")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", action="store_true")
    args = parser.parse_args()
    if args.child:
        print(timed(args.runs, args.topics))
        return 0
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # as commands have it
    words = [sys.executable, "-m", "benchmarks.significance", "--child"]
    words += ["--runs", str(args.runs), "--topics", str(args.topics)]
    found = [
        float(subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout)
        for _ in range(args.rounds)
    ]
    middle, pairs = statistics.median(found), args.runs * (args.runs - 1) // 2
    print(
        f"all {pairs:,} pairs of {args.runs} runs on {args.topics} topics: {middle:.2f} processor seconds (goal {GOAL})"
    )
    return int(middle > 2 * GOAL)


if __name__ == "__main__":
    raise SystemExit(main())
