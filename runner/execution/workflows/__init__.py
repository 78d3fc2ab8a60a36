"""Workflows: who talks to whom during a run. Each returns a verdict and leaves files; none knows measures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from runner.engines.base import Engine, Filled, Mount
from runner.execution.job import Executed, Job, WorkflowName

WorkflowRun = Callable[[Job, Engine, str, Path, Callable[[], bool]], Executed]


def workflow(name: WorkflowName) -> WorkflowRun:
    """The function that executes jobs of the workflow ``name``. Raises KeyError for one that is not there."""
    from runner.execution.workflows import batch, interactive, upload

    return {"batch": batch.run, "upload": upload.run, "interactive": interactive.run}[name]


def mounts_of(job: Job, engine: Filled) -> list[Mount]:
    """All data that the containers of a job are given, in volumes that are filled where they are not there. Raises E402, E306, E307."""
    from runner.execution.workflows import batch, beside

    return {"batch": batch.data_mounts, "interactive": beside.data_mounts}[job.workflow](job, engine)
