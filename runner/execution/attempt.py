"""One run, as a story: a job is executed in the sandbox, sealed in the archive, evaluated, and committed.

:func:`execute` and :func:`evaluate` are functions of what they are given and touch no database, so that
they can run anywhere; only :func:`commit` writes the event log and the store, and only the coordinator
calls it.
"""

from __future__ import annotations

import platform as host
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from runner.engines.base import Engine
from runner.engines.lending import Rooms
from runner.execution.contract import RunFiles
from runner.execution.evaluation import Evaluated, EvaluationJob
from runner.execution.evaluator import Evaluator, no_sidecars
from runner.execution.hardware import Energy, machine_of, runner_version
from runner.execution.job import Executed, Job
from runner.execution.stop import Stop
from runner.execution.workflows import workflow
from runner.execution.workflows.starting import begin, conclude, now
from runner.model.container import Collected, Exit, Resources
from runner.model.errors import RunnerError
from runner.model.pins import of_task, pins
from runner.model.task import Dataset
from runner.records.archive import Attempt, Evaluation, RunArchive
from runner.records.files import file_sha256, write_json
from runner.records.staging import Staging
from runner.tasks.files import part
from schemas.details import Detail


def engine_attempt(run_id: str, number: int, role: str = "run") -> str:
    """The name under which the engine knows the containers of an attempt (or of its evaluation)."""
    return f"{run_id}-{number}" if role == "run" else f"{run_id}-{number}-{role}"


def execute(job: Job, engine: Engine, archive: RunArchive, stop: Stop = Stop()) -> Attempt:
    """Run ``job`` once and seal what came out as the next attempt of its run.

    Returns the sealed attempt, whatever the verdict. Raises KeyboardInterrupt when the whole command is
    being stopped, and E301 when the engine is gone: then nothing of this attempt stays. Where the dataset has first cases,
    a run that does not end well on them is not executed on the others.
    """
    refuse_what_cannot_work(job, engine)
    with discard_on_error(archive, archive.begin(job.task.id, job.run_id)) as staging:
        record = perform(job, first_cases(job), staging.number, staging.path, engine, stop)
        return archive.seal(staging, record)


@contextmanager
def discard_on_error(archive: RunArchive, staging: Staging) -> Iterator[Staging]:
    """An attempt or evaluation that was begun in an archive; it is discarded if the block fails."""
    try:
        yield staging
    except BaseException:
        archive.discard(staging)
        raise


def perform(
    job: Job,
    first: Job | None,
    number: int,
    folder: Path,
    engine: Engine,
    stop: Stop = Stop(),
    *,
    name: str = "",
) -> dict[str, Any]:
    """Run ``job`` once and leave its files in ``folder``; nothing is archived.

    ``first`` is the same on the first cases (:func:`first_cases`), ``name`` the one by which the engine knows its containers
    (empty: the attempt's). Returns the content of run.json. Raises as :func:`execute`.
    """
    write_json(folder / "lock.json", job.lock)
    name = name or engine_attempt(job.run_id, number)
    stopped = partial(stop.cancelled, job.run_id)
    energy = Energy.now(engine.info())
    executed, facts = _on_first_cases(first, engine, f"{name}-first", folder, stopped)
    if executed is None:
        executed = workflow(job.workflow)(job, engine, name, folder, stopped)
    if executed.verdict.name == "cancelled" and stop.stopping():
        raise KeyboardInterrupt
    record = {**_run_record(job, number, folder, executed, engine), **facts}
    if job.workflow != "upload":
        record["machine"] = machine_of(engine.info()) | {"energy": energy.used()}
    return record


def fail(job: Job, engine: Engine, archive: RunArchive, error: RunnerError) -> Attempt:
    """Seal a failure of the platform in the place of an attempt of which nothing could be kept, for the reason that ``error`` says."""
    with discard_on_error(archive, archive.begin(job.task.id, job.run_id)) as staging:
        write_json(staging.path / "lock.json", job.lock)
        why = Detail("platform", what=error.what, why=error.why)
        executed = conclude(job, begin(staging.path), Collected(), None, platform=why)
        return archive.seal(staging, _run_record(job, staging.number, staging.path, executed, engine))


