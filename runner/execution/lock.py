"""From a registered submission to a job: resolve the command, apply the task's limits, pin it with a lock."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import schemas
from runner.engines.sandbox import sandbox_digest
from runner.execution.job import InputRun, Job, WorkflowName
from runner.model.errors import RunnerError, no_such
from runner.model.limits import Exceptions
from runner.model.service import Service
from runner.model.task import Dataset, Task
from runner.records.archive import file_sha256
from runner.submissions.bundle import Bundle
from runner.tasks.files import inputs_digest, work_digest
from runner.tasks.services import service_digest, service_env, services_of_run
from runner.tasks.tira import container_command, container_env


def run_id(submission_id: str, dataset: str, scenario: str) -> str:
    """The id of what a submission produces on a dataset in a scenario."""
    return f"{submission_id}.{dataset}" + ("" if scenario == "default" else f".{scenario}")


def granted(task: Task, team: str, software: str) -> Exceptions:
    """The exceptions that the organiser granted to a software in task.yaml."""
    return task.exceptions.get(f"{team}/{software}", Exceptions())


def seed_of(run: str) -> int:
    """The seed of a run: the same for every attempt, another for every run."""
    return int.from_bytes(hashlib.sha256(run.encode()).digest()[:4], "big")


def workflow_of(bundle: Bundle, task: Task) -> WorkflowName:
    """Uploaded run files are taken as they are; everything else follows the submission's choice, or the task.

    Raises E207 when the task does not offer what was chosen (any more).
    """
    if bundle.data["runs"]:
        return "upload"
    chosen = bundle.data.get("workflow")
    if chosen is None:
        return task.workflow
    for offered in task.workflows:
        if chosen == offered:
            return offered
    fix = "correct workflow in submission.yaml"
    raise no_such("workflow", chosen, task.workflows, of=task.id, fix=fix, code="E207")


def make_job(
    bundle: Bundle,
    task: Task,
    dataset: Dataset,
    scenario: str,
    *,
    own_profile: bool,
    input_runs: Sequence[InputRun] = (),
    sidecars: str | None = None,
    replies: Path | None = None,
) -> Job:
    """The job of one run, with its lock. Raises RunnerError E207 when scenario or workflow are not the task's.

    ``own_profile`` says whether the engine's machine can use the platform's own seccomp profile. ``sidecars`` is
    the identity of the image beside interactive software (None: not known, such a job cannot be executed), and
    ``replies`` the file of what models answered before.
    """
    if scenario not in task.scenarios:
        fix = "correct scenarios in submission.yaml"
        raise no_such("scenario", scenario, task.scenarios, of=task.id, fix=fix, code="E207")
    team, software, submission = bundle.data["team"], bundle.data["software"], bundle.submission_id
    identity = run_id(submission, dataset.id, scenario)
    uploads = uploads_for(bundle, dataset.id, scenario)
    workflow = workflow_of(bundle, task)
    services: dict[str, Service] = {}
    env = container_env(dataset.id, [source.name for source in input_runs])
    if workflow == "interactive" and task.interaction is not None:
        services = services_of_run(task.services)
        env = {"HF_HUB_OFFLINE": "1", **service_env(task.interaction, services)}
    command = container_command(bundle.data["command"], env)
    exceptions = granted(task, team, software)
    image = bundle.data["image"]
    digests: dict[str, Any] = {
        "task": work_digest(task, workflow),
        "view": inputs_digest(dataset, task.scenarios[scenario]),
        "models": [model.digest for model in task.models],
        "input_runs": {source.run_id: source.digest for source in input_runs},
        "uploads": [file_sha256(path) for path in uploads],
        "sandbox": sandbox_digest(own_profile) if workflow != "upload" else "",
    }
    lock: dict[str, Any] = {
        "schema_version": 1,
        "run_id": identity,
        "submission_id": submission,
        "team": team,
        "software": software,
        "task": task.id,
        "dataset": dataset.id,
        "scenario": scenario,
        "workflow": workflow,
        "image": {key: image[key] for key in ("id", "repo_digest", "platform") if key in image}
        if image
        else None,
        "command": list(command) if command else None,
        "env": dict(env),
        "limits": asdict(task.limits),
        "exceptions": {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(exceptions).items()},
        "seed": seed_of(identity),
        "digests": digests,
    }
    if workflow == "interactive" and task.interaction is not None:
        # Only here, so that the locks of other runs stay what they were.
        lock["sidecars"] = sidecars
        lock["interaction"] = asdict(task.interaction)
        digests["services"] = {name: service_digest(service) for name, service in services.items()}
        lock["limits_beside"] = {name: asdict(service.limits) for name, service in services.items()}
    return Job(
        run_id=identity,
        submission_id=submission,
        team=team,
        software=software,
        task=task,
        dataset=dataset,
        scenario=scenario,
        workflow=workflow,
        image=image["id"] if image else None,
        command=command,
        env=env,
        limits=task.limits,
        exceptions=exceptions,
        uploads=uploads,
        input_runs=tuple(input_runs),
        models=task.models,
        sidecars=sidecars if workflow == "interactive" else None,
        services=services,
        replies=replies if "gateway" in services else None,
        lock=lock,
        lock_digest=schemas.digest(lock),
    )


def uploads_for(bundle: Bundle, dataset: str, scenario: str) -> tuple[Path, ...]:
    """The run file that a bundle has for a dataset in a scenario; none for software.

    Raises E207 when it has run files, but not for this cell.
    """
    found = tuple(
        bundle.folder / "runs" / run["file"]
        for run in bundle.data["runs"]
        if (run["dataset"], run["scenario"]) == (dataset, scenario)
    )
    if bundle.data["runs"] and not found:
        raise RunnerError(
            "E207",
            f"{bundle.data['team']}/{bundle.data['software']} has no run file for {dataset} in the scenario {scenario}",
            why=f"It has files for {', '.join(' in '.join(cell) for cell in bundle.cells or ())}.",
            fix="name one of these",
        )
    return found
