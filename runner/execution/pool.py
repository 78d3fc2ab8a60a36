"""The pool: runs the plan, bounded by processors and memory of its hosts, fair among teams, one commit at a time.

Its executor executes and evaluates, and touches no database. The coordinator (the thread that called
:meth:`Pool.run`) commits what comes back and asks the store what the run needs next.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import schemas
from runner.execution.attempt import fail, fail_evaluation
from runner.execution.executors.base import (
    Executor,
    Host,
    Lost,
    NoRoom,
    Result,
    Unheard,
    in_parts,
    machine_error,
    not_kept,
)
from runner.execution.plan import Plan, Planned
from runner.execution.schedule import Schedule, lane_of
from runner.execution.stop import Stop
from runner.execution.workspace import Workspace
from runner.model.config import Config
from runner.model.errors import PLATFORM, RunnerError
from runner.model.run import Run
from runner.records.archive import Attempt, Evaluation
from runner.records.commit import commit, commit_orphans
from runner.records.store.connect import Refused
from runner.records.store.queries import find_runs, pauses
from schemas.files import make_private
from schemas.interrupts import Interrupts


@dataclass
class Control(Stop):
    """How a person stops work: everything (``stop``, or when ``asked`` says so) or one run (a file named like it in ``folder``)."""

    folder: Path
    stop: threading.Event = field(default_factory=threading.Event)
    asked: Callable[[], bool] | None = None

    @classmethod
    def of(cls, config: Config) -> Control:
        """Where people ask for it in the data directory of ``config``."""
        return cls(config.home / "cancel")

    def stopping(self) -> bool:
        """Whether everything was asked to stop."""
        return self.stop.is_set() or (self.asked is not None and self.asked())

    def called_off(self, run_ids: Collection[str]) -> set[str]:
        """Those of some runs that were asked to stop, by one look for all of them; all where everything was."""
        if self.stopping():
            return {*run_ids}
        try:
            return {path.name for path in self.folder.iterdir()}.intersection(run_ids)
        except FileNotFoundError:
            return set()

    def request(self, run_id: str) -> None:
        """Ask whoever runs ``run_id`` to stop it."""
        make_private(self.folder)
        (self.folder / run_id).touch()

    def forget(self, run_id: str) -> None:
        """A new start of ``run_id`` is not hit by an old request."""
        (self.folder / run_id).unlink(missing_ok=True)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A context in which Ctrl-C and SIGTERM stop the work in order: containers go, what is sealed is committed.

        Where somebody says already when everything is to stop, nothing is changed.
        """
        if self.asked is not None:
            yield
            return
        with Interrupts() as interrupts:
            self.asked = lambda: interrupts.came
            yield


@dataclass(frozen=True)
class RunProgress:
    """A progress event: a step that started or ended, or a run that is done or cannot be done."""

    kind: Literal["started", "ended", "done", "blocked"]
    run: Run
    step: str
    text: str = ""


LOOK = 1.0  # seconds between two looks at hosts that come and go
HEED = 0.2  # seconds between two looks whether everything is to stop
TOGETHER = 64  # steps that are begun, or committed, at once
MANY = 64  # steps under way from which on what ended is gathered
GATHERED = 0.5  # seconds for which it is before it is committed
TICK = 0.05  # seconds for which it is before others begin in its place
SHOWN = 5  # hosts that are named where none will do
OUTAGES = 20  # of the scheduler in the middle of one run, after which it is not tried again by itself
LOSSES = 3  # of hosts in the middle of one run, after which it is not tried again by itself


class Undone(NamedTuple):
    """Why a run could not be done, and the exit code for that: 4 for the organiser's files, 3 for the platform."""

    why: str
    exit_code: int = PLATFORM