def fail_evaluation(
    attempt: Attempt, evaluator: Evaluator, dataset: Dataset, archive: RunArchive, error: RunnerError
) -> Evaluation:
    """As :func:`fail`, in the place of an evaluation of ``attempt``."""
    with discard_on_error(archive, archive.begin_evaluation(attempt)) as staging:
        done = Evaluated("error", Detail("platform", what=error.what, why=error.why), None, now(), now())
        asked = ordered_evaluation(attempt, staging.number, evaluator, dataset)
        return archive.add_evaluation(attempt, staging, {**asked, **ended_evaluation(done)})


def first_cases(job: Job) -> Job | None:
    """The same work on the first cases of a job's dataset; None where it has none, or no more than them. Raises E402."""
    topics = job.dataset.smoke if job.workflow != "upload" else None
    first = topics and part(job.dataset, job.task.scenarios[job.scenario], topics)
    return job.on(first) if first else None


def _on_first_cases(
    job: Job | None, engine: Engine, name: str, staging: Path, stopped: Callable[[], bool]
) -> tuple[Executed | None, dict[str, Any]]:
    """Execute what :func:`first_cases` gave.

    Returns how that ended, with its files in ``staging``, where that is the end of the run, otherwise None; and what run.json
    says of them: the attempt started with them.
    """
    if job is None:
        return None, {}
    topics, folder = job.dataset.sample, staging / "first-cases"
    folder.mkdir()
    executed = workflow(job.workflow)(job, engine, name, folder, stopped)
    verdict, used = executed.verdict, executed.exit.resources if executed.exit else Resources()
    facts = {"topics": topics, "verdict": verdict.name, "wall_seconds": used.wall_seconds}
    record = {"first_cases": {**facts, "cpu_seconds": used.cpu_seconds}}
    if verdict.name == "ok":
        shutil.rmtree(folder)
        return None, record | {"started": executed.started}
    for path in folder.iterdir():
        path.rename(staging / path.name)
    folder.rmdir()
    said = (*verdict.warnings, Detail("first-cases", topics=topics))
    return replace(executed, verdict=replace(verdict, warnings=said)), record


def _run_record(job: Job, number: int, folder: Path, executed: Executed, engine: Engine) -> dict[str, Any]:
    """The content of run.json (schema ``run``)."""
    verdict, exit_, info = executed.verdict, executed.exit, engine.info()
    return {
        "schema_version": 1,
        "run_id": job.run_id,
        "attempt": number,
        "lock_digest": job.lock_digest,
        "started": executed.started,
        "finished": executed.finished,
        "verdict": verdict.as_dict(),
        "exit": _exit_of_run(exit_),
        "resources": asdict(exit_.resources if exit_ else Resources()),
        "log_truncated": bool(exit_ and exit_.log_truncated),
        "output": {
            "file": executed.run_file,
            "files": [_file_record(folder / "output" / name) for name in executed.collected.files],
            "refused": [list(pair) for pair in executed.collected.refused],
            "bytes": executed.collected.bytes,
            "full": executed.collected.full,
        },
        "engine": {
            name: getattr(info, name)
            for name in ("name", "version", "cgroup_version", "cgroup_driver", "platform")
        },
        "host": host.platform(),
        "runner_version": runner_version(),
    }


def refuse_what_cannot_work(job: Job, engine: Engine) -> None:
    """What this engine can never give must not look like a failure: neither the software's nor, tried again, ours. Raises E304, E305."""
    if job.workflow == "upload":
        return
    engine.require([job.limits])
    if job.workflow == "interactive":
        sidecars_of(job)
    if job.exceptions.root and not engine.info().user_namespaces:
        what = f"{job.team}/{job.software} was granted root, which this engine cannot give safely"
        why = "Root inside a container has to be nobody outside (user namespaces)."
        fix = "start dockerd with --userns-remap=default, or take the exception out of task.yaml"
        raise RunnerError("E305", what, why=why, fix=fix)


