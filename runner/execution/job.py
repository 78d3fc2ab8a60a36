"""One run to execute: everything the workflow needs, and the lock that pins it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import schemas
from runner.model.container import Collected, Exit
from runner.model.limits import Exceptions, Limits
from runner.model.sidecars import Service
from runner.model.task import Dataset, Model, Task, Workflow
from runner.model.verdict import Verdict
from runner.records.archive import Attempt
from runner.records.contents import KeptFile
from runner.tasks.files import inputs_digest

WorkflowName = Workflow


@dataclass(frozen=True)
class InputRun:
    """An archived run that another software takes as input: its run id, its attempt, and the digest of its output."""

    name: str
    run_id: str
    attempt: Attempt
    digest: str

    @classmethod
    def of(cls, name: str, attempt: Attempt) -> InputRun:
        """The output of ``attempt`` under the name that the software gives it."""
        files = attempt.files("output").items()
        digest = schemas.digest({path: file.sha256() for path, file in files})
        return cls(name, attempt.run_id, attempt, digest)


@dataclass(frozen=True)
class TaskFiles:
    """What an interactive run has to know of files of its task: size and lines of what the driver reads, and the digests (hex) of the
    ``data`` and ``prompts`` of services by their names.
    """

    input_bytes: int
    input_lines: int
    data: Mapping[str, str]
    prompts: Mapping[str, str]


@dataclass(frozen=True)
class Job:
    """One software on one dataset in one scenario, ready to be executed.

    ``image`` is the engine's image identity (None for uploads); ``command`` is resolved (a list, or None for
    the image's own entrypoint); ``lock`` pins all of it and ``lock_digest`` decides "the same work".

    Of the workflow interactive only: ``sidecars`` is the identity of the platform's own image for the containers
    next to the software, ``services`` are those that this run needs, ``replies`` is the file with what models
    answered before (None: nothing yet), and ``files`` is what it needs to know of files of the task (None: it is looked up
    where it is executed).
    """

    run_id: str
    submission_id: str
    team: str
    software: str
    task: Task
    dataset: Dataset
    scenario: str
    workflow: WorkflowName
    image: str | None
    command: tuple[str, ...] | None
    env: Mapping[str, str]
    limits: Limits
    exceptions: Exceptions = field(default_factory=Exceptions)
    uploads: tuple[KeptFile, ...] = ()
    input_runs: tuple[InputRun, ...] = ()
    models: tuple[Model, ...] = ()
    sidecars: str | None = None
    services: Mapping[str, Service] = field(default_factory=dict)
    replies: Path | None = None
    files: TaskFiles | None = None
    lock: Mapping[str, Any] = field(default_factory=dict)
    lock_digest: str = ""

    def on(self, dataset: Dataset) -> Job:
        """The same work on a part of the job's dataset: all else is as the lock says. Raises E402 when files are missing."""
        view = inputs_digest(dataset, self.task.scenarios[self.scenario])
        lock = {**self.lock, "digests": {**self.lock["digests"], "view": view}}
        return replace(self, dataset=dataset, files=None, lock=lock, lock_digest=schemas.digest(lock))


@dataclass(frozen=True)
class Executed:
    """What a workflow returns: the verdict, the raw facts, and the run file's name (None if absent).

    Output files lie in the staging folder's ``output/``, logs in ``logs/``.
    """

    verdict: Verdict
    exit: Exit | None
    collected: Collected
    run_file: str | None
    started: str
    finished: str
