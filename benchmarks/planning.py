"""``runner evaluate --all`` when nothing is left to do, over 150, 1,000 and 10,000 archived runs.

``python -m benchmarks.planning [--sizes 150 1000 10000] [--rounds 3]`` fills one data directory a size with the scripted
engine (every software is a script, the archive, event log and store are real), then times the second ``evaluate --all``
as whole processes, the sizes in turn: open the store, look for what a killed process left, plan, print the leaderboard.
Then it does so with ``runner store verify`` and ``runner store rebuild``. It ends with 1 when 150, 1,000 or 10,000 runs take ``evaluate --all`` more
than 0.7, 2 or 10 CPU seconds (the median; wall times of a busy machine say little), or when a run among the most costs any of the three
more than twice what a run among the fewest does.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.cli.boards import boards
from runner.cli.plans import show_plan
from runner.engines.fake import FakeEngine, Mounts
from runner.execution.coordinator import EvaluationRequest, Silent, coordinating
from runner.execution.machine import Machine
from runner.model.clock import SystemClock, stamp
from runner.model.config import Config
from runner.model.container import ImageRef
from runner.records.store.connect import open_store
from runner.submissions.bundle import Bundle, bundle_digest, registration, write_bundle
from runner.submissions.kept import home_of

BARS, BAR_RATIO = {150: 0.7, 1000: 2.0, 10_000: 10.0}, 2.0
EVALUATOR, SOFTWARE = "proctor/evaluator", "bench/software"
TEAMS = 20
TOPICS = 50
TASK: dict[str, Any] = {
    "schema_version": 1,
    "id": "bench",
    "title": "Bench",
    "kind": "adhoc",
    "demo": True,
    "quota": {"submissions": 1000, "attempts": 2},
    "datasets": [{"id": "test", "visibility": "public", "topics": "queries.jsonl"}],
    "measures": [{"id": "ndcg_10", "measure": "nDCG@10", "truths": "qrels.txt"}],
    "tables": [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg_10"}],
}


def configuration(root: Path) -> Config:
    """The configuration of a project in ``root``."""
    return Config(root=root, home=root / ".runner", truths=None)


def software(_: Mounts, out: Path) -> None:
    """Leave a run of one line."""
    (out / "run.txt").write_text("1 Q0 d1 1 1.0 bench\n")


def evaluator(mounts: Mounts, out: Path) -> None:
    """Leave scores that depend on nothing but how many evaluations there were before."""
    seed = int.from_bytes(hashlib.sha256(str(mounts).encode()).digest()[:2], "big") / 65536
    leave_scores(out, {"ndcg_10": [round((seed * (1 + number * 7)) % 1, 4) for number in range(TOPICS)]})


def leave_scores(out: Path, scores: Mapping[str, Sequence[float]]) -> None:
    """Leave the files of an evaluator that found these values of each measure, topic by topic."""
    means = {
        measure: {"value": sum(values) / len(values), "topics": TOPICS, "covered": TOPICS, "interval": None}
        for measure, values in scores.items()
    }
    result = {
        "schema_version": 1,
        "status": "valid",
        "evaluator": {"name": "bench", "version": "1"},
        "measures": means,
        "findings": {"error": 0, "defect": 0, "warning": 0, "codes": {}},
        "run_tag": None,
        "message": "",
    }
    (out / "result.json").write_text(json.dumps(result))
    lines = [
        {"measure": measure, "topic": str(n), "value": v}
        for measure, values in scores.items()
        for n, v in enumerate(values)
    ]
    (out / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (out / "findings.jsonl").touch()


def machine(config: Config, script: Callable[[Mounts, Path], None] = evaluator) -> tuple[Machine, FakeEngine]:
    """A machine with a scripted engine, whose evaluator is ``script``."""
    engine = FakeEngine({EVALUATOR: script, SOFTWARE: software})
    return Machine(config, engine=engine, images={"evaluator": EVALUATOR}), engine


def write_project(
    root: Path, runs: int, *, teams: int = TEAMS, chained: bool = False, task: Mapping[str, Any] = TASK
) -> None:
    """A project with one task, and ``runs`` submissions that are registered and were never executed.

    ``chained``: each fourth software takes the one of its team before it as input.
    """
    config = configuration(root)
    folder = root / "tasks" / "bench"
    for part, name, text in (
        ("inputs", "queries.jsonl", '{"qid": "1", "query": "x"}\n'),
        ("truths", "qrels.txt", "1 0 d1 1\n"),
    ):
        (folder / "datasets" / "test" / part).mkdir(parents=True)
        (folder / "datasets" / "test" / part / name).write_text(text)
    (folder / "task.yaml").write_text(json.dumps(task))
    (root / "submissions").mkdir()
    register(config, range(runs), teams, chained=chained)


def register(
    config: Config,
    numbers: Iterable[int],
    teams: int,
    *,
    chained: bool = False,
    image: ImageRef | None = None,
    command: Sequence[str] = (),
) -> None:
    """Register a submission for each of ``numbers``, of one team after the other; by default of the scripted engine's software."""
    _, engine = machine(config)
    image = image or engine.resolve(SOFTWARE)
    with open_store(config) as store:
        for number in numbers:
            data: dict[str, Any] = {
                "schema_version": 1,
                "team": f"team-{number % teams}",
                "software": f"s{number}",
                "task": "bench",
                "scenarios": ["default"],
                "image": {"id": image.id, "repo_digest": None, "platform": image.platform, "archive": None},
                "runs": [],
                "command": [*command] or ["run", str(number)],
                "tag": f"s{number}",
                "description": "a software",
                "method": "automatic",
                "inputs": {"first": f"s{number - teams}"}
                if chained and number >= teams and number % 4 == 0
                else {},
                "check": None,
                "packed": stamp(SystemClock().now()),
            }
            name = Bundle(config.root, data, bundle_digest(data)).submission_id
            bundle = write_bundle(home_of(config, name), data, {})
            store.commit("submission-registered", registration(bundle), actor="organiser")
    engine.close()


