"""One evaluation: hand a sanitised run to the evaluator container, believe nothing before it is checked.

The evaluator's side of this contract is public (``docs/reference/evaluator-contract.md``): any image that
reads ``request.json`` and writes three files will do (a fourth, ``details.jsonl``, is taken if it is there).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import schemas
from runner.engines.base import (
    ROOM_IN,
    ROOM_OUT,
    Cancelled,
    ContainerSpec,
    Engine,
    Filled,
    Mount,
    Room,
    Session,
)
from runner.engines.lending import Rooms
from runner.execution.contract import (
    DETAILS,
    MAX_RESULT_BYTES,
    RESULT_FILES,
    RunFiles,
    contract_problem,
    files_for_evaluator,
)
from runner.execution.evaluator import Evaluator
from runner.execution.stop import Stop
from runner.execution.workflows.gateway import GatewayFacts, GatewayRoom, refusal
from runner.execution.workflows.starting import keep_logs, now
from runner.model.container import Exit
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import MIB
from runner.model.task import Dataset, Task
from runner.tasks.data_files import folder_files
from runner.tasks.files import view_files
from runner.tasks.request import SERVICES, request, with_data
from runner.tasks.services import gateway_key
from schemas.details import Detail

REQUEST = "request.json"
RESULTS = (*RESULT_FILES, DETAILS)
MAX_RESULTS = 16  # files
# For what the platform itself noted down about an interactive run: a software whose run file fills the limit must not get
# rid of the record of what it retrieved.
RECORDS = 64 * MIB

Fault = Literal["organiser", "platform"]


@dataclass(frozen=True)
class Evaluated:
    """What one evaluation gave. ``status`` is ``valid``, ``invalid`` or ``error``; ``detail`` says why.

    ``final``: of an error, that evaluating again would end the same way; ``fault``: whether the organiser's files have to be
    corrected, or anything else. ``gateway`` is what the gateway did, None without one.
    """

    status: str
    detail: Detail
    exit: Exit | None
    started: str
    finished: str
    final: bool = False
    gateway: GatewayFacts | None = None
    fault: Fault = "platform"


def proof(
    evaluator: Evaluator, dataset: Dataset, scenario: str, engine: Engine, name: str
) -> Mapping[str, Any]:
    """What outputs that the platform's evaluator makes from the truths of ``dataset`` score there.

    They never leave its container, and nothing is recorded. The keys are those of ``evaluator prove``.

    Raises:
        RunnerError: E404 when the evaluator fails.
        PlatformError: the engine fails.
    """
    task = evaluator.task
    with tempfile.TemporaryDirectory(prefix="proof-") as scratch:
        staging, folder = Path(scratch) / "evaluation", Path(scratch) / "run"
        (staging / "logs").mkdir(parents=True)
        folder.mkdir()
        (folder / task.output).touch()
        run = RunFiles(folder, task.output)
        job = EvaluationJob(evaluator, dataset, scenario, run, engine, name, staging, command="prove")
        with job.in_a_room() as (ended, _):
            broken = _broken(ended.exit, task)
        said, why = ((staging / "logs" / f"{name}.log").read_bytes() for name in ("stdout", "stderr"))
    if broken is not None:
        text = f"{broken}: {schemas.show(why.decode('utf-8', 'replace'), 300)}"
        what = f"the evaluator cannot make outputs for {task.id} on {dataset.id}"
        raise RunnerError("E404", what, why=text, fix="see what it says")
    answer: Mapping[str, Any] = json.loads(said)
    return answer


class _Ended(NamedTuple):
    """How an evaluator ended and what it left; of its gateway, whether it ended first, and what it did."""

    exit: Exit
    files: tuple[str, ...]
    gone: bool = False
    facts: GatewayFacts | None = None


@dataclass(frozen=True)
class EvaluationJob:
    """One evaluation: of the files ``run``, by an evaluator, on a dataset in a scenario.

    ``name`` is the one by which the engine knows the containers, ``staging`` the empty folder in which the checked files and the
    logs are left, and ``rooms`` are those of other evaluations. ``command`` is that of the platform's evaluator.
    """

    evaluator: Evaluator
    dataset: Dataset
    scenario: str
    run: RunFiles
    engine: Engine
    name: str
    staging: Path
    stop: Stop = field(default_factory=Stop)
    command: str = "run"
    rooms: Rooms | None = None

    def assess(self) -> Evaluated:
        """Evaluate; a failure of the engine is an evaluation of the status ``error``.

        Raises KeyboardInterrupt when everything is stopped, E301 when the engine is gone, E305 when it lacks the gateway's network, and
        E307 when the run's files are damaged.
        """
        try:
            return self.evaluate()
        except Cancelled:
            raise KeyboardInterrupt from None
        except PlatformError as error:
            if error.code in ("E301", "E305", "E307", "E311"):
                raise
            return Evaluated("error", Detail("platform", what=error.what, why=error.why), None, "", "")

    def evaluate(self) -> Evaluated:
        """Run the evaluator on the files of a run.

        The platform's own evaluator, where it asks no models, runs in a room that serves one run after another; any other one
        has a container of its own. One that fails, is killed at its limits or breaks the contract gives the status ``error``. Raises
        PlatformError when the engine fails, KeyboardInterrupt when everything is stopped.
        """
        started = now()
        task = self.evaluator.task
        (self.staging / "logs").mkdir()
        with self.in_a_room() if _shares(self.evaluator) else self._alone() as (ended, room):
            status, detail, fault, final = _judge(ended, self.staging, task)
            if room is not None and status == "error" and fault == "platform":
                room.retire()
        if status == "error":
            for name in RESULTS:
                (self.staging / name).unlink(missing_ok=True)
        return Evaluated(status, detail, ended.exit, started, now(), final, ended.facts, fault)

    @contextmanager
    def in_a_room(self) -> Iterator[tuple[_Ended, Room]]:
        """Run the platform's evaluator in a room, which is nobody else's until the context is left."""
        limits = self.evaluator.task.evaluator_limits
        key, furnish = _room(self.evaluator, self.dataset, self.engine, records=self.run.records)
        with ExitStack() as stack:
            room = stack.enter_context(
                (self.rooms or stack.enter_context(Rooms(self.engine))).lend(
                    key,
                    furnish,
                    attempt_id=self.name,
                    visibility=self.dataset.visibility,
                    cancelled=self.stop.stopping,
                )
            )
            request_file = f"{ROOM_IN}/{REQUEST}"
            done = room.run(
                ("evaluator", self.command, "--request", request_file),
                self._files(ROOM_IN, ROOM_OUT),
                self.staging,
                env={"EVALUATOR_REQUEST": request_file},
                deadline=limits.wall_clock,
                cancelled=self.stop.stopping,
                allowed=RESULTS.__contains__,
                max_bytes=MAX_RESULT_BYTES,
                max_files=MAX_RESULTS,
            )
            (self.staging / "logs" / "stdout.log").write_bytes(done.stdout)
            (self.staging / "logs" / "stderr.log").write_bytes(done.stderr)
            yield _Ended(done.exit, done.collected.files), room

    @contextmanager
    def _alone(self) -> Iterator[tuple[_Ended, None]]:
        """Run the evaluator's image as it is, in a container of its own, beside a gateway where it may ask models."""
        limits = self.evaluator.task.evaluator_limits
        gone, facts = False, None
        with self.engine.session(
            self.name,
            labels={"role": "evaluator"},
            visibility=self.dataset.visibility,
            cancelled=self.stop.stopping,
        ) as session:
            files = self._files("/in", "/out")
            size = sum(len(one) if isinstance(one, bytes) else one.stat().st_size for one in files.values())
            box = session.output_volume("in", bytes=size + 4 * MIB, inodes=len(files) + 16)
            session.copy_in(box, files)
            out = session.output_volume("out", bytes=limits.output, inodes=MAX_RESULTS)
            data = shown(self.evaluator, self.dataset, self.engine)
            mounts = [Mount(box, "/in"), *data, Mount(out, "/out", read_only=False)]
            gateway = _gateway(session, self.evaluator)
            try:
                if gateway is not None:
                    gateway.start()
                    gateway.ready()
                    mounts.append(gateway.mount)
                env = {"EVALUATOR_REQUEST": f"/in/{REQUEST}"}
                spec = ContainerSpec("evaluator", self.evaluator.image, None, limits, tuple(mounts), env)
                handle = session.start(spec)
                exit_ = handle.wait(limits.wall_clock, self.stop.stopping)
                gone = gateway is not None and gateway.handle is not None and gateway.handle.ended()
            finally:
                # What was paid for is kept, however this evaluation ends.
                facts = gateway.finish(self.staging) if gateway is not None else None
            keep_logs(handle, self.staging / "logs", limits.log)
            collected = session.copy_out(
                out,
                self.staging,
                allowed=RESULTS.__contains__,
                max_bytes=MAX_RESULT_BYTES,
                max_files=MAX_RESULTS,
            )
        yield _Ended(exit_, collected.files, gone, facts), None

    def _files(self, given: str, output: str) -> dict[str, Path | bytes]:
        """The request and the run's files, which the evaluator finds in its folder ``given``."""
        task, run = self.evaluator.task, self.run
        asked = request(
            task, self.dataset, self.scenario, run.name, records=run.records, given=given, output=output
        )
        files = files_for_evaluator(run.folder, run.name, most_handed(task, records=run.records))
        return {REQUEST: json.dumps(asked).encode(), **{f"run/{name}": path for name, path in files.items()}}


