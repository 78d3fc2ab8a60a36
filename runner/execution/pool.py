"""The pool of workers: runs the plan, bounded by processors and memory, fair among teams, one commit at a time.

Workers execute and evaluate; they touch no database. The coordinator (the thread that called
:meth:`Pool.run`) commits what they bring back and asks the store what the run needs next.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import schemas
from runner.engines.base import Engine
from runner.engines.lending import Rooms
from runner.execution.attempt import evaluate, execute
from runner.execution.plan import Plan, Planned
from runner.execution.schedule import Capacity, Schedule, lane_of, slots
from runner.execution.workspace import Workspace
from runner.model.config import Config
from runner.model.errors import PLATFORM, RunnerError
from runner.model.run import Run
from runner.model.task import Task
from runner.records.archive import Attempt, Evaluation
from runner.records.commit import commit
from runner.records.store.queries import find_run, pauses
from runner.submissions.kept import take_image


@dataclass
class Control:
    """How a person stops work: everything (``stop``) or one run (a file named like it in ``folder``)."""

    folder: Path
    stop: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def of(cls, config: Config) -> Control:
        """Where people ask for it in the data directory of ``config``."""
        return cls(config.home / "cancel")

    def stopping(self) -> bool:
        """Whether everything was asked to stop."""
        return self.stop.is_set()

    def cancelled(self, run_id: str) -> bool:
        """Whether the run was asked to stop, or everything was."""
        return self.stop.is_set() or (self.folder / run_id).exists()

    def request(self, run_id: str) -> None:
        """Ask whoever runs ``run_id`` to stop it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / run_id).touch()

    def forget(self, run_id: str) -> None:
        """A new start of ``run_id`` is not hit by an old request."""
        (self.folder / run_id).unlink(missing_ok=True)


@dataclass(frozen=True)
class RunProgress:
    """A progress event: a step that started or ended, or a run that is done or cannot be done."""

    kind: Literal["started", "ended", "done", "blocked"]
    run: Run
    step: str
    text: str = ""


class Undone(NamedTuple):
    """Why a run could not be done, and the exit code for that: 4 for the organiser's files, 3 for the platform."""

    why: str
    exit_code: int = PLATFORM


