"""The one process that brings a data directory up to date: open, adopt, stages, plan, run, post.

:func:`coordinating` opens the store, becomes its only coordinator and adopts what a killed one left;
:meth:`Coordinator.plan` makes the stages that are due and says what is to do; :meth:`Coordinator.run` does it, commits it
and makes the stages that became possible. Nothing is printed here: a :class:`Listener` is told.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

from runner.execution import stage as stages
from runner.execution.evaluator import Evaluator
from runner.execution.machine import Machine
from runner.execution.plan import Plan, Planned, Selection, check_names, plan
from runner.execution.pool import Control, Pool, RunProgress, Undone
from runner.execution.replies import replies_of
from runner.execution.schedule import needs_of
from runner.execution.workspace import Workspace
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.run import Run
from runner.model.task import Task
from runner.records.commit import commit_orphans
from runner.records.commit import coordinator as only_coordinator
from runner.records.store.connect import Store, open_store
from runner.submissions.register import registered
from runner.tasks.check_data import check_task
from runner.tasks.load import load_tasks
from runner.tasks.services import gateway_ready

Changed = Literal["ask", "again", "keep"]


class Listener(Protocol):
    """Who is told what happens: a terminal, or a server's log."""

    def say(self, text: str) -> None:
        """One line of what is going on."""

    def problem(self, error: RunnerError) -> None:
        """Something that stops a part of the work, and not the rest."""

    def progress(self, total: int) -> AbstractContextManager[Callable[[RunProgress], None]]:
        """Around the work on ``total`` runs: gives who is told each moment of it."""


@dataclass(frozen=True)
class EvaluationRequest:
    """What somebody wants done.

    ``force`` executes settled runs again, as a new attempt. ``changed``: settled runs whose limits, image or data have
    changed since are kept (``keep``) or planned (``again``; ``ask``, where the caller asks a person). ``stages``: datasets
    that are made from runs are made where they are due.
    """

    selection: Selection = field(default_factory=Selection)
    force: bool = False
    changed: Changed = "ask"
    stages: bool = True
    jobs: int | None = None


class Result(NamedTuple):
    """The runs that work touched, as they stand now, and why it could not do others; both by run id."""

    done: dict[str, Run]
    undone: dict[str, Undone]

    def unsettled(self) -> dict[str, str]:
        """Why runs are not settled, by run id: not done, or done and still to be run or evaluated."""
        waiting = {
            r.id: r.outcome.says for r in self.done.values() if r.outcome.name in ("pending", "running")
        }
        return {name: undone.why for name, undone in self.undone.items()} | waiting


@contextmanager
def coordinating(
    config: Config, listener: Listener, *, dry_run: bool = False, machine: Machine | None = None
) -> Iterator[Coordinator]:
    """The open store with its coordinator. ``dry_run`` only looks: it takes no lock, adopts and makes nothing.

    Raises E306 when another process is the coordinator of this data directory.
    """
    machine = machine or Machine(config, listener.say)
    with open_store(config) as store, nullcontext() if dry_run else only_coordinator(config):
        adopted = 0 if dry_run else commit_orphans(store)
        yield Coordinator(config, store, machine, listener, adopted=adopted, dry_run=dry_run)


