"""Which steps hosts of a cluster do, and which stay on the coordinator's machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from runner.execution.job import Job
from runner.execution.lock import asked_workflow
from runner.execution.plan import Planned
from runner.execution.workspace import Workspace
from runner.model.errors import RunnerError
from runner.model.sidecars import Service
from runner.tasks.services import services_of_run

Role = Literal["software", "evaluations"]  # what the hosts of a cluster are for


def role_of(workspace: Workspace, planned: Planned) -> Role | None:
    """What hosts are for that do such a step; None where it is done on the coordinator's machine alone.

    Keys of models and kept replies stay there, and with them what may ask models.
    """
    submission = planned.run.submission
    if planned.step == "evaluate":
        return "evaluations" if workspace.tasks[submission.task].evaluation_gateway is None else None
    task = workspace.task_for(submission)
    workflow = asked_workflow(workspace.bundles[submission.id], task)
    return "software" if job_travels(workflow, services_of_run(task.services)) else None


def job_travels(workflow: str, services: Mapping[str, Service]) -> bool:
    """Whether hosts execute software of a workflow that has these services beside it."""
    return workflow == "batch" or (workflow == "interactive" and "gateway" not in services)


def check_travels(job: Job, fix: str) -> None:
    """Raise E101, with that ``fix``, where a job stays on the coordinator's machine."""
    if not job_travels(job.workflow, job.services):
        what = f"{job.team}/{job.software} stays on this machine"
        why = "Hosts execute software, but for that beside which models are asked: keys and kept replies stay here."
        raise RunnerError("E101", what, why=why, fix=fix)
