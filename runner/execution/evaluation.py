"""One evaluation: hand a sanitised run to the evaluator container, believe nothing before it is checked.

The evaluator's side of this contract is public (``docs/reference/evaluator-contract.md``): any image that
reads ``request.json`` and writes three files will do (a fourth, ``details.jsonl``, is taken if it is there).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import schemas
from runner.engines.base import ContainerSpec, Engine, Handle, Mount, Session
from runner.execution.workflows.gateway import GatewayFacts, GatewayRoom, prepare_gateway, refusal
from runner.model.clock import SystemClock, stamp
from runner.model.container import Exit, ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import MIB
from runner.model.task import Dataset, Task
from runner.tasks.data_files import folder_files
from runner.tasks.files import view_files
from runner.tasks.request import SERVICES, request, with_data
from runner.tasks.services import data_digest, gateway_key
from schemas import jsonl
from schemas.details import Detail

REQUEST = "/in/request.json"
_LINES = jsonl.Rules(duplicates="last", bounded=False)
RESULT_FILES = ("result.json", "scores.jsonl", "findings.jsonl")
# What an evaluator may leave beside them: one line a topic with what its scores are made of.
DETAILS = "details.jsonl"
MAX_HANDED_FILES = 64
# For what the platform itself noted down beside an interactive run: a software whose run file fills the limit must not get
# rid of the record of what it retrieved.
RECORDS = 64 * MIB
MAX_RESULT_BYTES = 256 * MIB
MAX_RESULT_JSON = 4 * MIB
FINDING_KEYS = {"code", "severity", "file", "line", "message", "fix", "topic"}
SEVERITIES = ("error", "defect", "warning")


@dataclass(frozen=True)
class Evaluated:
    """What one evaluation gave. ``status`` is ``valid``, ``invalid`` or ``error``; ``detail`` says why.

    ``final``: of an error, that evaluating again would end the same way; ``fault``: whether the organiser's files are to be
    corrected, or anything else. ``services`` are the digests of the data
    of the services that it saw; ``gateway`` is what the gateway did, None without one.
    """

    status: str
    detail: Detail
    exit: Exit | None
    image_id: str
    started: str
    finished: str
    final: bool = False
    services: Mapping[str, str] = field(default_factory=dict)
    gateway: GatewayFacts | None = None
    fault: Literal["organiser", "platform"] = "platform"


@dataclass(frozen=True)
class GatewaySetup:
    """What an evaluation needs when the evaluator may ask models: the image of the gateway, and known replies."""

    sidecars: ImageRef
    replies: Path | None = None


def files_for_evaluator(folder: Path, run_file: str, most: int) -> dict[str, Path]:
    """The files of a run's output that the evaluator is given: the main one, and others beside it by name.

    Others are left out where they would make it more than ``most`` bytes or :data:`MAX_HANDED_FILES` files.
    """
    found = {run_file: folder / run_file}
    left = most - found[run_file].stat().st_size
    for path in sorted(p for p in folder.iterdir() if p.is_file() and not p.is_symlink()):
        size = path.stat().st_size
        if path.name not in found and size <= left and len(found) < MAX_HANDED_FILES:
            found[path.name] = path
            left -= size
    return found


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
    records: bool = False,
    beside: GatewaySetup | None = None,
) -> Evaluated:
    """Run the evaluator ``image`` on ``run_folder / run_file`` and leave its checked files in ``staging``.

    ``digests`` names the volumes: ``inputs`` (the whole dataset) and ``truths``. ``records``: see :func:`request`.
    ``beside`` is needed when the task lets the evaluator ask models. A container that fails, is killed at its limits or breaks the contract
    gives the status ``error``, never an exception; a failure of the engine raises :class:`PlatformError`.
    """
    started = stamp(SystemClock().now())
    asked = json.dumps(request(task, dataset, scenario, run_file, records=records)).encode()
    (staging / "logs").mkdir()
    limits = task.evaluator_limits
    files = files_for_evaluator(run_folder, run_file, task.limits.output + (RECORDS if records else 0))
    size = sum(path.stat().st_size for path in files.values())
    inputs = engine.data_volume(digests["inputs"], lambda: view_files(dataset))
    truths = engine.data_volume(digests["truths"], lambda: folder_files(dataset.truths))
    services = {name: str(data_digest(one)) for name, one in with_data(task).items()}
    with engine.session(
        attempt_id, labels={"role": "evaluator"}, visibility=dataset.visibility, cancelled=cancelled
    ) as session:
        box = session.output_volume("in", bytes=size + 4 * MIB, inodes=len(files) + 16)
        out = session.output_volume("out", bytes=limits.output, inodes=16)
        gateway = _gateway(session, task, beside)
        mounts = [
            Mount(box, "/in"),
            Mount(inputs, "/inputs"),
            Mount(truths, "/truths"),
            *_data_mounts(engine, task, services),
            Mount(out, "/out", read_only=False),
        ]
        session.copy_in(box, {"request.json": asked, **{f"run/{name}": path for name, path in files.items()}})
        facts = None
        try:
            if gateway is not None:
                gateway.start()
                gateway.ready()
                mounts.append(gateway.mount)
            handle = session.start(
                ContainerSpec(
                    role="evaluator",
                    image=image,
                    command=None,
                    limits=limits,
                    mounts=tuple(mounts),
                    env={"EVALUATOR_REQUEST": REQUEST},
                )
            )
            exit_ = handle.wait(limits.wall_clock, cancelled)
            gone = gateway is not None and gateway.handle is not None and gateway.handle.ended()
        finally:
            # What was paid for is kept, however this evaluation ends.
            facts = gateway.finish(staging) if gateway is not None else None
        _logs(handle, staging, limits.log)
        collected = session.copy_out(
            out,
            staging,
            allowed=(*RESULT_FILES, DETAILS).__contains__,
            max_bytes=MAX_RESULT_BYTES,
            max_files=16,
        )
    status, detail, fault = _judge(exit_, collected.files, staging, task)
    final = False
    if gone and status == "error":
        detail, fault = Detail("gateway-ended", message=str(detail)), "platform"
    elif facts is not None:
        status, detail, final = _refusals(task, facts, status, detail)
        fault = "organiser" if final else fault
    if status == "error":
        for name in (*RESULT_FILES, DETAILS):
            (staging / name).unlink(missing_ok=True)
    finished = stamp(SystemClock().now())
    return Evaluated(status, detail, exit_, image.id, started, finished, final, services, facts, fault)


def _gateway(session: Session, task: Task, beside: GatewaySetup | None) -> GatewayRoom | None:
    service = task.evaluation_gateway
    if service is None:
        return None
    assert beside is not None, "an evaluator that asks models needs the image of the gateway"
    key = gateway_key(service)
    return prepare_gateway(session, service, beside.sidecars, key=key, known=beside.replies)


def _data_mounts(engine: Engine, task: Task, digests: Mapping[str, str]) -> list[Mount]:
    return [
        Mount(engine.data_volume(digests[name], partial(folder_files, service.data)), f"{SERVICES}/{name}")
        for name, service in with_data(task).items()
        if service.data is not None
    ]


def _logs(handle: Handle, staging: Path, cap: int) -> None:
    for stream in ("stdout", "stderr"):
        (staging / "logs" / f"{stream}.log").write_bytes(handle.logs(stream, cap))


def _refusals(task: Task, facts: GatewayFacts, status: str, detail: Detail) -> tuple[str, Detail, bool]:
    """Status, detail and finality when the gateway refused questions for a reason of the organiser's.

    Scores that were made without these answers are not believed, whatever the evaluator made of it.
    """
    service = task.evaluation_gateway
    refused = refusal(service, facts, "runner reevaluate") if service is not None else None
    return ("error", refused, True) if refused is not None else (status, detail, False)


def _judge(
    exit_: Exit, files: tuple[str, ...], staging: Path, task: Task
) -> tuple[str, Detail, Literal["organiser", "platform"]]:
    """Status, detail, and (of an error) whose fault: an evaluator that ended well and says error names the organiser's files."""
    if exit_.killed == "cancel":
        raise KeyboardInterrupt
    broken = _broken(exit_, task)
    missing = [name for name in RESULT_FILES if name not in files]
    if broken is None and missing:
        broken = Detail("results-missing", files=", ".join(missing))
    if broken is None and (problem := contract_problem(staging, task)):
        broken = Detail("contract-broken", what=problem)
    if broken is not None:
        return "error", broken, "platform"
    result = json.loads((staging / "result.json").read_bytes())
    said = Detail("evaluator-said", message=schemas.show(result.get("message", ""), 500))
    return result["status"], said, "organiser"