class Pool:
    """Runs a plan by an executor."""

    def __init__(
        self,
        executor: Executor,
        workspace: Workspace,
        control: Control,
        *,
        on_progress: Callable[[RunProgress], None] = lambda _: None,
    ) -> None:
        self.executor, self.workspace, self.control = executor, workspace, control
        self.on_progress = on_progress
        self.done: dict[str, Run] = {}
        self.failed: dict[str, Undone] = {}  # run id -> why it could not be done
        self._lost: Counter[tuple[str, int]] = (
            Counter()
        )  # run id and how often it may be -> how often it was lost

    def run(self, plan: Plan) -> dict[str, Run]:
        """Do all of ``plan``; returns the runs it touched, as they stand at the end.

        Raises KeyboardInterrupt after every container was removed; what was sealed by then is committed.
        """
        try:
            with self.executor:
                try:
                    return self._run(plan)
                except BaseException:
                    self.control.stop.set()
                    raise
        except BaseException:
            # Also what was taken from the executor and not committed yet.
            commit_orphans(self.workspace.store)
            raise

    def _run(self, plan: Plan) -> dict[str, Run]:
        executor, schedule = self.executor, Schedule(plan.work, partial(lane_of, self.workspace))
        at: dict[str, Host] = {}  # run id -> where a step of it is being done
        ended, until = (
            list[tuple[Planned, Result]](),
            0.0,
        )  # what is not committed yet, and when it is at the latest
        while True:
            paused = self._paused()
            while self._begin(schedule, paused, at):
                pass
            if not at and not ended and not executor.expects(schedule.waiting()):
                self._give_up(schedule.waiting(), paused)
                return self.done
            # Hosts come and go: where they can, they are looked at again now and then.
            timeout = until - time.monotonic() if ended else None if executor.fixed else LOOK
            more = self._ended(timeout, TICK if len(at) >= MANY else 0.0)
            few = len(at) - len(more) < MANY
            for planned, _ in more:
                schedule.ended(planned, host := at.pop(planned.run.id))
                # Where its evaluation is made, too, no other run takes the place in which it goes on.
                few |= planned.step == "execute" and host.role != "software"
            now = time.monotonic()
            until = until if ended else now + GATHERED
            ended += more
            # Where few are under way nothing waits for others.
            if few or len(ended) >= TOGETHER or now >= until:
                self._go_on(schedule, ended)
                ended = []

    def _go_on(self, schedule: Schedule, ended: Sequence[tuple[Planned, Result]]) -> None:
        """Commit what came of steps, and have their runs go on."""
        ended = self._commit(ended)
        ids, tasks = [planned.run.id for planned, _ in ended], self.workspace.tasks.values()
        now = find_runs(self.workspace.store, ids, tasks)
        for planned, result in ended:
            after = self._settle(planned, result, now[planned.run.id])
            if isinstance(after, Planned):
                schedule.continue_with(after)
            else:
                self._done(planned, after)
                schedule.settled(planned.run.id)

    def _begin(self, schedule: Schedule, paused: Callable[[Planned], str], at: dict[str, Host]) -> bool:
        """Begin steps that may start now, some at once; returns whether more may."""
        found: list[tuple[Planned, Host]] = []
        hosts, takes = self.executor.hosts(), self.executor.takes
        while len(found) < TOGETHER and (one := schedule.next(hosts, paused, takes)) is not None:
            schedule.started(*one)
            found.append(one)
        off = self._called_off([planned for planned, _ in found])
        for planned, host in found:
            if planned.run.id in off:
                schedule.given_up(planned, host)
                self._done(planned, off[planned.run.id])
                continue
            at[planned.run.id] = host
            self.on_progress(RunProgress("started", planned.run, planned.step))
            self.executor.begin(planned, host)
        return bool(found)

    def _ended(self, timeout: float | None, tick: float = 0.0) -> list[tuple[Planned, Result]]:
        """The steps that ended by now, some at once; where none did, the first that does within ``timeout`` seconds, and what
        does within a ``tick`` after it.

        Raises KeyboardInterrupt when everything is to stop.
        """
        last = math.inf if timeout is None else time.monotonic() + timeout
        found: list[tuple[Planned, Result]] = []
        while not found and (left := last - time.monotonic()) > 0:
            if self.control.stopping():
                raise KeyboardInterrupt
            found = [one for one in (self.executor.ended(min(HEED, left)),) if one is not None]
        if found:
            time.sleep(tick)
        while found and len(found) < TOGETHER and (more := self.executor.ended(0)) is not None:
            found.append(more)
        return found

    def _commit(self, ended: Sequence[tuple[Planned, Result]]) -> list[tuple[Planned, Result]]:
        """Commit what came of steps; returns them, with a failure of the platform in the place of what cannot be kept: it is tried again
        as such, and not for ever."""
        return [one for part in in_parts(ended) for one in self._commit_together(part)]

    def _commit_together(
        self, ended: Sequence[tuple[Planned, Result]], *, refused: bool = False
    ) -> list[tuple[Planned, Result]]:
        """As :meth:`_commit`, in one transaction unless the store refuses some of it; ``refused``: it has refused what this stands for."""
        ended = [
            self._failed(planned, error) if (error := not_kept(result)) else (planned, result)
            for planned, result in ended
        ]
        try:
            commit(
                self.workspace.store,
                *(result for _, result in ended if isinstance(result, Attempt | Evaluation)),
            )
        except Refused as error:
            if len(ended) > 1:
                return [settled for one in ended for settled in self._commit_together([one])]
            if refused:
                return [(ended[0][0], error)]
            return self._commit_together([self._failed(ended[0][0], error)], refused=True)
        return [*ended]

    def _failed(self, planned: Planned, error: RunnerError) -> tuple[Planned, Result]:
        """A step of which nothing can be kept, for the reason that ``error`` says, with a failure of the platform as its result."""
        run, desk = planned.run, self.workspace
        archive, task = desk.store.archive, run.submission.task
        try:
            if planned.step == "execute":
                return planned, fail(planned.job or desk.job(run), self.executor.engine, archive, error)
            assert run.outcome.attempt is not None
            attempt, dataset = (
                archive.attempt(task, run.id, run.outcome.attempt),
                desk.tasks[task].datasets[run.dataset],
            )
            return planned, fail_evaluation(attempt, desk.evaluators[task], dataset, archive, error)
        except Exception as failure:  # noqa: BLE001 - a defect may be in what this needs, too: then nothing is recorded
            return planned, failure

    def _paused(self) -> Callable[[Planned], str]:
        """Why a step is not begun because its task or dataset was paused meanwhile; empty where it may be."""
        now = pauses(self.workspace.store)
        return lambda planned: self.workspace.why_paused(planned.run, now) if planned.pausable else ""

    def _done(self, planned: Planned, run: Run) -> None:
        self.done[run.id] = run
        if run.id not in self.failed:  # which was told
            self.on_progress(RunProgress("done", run, planned.step))

    def _give_up(self, waiting: Sequence[Planned], paused: Callable[[Planned], str]) -> None:
        """Nothing is running and still nothing may start: the rest is paused, the machine is too small for it, or it waits for such runs."""
        rest, hosts = {planned.run.id for planned in waiting}, self.executor.hosts()
        reasons: dict[str, str] = {}
        for planned in waiting:
            if not rest.intersection(planned.needs):
                fit = [host for host in hosts if self.executor.takes(host, planned)]
                reasons[planned.run.id] = paused(planned) or self._too_much(planned, fit)
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

    def _too_much(self, planned: Planned, hosts: Sequence[Host]) -> str:
        """Why none of the hosts that take such a step can do it: what each of them lacks."""
        if not hosts:
            return "no host of the cluster is there"
        limits = lane_of(self.workspace, planned).limits
        lacks = ((one.label or one.name, one.lacks(limits) or one.not_done(planned.run.id)) for one in hosts)
        lacking = sorted(map(" ".join, lacks))[:SHOWN]
        more = f"; and {len(hosts) - SHOWN} more" if len(hosts) > SHOWN else ""
        full = any(planned.run.id in one.full for one in hosts)
        what = "what it needs" if full else "what the task's limits ask for"
        return f"no machine has {what}: {'; '.join(lacking)}{more}"

    def _blocked(self, planned: Planned, why: str, exit_code: int = PLATFORM) -> None:
        self.failed[planned.run.id] = Undone(why, exit_code)
        self.on_progress(RunProgress("blocked", planned.run, planned.step, why))

    def _called_off(self, steps: Sequence[Planned]) -> dict[str, Run]:
        """The runs that somebody cancelled or withdrew since they were planned, by id: they are done.

        A request to stop one is forgotten before that is looked up, and made after the event of the
        cancellation: whichever comes first, one of the two is seen.
        """
        for planned in steps:
            if planned.step == "execute":
                self.control.forget(planned.run.id)
        before = {planned.run.id: planned.run for planned in steps}
        now = find_runs(self.workspace.store, before, self.workspace.tasks.values())
        return {
            id: run
            for id, run in now.items()
            if run.outcome.name != before[id].outcome.name and run.outcome.name in ("cancelled", "withdrawn")
        }

    def _settle(self, planned: Planned, result: Result, run: Run) -> Planned | Run:
        """What a ``run`` that stands so after a step needs next, or the run where it needs nothing."""
        if isinstance(result, NoRoom):
            return planned
        if isinstance(result, Lost):
            most = OUTAGES if isinstance(result, Unheard) else LOSSES
            self._lost[planned.run.id, most] += 1
            if self._lost[planned.run.id, most] < most:
                return planned
            self._blocked(planned, f"{result}; that happened {most} times. Look at the hosts, then try again")
            return run
        result = machine_error(result, self.workspace.store.archive.root) or result
        if isinstance(result, RunnerError):
            fix = f" Fix: {result.fix}" if result.fix else ""
            why = f"{result.code}: {result.what}. {result.why}".strip() + fix
            self._blocked(planned, why, result.exit_code)
            if result.code in ("E301", "E302"):
                raise result
            return run
        if isinstance(result, Exception):
            # A defect of ours that one run brought to light must not stop the others.
            self._blocked(planned, f"E308: {type(result).__name__}: {schemas.show(result, 300)}")
            return run
        if isinstance(result, BaseException):
            raise result
        self.on_progress(RunProgress("ended", run, planned.step))
        if run.outcome.todo == "run":
            return replace(planned, run=run, step="execute", why=run.outcome.reason)
        if run.outcome.todo == "evaluate":
            return Planned(run, "evaluate", run.outcome.reason, pausable=False)
        return run
