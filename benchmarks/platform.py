"""What the platform takes around an instant software: beside two bare containers of the engine.

``python -m benchmarks.platform [--runs 50] [--rounds 3] [--calls]`` registers softwares that write one line and end, and times
``runner evaluate --all`` over ``--runs`` of them (each is executed and evaluated, on the real engine with every wall; archive and
database included; on blinded data, too, with what keeps its traces away), and of one alone as a whole process (``runner evaluate --run``, and ``runner try``). Beside each, in turn, as many pairs of
``docker run --rm --network none``: of the same software, and of ``true`` in the evaluator's image; as many at once as the platform has.
``--calls`` prints every call to the engine that one attempt made, with its time. It ends with 1 when a ratio is more than
twice its goal: 1.3 in a batch, 1.8 alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from benchmarks.planning import TASK, configuration, register, write_project
from runner.engines.base import Engine
from runner.execution.coordinator import EvaluationRequest, Silent, coordinating
from runner.execution.executors.base import Host
from runner.execution.machine import Machine
from runner.model.config import Config
from runner.model.config import load as load_config
from runner.model.container import ImageRef
from runner.model.run import run_id
from runner.provision.engine import engine_host, open_engine
from runner.provision.images import ensure_images
from runner.records.store.connect import open_store
from runner.records.store.queries import submissions

GOALS = {"in a batch": 1.3, "alone": 1.8, "tried": 1.8}
BLINDED = "in a batch, blinded data"  # is stated, and has no goal
BASE = "proctor/base:bookworm"
LINE = "echo 1 Q0 d1 1 1.0 bench"
COMMAND = ("sh", "-c", f"{LINE} > $outputDir/run.txt")
RUNNER = Path(sys.executable).with_name("runner")


def hand_in(config: Config, image: ImageRef, numbers: range) -> list[str]:
    """Register an instant software for each of ``numbers``; returns the ids of their runs."""
    register(config, numbers, len(numbers), image=image, command=COMMAND)
    with open_store(config) as store:
        known = [s for s in submissions(store) if int(s.software.removeprefix("s")) in numbers]
    return [run_id(s.id, "test", "default") for s in known]


def batch(config: Config, machine: Machine, runs: int) -> float:
    """Seconds of ``runner evaluate --all``, which has ``runs`` to do. Raises SystemExit where not all are scored."""
    request, begun = EvaluationRequest(), time.perf_counter()
    with coordinating(config, Silent(), machine=machine) as coordinator:
        result = coordinator.run(coordinator.plan(request), request)
    took = time.perf_counter() - begun
    if [run.outcome.name for run in result.done.values()] != ["scored"] * runs:
        raise SystemExit(
            f"not scored: {[*result.undone.values()][:3] or [run.outcome.says for run in result.done.values()][:3]}"
        )
    return took


def world(root: Path, visibility: str, image: ImageRef, engine: Engine) -> tuple[Config, Machine]:
    """A project whose data are of that visibility, and this machine for it; its data volumes are filled."""
    root.mkdir()
    config = configuration(root)
    write_project(root, 0, task=TASK | {"datasets": [TASK["datasets"][0] | {"visibility": visibility}]})
    machine = Machine(config, engine=engine)
    ensure_images(engine, config)
    hand_in(config, image, range(1))
    batch(config, machine, 1)
    return config, machine


def write_software(config: Config) -> None:
    """A folder of ``submissions/`` with the instant software, for ``runner try``."""
    folder = config.root / "submissions" / "team-0" / "tried"
    folder.mkdir(parents=True)
    said = {
        "task": "bench",
        "description": "a software",
        "tag": "tried",
        "method": "automatic",
        "image": BASE,
        "command": [*COMMAND],
    }
    (folder / "submission.yaml").write_text(json.dumps(said))


def alone(config: Config, *words: str) -> float:
    """Seconds of ``runner`` with these words, as a process. Raises SystemExit where it fails."""
    begun = time.perf_counter()
    ended = subprocess.run(
        [str(RUNNER), *words], cwd=config.root, capture_output=True, text=True, env=os.environ
    )
    if ended.returncode:
        raise SystemExit(ended.stdout + ended.stderr)
    return time.perf_counter() - begun


def bare(images: tuple[str, str], pairs: int, jobs: int, host: str) -> float:
    """Seconds of pairs of plain containers, ``jobs`` at once: what the software does, then ``true`` in the evaluator's image."""

    def pair(_: int) -> None:
        for image, command in zip(images, (LINE, "true"), strict=True):
            words = [
                "docker",
                "-H",
                host,
                "run",
                "--rm",
                "--network",
                "none",
                "--entrypoint",
                "sh",
                image,
                "-c",
                command,
            ]
            subprocess.run(words, check=True, capture_output=True)

    begun = time.perf_counter()
    with ThreadPoolExecutor(jobs) as workers:
        list(workers.map(pair, range(pairs)))
    return time.perf_counter() - begun


