"""All pairs of many runs: Student's paired t-test with Holm's correction, Fisher's randomisation test with 100,000 sign patterns and Holm's
correction (as a leaderboard has it), and the randomised Tukey HSD with 10,000 permutations.

``python -m benchmarks.significance [--runs 100] [--topics 50] [--rounds 3]`` times the tests of made-up values in processes of their own, whose
imports are not counted. It ends with 1 when one takes more than twice its goal. Leaderboards have the second; the others are what a
choice of tests would cost.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

PERMUTATIONS = 10_000
_AT_ONCE = 100  # permutations whose values are held at a time


def t_tests(data: Any) -> list[float]:
    """p of Student's paired t-test of every pair of rows, corrected by Holm."""
    import numpy as np
    from scipy.stats import ttest_rel

    from runner.model.comparing import holm

    first, second = np.triu_indices(len(data), 1)
    return holm(ttest_rel(data[first], data[second], axis=1).pvalue.tolist())


def randomisation(data: Any) -> list[float]:
    """p of Fisher's randomisation test of every pair of rows, corrected by Holm: the leaderboard's own."""
    from runner.model.comparing import holm
    from runner.views.leaderboard.significance import between

    return holm([*between(data).values()])


def tukey(data: Any) -> list[float]:
    """p of the randomised Tukey HSD of every pair of rows, which controls the family-wise error by itself.

    The values of each topic are permuted among the rows; p = (1 + permutations whose largest difference of means is at least that of the
    pair) / (1 + permutations) (B. A. Carterette, Multiple Testing in Statistical Analysis of Systems-Based Information Retrieval
    Experiments, ACM Transactions on Information Systems 30, 2012, section 3.3).
    """
    import numpy as np

    generator = np.random.default_rng(1)
    rows, topics = data.shape
    largest = np.empty(PERMUTATIONS)
    values = np.tile(data.T, (_AT_ONCE, 1))  # a line a topic of a permutation
    for begin in range(0, PERMUTATIONS, _AT_ONCE):
        generator.permuted(values, axis=1, out=values)
        sums = values.reshape(_AT_ONCE, topics, rows).sum(axis=1)
        largest[begin : begin + _AT_ONCE] = sums.max(axis=1) - sums.min(axis=1)
    largest.sort()
    first, second = np.triu_indices(rows, 1)
    apart = np.abs(data[first].sum(axis=1) - data[second].sum(axis=1))
    more = PERMUTATIONS - np.searchsorted(largest, apart - 1e-9, side="left")
    return [float(one) for one in (1 + more) / (1 + PERMUTATIONS)]


TESTS: dict[str, tuple[str, float, Callable[[Any], list[float]]]] = {
    "t": ("Student's paired t-test, Holm", 0.05, t_tests),
    "fisher": ("Fisher's randomisation test, 100,000 sign patterns, Holm", 3.0, randomisation),
    "tukey": ("randomised Tukey HSD, 10,000 permutations", 1.5, tukey),
}


def timed(test: str, runs: int, topics: int) -> float:
    """Processor seconds of a test for all pairs, imports left out."""
    import numpy as np

    from runner.views.leaderboard import significance  # noqa: F401

    dice = random.Random(1)
    data = np.array([[round(dice.betavariate(2, 3), 4) for _ in range(topics)] for _ in range(runs)])
    _ = data @ data.T  # starts the threads of numpy's own library
    TESTS[test][2](data[:2, :3])  # imports
    begun = time.process_time()
    TESTS[test][2](data)
    return time.process_time() - begun


def main() -> int:
    """Print a table, as Markdown; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.significance")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=TESTS)
    args = parser.parse_args()
    if args.child:
        print(timed(args.child, args.runs, args.topics))
        return 0
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # as commands have it
    words = [sys.executable, "-m", "benchmarks.significance"]
    words += ["--runs", str(args.runs), "--topics", str(args.topics), "--child"]
    pairs, missed = args.runs * (args.runs - 1) // 2, False
    print(
        f"| all {pairs:,} pairs of {args.runs} runs on {args.topics} topics | CPU s | goal |\n|---|---|---|"
    )
    for test, (name, goal, _) in TESTS.items():
        found = [
            float(
                subprocess.run(
                    [*words, test], check=True, stdout=subprocess.PIPE, text=True, env=environment
                ).stdout
            )
            for _ in range(args.rounds)
        ]
        middle = statistics.median(found)
        print(f"| {name} | {middle:.3f} | {goal} |", flush=True)
        missed = missed or middle > 2 * goal
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
