"""What common commands cost on the data directory of a demo, in processor seconds of the whole process tree.

``python -m benchmarks.startup [--rounds 5]`` runs each command on this project's own data directory (``make demo`` fills it)
as whole processes, with byte code kept, and prints medians of user plus system time. It ends with 1 when ``runner --help``
takes more than 0.2 s, ``runner task check`` (which starts the evaluator) more than 0.7 s, or another command more than 0.5 s.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BARS, BAR = {"--help": 0.2, "task": 0.7}, 0.5


def cost(words: list[str], environment: dict[str, str]) -> float:
    """Processor seconds of ``runner`` with these words and of what it starts. Raises SystemExit when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    runner = Path(sys.executable).with_name("runner")
    ended = subprocess.run([runner, *words], capture_output=True, text=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode and words[0] != "doctor":  # which ends with 3 when a check fails, and costs the same
        raise SystemExit(f"runner {' '.join(words)} failed:\n{ended.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print one table, as Markdown; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    listed = subprocess.run(
        [Path(sys.executable).with_name("runner"), "runs", "--task", "vaswani", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    runs = json.loads(listed.stdout)
    if not runs:
        raise SystemExit("no run here: make demo")
    commands = [
        ["--help"],
        ["leaderboard", "vaswani"],
        ["show", runs[0]["run"]],
        ["runs"],
        ["doctor"],
        ["task", "check", "vaswani"],
    ]
    slow = False
    print("| command | CPU s |")
    print("|---|---|")
    with tempfile.TemporaryDirectory(prefix="bench-startup-") as folder:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        for words in commands:
            cost(words, environment)
            middle = statistics.median(cost(words, environment) for _ in range(rounds))
            print(f"| runner {' '.join(words)} | {middle:.2f} |")
            slow |= middle > BARS.get(words[0], BAR)
    if slow:
        print("slower than the bar", file=sys.stderr)
    return int(slow)


if __name__ == "__main__":
    raise SystemExit(main())
