"""How many bytes a data directory takes for the run files that were handed in: everything in it, after all were evaluated.

``python -m benchmarks.volume [--runs 150]`` packs, registers and evaluates generated TREC runs of 60 teams (50 topics, 100 to
1,000 documents each) with the scripted engine; archive, content store, event log and database are real, and so is the
evaluator, in this process. It is done with files as they are, and with files that teams compressed themselves. It ends
with 1 when the data directory takes more than 1.1 times the bytes of the files as they are. What files that are compressed
already take beside themselves has no bar: it is what is kept of any run, its scores by topic above all.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import random
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluator.commands.runs import run_request
from runner.engines.fake import FakeEngine, Mounts
from runner.execution.coordinator import EvaluationRequest, Silent, coordinating
from runner.execution.machine import Machine
from runner.model.config import Config
from runner.records.store.connect import open_store
from runner.submissions.load import load_submission
from runner.submissions.pack import write
from runner.submissions.register import register
from runner.tasks.load import load_tasks

BAR = 1.1
TEAMS, TOPICS, CORPUS, JUDGED = 60, 50, 20_000, 100
DEPTHS = (100, 300, 1000)
EVALUATOR = "proctor/evaluator"
MEASURES = {"ndcg_5": "nDCG@5", "ndcg_10": "nDCG@10", "ap": "AP", "rr": "RR", "p_10": "P@10"}
_ALONE = threading.Lock()  # what it says goes to a stream that all threads have
TASK = {
    "schema_version": 1,
    "id": "volume",
    "title": "Volume",
    "kind": "adhoc",
    "workflow": "upload",
    "demo": True,
    "quota": {"submissions": 1000, "attempts": 2},
    "datasets": [{"id": "test", "visibility": "public", "topics": "queries.jsonl"}],
    "measures": [{"id": id, "measure": name, "truths": "qrels.txt"} for id, name in MEASURES.items()],
    "tables": [{"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg_10"}],
}


def document(number: int) -> str:
    """The id of a document, as collections of arguments have them."""
    value = number * 0x9E3779B97F4A7C15 % 2**64
    return f"S{value >> 32:08x}-A{value & 0xFFFFFFFF:08x}"


def run_text(seed: int) -> bytes:
    """A run with an own order of documents; every third has scores with all digits of a float."""
    draw = random.Random(seed)
    depth, form = draw.choice(DEPTHS), "{:.6f}" if seed % 3 else "{}"
    lines = []
    for topic in range(1, TOPICS + 1):
        score = 20 + 10 * draw.random()
        for rank, number in enumerate(draw.sample(range(CORPUS), depth), 1):
            score -= draw.random() * 0.02
            lines.append(
                f"{topic} Q0 {document(number)} {rank} {form.format(score)} team{seed % TEAMS}-run{seed}\n"
            )
    return "".join(lines).encode()


def write_project(root: Path, runs: int, *, packed: bool) -> int:
    """A project with one task and ``runs`` run files of its teams; returns the bytes of these files."""
    draw = random.Random(0)
    folder = root / "tasks" / "volume"
    for part in ("inputs", "truths"):
        (folder / "datasets" / "test" / part).mkdir(parents=True)
    queries = [json.dumps({"qid": str(n), "query": f"words of {n}"}) + "\n" for n in range(1, TOPICS + 1)]
    (folder / "datasets/test/inputs/queries.jsonl").write_text("".join(queries))
    qrels = [
        f"{topic} 0 {document(number)} {draw.randrange(3)}\n"
        for topic in range(1, TOPICS + 1)
        for number in draw.sample(range(CORPUS), JUDGED)
    ]
    (folder / "datasets/test/truths/qrels.txt").write_text("".join(qrels))
    (folder / "task.yaml").write_text(json.dumps(TASK))
    size = 0
    for seed in range(runs):
        place = root / "submissions" / f"team{seed % TEAMS}" / f"run{seed}"
        place.mkdir(parents=True)
        name = "run.txt.gz" if packed else "run.txt"
        content = gzip.compress(run_text(seed)) if packed else run_text(seed)
        (place / name).write_bytes(content)
        (place / "submission.yaml").write_text(json.dumps({"task": "volume", "run": name}))
        size += len(content)
    return size


def evaluator(mounts: Mounts, out: Path) -> None:
    """The evaluator itself, on the folders that the scripted engine has for its volumes."""
    request = json.loads((mounts["/in"] / "request.json").read_bytes())
    request["paths"] |= {
        "run": str(mounts["/in"] / "run"),
        "inputs": str(mounts["/inputs"]),
        "truths": str(mounts["/truths"]),
        "output": str(out),
    }
    with _ALONE, tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        path = Path(folder) / "request.json"
        path.write_text(json.dumps(request))
        run_request(path)


def hand_in(config: Config, engine: FakeEngine) -> None:
    """Pack and register every run file."""
    tasks, _ = load_tasks(config)
    with open_store(config) as store, tempfile.TemporaryDirectory() as folder:
        for path in sorted(config.submissions.glob("*/*")):
            submission = load_submission(config, path.parent.name, path.name)
            bundle = write(
                submission, None, Path(folder) / path.name, engine=engine, check=None, with_archive=False
            )
            register(config, store, engine, tasks, bundle.folder)


def work(config: Config, engine: FakeEngine, request: EvaluationRequest = EvaluationRequest()) -> int:
    """Evaluate everything; returns how many runs were scored."""
    machine = Machine(config, engine=engine, images={"evaluator": EVALUATOR})
    with coordinating(config, Silent(), machine=machine) as coordinator:
        coordinator.run(coordinator.plan(request), request)
        return sum(run.outcome.name == "scored" for run in coordinator.workspace.runs_now())


def parts(home: Path) -> dict[str, tuple[int, int]]:
    """Bytes of the files of each part of a data directory, and of the blocks that they take."""
    found: dict[str, tuple[int, int]] = {}
    for name, path in _files(home):
        part = name.split("/")[0] if not name.startswith("archive/.contents/") else "contents"
        info = path.stat()
        size, blocks = found.get(part.partition("-")[0], (0, 0))
        found[part.partition("-")[0]] = size + info.st_size, blocks + 512 * info.st_blocks
    return found


def _files(home: Path) -> Iterator[tuple[str, Path]]:
    for folder, _, names in os.walk(home):
        for name in names:
            path = Path(folder) / name
            yield str(path.relative_to(home)), path


def measure(runs: int, *, packed: bool) -> dict[str, Any]:
    """Hand in and evaluate ``runs`` files; bytes handed in, of the whole data directory, and of its parts."""
    with tempfile.TemporaryDirectory(prefix="bench-volume-") as folder:
        root = Path(folder)
        config = Config(root=root, home=root / ".runner", truths=None)
        given = write_project(root, runs, packed=packed)
        engine = FakeEngine({EVALUATOR: evaluator})
        hand_in(config, engine)
        scored = work(config, engine)
        engine.close()
        assert scored == runs, f"{scored} of {runs} runs were scored"
        found = parts(config.home)
        size, blocks = (sum(column) for column in zip(*found.values(), strict=True))
        return {"given": given, "size": size, "blocks": blocks, "parts": found}


def main() -> int:
    """Measure, print a table, and return 1 when the bar is missed."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--runs", type=int, default=150)
    chosen = options.parse_args()
    missed = False
    for packed in (False, True):
        found = measure(chosen.runs, packed=packed)
        ratio, on_disk = found["size"] / found["given"], found["blocks"] / found["given"]
        how = "compressed by the teams" if packed else "as they are"
        print(f"{chosen.runs} run files, {how}: {found['given']:,} bytes handed in")
        for part, (size, blocks) in sorted(found["parts"].items(), key=lambda pair: -pair[1][0]):
            print(f"  {part:<20}{size:>14,}{blocks:>14,} on disk")
        print(f"  {'whole data directory':<20}{found['size']:>14,}{found['blocks']:>14,} on disk")
        print(f"  {ratio:.2f} times what was handed in, {on_disk:.2f} times in blocks of the disk")
        missed = missed or (not packed and max(ratio, on_disk) > BAR)
    if missed:
        print(f"MISSED: the bar is {BAR}")
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