class Pool:
    """Runs a plan. ``jobs`` bounds how many containers run at once, besides what the machine bounds."""

    def __init__(
        self,
        engine: Engine,
        workspace: Workspace,
        control: Control,
        *,
        jobs: int | None = None,
        on_progress: Callable[[RunProgress], None] = lambda _: None,
    ) -> None:
        self.engine, self.workspace, self.control, self.on_progress = engine, workspace, control, on_progress
        self._info = engine.info()
        self.jobs = slots(self._info, jobs)
        self.results: queue.Queue[tuple[Planned, Attempt | Evaluation | BaseException]] = queue.Queue()
        self.rooms = Rooms(engine, self.jobs)
        self.done: dict[str, Run] = {}
        self.failed: dict[str, Undone] = {}  # run id -> why it could not be done

    def run(self, plan: Plan) -> dict[str, Run]:
        """Do all of ``plan``; returns the runs it touched, as they stand at the end.

        Raises KeyboardInterrupt after every container was removed; what was sealed by then is committed.
        """
        schedule = Schedule(plan.work, Capacity.of(self._info), partial(lane_of, self.workspace))
        active = 0
        with (
            self.rooms,
            ThreadPoolExecutor(max_workers=self.jobs, thread_name_prefix="worker") as workers,
        ):
            try:
                while True:
                    paused = self._paused()
                    while active < self.jobs and (planned := schedule.next(paused)) is not None:
                        if self._called_off(planned):
                            schedule.settled(planned.run.id)
                            continue
                        schedule.started(planned)
                        self.on_progress(RunProgress("started", planned.run, planned.step))
                        workers.submit(self._work, planned)
                        active += 1
                    if not active:
                        self._give_up(schedule.waiting(), paused)
                        return self.done
                    planned, result = self.results.get()
                    active -= 1
                    schedule.ended(planned)
                    if (after := self._settle(planned, result)) is not None:
                        schedule.continue_with(after)
                    else:
                        self._done(planned, self._current(planned))
                        schedule.settled(planned.run.id)
            except BaseException:
                self.control.stop.set()
                workers.shutdown(wait=True, cancel_futures=True)
                while not self.results.empty():
                    _, result = self.results.get()
                    if isinstance(result, (Attempt, Evaluation)):
                        commit(self.workspace.store, result)
                raise

    def _paused(self) -> Callable[[Planned], str]:
        """Why a step is not begun because its task or dataset was paused meanwhile; empty where it may be."""
        now = pauses(self.workspace.store)
        return lambda planned: self.workspace.why_paused(planned.run, now) if planned.pausable else ""

    def _task(self, planned: Planned) -> Task:
        return self.workspace.tasks[planned.run.submission.task]

    def _current(self, planned: Planned) -> Run:
        return find_run(self.workspace.store, planned.run.id, self.workspace.tasks.values())

    def _done(self, planned: Planned, run: Run) -> None:
        self.done[run.id] = run
        self.on_progress(RunProgress("done", run, planned.step))

    def _give_up(self, waiting: Sequence[Planned], paused: Callable[[Planned], str]) -> None:
        """Nothing is running and still nothing may start: the rest is paused, the machine is too small for it, or it waits for such runs."""
        rest = {planned.run.id for planned in waiting}
        reasons: dict[str, str] = {}
        for planned in waiting:
            if not rest.intersection(planned.needs):
                small = "this machine has less memory or fewer processors than the task's limits ask for"
                reasons[planned.run.id] = paused(planned) or small
        more = reasons
        while more:
            more = {
                planned.run.id: f"it takes {first} as input, which is not begun"
                for planned in waiting
                if planned.run.id not in reasons
                and (first := next(filter(reasons.__contains__, planned.needs), ""))
            }
            reasons |= more
        for planned in waiting:
            around = "it waits for runs that wait for it: correct inputs in submission.yaml"
            self._blocked(planned, reasons.get(planned.run.id) or paused(planned) or around)

    def _blocked(self, planned: Planned, why: str, exit_code: int = PLATFORM) -> None:
        self.failed[planned.run.id] = Undone(why, exit_code)
        self.on_progress(RunProgress("blocked", planned.run, planned.step, why))

    def _called_off(self, planned: Planned) -> bool:
        """Whether somebody cancelled or withdrew the run since it was planned; it is done then.

        A request to stop it is forgotten before that is looked up, and made after the event of the
        cancellation: whichever comes first, one of the two is seen.
        """
        if planned.step == "execute":
            self.control.forget(planned.run.id)
        run = self._current(planned)
        name = run.outcome.name
        if name == planned.run.outcome.name or name not in ("cancelled", "withdrawn"):
            return False
        self._done(planned, run)
        return True

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
            return execute(job, self.engine, archive, self.control)
        task, number = self._task(planned), run.outcome.attempt
        assert number is not None
        attempt = archive.attempt(task.id, run.id, number)
        evaluator = self.workspace.evaluators[task.id]
        dataset = task.datasets[run.dataset]
        return evaluate(
            attempt, evaluator, dataset, run.scenario, self.engine, archive, self.control, self.rooms
        )

    def _settle(self, planned: Planned, result: Attempt | Evaluation | BaseException) -> Planned | None:
        """Commit what a worker brought, and say what the run needs next (None: nothing)."""
        if isinstance(result, RunnerError):
            fix = f" Fix: {result.fix}" if result.fix else ""
            self._blocked(planned, f"{result.what}. {result.why}".strip() + fix, result.exit_code)
            if result.code in ("E301", "E302"):
                raise result
            return None
        if isinstance(result, Exception):
            # A defect of ours that one run brought to light must not stop the others.
            self._blocked(planned, f"E308: {type(result).__name__}: {schemas.show(result, 300)}")
            return None
        if isinstance(result, BaseException):
            raise result
        commit(self.workspace.store, result)
        run = self._current(planned)
        self.on_progress(RunProgress("ended", run, planned.step))
        if run.outcome.todo == "run":
            return replace(planned, run=run, step="execute", why=run.outcome.reason)
        if run.outcome.todo == "evaluate":
            return Planned(run, "evaluate", run.outcome.reason, pausable=False)
        return None
