"""``evaluator perspective`` at the size of the first release of Perspective Argument Retrieval 2024.

``python -m benchmarks.perspective [--rounds 3]`` generates a synthetic release (26,335 arguments) and predictions with
1,000 candidates per query, scores them as whole processes, and prints medians as Markdown. It ends with 1 when a case
takes more than its bar. The official script is not run: its figures are quoted, from other synthetic data of the same size.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.trec import cost

GENERATE = Path(__file__).parents[1] / "tasks" / "perspective-2024" / "generate.py"
# (scenario, split): the official script's queries, CPU seconds and peak MiB, quoted
QUOTED = {
    ("baseline", "dev"): (30, 7.5, 299),
    ("baseline", "train"): (105, 11.3, 299),
    ("explicit", "dev"): (1572, 87.0, 400),
    ("implicit", "dev"): (1572, 84.6, 399),
    ("explicit", "train"): (5457, 316.7, 783),
    ("implicit", "train"): (5457, 302.7, 781),
}
BAR_CPU, BAR_MIB = 10.0, 500


def predictions(data: Path, word: str, split: str, target: Path, seed: int = 1) -> int:
    """Write 1,000 candidates per query, some relevant ones among the first 20; returns how many queries there are."""
    rng = random.Random(seed)
    with (data / "corpus.jsonl").open(encoding="utf-8") as file:
        ids = [json.loads(line)["argument_id"] for line in file]
    with (data / f"{word}-queries" / f"queries_{split}.jsonl").open(encoding="utf-8") as file:
        queries = [json.loads(line) for line in file]
    with target.open("w", encoding="utf-8") as file:
        for query in queries:
            relevant = query["relevant_candidates"]
            found = rng.sample(relevant, min(len(relevant), rng.randint(1, 12)))
            found = list(dict.fromkeys(found + rng.sample(ids, 1020)))[:1000]
            head = found[:20]
            rng.shuffle(head)
            row = {"query_id": query["query_id"], "relevant_candidates": head + found[20:]}
            file.write(json.dumps(row) + "\n")
    return len(queries)


def main() -> int:
    """Print one table, as Markdown."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.perspective", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--data", type=Path, default=Path(tempfile.gettempdir(), "proctor-benchmarks", "perspective")
    )
    args = parser.parse_args()
    if not (args.data / "corpus.jsonl").exists():
        subprocess.run([sys.executable, str(GENERATE), "full", "--output", str(args.data)], check=True)
    print(
        "| scenario, split | queries | wall s | CPU s | peak MiB | official script (quoted): queries | CPU s | peak MiB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    slow = False
    for (scenario, split), quoted in QUOTED.items():
        word = "baseline" if scenario == "baseline" else "perspective"
        run = args.data / f"{word}-{split}.jsonl"
        count = predictions(args.data, word, split, run)
        command = [
            sys.executable,
            "-m",
            "evaluator",
            "perspective",
            "--data",
            str(args.data),
            "--split",
            split,
        ]
        command += ["--scenario", scenario, "--predictions", str(run), "--output", str(args.data / "results")]
        costs = [cost(command) for _ in range(args.rounds)]
        wall, cpu, peak = (statistics.median(column) for column in zip(*costs, strict=True))
        slow = slow or cpu > BAR_CPU or peak > BAR_MIB
        print(
            f"| {scenario}, {split} | {count:,} | {wall:.1f} | {cpu:.1f} | {peak:.0f} "
            f"| {quoted[0]:,} | {quoted[1]} | {quoted[2]} |",
            flush=True,
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
