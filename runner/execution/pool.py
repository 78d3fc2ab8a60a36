"""The pool of workers: runs the plan, bounded by processors and memory, fair among teams, one commit at a time.

Workers execute and evaluate; they touch no database. The coordinator (the thread that called
:meth:`Pool.run`) commits what they bring back and asks the store what the run needs next.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import schemas
from runner.engines.base import Engine
from runner.execution.attempt import evaluate, execute
from runner.execution.plan import Plan, Planned, Step
from runner.execution.workspace import Workspace
from runner.model.config import Config
from runner.model.errors import PLATFORM, RunnerError
from runner.model.limits import Limits
from runner.model.run import Run
from runner.model.task import Task, Visibility
from runner.records.archive import Attempt, Evaluation
from runner.records.commit import commit
from runner.records.store.queries import find_run
from runner.submissions.bundle import Bundle
from runner.submissions.register import take_image
from runner.tasks.services import room_limits, services_of_run


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
        return self.stop.is_set()

    def cancelled(self, run_id: str) -> bool:
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
    """One thing to tell a person: a step that started or ended, or a run that is done."""

    kind: str  # started, ended, done, blocked
    run: Run
    step: str
    text: str = ""


class Undone(NamedTuple):
    """Why a run could not be done, and the exit code for that: 4 for the organiser's files, 3 for the platform."""

    why: str
    exit_code: int = PLATFORM


@dataclass
class _Capacity:
    """What the engine's machine has left. Bytes and processors."""

    memory: float
    cpus: float

    def fits(self, limits: Limits) -> bool:
        return limits.memory <= self.memory and limits.cpus <= self.cpus + 1e-9

    def take(self, limits: Limits, sign: int = 1) -> None:
        self.memory -= sign * limits.memory
        self.cpus -= sign * limits.cpus


def needs_of(task: Task, bundle: Bundle | None, step: Step) -> Limits:
    """What one step needs of the machine: its own limits, and the memory of the containers beside it."""
    if step == "execute":
        chosen = None if bundle is None or bundle.data["runs"] else bundle.data.get("workflow", task.workflow)
        if chosen == "interactive":
            return room_limits(task.limits, services_of_run(task.services), interactive=True)
        return task.limits
    gateway = task.evaluation_gateway
    beside = {} if gateway is None else {gateway.name: gateway}
    return room_limits(task.evaluator_limits, beside, interactive=False)


