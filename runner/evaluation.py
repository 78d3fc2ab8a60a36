"""One evaluation: hand a sanitised run to the evaluator container, believe nothing before it is checked.

The evaluator's side of this contract is public (``docs/reference/evaluator-contract.md``): any image that
reads ``request.json`` and writes three files will do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import schemas
from runner.clock import SystemClock, stamp
from runner.engines.base import MIB, ContainerSpec, Engine, Exit, ImageRef, Mount
from runner.errors import PlatformError
from runner.tasks import Dataset, Task, folder_files, view_files

REQUEST = "/in/request.json"
RESULT_FILES = ("result.json", "scores.jsonl", "findings.jsonl")
MAX_RESULT_BYTES = 256 * MIB
MAX_RESULT_JSON = 4 * MIB
FINDING_KEYS = {"code", "severity", "file", "line", "message", "fix", "topic"}
SEVERITIES = ("error", "defect", "warning")


@dataclass(frozen=True)
class Evaluated:
    """What one evaluation gave. ``status`` is ``valid``, ``invalid`` or ``error``; ``message`` says why."""

    status: str
    message: str
    exit: Exit | None
    image_id: str
    started: str
    finished: str


def request(task: Task, dataset: Dataset, scenario: str, run_file: str) -> dict[str, Any]:
    """The content of ``request.json`` for one run (schema ``request``)."""
    return {
        "schema_version": 1,
        "kind": task.kind,
        "task": task.id,
        "dataset": dataset.id,
        "scenario": scenario,
        "visibility": dataset.visibility,
        "paths": {"run": "/in/run", "inputs": "/inputs", "truths": "/truths", "output": "/out"},
        "run_file": run_file,
        "topics": dataset.topics,
        "corpus": dataset.corpus,
        "measures": [
            {
                "id": m.id,
                "measure": m.measure,
                "truths": m.truths,
                "direction": m.direction,
                "options": dict(m.options),
            }
            for m in task.measures.values()
        ],
        "severities": dict(task.severities),
        "options": dict(task.options),
        "score_precision": task.score_precision,
        "limits": {"max_findings": 1000, "max_bytes": 4 * task.limits.output},
    }


def evaluate(
    task: Task,
    dataset: Dataset,
    scenario: str,
    run_folder: Path,
    run_file: str,
    *,
    engine: Engine,
    image: ImageRef,
    digests: Mapping[str, str],
    attempt_id: str,
    staging: Path,
    cancelled: Callable[[], bool],
) -> Evaluated:
    """Run the evaluator ``image`` on ``run_folder / run_file`` and leave its checked files in ``staging``.

    ``digests`` names the volumes: ``inputs`` (the whole dataset) and ``truths``. A container that fails, is
    killed at its limits or breaks the contract gives the status ``error``, never an exception; a failure of
    the engine raises :class:`PlatformError`.
    """
    started = stamp(SystemClock().now())
    wanted = request(task, dataset, scenario, run_file)
    text = json.dumps(wanted, indent=1, sort_keys=True).encode()
    (staging / "request.json").write_bytes(text)
    (staging / "logs").mkdir()
    limits = task.evaluator_limits
    size = (run_folder / run_file).stat().st_size
    inputs = engine.data_volume(digests["inputs"], lambda: view_files(dataset))
    truths = engine.data_volume(digests["truths"], lambda: folder_files(dataset.truths))
    with engine.session(attempt_id, labels={"role": "evaluator"}) as session:
        box = session.output_volume("in", bytes=size + 4 * MIB, inodes=16)
        out = session.output_volume("out", bytes=limits.output, inodes=16)
        session.copy_in(box, {"request.json": text, f"run/{run_file}": run_folder / run_file})
        handle = session.start(
            ContainerSpec(
                role="evaluator",
                image=image,
                command=None,
                limits=limits,
                mounts=(
                    Mount(box, "/in"),
                    Mount(inputs, "/inputs"),
                    Mount(truths, "/truths"),
                    Mount(out, "/out", read_only=False),
                ),
                env={"EVALUATOR_REQUEST": REQUEST},
            )
        )
        exit_ = handle.wait(limits.wall_clock, cancelled)
        for stream in ("stdout", "stderr"):
            (staging / "logs" / f"{stream}.log").write_bytes(handle.logs(stream, limits.log))
        collected = session.copy_out(
            out, staging, allowed=RESULT_FILES.__contains__, max_bytes=MAX_RESULT_BYTES, max_files=16
        )
    status, message = _judge(exit_, collected.files, staging, task)
    if status == "error":
        for name in RESULT_FILES:
            (staging / name).unlink(missing_ok=True)
    return Evaluated(status, message, exit_, image.id, started, stamp(SystemClock().now()))


def _judge(exit_: Exit, files: tuple[str, ...], staging: Path, task: Task) -> tuple[str, str]:
    if exit_.killed == "cancel":
        raise KeyboardInterrupt
    if exit_.killed == "time":
        return "error", f"the evaluator was killed at its limit of {task.evaluator_limits.wall_clock:g} s"
    if exit_.oom_killed:
        return "error", "the evaluator was killed because it used more memory than its limit"
    if exit_.start_error or exit_.code != 0:
        return "error", f"the evaluator ended with {exit_.start_error or f'exit code {exit_.code}'}"
    missing = [name for name in RESULT_FILES if name not in files]
    if missing:
        return "error", f"the evaluator did not write {', '.join(missing)}"
    broken = contract_problem(staging, task)
    if broken:
        return "error", f"the evaluator's output breaks the contract: {broken}"
    result = json.loads((staging / "result.json").read_bytes())
    return result["status"], schemas.show(result.get("message", ""), 500)


def contract_problem(folder: Path, task: Task) -> str:
    """The first breach of the evaluator contract by the three files in ``folder``, or an empty string.

    ``result.json`` is checked by its schema; lines of the other two by hand, because there may be hundreds
    of thousands of them.
    """
    path = folder / "result.json"
    result = schemas.load_json(path, "result.json", max_bytes=MAX_RESULT_JSON)
    problems = schemas.validate(result, "result")
    if problems:
        return str(problems[0])
    data = result.data
    known = {m.id for m in task.measures.values()}
    unknown = set(data["measures"]) - known
    if unknown:
        return f"result.json names measures that the task does not have: {schemas.show(', '.join(sorted(unknown)))}"
    if data["status"] == "valid" and set(data["measures"]) != known:
        return f"result.json lacks the measures {', '.join(sorted(known - set(data['measures'])))}"
    for name, check in (("scores.jsonl", _score_problem), ("findings.jsonl", _finding_problem)):
        for number, line in enumerate(_lines(folder / name), start=1):
            broken = check(line, known)
            if broken:
                return f"{name}:{number}: {broken}"
    return ""


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while line := stream.readline(MIB):
            if line.strip():
                yield line


def _parsed(line: bytes) -> dict[str, Any] | None:
    def no_constant(_: str) -> float:
        raise ValueError

    try:
        data = json.loads(line, parse_constant=no_constant)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _score_problem(line: bytes, known: set[str]) -> str:
    data = _parsed(line)
    if data is None:
        return "not a JSON object"
    if not isinstance(data.get("measure"), str) or data["measure"] not in known:
        return "measure is not one of the task's"
    if not isinstance(data.get("topic"), str):
        return "topic is not a string"
    if not _finite(data.get("value")):
        return "value is not a finite number"
    return "" if isinstance(data.get("facets", {}), dict) else "facets is not an object"


def _finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _finding_problem(line: bytes, _: set[str]) -> str:
    data = _parsed(line)
    if data is None:
        return "not a JSON object"
    if not isinstance(data.get("code"), str) or not isinstance(data.get("message"), str):
        return "code and message must be strings"
    if data.get("severity") not in SEVERITIES:
        return f"severity is not one of {', '.join(SEVERITIES)}"
    for key in ("file", "fix", "topic"):
        if not isinstance(data.get(key, ""), str):
            return f"{key} is not a string"
    number = data.get("line")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        return "line is not an integer"
    unknown = data.keys() - FINDING_KEYS
    return f"it has the unknown key {schemas.show(min(unknown))}" if unknown else ""


def evaluator_image(engine: Engine, task: Task, default: str) -> ImageRef:
    """The evaluator image of ``task`` (its own, or the platform's ``default``). Raises E304 when missing."""
    from runner.errors import RunnerError

    name = task.evaluator_image or default
    try:
        return engine.resolve(name)
    except RunnerError as error:
        if isinstance(error, PlatformError):
            raise
        raise RunnerError(
            "E304",
            f"the evaluator image {name} is not there",
            why="Evaluations run in a container of their own.",
            fix="make setup" if task.evaluator_image is None else f"build or pull {name}",
        ) from error