def _shares(evaluator: Evaluator) -> bool:
    """Whether its evaluations are made in rooms: of the platform's own evaluator, where it asks no models."""
    return evaluator.default and evaluator.task.evaluation_gateway is None


def _room(
    evaluator: Evaluator, dataset: Dataset, engine: Engine, *, records: bool
) -> tuple[Hashable, Callable[[Session], Room]]:
    """What all evaluations in one room have in common, and what furnishes such a room in a session."""
    image, limits = evaluator.image, evaluator.task.evaluator_limits
    given = most_handed(evaluator.task, records=records) + 4 * MIB

    def furnish(session: Session) -> Room:
        mounts = shown(evaluator, dataset, engine)
        spec = ContainerSpec("evaluator", image, None, limits, tuple(mounts))
        return session.room(spec, given=given)

    digests = (sorted(evaluator.digests[dataset.id].items()), sorted(evaluator.services.items()))
    return (image.id, limits, given, *map(tuple, digests)), furnish


def most_handed(task: Task, *, records: bool) -> int:
    """How many bytes of a run's files the evaluator is given at most; ``records`` as in :class:`RunFiles`."""
    return task.limits.output + (RECORDS if records else 0)


def shown(evaluator: Evaluator, dataset: Dataset, engine: Filled) -> list[Mount]:
    """The data that an evaluator is shown: the whole inputs, the truths, and the data of services, by their digests."""
    digests = evaluator.digests[dataset.id]
    inputs = engine.data_volume(digests["inputs"], lambda: view_files(dataset))
    truths = engine.data_volume(digests["truths"], lambda: folder_files(dataset.truths))
    return [
        Mount(inputs, "/inputs"),
        Mount(truths, "/truths"),
        *(
            Mount(
                engine.data_volume(evaluator.services[name], partial(folder_files, service.data)),
                f"{SERVICES}/{name}",
            )
            for name, service in with_data(evaluator.task).items()
            if service.data is not None
        ),
    ]


