"""Small slots beside whatever is being evaluated: for checks of run files that were handed in, and for registrations.

The clerk asks with :meth:`Checks.of`, and is told :class:`Later` until the slot has looked: what it does meanwhile never
waits for a container. Nothing is kept on the disk: after a restart a request is simply asked for again.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner.execution.machine import Machine
from runner.execution.trials.handed_in import Form, check_handed_in
from runner.model.task import Dataset, Task

KEPT = 32  # results that are remembered: the same file may come again


class Later(Exception):
    """A request that cannot be decided before its file was looked at."""


@dataclass(frozen=True)
class Upload:
    """A run file to look at: findings call it ``name``, ``sha256`` is of its content."""

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
    """The slot. ``check`` looks at one file; it is given a function that says whether to stop."""

    def __init__(self, check: Callable[[Upload, Callable[[], bool]], Form]) -> None:
        self._check, self._end = check, threading.Event()
        self._threads = ThreadPoolExecutor(1, "checks")
        self._found: dict[tuple[str, ...], Future[Form]] = {}
        self.served: Counter[str] = Counter()  # how many files of each team were looked at

    @classmethod
    def on(cls, machine: Machine) -> Checks:
        """The slot on an engine."""

        def check(one: Upload, stop: Callable[[], bool]) -> Form:
            return check_handed_in(machine, one.task, one.dataset, one.scenario, one.file, stop)

        return cls(check)

    @property
    def busy(self) -> bool:
        """Whether a file is being looked at."""
        return any(not one.done() for one in self._found.values())

    def of(self, upload: Upload) -> Form:
        """What the check of a file gave.

        Raises:
            Later: Not known yet. Where the slot is free it begins now, and the file is taken away to it.
            PlatformError: The check failed on our side; asked again, it begins anew.
        """
        found = self._found.get(upload.key)
        if found is None and not self.busy:
            self._begin(upload)
        if found is None or not found.done():
            raise Later
        if found.exception() is not None:
            del self._found[upload.key]
        return found.result()

    def close(self) -> None:
        """End what is being looked at."""
        self._end.set()
        self._threads.shutdown()

    def _begin(self, upload: Upload) -> None:
        while len(self._found) >= KEPT:
            del self._found[next(iter(self._found))]
        self.served[upload.team] += 1
        folder = Path(tempfile.mkdtemp(prefix="check-"))
        moved = replace(upload, file=Path(shutil.move(upload.file, folder / upload.name)))
        self._found[upload.key] = self._threads.submit(self._look, moved)

    def _look(self, upload: Upload) -> Form:
        try:
            return self._check(upload, self._end.is_set)
        finally:
            shutil.rmtree(upload.file.parent, ignore_errors=True)


class Slot:
    """A slot for what takes long, such as the registration of a software: one at a time, beside the clerk, who never waits for it. What it
    did is asked for by the id of a request; nothing is kept on the disk, as everything can be done again."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "slot")
        self._job: tuple[str, Future[Mapping[str, Any]]] | None = None

    def has(self, id: str) -> bool:
        """Whether a request is being done, or was and nobody has asked for it since."""
        return self._job is not None and self._job[0] == id

    def of(self, id: str, job: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """What ``job`` gave for a request, or raises what it raised; Later until then, or while another one is being done."""
        if self._job is None:
            self._job = (id, self._threads.submit(job))
        known, future = self._job
        if known != id or not future.done():
            if known != id and future.done():  # its request went away
                self._job = None
            raise Later
        self._job = None
        return future.result()

    def close(self) -> None:
        """Wait for what is being done."""
        self._threads.shutdown()
