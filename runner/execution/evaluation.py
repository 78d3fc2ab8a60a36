"""One evaluation: hand a sanitised run to the evaluator container, believe nothing before it is checked.

The evaluator's side of this contract is public (``docs/reference/evaluator-contract.md``): any image that
reads ``request.json`` and writes three files will do (a fourth, ``details.jsonl``, is taken if it is there).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import schemas
from runner.engines.base import ContainerSpec, Engine, Mount, Session, Volume
from runner.execution.contract import DETAILS, MAX_RESULT_BYTES, RESULT_FILES, contract_problem
from runner.execution.evaluator import Evaluator
from runner.execution.workflows.gateway import GatewayFacts, GatewayRoom, refusal
from runner.execution.workflows.starting import keep_logs, now
from runner.model.container import Exit
from runner.model.limits import MIB
from runner.model.task import Dataset, Task
from runner.tasks.data_files import folder_files
from runner.tasks.files import view_files
from runner.tasks.request import SERVICES, request, with_data
from runner.tasks.services import data_digest, gateway_key
from schemas.details import Detail

REQUEST = "/in/request.json"
MAX_HANDED_FILES = 64
# For what the platform itself noted down about an interactive run: a software whose run file fills the limit must not get
# rid of the record of what it retrieved.
RECORDS = 64 * MIB

Fault = Literal["organiser", "platform"]


class RunFiles(NamedTuple):
    """What is evaluated: a folder of output files, and the name of the run file in it.

    ``records`` says that the platform's own records of an interactive run lie there, too (see :func:`request`).
    """

    folder: Path
    name: str
    records: bool = False


@dataclass(frozen=True)
class Evaluated:
    """What one evaluation gave. ``status`` is ``valid``, ``invalid`` or ``error``; ``detail`` says why.

    ``final``: of an error, that evaluating again would end the same way; ``fault``: whether the organiser's files have to be
    corrected, or anything else. ``services`` are the digests of the data of the services that it saw; ``gateway`` is what
    the gateway did, None without one.
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
    fault: Fault = "platform"


