"""The upload workflow: a file handed in is the run. No container; the same checks and scores follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from runner.engines.base import Engine
from runner.execution.job import Executed, Job
from runner.execution.workflows.starting import begin, conclude
from runner.model.container import Collected, Exit


def run(job: Job, engine: Engine, attempt_id: str, staging: Path, cancelled: Callable[[], bool]) -> Executed:
    """Take the uploaded run file of ``job`` into ``staging/output`` under the name the task asks for.

    The bundle was checked when it was registered: the file is regular and has the hash of the manifest.
    """
    started = begin(staging)
    source = job.uploads[0]
    name = job.task.output + (".gz" if source.name.endswith(".gz") else "")
    size = source.size
    refused: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    if size > job.limits.output:
        refused = ((name, f"larger than the limit of {job.limits.output} bytes"),)
    else:
        source.copy(staging / "output" / name)
        files = (name,)
    collected = Collected(files=files, refused=refused, bytes=size)
    return conclude(job, started, collected, Exit(code=0, started=started, finished=started))