def _gateway(session: Session, evaluator: Evaluator) -> GatewayRoom | None:
    service, setup = evaluator.task.evaluation_gateway, evaluator.gateway
    if service is None:
        return None
    assert setup is not None, "an evaluator that asks models needs the image of the gateway"
    return GatewayRoom(session, service, setup.sidecars, key=gateway_key(service), known=setup.replies)


def _judge(ended: _Ended, staging: Path, task: Task) -> tuple[str, Detail, Fault, bool]:
    """Status, detail, fault and finality.

    Scores that were made without answers of models, for a reason of the organiser's, are not believed, whatever the
    evaluator made of it.
    """
    facts = ended.facts
    status, detail, fault = _left(ended.exit, ended.files, staging, task)
    if ended.gone and status == "error":
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
    limit, used = task.evaluator_limits.cpu_time, exit_.resources.cpu_seconds
    # Also where it ended before anybody looked.
    if exit_.killed == "processor" or (limit is not None and used is not None and used > limit):
        return Detail("evaluator-processor", limit=limit)
    if exit_.oom_killed:
        return Detail("evaluator-memory")
    if exit_.start_error:
        return Detail("evaluator-not-started", error=exit_.start_error)
    return (
        None if exit_.code == 0 else Detail("evaluator-exit", code=-1 if exit_.code is None else exit_.code)
    )