def sidecars_of(job: Job) -> str:
    """The identity of the image of the containers beside interactive software. Raises E304 where it is not there."""
    if job.sidecars is None:
        why = f"{job.task.id} runs interactive software: driver, relay and index are containers of ours."
        raise no_sidecars(why)
    return job.sidecars


def _file_record(path: Path) -> dict[str, Any]:
    return {"name": path.name, "size": path.stat().st_size, "sha256": file_sha256(path)}


def _exit_of_run(exit_: Exit | None) -> dict[str, Any] | None:
    facts = exit_record(exit_)
    if facts is None or exit_ is None:
        return facts
    measured = {"idle": exit_.idle, "waited": exit_.waited}
    return facts | {name: round(value, 3) for name, value in measured.items() if value is not None}


def exit_record(exit_: Exit | None) -> dict[str, Any] | None:
    """The raw exit facts as they are kept in the archive."""
    if exit_ is None:
        return None
    return {name: getattr(exit_, name) for name in ("code", "oom_killed", "killed", "start_error", "outside")}


def evaluate(
    attempt: Attempt,
    evaluator: Evaluator,
    dataset: Dataset,
    scenario: str,
    engine: Engine,
    archive: RunArchive,
    stop: Stop = Stop(),
    rooms: Rooms | None = None,
) -> Evaluation:
    """Evaluate a sealed attempt with the verdict ``ok`` and put the evaluation next to it, never over another.

    ``rooms`` are those of other evaluations, where there are others.

    A failing evaluator or engine gives an evaluation of status ``error``; it never costs the team anything.
    Raises E301 when the engine is gone, E305 when it lacks the gateway's network, and E307 when the run's files are damaged.
    """
    run_file = attempt.record()["output"]["file"]
    assert run_file is not None, "only attempts with a run file are evaluated"
    with discard_on_error(archive, archive.begin_evaluation(attempt)) as staging:
        name = engine_attempt(attempt.run_id, attempt.number, f"evaluation-{staging.number}")
        with attempt.output() as output:
            files = RunFiles(output, run_file, attempt.lock()["workflow"] == "interactive")
            job = EvaluationJob(
                evaluator, dataset, scenario, files, engine, name, staging.path, stop, rooms=rooms
            )
            done = job.assess()
        record = {
            **ordered_evaluation(attempt, staging.number, evaluator, dataset),
            "gateway": _gateway_record(evaluator, done),
            **ended_evaluation(done),
        }
        return archive.add_evaluation(attempt, staging, record)


def ordered_evaluation(
    attempt: Attempt, number: int, evaluator: Evaluator, dataset: Dataset
) -> dict[str, Any]:
    """What evaluation.json says of what was to be done: known before it begins."""
    return {
        "schema_version": 1,
        "run_id": attempt.run_id,
        "attempt": attempt.number,
        "evaluation": number,
        "evaluator": {"image_id": evaluator.image.id, "default": evaluator.default},
        "inputs_digest": evaluator.digests[dataset.id]["inputs"],
        "truths_digest": evaluator.digests[dataset.id]["truths"],
        "services": dict(evaluator.services),
        "gateway": None,
        "asked": (asked := of_task(evaluator.task)),
        "pins": pins(asked),
    }


def ended_evaluation(done: Evaluated) -> dict[str, Any]:
    """What evaluation.json says of how it ended."""
    return {
        **{name: getattr(done, name) for name in ("started", "finished", "status", "final")},
        "fault": done.fault if done.status == "error" else None,
        "message": str(done.detail),
        "detail": done.detail.as_dict(),
        "exit": exit_record(done.exit),
    }


def _gateway_record(evaluator: Evaluator, done: Evaluated) -> dict[str, Any] | None:
    """What an evaluation's record says of its gateway (schema ``evaluation``); None without one."""
    service, facts = evaluator.task.evaluation_gateway, done.gateway
    if service is None or facts is None or evaluator.gateway is None:
        return None
    return {
        "image_id": evaluator.gateway.sidecars.id,
        "models": list(service.options["models"]),
        **{name: getattr(facts, name) for name in ("replay", "calls", "asked")},
        "refused": dict(facts.refused),
    }