def evaluate_all(root: Path) -> dict[str, float]:
    """``runner evaluate --all`` on a project; returns seconds by phase, runs done, peak in MiB, and CPU seconds."""
    config, request = configuration(root), EvaluationRequest()
    used, engine = machine(config)
    marks = [time.perf_counter()]
    text = io.StringIO()
    with (
        contextlib.redirect_stdout(text),
        contextlib.redirect_stderr(text),
        coordinating(config, Silent(), machine=used) as coordinator,
    ):
        marks.append(time.perf_counter())
        todo = coordinator.plan(request)
        show_plan(todo)
        marks.append(time.perf_counter())
        result = coordinator.run(todo, request)
        marks.append(time.perf_counter())
        boards(coordinator, request.selection, result.done)
    marks.append(time.perf_counter())
    engine.close()
    names = ("open", "plan", "run", "boards")
    seconds = {name: after - before for name, before, after in zip(names, marks, marks[1:], strict=False)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**seconds, "done": len(result.done), "peak": peak, "cpu": time.process_time()}


def child(root: Path) -> dict[str, float]:
    """:func:`evaluate_all` in a process of its own; with its start and end in ``total``."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.planning", "--child", str(root)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(ended.stdout)
    return {**found, "total": time.perf_counter() - begun}


def store_commands(root: Path) -> dict[str, float]:
    """CPU seconds of ``runner store verify`` and ``rebuild`` on a project, each a process of its own, beside those of ``runner --help``."""
    folders = {"RUNNER_ROOT": str(root), "RUNNER_HOME": str(configuration(root).home)}
    seconds = {}
    for words in (["--help"], ["store", "verify"], ["store", "rebuild"]):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [str(Path(sys.executable).with_name("runner")), *words]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **folders})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds[words[-1]] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds


def show_store(rounds: Sequence[Mapping[int, Mapping[str, float]]], sizes: Sequence[int]) -> bool:
    """Print what verifying and making the store anew take, as Markdown; whether a run among the most costs too much."""
    print("\n| archived runs | verify: CPU s | ms a run | rebuild: CPU s | ms a run |")
    print("|---|---|---|---|---|")
    costs: dict[str, list[float]] = {"verify": [], "rebuild": []}
    for size in sizes:
        cells = []
        for name, each in costs.items():
            seconds = statistics.median(r[size][name] for r in rounds)
            each.append((seconds - min(r[size]["--help"] for r in rounds)) / size)
            cells.append(f"{seconds:.2f} | {each[-1] * 1000:.2f}")
        print(f"| {size:,} | {' | '.join(cells)} |")
    return any(each[-1] > BAR_RATIO * each[0] for each in costs.values())


def main() -> int:
    """Print two tables, as Markdown; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning")
    parser.add_argument("--sizes", type=int, nargs="+", default=[*BARS])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", type=Path)
    args = parser.parse_args()
    if args.child is not None:
        print(json.dumps(evaluate_all(args.child)))
        return 0
    sizes = sorted(args.sizes)
    with tempfile.TemporaryDirectory(prefix="bench-planning-") as folder:
        roots = {size: Path(folder, str(size)) for size in sizes}
        first = {}
        for size, root in roots.items():
            write_project(root, size)
            first[size] = child(root)
            if first[size]["done"] != size:
                raise SystemExit(f"{first[size]['done']:g} of {size} runs were done")
        rounds = [{size: child(root) for size, root in roots.items()} for _ in range(args.rounds)]
        stores = [{size: store_commands(root) for size, root in roots.items()} for _ in range(args.rounds)]
        for root in roots.values():  # the archive is sealed read-only
            for place, _, _ in os.walk(root):
                Path(place).chmod(0o755)
    print(
        "| archived runs | first, s | second: wall s | CPU s | open | plan | boards | peak MiB | ms a run | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    middle = {
        size: {name: statistics.median(r[size][name] for r in rounds) for name in rounds[0][size]}
        for size in sizes
    }
    costs = {size: (m["open"] + m["plan"] + m["boards"]) / size for size, m in middle.items()}
    for size, m in middle.items():
        phases = " | ".join(f"{m[name]:.2f}" for name in ("total", "cpu", "open", "plan", "boards"))
        each = f"{costs[size] * 1000:.2f} | {costs[size] / costs[sizes[0]]:.2f}"
        print(f"| {size:,} | {first[size]['total']:.1f} | {phases} | {m['peak']:.0f} | {each} |")
    slow = any(m["cpu"] > BARS.get(size, m["cpu"]) for size, m in middle.items())
    if show_store(stores, sizes) or slow or costs[sizes[-1]] > BAR_RATIO * costs[sizes[0]]:
        print("slower than the bar", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
