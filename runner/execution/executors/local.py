"""Steps done by threads of this process, with one engine."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Self

from runner.engines.base import Engine
from runner.engines.lending import Rooms
from runner.execution.attempt import evaluate, execute
from runner.execution.executors.base import Host, Result
from runner.execution.plan import Planned
from runner.execution.stop import Stop
from runner.execution.workspace import Workspace
from runner.records.archive import Attempt, Evaluation
from runner.submissions.kept import take_image

Results = queue.Queue[tuple[Planned, Result]]


class LocalExecutor:
    """This machine. ``jobs`` bounds how many containers run at once, besides what the machine bounds.

    What comes of steps is put into ``results``, where somebody else's comes, too.
    """

    fixed = True

    def __init__(
        self,
        engine: Engine,
        workspace: Workspace,
        stop: Stop,
        *,
        jobs: int | None = None,
        results: Results | None = None,
    ) -> None:
        self.engine, self.workspace, self.stop = engine, workspace, stop
        self.host = Host.of(engine.info(), jobs)
        self.rooms = Rooms(engine, self.host.slots)
        self._workers = ThreadPoolExecutor(self.host.slots, thread_name_prefix="worker")
        self.results: Results = queue.Queue() if results is None else results
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(self.rooms)
        self._open.callback(self._workers.shutdown, wait=True, cancel_futures=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def hosts(self) -> Sequence[Host]:
        """This one."""
        return (self.host,)

    def takes(self, host: Host, planned: Planned) -> bool:
        """Everything may be done here, and nothing elsewhere."""
        return host is self.host

    def expects(self, waiting: Sequence[Planned]) -> bool:
        """No other machine will come."""
        return False

    def begin(self, planned: Planned, host: Host) -> None:
        """In a thread of its own."""
        self._workers.submit(self._work, planned)

    def ended(self, timeout: float | None) -> tuple[Planned, Result] | None:
        """See :class:`Executor`."""
        try:
            return self.results.get(timeout=timeout)
        except queue.Empty:
            return None

    def _work(self, planned: Planned) -> None:
        """In a worker: one step. Whatever happens comes back as a result."""
        try:
            self.results.put((planned, self._step(planned)))
        except BaseException as error:  # noqa: BLE001 - the worker's border: the coordinator decides
            self.results.put((planned, error))

    def _step(self, planned: Planned) -> Attempt | Evaluation:
        run, archive = planned.run, self.workspace.store.archive
        if planned.step == "execute":
            take_image(self.engine, self.workspace.bundles[run.submission.id])
            job = planned.job or self.workspace.job(run)
            self.workspace.check_current(job)
            return execute(job, self.engine, archive, self.stop)
        task, number = self.workspace.tasks[run.submission.task], run.outcome.attempt
        assert number is not None
        attempt = archive.attempt(task.id, run.id, number)
        evaluator = self.workspace.evaluators[task.id]
        dataset = task.datasets[run.dataset]
        return evaluate(
            attempt, evaluator, dataset, run.scenario, self.engine, archive, self.stop, self.rooms
        )