def files_for_evaluator(folder: Path, run_file: str, most: int) -> dict[str, Path]:
    """The files of a run's output that the evaluator is given: the main one, and others next to it by name.

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
    evaluator: Evaluator,
    dataset: Dataset,
    scenario: str,
    run: RunFiles,
    engine: Engine,
    *,
    attempt_id: str,
    staging: Path,
    cancelled: Callable[[], bool],
) -> Evaluated:
    """Run the evaluator on a run's files and leave its checked files and logs in ``staging``, an empty folder.

    ``attempt_id`` is the name under which the engine knows the containers. A container that fails, is killed at its limits
    or breaks the contract gives the status ``error``. Raises PlatformError when the engine fails, KeyboardInterrupt when
    ``cancelled`` said so.
    """
    started = now()
    task, limits = evaluator.task, evaluator.task.evaluator_limits
    (staging / "logs").mkdir()
    services = {name: str(data_digest(service)) for name, service in with_data(task).items()}
    shown = _shown(engine, evaluator, dataset, services)
    gone, facts = False, None
    with engine.session(
        attempt_id, labels={"role": "evaluator"}, visibility=dataset.visibility, cancelled=cancelled
    ) as session:
        box = _box(session, task, dataset, scenario, run)
        out = session.output_volume("out", bytes=limits.output, inodes=16)
        mounts = [Mount(box, "/in"), *shown, Mount(out, "/out", read_only=False)]
        gateway = _gateway(session, evaluator)
        try:
            if gateway is not None:
                gateway.start()
                gateway.ready()
                mounts.append(gateway.mount)
            env = {"EVALUATOR_REQUEST": REQUEST}
            spec = ContainerSpec("evaluator", evaluator.image, None, limits, tuple(mounts), env)
            handle = session.start(spec)
            exit_ = handle.wait(limits.wall_clock, cancelled)
            gone = gateway is not None and gateway.handle is not None and gateway.handle.ended()
        finally:
            # What was paid for is kept, however this evaluation ends.
            facts = gateway.finish(staging) if gateway is not None else None
        keep_logs(handle, staging / "logs", limits.log)
        kept = (*RESULT_FILES, DETAILS).__contains__
        collected = session.copy_out(out, staging, allowed=kept, max_bytes=MAX_RESULT_BYTES, max_files=16)
    status, detail, fault, final = _judge(exit_, collected.files, staging, task, gone, facts)
    if status == "error":
        for name in (*RESULT_FILES, DETAILS):
            (staging / name).unlink(missing_ok=True)
    return Evaluated(status, detail, exit_, evaluator.image.id, started, now(), final, services, facts, fault)


def _shown(
    engine: Engine, evaluator: Evaluator, dataset: Dataset, services: Mapping[str, str]
) -> list[Mount]:
    """The data that an evaluator is shown: the whole inputs, the truths, and the data of services, by their digests."""
    digests = evaluator.digests[dataset.id]
    inputs = engine.data_volume(digests["inputs"], lambda: view_files(dataset))
    truths = engine.data_volume(digests["truths"], lambda: folder_files(dataset.truths))
    return [
        Mount(inputs, "/inputs"),
        Mount(truths, "/truths"),
        *(
            Mount(
                engine.data_volume(services[name], partial(folder_files, service.data)), f"{SERVICES}/{name}"
            )
            for name, service in with_data(evaluator.task).items()
            if service.data is not None
        ),
    ]


def _box(session: Session, task: Task, dataset: Dataset, scenario: str, run: RunFiles) -> Volume:
    """A volume with the request and the run's files."""
    text = json.dumps(request(task, dataset, scenario, run.name, records=run.records)).encode()
    files = files_for_evaluator(run.folder, run.name, task.limits.output + (RECORDS if run.records else 0))
    size = sum(path.stat().st_size for path in files.values())
    box = session.output_volume("in", bytes=size + 4 * MIB, inodes=len(files) + 16)
    session.copy_in(box, {"request.json": text, **{f"run/{name}": path for name, path in files.items()}})
    return box


def _gateway(session: Session, evaluator: Evaluator) -> GatewayRoom | None:
    service, setup = evaluator.task.evaluation_gateway, evaluator.gateway
    if service is None:
        return None
    assert setup is not None, "an evaluator that asks models needs the image of the gateway"
    return GatewayRoom(session, service, setup.sidecars, key=gateway_key(service), known=setup.replies)


def _judge(
    exit_: Exit, files: tuple[str, ...], staging: Path, task: Task, gone: bool, facts: GatewayFacts | None
) -> tuple[str, Detail, Fault, bool]:
    """Status, detail, fault and finality. ``gone``: the gateway ended first; ``facts`` are what it did.

    Scores that were made without answers of models, for a reason of the organiser's, are not believed, whatever the
    evaluator made of it.
    """
    status, detail, fault = _left(exit_, files, staging, task)
    if gone and status == "error":
        return status, Detail("gateway-ended", message=str(detail)), "platform", False
    service = task.evaluation_gateway
    refused = refusal(service, facts, "runner reevaluate") if service and facts else None
    return (status, detail, fault, False) if refused is None else ("error", refused, "organiser", True)


def _left(exit_: Exit, files: tuple[str, ...], staging: Path, task: Task) -> tuple[str, Detail, Fault]:
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
    if exit_.killed == "processor":
        return Detail("evaluator-processor", limit=task.evaluator_limits.cpu_time)
    if exit_.oom_killed:
        return Detail("evaluator-memory")
    if exit_.start_error:
        return Detail("evaluator-not-started", error=exit_.start_error)
    return (
        None if exit_.code == 0 else Detail("evaluator-exit", code=-1 if exit_.code is None else exit_.code)
    )