@contextmanager
def traced() -> Iterator[list[tuple[float, float, str]]]:
    """Every call to the engine while the context lasts: when it began, how many seconds it took until its answer began, and what."""
    import requests

    calls: list[tuple[float, float, str]] = []
    send: Callable[..., requests.Response] = requests.Session.send

    def timed(
        session: requests.Session, request: requests.PreparedRequest, **options: object
    ) -> requests.Response:
        begun = time.perf_counter()
        try:
            return send(session, request, **options)
        finally:
            calls.append(
                (
                    begun,
                    time.perf_counter() - begun,
                    f"{request.method} {str(request.url).partition('/v1.')[2][:110]}",
                )
            )

    requests.Session.send = timed  # type: ignore[method-assign, assignment]
    try:
        yield calls
    finally:
        requests.Session.send = send  # type: ignore[method-assign]


def calls(config: Config, machine: Machine) -> None:
    """Print every call of one more run."""
    with traced() as found:
        begun = time.perf_counter()
        took = batch(config, machine, 1)
    for at, seconds, what in found:
        print(f"{(at - begun) * 1000:7.0f} {seconds * 1000:6.0f} ms  {what}")
    print(f"{len(found)} calls, {sum(seconds for _, seconds, _ in found):.2f} s of {took:.2f} s")


def main() -> int:
    """Print the figures, as Markdown; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.platform")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", action="store_true")
    args = parser.parse_args()
    used = load_config()
    engine, host = open_engine(used), engine_host(used)
    image = engine.resolve(BASE)
    with tempfile.TemporaryDirectory(prefix="bench-platform-") as folder:
        config, machine = world(Path(folder, "public"), "public", image, engine)
        hidden = world(Path(folder, "blinded"), "blinded", image, engine)
        write_software(config)
        images = (image.id, machine.evaluator())
        jobs = Host.of(engine.info(), None).slots
        if args.calls:
            hand_in(config, image, range(1, 2))
            calls(config, machine)
            return 0
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in (*GOALS, BLINDED)}
        for number in range(args.rounds):
            first = 10 + number * (args.runs + 3)
            ids = hand_in(config, image, range(first, first + 3))
            for one in ids:
                found["alone"].append((alone(config, "evaluate", "--run", one), bare(images, 1, 1, host)))
                found["tried"].append((alone(config, "try", "--team", "team-0"), bare(images, 1, 1, host)))
            for name, (where, there) in (("in a batch", (config, machine)), (BLINDED, hidden)):
                hand_in(where, image, range(first + 3, first + 3 + args.runs))
                took = batch(where, there, args.runs) / args.runs
                found[name].append((took, bare(images, args.runs, jobs, host) / args.runs))
        for place, _, _ in os.walk(folder):  # the archive is sealed read-only
            Path(place).chmod(0o755)
    print(
        f"| one instant software, executed and evaluated; {jobs} at once in a batch | s | two bare containers | ratio | goal |"
    )
    print("|---|---|---|---|---|")
    slow = False
    for name, pairs in found.items():
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        slow |= name in GOALS and ratio > 2 * GOALS[name]
        print(f"| {name} | {ours:.2f} | {theirs:.2f} | {ratio:.2f} | {GOALS.get(name, '')} |")
    return int(slow)


if __name__ == "__main__":
    raise SystemExit(main())
