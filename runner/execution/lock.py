"""From a registered submission to a job: resolve the command, apply the task's limits, pin it with a lock."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import schemas
from runner.engines.sandbox import sandbox_digest
from runner.execution.job import InputRun, Job, WorkflowName
from runner.model.errors import RunnerError, no_such
from runner.model.limits import Exceptions, Limits, as_record, chosen
from runner.model.run import run_id
from runner.model.sidecars import Service
from runner.model.task import Dataset, Task
from runner.records.contents import KeptFile
from runner.submissions.bundle import Bundle
from runner.tasks.files import inputs_digest, work_digest
from runner.tasks.services import service_digest, service_env, services_of_run
from runner.tasks.tira import container_command, container_env


def asked_workflow(bundle: Bundle, task: Task) -> str:
    """What :func:`workflow_of` gives, also where the task does not offer it any more."""
    return "upload" if bundle.data["runs"] else bundle.data.get("workflow") or task.workflow


def workflow_of(bundle: Bundle, task: Task) -> WorkflowName:
    """Uploaded run files are taken as they are; everything else follows the submission's choice, or the task.

    Raises E207 when the task does not offer what was chosen (any more).
    """
    chosen = asked_workflow(bundle, task)
    if chosen == "upload" and bundle.data["runs"]:
        return "upload"
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
    view: str | None = None,
    input_runs: Sequence[InputRun] = (),
    sidecars: str | None = None,
    replies: Path | None = None,
) -> Job:
    """The job of one run, with its lock.

    Args:
        own_profile: whether the engine's machine can use the platform's own seccomp profile.
        view: the digest of what the scenario sees of the dataset, where it is known; otherwise its files are looked at.
        input_runs: the archived runs that the software takes as input.
        sidecars: the identity of the image of the containers next to interactive software (None: not known; such a job
            cannot be executed).
        replies: the file of what models answered before.

    Raises:
        RunnerError: E207 when scenario, workflow or run file are not the task's; E402 when the dataset lacks files.
    """
    if scenario not in task.scenarios:
        fix = "correct scenarios in submission.yaml"
        raise no_such("scenario", scenario, task.scenarios, of=task.id, fix=fix, code="E207")
    workflow = workflow_of(bundle, task)
    services: dict[str, Service] = {}
    env = container_env(dataset.id, [source.name for source in input_runs])
    if workflow == "interactive" and task.interaction is not None:
        services = services_of_run(task.services)
        env = {"HF_HUB_OFFLINE": "1", **service_env(task.interaction, services)}
    team, software, image = bundle.data["team"], bundle.data["software"], bundle.data["image"]
    job = Job(
        run_id=run_id(bundle.submission_id, dataset.id, scenario),
        submission_id=bundle.submission_id,
        team=team,
        software=software,
        task=task,
        dataset=dataset,
        scenario=scenario,
        workflow=workflow,
        image=image["id"] if image else None,
        command=container_command(bundle.data["command"], env),
        env=env,
        limits=_limits(bundle, task, workflow),
        exceptions=task.exceptions.get(f"{team}/{software}", Exceptions()),
        uploads=uploads_for(bundle, dataset.id, scenario),
        input_runs=tuple(input_runs),
        models=task.models,
        sidecars=sidecars if workflow == "interactive" else None,
        services=services,
        replies=replies if "gateway" in services else None,
    )
    lock = _lock(job, image, own_profile, view or inputs_digest(dataset, task.scenarios[scenario]))
    return replace(job, lock=lock, lock_digest=schemas.digest(lock))


def _limits(bundle: Bundle, task: Task, workflow: str) -> Limits:
    """Return the limits of a run; an interactive system always has a loopback, through which the driver talks to it."""
    limits = chosen(task.limits, task.frame, bundle.data.get("limits", {}))
    return replace(limits, loopback=True) if workflow == "interactive" else limits


def _lock(job: Job, image: Mapping[str, Any] | None, own_profile: bool, view: str) -> dict[str, Any]:
    """Everything that decides what a job computes: the content of lock.json (schema ``lock``)."""
    digests: dict[str, Any] = {
        "task": work_digest(job.task, job.workflow),
        "view": view,
        "models": [model.digest for model in job.models],
        "input_runs": {source.run_id: source.digest for source in job.input_runs},
        "uploads": [upload.sha256() for upload in job.uploads],
        "sandbox": sandbox_digest(own_profile) if job.workflow != "upload" else "",
    }
    plain = ("run_id", "submission_id", "team", "software", "scenario", "workflow")
    shown = ("id", "repo_digest", "platform")
    exceptions = asdict(job.exceptions).items()
    lock: dict[str, Any] = {
        "schema_version": 1,
        **{name: getattr(job, name) for name in plain},
        "task": job.task.id,
        "dataset": job.dataset.id,
        "image": {key: image[key] for key in shown if key in image} if image else None,
        "command": list(job.command) if job.command else None,
        "env": dict(job.env),
        "limits": as_record(job.limits),
        "exceptions": {key: list(value) if isinstance(value, tuple) else value for key, value in exceptions},
        "seed": int(hashlib.sha256(job.run_id.encode()).hexdigest()[:8], 16),  # one for all attempts
        "digests": digests,
    }
    if job.workflow == "interactive" and job.task.interaction is not None:
        # Only here, so that the locks of other runs stay what they were.
        lock["sidecars"] = job.sidecars
        lock["interaction"] = asdict(job.task.interaction)
        digests["services"] = {name: service_digest(service) for name, service in job.services.items()}
        lock["limits_beside"] = {name: as_record(service.limits) for name, service in job.services.items()}
    return lock


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The names of what is not the same in two locks, as ``limits.memory``, sorted; ``prefix`` is put before each."""
    found: list[str] = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += differences(before, after, f"{prefix}{key}.")
        else:
            found.append(f"{prefix}{key}")
    return found


def uploads_for(bundle: Bundle, dataset: str, scenario: str) -> tuple[KeptFile, ...]:
    """The run file that a bundle has for a dataset in a scenario; none for software.

    Raises E207 when it has run files, but not for this cell.
    """
    found = tuple(
        bundle.run_file(run)
        for run in bundle.data["runs"]
        if (run["dataset"], run["scenario"]) == (dataset, scenario)
    )
    if bundle.data["runs"] and not found:
        name = f"{bundle.data['team']}/{bundle.data['software']}"
        what = f"{name} has no run file for {dataset} in the scenario {scenario}"
        why = f"It has files for {', '.join(' in '.join(cell) for cell in bundle.cells or ())}."
        raise RunnerError("E207", what, why=why, fix="name one of these")
    return found