class Pool:
    """Runs a plan. ``jobs`` bounds how many containers run at once beside what the machine bounds."""

    def __init__(
        self,
        engine: Engine,
        workspace: Workspace,
        control: Control,
        *,
        jobs: int | None = None,
        tell: Callable[[RunProgress], None] = lambda _: None,
    ) -> None:
        self.engine, self.workspace, self.control, self.tell = engine, workspace, control, tell
        info = engine.info()
        self.jobs = max(1, jobs or int(info.cpus) or 1)
        self.room = _Capacity(info.memory * 0.9, float(info.cpus))
        self.results: queue.Queue[tuple[Planned, Attempt | Evaluation | BaseException]] = queue.Queue()
        self.served: Counter[str] = Counter()
        self._active: Counter[Visibility] = Counter()
        self.failed: dict[str, Undone] = {}  # run id -> why it could not be done

    def run(self, plan: Plan) -> dict[str, Run]:
        """Do all of ``plan``; returns the runs it touched, as they stand at the end.

        Raises KeyboardInterrupt after every container was removed; what was sealed by then is committed.
        """
        waiting = deque(plan.work)
        open_runs = {p.run.id for p in waiting}
        done: dict[str, Run] = {}
        active = 0
        with ThreadPoolExecutor(max_workers=self.jobs, thread_name_prefix="worker") as workers:
            try:
                while waiting or active:
                    while active < self.jobs and (planned := self._next(waiting, open_runs)) is not None:
                        if called_off := self._called_off(planned):
                            done[planned.run.id] = called_off
                            open_runs.discard(planned.run.id)
                            self.tell(RunProgress("done", called_off, planned.step))
                            continue
                        self._start(workers, planned)
                        active += 1
                    if not active:
                        self._give_up(waiting)
                        break
                    planned, result = self.results.get()
                    active -= 1
                    self.room.take(self._limits(planned), -1)
                    self._active[self._visibility(planned)] -= 1
                    after = self._settle(planned, result)
                    if after is None:
                        done[planned.run.id] = find_run(
                            self.workspace.store, planned.run.id, self.workspace.tasks.values()
                        )
                        open_runs.discard(planned.run.id)
                        self.tell(RunProgress("done", done[planned.run.id], planned.step))
                    else:
                        waiting.appendleft(after)
            except BaseException:
                self.control.stop.set()
                workers.shutdown(wait=True, cancel_futures=True)
                while not self.results.empty():
                    _, result = self.results.get()
                    if isinstance(result, (Attempt, Evaluation)):
                        commit(self.workspace.store, result)
                raise
        return done

    def _task(self, planned: Planned) -> Task:
        return self.workspace.tasks[planned.run.submission.task]

    def _limits(self, planned: Planned) -> Limits:
        return needs_of(
            self._task(planned), self.workspace.bundles.get(planned.run.submission.id), planned.step
        )

    def _visibility(self, planned: Planned) -> Visibility:
        return self._task(planned).datasets[planned.run.dataset].visibility

    def _next(self, waiting: deque[Planned], open_runs: set[str]) -> Planned | None:
        """The next step to start: of the team that was served least, first come first served within it.

        Public before blinded, and never both at once: the engine would let one wait for the other, and has its
        caches emptied whenever public runs follow blinded ones (:mod:`runner.engines.turns`).
        """
        now = next((visibility for visibility, number in self._active.items() if number), None)
        ready = [
            p
            for p in waiting
            if now in (None, self._visibility(p))
            and self.room.fits(self._limits(p))
            and not open_runs.intersection(p.needs)
        ]
        if not ready:
            return None
        chosen = min(
            ready,
            key=lambda p: (
                self._visibility(p) == "blinded",
                p.step == "execute",
                self.served[p.run.submission.team],
                waiting.index(p),
            ),
        )
        waiting.remove(chosen)
        return chosen

    def _give_up(self, waiting: deque[Planned]) -> None:
        """Nothing is running and still nothing fits: the machine is too small for the rest."""
        rest = {planned.run.id for planned in waiting}
        for planned in waiting:
            if rest.intersection(planned.needs):
                why = "it waits for runs that wait for it: mend inputs in submission.yaml"
            else:
                why = "this machine has less memory or fewer processors than the task's limits ask for"
            self._blocked(planned, why)

    def _blocked(self, planned: Planned, why: str, exit_code: int = PLATFORM) -> None:
        self.failed[planned.run.id] = Undone(why, exit_code)
        self.tell(RunProgress("blocked", planned.run, planned.step, why))

    def _called_off(self, planned: Planned) -> Run | None:
        """The run, when somebody cancelled or withdrew it since it was planned.

        A request to stop it is forgotten before that is looked up, and made after the event of the
        cancellation: whichever comes first, one of the two is seen.
        """
        if planned.step == "execute":
            self.control.forget(planned.run.id)
        run = find_run(self.workspace.store, planned.run.id, self.workspace.tasks.values())
        name = run.outcome.name
        return run if name in ("cancelled", "withdrawn") and name != planned.run.outcome.name else None

    def _start(self, workers: ThreadPoolExecutor, planned: Planned) -> None:
        self.room.take(self._limits(planned))
        self._active[self._visibility(planned)] += 1
        if planned.step == "execute":
            self.served[planned.run.submission.team] += 1
        self.tell(RunProgress("started", planned.run, planned.step))
        workers.submit(self._work, planned)

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
            return execute(self.workspace.job(run), self.engine, archive, self.control)
        task, number = self._task(planned), run.outcome.attempt
        assert number is not None
        attempt = archive.attempt(task.id, run.id, number)
        evaluator = self.workspace.evaluators[task.id]
        return evaluate(
            attempt, evaluator, task.datasets[run.dataset], run.scenario, self.engine, archive, self.control
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
        run = find_run(self.workspace.store, planned.run.id, self.workspace.tasks.values())
        self.tell(RunProgress("ended", run, planned.step))
        if run.outcome.todo == "run":
            return replace(planned, run=run, step="execute", why=run.outcome.reason)
        if run.outcome.todo == "evaluate":
            return Planned(run, "evaluate", run.outcome.reason)
        return None
