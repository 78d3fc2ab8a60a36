"""Background jobs for requests: checks of submitted run files, and registrations of submitted systems.

A request that needs a job raises :class:`Later` until the result is there, so that other requests never wait for a container.
Results are kept by the id of the request. Nothing is kept on the disk: after a restart every job can be done again.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner.execution.machine import Machine
from runner.execution.trials.handed_in import Form, check_handed_in
from runner.model.task import Dataset, Task

MAX_FORMS = 32


class Later(Exception):
    """Stop deciding a request whose job in ``slot`` is not finished."""

    def __init__(self, slot: Slot) -> None:
        super().__init__()
        self.slot = slot


@dataclass(frozen=True)
class Job:
    """A job that was begun. ``about`` identifies its input: the result counts for nothing else."""

    about: object
    future: Future[Any]


class Slot:
    """Runs one job at a time in a thread. Teams take turns; the requests of one team keep their order.

    The result of a request stays until :meth:`forget` is called with its id.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "slot")
        self._jobs: dict[str, Job] = {}  # by request id
        self._queue: dict[str, str] = {}  # teams by request id, in the order of arrival
        self._turns: dict[str, int] = {}  # by team: the number of its last job
        self._begun = 0

    @property
    def is_busy(self) -> bool:
        """True while a job runs."""
        return any(not job.future.done() for job in self._jobs.values())

    def has_begun(self, id: str, about: object) -> bool:
        """True if the job of a request with this input runs or is finished."""
        job = self._jobs.get(id)
        return job is not None and job.about == about

    def ready(self) -> list[str]:
        """Return the requests with a result, and if no job runs the request whose job is next."""
        ids = [id for id, job in self._jobs.items() if job.future.done()]
        if not self.is_busy and (next_id := self._next()) is not None:
            ids.append(next_id)
        return ids

    def result(self, id: str, team: str, about: object, prepare: Callable[[], Callable[[], Any]]) -> Any:
        """Return the result of a request's job, or raise what the job raised.

        Args:
            id: Id of the request.
            team: Whose turn the job takes.
            about: Identifies the input of the job. A result for another input is discarded.
            prepare: Returns the job; called in this thread when the job begins.

        Raises:
            Later: The job waits or runs.
        """
        job = self._jobs.get(id)
        if job is not None and job.future.done() and job.about != about:
            self.forget(id)
            job = None
        if job is None:
            self._queue.setdefault(id, team)
            if not self.is_busy and id == self._next():
                self._begin(id, about, prepare())
            raise Later(self)
        if not job.future.done():
            raise Later(self)
        return job.future.result()

    def forget(self, id: str) -> None:
        """Drop a request: its place in the queue, and its result. A running job goes on."""
        self._queue.pop(id, None)
        if (job := self._jobs.get(id)) is not None and job.future.done():
            del self._jobs[id]

    def keep(self, ids: Callable[[str], bool]) -> None:
        """Drop every request for which ``ids`` is false."""
        for id in [*self._queue, *self._jobs]:
            if not ids(id):
                self.forget(id)

    def close(self) -> None:
        """Wait for the running job."""
        self._threads.shutdown()

    def _next(self) -> str | None:
        """Return the queued request whose team had its last turn longest ago."""
        return min(self._queue, key=lambda id: self._turns.get(self._queue[id], 0), default=None)

    def _begin(self, id: str, about: object, job: Callable[[], Any]) -> None:
        self._begun += 1
        self._turns[self._queue.pop(id)] = self._begun
        self._jobs[id] = Job(about, self._threads.submit(job))


@dataclass(frozen=True)
class Upload:
    """A run file to check, sent with ``request``. Findings call it ``name``; ``sha256`` is of its content."""

    request: str
    team: str
    task: Task
    dataset: Dataset
    scenario: str
    file: Path
    name: str
    sha256: str

    @property
    def key(self) -> tuple[str, ...]:
        """What the result depends on."""
        return (self.task.id, self.dataset.id, self.scenario, self.name, self.sha256)


class Checks:
    """Checks run files in a slot. ``check`` gets a file and a function that returns true when it has to stop."""

    def __init__(self, check: Callable[[Upload, Callable[[], bool]], Form]) -> None:
        self._check, self._end = check, threading.Event()
        self.slot = Slot()
        self._forms: dict[tuple[str, ...], Form] = {}  # the last results, for files that are submitted again

    @classmethod
    def on(cls, machine: Machine) -> Checks:
        """Return checks that run on an engine."""

        def check(upload: Upload, stop: Callable[[], bool]) -> Form:
            return check_handed_in(machine, upload.task, upload.dataset, upload.scenario, upload.file, stop)

        return cls(check)

    def form(self, upload: Upload) -> Form:
        """Return the result of a check. When the check begins, the file is moved away.

        Raises:
            Later: The check waits or runs.
            PlatformError: The check failed on the platform's side.
        """
        if (known := self._forms.get(upload.key)) is not None:
            return known
        form: Form = self.slot.result(upload.request, upload.team, upload.key, lambda: self._prepared(upload))
        return form

    def close(self) -> None:
        """Stop the running check."""
        self._end.set()
        self.slot.close()

    def _prepared(self, upload: Upload) -> Callable[[], Form]:
        folder = Path(tempfile.mkdtemp(prefix="check-"))
        moved = replace(upload, file=Path(shutil.move(upload.file, folder / upload.name)))
        return lambda: self._look(moved)

    def _look(self, upload: Upload) -> Form:
        try:
            form = self._check(upload, self._end.is_set)
            self._forms[upload.key] = form
            if len(self._forms) > MAX_FORMS:
                del self._forms[next(iter(self._forms))]
            return form
        finally:
            shutil.rmtree(upload.file.parent, ignore_errors=True)