def _broken(exit_: Exit, task: Task) -> Detail | None:
    """How the evaluator's container failed; None when it ended well."""
    if exit_.outside is not None:
        return Detail("evaluator-outside", how=exit_.outside)
    if exit_.killed == "time":
        return Detail("evaluator-time", limit=task.evaluator_limits.wall_clock)
    if exit_.oom_killed:
        return Detail("evaluator-memory")
    if exit_.start_error:
        return Detail("evaluator-not-started", error=exit_.start_error)
    return (
        None if exit_.code == 0 else Detail("evaluator-exit", code=-1 if exit_.code is None else exit_.code)
    )


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
    pending = set(data.get("pending", {}))
    if pending - known:
        return f"result.json names measures that the task does not have: {schemas.show(', '.join(sorted(pending - known)))}"
    if pending & set(data["measures"]):
        return f"result.json has a value for {', '.join(sorted(pending & set(data['measures'])))}, which is pending"
    if data["status"] == "valid" and (set(data["measures"]) | pending) != known:
        return f"result.json lacks the measures {', '.join(sorted(known - set(data['measures']) - pending))}"
    for name, check in (("scores.jsonl", _score_problem), ("findings.jsonl", _finding_problem)):
        for number, line in enumerate(_lines(folder / name), start=1):
            broken = check(line, known)
            if broken:
                return f"{name}:{number}: {broken}"
    if (folder / DETAILS).is_file():
        for number, line in enumerate(_lines(folder / DETAILS), start=1):
            if line is None:
                return f"{DETAILS}:{number}: not a JSON object"
    return ""


def _lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """The objects of a file of JSON lines; None for a line that is none."""
    with path.open("rb") as stream:
        for _, data, _ in jsonl.rows(stream.read, max_line=MIB, rules=_LINES):
            yield data if isinstance(data, dict) else None


def _score_problem(data: dict[str, Any] | None, known: set[str]) -> str:
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


def _finding_problem(data: dict[str, Any] | None, _: set[str]) -> str:
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
