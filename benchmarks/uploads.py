"""What evaluating many run files costs: beside scoring each in a process of its own, and beside containers' starts.

``python -m benchmarks.uploads [--files 150] [--jobs 1]`` writes run files like those of Touché 2021 Task 1 (50 topics; 100,
500 and 1,000 documents a topic in turn), hands them in, and times in turn

- scoring: ``evaluator run``, one process a file on this machine, ``--jobs`` at a time, half of the files before and half after the
  evaluation, so that both see the same machine;
- the evaluation: what ``runner evaluate`` does, on the real engine, with as many ``--jobs``, archive and database included;
- a container's start: created, started, ended and removed, of the evaluator's image with every wall.

It ends with 1 when the evaluation takes more than 1.5 times the scoring and ten starts together.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.generate import generate
from runner.engines.base import ContainerSpec, Engine
from runner.execution.coordinator import EvaluationRequest, Silent, coordinating
from runner.execution.machine import Machine
from runner.model.config import Config
from runner.model.config import load as load_config
from runner.model.limits import Limits
from runner.provision.engine import open_engine
from runner.provision.images import ensure_images
from runner.records.files import file_sha256
from runner.records.store.connect import open_store
from runner.submissions.bundle import Bundle, bundle_digest, registration, store_runs, write_bundle
from runner.submissions.kept import home_of
from runner.tasks.load import load_task
from runner.tasks.request import request

BAR, STARTS = 1.5, 10
DEPTHS = (100, 500, 1000)
TEAMS = 60
TASK = {
    "schema_version": 1,
    "id": "bench",
    "title": "Bench",
    "kind": "adhoc",
    "demo": True,
    "uploads": True,
    "quota": {"submissions": 1000},
    "datasets": [{"id": "test", "visibility": "public", "topics": "queries.jsonl"}],
    "measures": [
        {"id": name, "measure": measure, "truths": "qrels.txt"}
        for name, measure in (
            ("ndcg_5", "nDCG@5"),
            ("condensed_ndcg_5", "condensed nDCG@5"),
            ("judged_5", "Judged@5"),
        )
    ],
    "tables": [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg_5"}],
}


def write_task(root: Path) -> list[str]:
    """A project with the task; returns the lines of a run with 1,000 documents a topic."""
    run, qrels = generate(root / "generated", "small")
    folder = root / "tasks" / "bench"
    for part in ("inputs", "truths"):
        (folder / "datasets" / "test" / part).mkdir(parents=True)
    topics = "".join(json.dumps({"qid": str(n), "query": f"question {n}"}) + "\n" for n in range(1, 51))
    (folder / "datasets/test/inputs/queries.jsonl").write_text(topics)
    (folder / "datasets/test/truths/qrels.txt").write_bytes(qrels.read_bytes())
    (folder / "task.yaml").write_text(json.dumps(TASK))
    (root / "submissions").mkdir()
    return run.read_text().splitlines()


def write_runs(folder: Path, lines: Sequence[str], count: int) -> list[Path]:
    """``count`` run files, each with a tag of its own."""
    folder.mkdir()
    made = []
    for number in range(count):
        depth = DEPTHS[number % len(DEPTHS)]
        kept = [line for line in lines if int(line.split()[3]) <= depth]
        path = folder / f"run-{number:03}.txt"
        path.write_text("".join(f"{line.rpartition(' ')[0]} run-{number}\n" for line in kept))
        made.append(path)
    return made


def hand_in(config: Config, files: Iterable[Path]) -> None:
    """Register each file as a submission of one of the teams."""
    with open_store(config) as store:
        for number, path in enumerate(files):
            entry = {
                "file": path.name,
                "dataset": "test",
                "scenario": "default",
                "sha256": file_sha256(path),
            }
            data: dict[str, Any] = {
                "schema_version": 1,
                "team": f"team-{number % TEAMS}",
                "software": path.stem,
                "task": "bench",
                "scenarios": ["default"],
                "image": None,
                "runs": [entry],
                "command": None,
                "tag": path.stem,
                "description": "",
                "method": "automatic",
                "inputs": {},
                "check": None,
                "packed": "2026-01-01T00:00:00Z",
            }
            home = home_of(config, Bundle(path.parent, data, bundle_digest(data)).submission_id)
            bundle = write_bundle(home, data, {f"runs/{path.name}": path})
            store_runs(bundle, store.archive.contents)
            store.commit("submission-registered", registration(bundle), actor="organiser")


def score(config: Config, work: Path, files: Sequence[Path], jobs: int) -> float:
    """Seconds of ``evaluator run`` over the files, one process each."""
    task = load_task(config, "bench")
    dataset = task.datasets["test"]
    commands = []
    for path in files:
        folder = work / path.stem
        folder.mkdir(parents=True)
        asked = request(task, dataset, "default", path.name)
        asked["paths"] |= {"run": str(path.parent), "output": str(folder)}
        asked["paths"] |= {"inputs": str(dataset.inputs), "truths": str(dataset.truths)}
        (folder / "request.json").write_text(json.dumps(asked))
        commands.append([sys.executable, "-m", "evaluator", "run", "--request", str(folder / "request.json")])
    begun = time.perf_counter()
    with ThreadPoolExecutor(jobs) as workers:
        list(workers.map(lambda c: subprocess.run(c, check=True, capture_output=True), commands))
    return time.perf_counter() - begun


def evaluate(config: Config, engine: Engine, image: str, jobs: int) -> float:
    """Seconds of ``runner evaluate`` over all that was handed in. Raises SystemExit when a run was not scored."""
    machine = Machine(config, engine=engine, images={"evaluator": image})
    asked = EvaluationRequest(jobs=jobs)
    begun = time.perf_counter()
    with coordinating(config, Silent(), machine=machine) as coordinator:
        result = coordinator.run(coordinator.plan(asked), asked)
    seconds = time.perf_counter() - begun
    ends = Counter(run.outcome.name for run in result.done.values())
    if set(ends) != {"scored"}:
        raise SystemExit(f"not all were scored: {dict(ends)} {list(result.undone.values())[:3]}")
    return seconds


def start(engine: Engine, image: str) -> float:
    """Seconds of one container that does nothing, from nothing to nothing."""
    spec = ContainerSpec("evaluator", engine.resolve(image), ("true",), Limits())
    begun = time.perf_counter()
    with engine.session(f"bench-{secrets.token_hex(4)}") as session:
        session.start(spec).wait(60)
    return time.perf_counter() - begun


def main() -> int:
    """Print one table, as Markdown; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.uploads")
    parser.add_argument("--files", type=int, default=150)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    machine = load_config()
    engine = open_engine(machine)
    image = ensure_images(engine, machine)["evaluator"].id
    with tempfile.TemporaryDirectory(prefix="bench-uploads-") as name:
        root = Path(name)
        config = Config(root=root, home=root / ".runner", truths=None)
        files = write_runs(root / "files", write_task(root), args.files)
        hand_in(config, files)
        half = len(files) // 2
        starts = [start(engine, image) for _ in range(5)]
        scored = score(config, root / "before", files[:half], args.jobs)
        evaluated = evaluate(config, engine, image, args.jobs)
        scored += score(config, root / "after", files[half:], args.jobs)
        starts += [start(engine, image) for _ in range(5)]
        for place, _, _ in os.walk(root):  # the archive is sealed read-only
            Path(place).chmod(0o755)
    one = statistics.median(starts)
    bar = BAR * scored + STARTS * one
    print("| run files | at a time | scoring s | evaluation s | a start s | bar s | evaluation / scoring |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {args.files} | {args.jobs} | {scored:.1f} | {evaluated:.1f} | {one:.2f} | {bar:.1f} |"
        f" {evaluated / scored:.2f} |"
    )
    if evaluated > bar:
        print("slower than the bar", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