class Coordinator:
    """Plans and does the work of a data directory; made by :func:`coordinating`.

    ``adopted`` is how many attempts and evaluations were taken over from a killed process.
    """

    def __init__(
        self,
        config: Config,
        store: Store,
        machine: Machine,
        listener: Listener,
        *,
        adopted: int = 0,
        dry_run: bool = False,
    ) -> None:
        self.config, self.store, self.machine, self.listener = config, store, machine, listener
        self.adopted, self.dry_run = adopted, dry_run
        self._tasks, self._task_problems = load_tasks(config)

    @cached_property
    def workspace(self) -> Workspace:
        """Tasks, bundles and runs, read once; the listener is told of those that cannot be used."""
        bundles, problems = registered(self.config, self.store)
        for error in [*problems, *self._task_problems]:
            self.listener.problem(error)
        return Workspace(
            self.store,
            self._tasks,
            bundles,
            self.machine.own_profile(),
            self.machine.sidecars(),
            self.config.engine_for,
        )

    def plan(self, request: EvaluationRequest) -> Plan:
        """What has to be done; stages that are due are made first. Raises E102 for names that nothing has."""
        if request.stages and not self.dry_run:
            self._make_stages(request.selection.task)
        check_names(self.workspace, request.selection)
        todo = plan(self.workspace, request.selection, force=request.force)
        return todo.keeping() if request.changed == "keep" else todo

    def plan_evaluations(self, selection: Selection) -> Plan:
        """Evaluations of all selected runs that have something to evaluate, whatever they were scored already."""
        check_names(self.workspace, selection)
        chosen = [
            Planned(run, "evaluate", "asked for")
            for run in self.workspace.runs
            if selection.takes(run) and run.outcome.verdict == "ok" and run.outcome.name != "withdrawn"
        ]
        return Plan(tuple(chosen), ())

    def run(self, todo: Plan, request: EvaluationRequest, *, control: Control | None = None) -> Result:
        """Do a plan with the engine of this machine and commit what comes of it; then make the stages that are due.

        Raises KeyboardInterrupt after every container was removed; what was sealed by then is committed.
        """
        result = self._work(todo, request.jobs, control or Control.of(self.config))
        if request.stages and result.done:
            self._make_stages(request.selection.task)
        return result

    def _work(self, todo: Plan, jobs: int | None, control: Control) -> Result:
        if not todo.work:
            return Result({}, {})
        names = sorted({p.run.submission.task for p in todo.work})
        tasks = [self.workspace.tasks[name] for name in names]
        engine = self.machine.engine()
        engine.reap()
        needed = ["evaluator", *(["sidecars"] if any(task.needs_sidecars for task in tasks) else [])]
        images = self.machine.images(needed)
        evaluators: dict[str, Evaluator] = {}
        bad: dict[str, Undone] = {}
        for task in tasks:
            mine = [p for p in todo.work if p.run.submission.task == task.id]
            try:
                evaluators[task.id] = self._evaluator(task, mine, images)
                self._say_without_key(task)
            except RunnerError as error:
                self.listener.problem(error)
                bad[task.id] = Undone(error.what, error.exit_code)
        left = replace(todo, work=tuple(p for p in todo.work if p.run.submission.task not in bad))
        workspace = replace(self.workspace, evaluators=evaluators)
        with _interruptible(control), self.listener.progress(len(left.work)) as tell:
            pool = Pool(engine, workspace, control, jobs=jobs, tell=tell)
            done = pool.run(left)
        unusable = {p.run.id: bad[p.run.submission.task] for p in todo.work if p.run.submission.task in bad}
        return Result(done, pool.failed | unusable)

    def _evaluator(self, task: Task, planned: Sequence[Planned], images: dict[str, str]) -> Evaluator:
        """The evaluator of a task whose files and limits are fit for the planned steps. Raises RunnerError otherwise."""
        used = sorted({p.run.dataset for p in planned})
        check_task(task, self.config, used)
        bundles = self.workspace.bundles
        engine = self.machine.engine(
            [needs_of(task, bundles.get(p.run.submission.id), p.step) for p in planned]
        )
        return Evaluator.of(
            task,
            [task.datasets[d] for d in used],
            engine,
            images["evaluator"],
            sidecars=images.get("sidecars"),
            replies=replies_of(self.config.home, task.id),
        )

    def _say_without_key(self, task: Task) -> None:
        """Say before hours of work that models cannot be asked."""
        gateway = task.services.get("gateway")
        if gateway is not None and not gateway_ready(gateway):
            self.listener.say(
                f"{task.id}: {gateway.options['key']} is not set: models are not asked, only kept replies are used"
            )

    def _make_stages(self, only: str | None) -> None:
        """Make what stages take from runs, where these are settled and it was never made; say what is missing."""
        tell, made = self.listener, False
        for state in stages.states(self.config, self.store, self._tasks, None if only is None else [only]):
            name, command = f"{state.task.id}/{state.dataset.id}", f"{state.task.id} {state.dataset.id}"
            if nobody := stages.why_no_runs(state.task, state.dataset):
                tell.say(nobody)
            if state.name == "missing" and not state.why:
                try:
                    built = stages.build(self.config, self.store, self._tasks, state.task, state.dataset)
                except RunnerError as error:
                    tell.problem(error)
                    continue
                made = True
                tell.say(f"{name}: made from {built.runs} runs, {built.debates} debates")
            elif state.name == "missing":
                tell.say(f"{name} cannot be made yet: {state.why}")
            elif state.name == "changed":
                tell.say(f"{name} is made from other runs than there are now: runner data stage {command}")
        if made:  # where the inputs of such a dataset are is looked up when its task is loaded
            self._tasks, self._task_problems = load_tasks(self.config)


@contextmanager
def _interruptible(control: Control) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the work in order: containers go, what is sealed is committed."""

    def stop(number: int, _: object) -> None:
        control.stop.set()
        raise KeyboardInterrupt

    in_main = threading.current_thread() is threading.main_thread()
    old = signal.signal(signal.SIGTERM, stop) if in_main else None
    try:
        yield
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, old)
