"""The upload workflow: a file handed in is the run. No container; the same checks and scores follow."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from runner.engines.base import Engine
from runner.execution.job import Executed, Job
from runner.model.clock import SystemClock, stamp
from runner.model.container import Collected, Exit
from runner.model.verdict import Facts, decide


def run(job: Job, engine: Engine, attempt_id: str, staging: Path, cancelled: Callable[[], bool]) -> Executed:
    """Take the uploaded run file of ``job`` into ``staging/output`` under the name the task asks for.

    The bundle was checked when it was registered: the file is regular and has the hash of the manifest.
    """
    now = stamp(SystemClock().now())
    output = staging / "output"
    output.mkdir()
    (staging / "logs").mkdir()
    source = job.uploads[0]
    name = job.task.output + (".gz" if source.name.endswith(".gz") else "")
    size = source.stat().st_size
    refused: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    if size > job.limits.output:
        refused = ((name, f"larger than the limit of {job.limits.output} bytes"),)
    else:
        shutil.copyfile(source, output / name)
        files = (name,)
    collected = Collected(files=files, refused=refused, bytes=size)
    exit_ = Exit(code=0, started=now, finished=now)
    facts = Facts(exit=exit_, output_present=bool(files), output_full=False, refused=refused)
    verdict = decide(facts, job.limits, job.task.output)
    return Executed(verdict, exit_, collected, name if files else None, now, now)
