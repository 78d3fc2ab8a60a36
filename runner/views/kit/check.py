"""Check a run file with the task's own checker: ``python3 checker/check.py RUN``.

This file lies in the folder ``checker`` of a task's kit, beside the checker (``evaluator``, ``schemas``) and what it is asked for each
dataset (``requests``). Exit code 0: the run is valid; 1: it is not; 2: the command was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Check the file that the command line names; the checker prints. Returns the exit code."""
    requests = {path.stem: path for path in sorted((HERE / "requests").glob("*.json"))}
    parser = argparse.ArgumentParser(description="Say everything that is wrong with a run file.")
    parser.add_argument("run", type=Path, help="the run file")
    parser.add_argument(
        "--dataset", choices=requests, default=next(iter(requests)), help="default: %(default)s"
    )
    parser.add_argument("--scenario", help="default: the task's")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args()
    run = args.run.resolve()
    if not run.is_file():
        parser.error(f"{args.run} is no file")
    request = json.loads(requests[args.dataset].read_text("utf-8"))
    paths = request["paths"]
    request["paths"] = {name: path and str(HERE.parent / path) for name, path in paths.items()}
    request["paths"] |= {"run": str(run.parent), "output": str(run.parent)}
    request["run_file"] = run.name
    request["scenario"] = args.scenario or request["scenario"]
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        asked = Path(scratch) / "request.json"
        asked.write_text(json.dumps(request), "utf-8")
        command = [sys.executable, "-m", "evaluator", "check", str(run), "--request", str(asked)]
        environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
        options = ["--json"] if args.json else []
        return subprocess.run([*command, *options], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
