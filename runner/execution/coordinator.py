"""The one process that brings a data directory up to date: open, adopt, stages, plan, run, post.

:func:`coordinating` opens the store, becomes its only coordinator and adopts what a killed one left;
:meth:`Coordinator.plan` makes the stages that are due and says what is to do; :meth:`Coordinator.run` does it, commits it
and makes the stages that became possible; :meth:`Coordinator.once` executes and evaluates one software outside any plan.
Nothing is printed here: it goes to a :class:`Listener`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from runner.execution.attempt import evaluate, execute
from runner.execution.cluster.places import over_hosts, stays
from runner.execution.cluster.tails import FOLDER, sweep
from runner.execution.evaluator import Evaluator
from runner.execution.executors.local import LocalExecutor
from runner.execution.job import InputRun, Job
from runner.execution.lock import make_job
from runner.execution.machine import Machine
from runner.execution.plan import Plan, Planned, complete, plan, plan_evaluations
from runner.execution.pool import Control, Pool, RunProgress, Undone
from runner.execution.replies import replies_of
from runner.execution.schedule import Forecast, forecast, lane_of, needs_of
from runner.execution.stage import Stages, why_no_runs
from runner.execution.workspace import Workspace
from runner.model.clock import Clock, SystemClock
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.run import Run, Selection
from runner.model.task import Dataset, Task
from runner.records.commit import commit, commit_orphans
from runner.records.commit import coordinator as only_coordinator
from runner.records.deadlines import draw_keys, open_names_due, publish_due
from runner.records.policy import note_policies
from runner.records.store.connect import Store, open_store
from runner.records.store.results import took
from runner.records.store.run_detail import RunDetail, detail
from runner.submissions.bundle import Bundle, registration
from runner.submissions.kept import registered
from runner.tasks.check_data import check_task
from runner.tasks.load import load_tasks
from runner.tasks.services import gateway_ready

Changed = Literal["ask", "again", "keep"]


class Listener(Protocol):
    """Where progress is reported to: a terminal, or a server's log."""

    def say(self, text: str) -> None:
        """One line of what is going on."""

    def problem(self, error: RunnerError) -> None:
        """Something that stops a part of the work, and not the rest."""

    def progress(self, total: int) -> AbstractContextManager[Callable[[RunProgress], None]]:
        """A context around the work on ``total`` runs; it gives a function that takes what happens meanwhile."""


class Silent:
    """A listener that reports nothing."""

    def say(self, text: str) -> None:
        """Nothing is printed."""

    def problem(self, error: RunnerError) -> None:
        """Nothing is printed."""

    def progress(self, total: int) -> AbstractContextManager[Callable[[RunProgress], None]]:
        """Nothing is shown."""
        return nullcontext(lambda _: None)


@dataclass(frozen=True)
class EvaluationRequest:
    """What somebody wants done.

    ``force`` executes settled runs again, as a new attempt. ``changed``: settled runs whose limits, image or data have
    changed since are kept (``keep``) or planned (``again``; ``ask``, where the caller asks a person). ``stages``: datasets
    that are made from runs are made where they are due. ``only_evaluate``: nothing is executed, and everything that has
    something to evaluate is evaluated, whatever it was scored already (``accepting``: but for what waits to be accepted).
    ``jobs``: at most so many containers at once.
    """

    selection: Selection = field(default_factory=Selection)
    force: bool = False
    changed: Changed = "ask"
    stages: bool = True
    only_evaluate: bool = False
    accepting: bool = False
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
    config: Config,
    listener: Listener,
    *,
    dry_run: bool = False,
    machine: Machine | None = None,
    tasks: Mapping[str, Task] | None = None,
    url: str | None = None,
    clock: Clock | None = None,
    is_work: bool = False,
) -> Iterator[Coordinator]:
    """The open store with its coordinator.

    Args:
        dry_run: only look: no lock is taken, nothing is adopted or made.
        machine: the engine and images; by default those of ``config``.
        tasks: the tasks, where the caller has loaded them; by default all of the project.
        url: another database than that of ``config``.
        clock: says which scores are due to be published; by default this machine's.
        is_work: for the work process; to others it is said that it is that.

    Raises:
        RunnerError: E306 when another process is the coordinator of this data directory.
    """
    machine = machine or Machine(config, listener.say)
    with (
        open_store(config, url=url) as store,
        nullcontext() if dry_run else only_coordinator(config, store, is_work=is_work),
    ):
        adopted = 0 if dry_run else commit_orphans(store)
        if not dry_run:
            sweep(config.home / FOLDER)
        yield Coordinator(
            config, store, machine, listener, tasks, adopted=adopted, dry_run=dry_run, clock=clock
        )


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
        tasks: Mapping[str, Task] | None = None,
        *,
        adopted: int = 0,
        dry_run: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.config, self.store, self.machine, self.listener = config, store, machine, listener
        self.adopted, self.dry_run = adopted, dry_run
        self._given = tasks

    @cached_property
    def tasks(self) -> Mapping[str, Task]:
        """The tasks that can be loaded, read once; the others are reported to the listener."""
        if self._given is not None:
            return self._given
        tasks, problems = load_tasks(self.config)
        for error in problems:
            self.listener.problem(error)
        return tasks

    @cached_property
    def workspace(self) -> Workspace:
        """Tasks, bundles and runs, read once; damaged bundles are reported to the listener."""
        bundles, problems = registered(self.config, self.store)
        for error in problems:
            self.listener.problem(error)
        machine, for_ = self.machine, self.config.engine_for
        served = {name for name, task in self.tasks.items() if "interactive" in task.workflows}
        talks = any(bundle.data["task"] in served for bundle in bundles.values())
        sidecars = machine.sidecars(needed=not self.dry_run) if talks else None
        return Workspace(self.store, self.tasks, bundles, machine.own_profile(), sidecars, for_)

    def plan(self, request: EvaluationRequest) -> Plan:
        """What has to be done; scores that are due are published and stages made first. Raises E102 for names that nothing has."""
        self._publish_due()
        wanted = complete(request.selection, self.workspace.tasks, self.workspace.runs)
        if request.only_evaluate:
            accepting = self._evaluators_now() if request.accepting else None
            return plan_evaluations(self.workspace, wanted, accepting=accepting)
        if request.stages and not self.dry_run:
            self._make_stages(wanted.task, self.workspace.runs)
        todo = plan(self.workspace, wanted, force=request.force)
        return todo.keeping() if request.changed == "keep" else todo

    def forecast(self, todo: Plan, jobs: int | None) -> Forecast | None:
        """How long a plan takes; None where nothing of it was ever done, or no engine says how much fits at once."""
        times = took(self.store)
        if not any(planned.run.id in times for planned in todo.work):
            return None
        try:
            info = self.machine.engine().info()
        except RunnerError:
            return None
        found = forecast(todo.work, times, info, jobs, partial(lane_of, self.workspace))
        return found if found.known else None

    def run(self, todo: Plan, request: EvaluationRequest, *, control: Control | None = None) -> Result:
        """Do a plan with the engine of this machine and commit what comes of it; then make the stages that are due.

        Raises KeyboardInterrupt after every container was removed; what was sealed by then is committed.
        """
        result = self._work(todo, request.jobs, control or Control.of(self.config))
        self._publish_due()
        if request.stages and not request.only_evaluate and result.done:
            self._make_stages(request.selection.task)
        return result

    def once(
        self,
        bundle: Bundle,
        dataset: Dataset,
        scenario: str,
        *,
        input_runs: Sequence[InputRun] = (),
        replies: Path | None = None,
        host: str | None = None,
    ) -> tuple[Job, RunDetail]:
        """Register a bundle, execute it and evaluate what it left, one time, whatever a plan would say.

        ``replies`` is the file of what models answered before, ``host`` the address of a host of the cluster that executes it (None:
        this machine). Returns the job and everything about its run. Raises
        RunnerError for what is not the software's doing.
        """
        task, archive = self.workspace.tasks[bundle.data["task"]], self.store.archive
        engine = self.machine.engine()
        images = self._images([task])
        evaluator = self._evaluator(task, [dataset], images, replies)
        job = make_job(
            bundle,
            task,
            dataset,
            scenario,
            own_profile=engine.info().seccomp,
            input_runs=input_runs,
            sidecars=images.get("sidecars"),
            replies=replies,
        )
        self.store.commit("submission-registered", registration(bundle), actor=str(bundle.data["team"]))
        if host is not None:
            from runner.execution.cluster.one_host import work_at

            bundles, evaluators = {bundle.submission_id: bundle}, {task.id: evaluator}
            desk = replace(self.workspace, bundles=bundles, evaluators=evaluators)
            run = detail(self.store, job.run_id, [task]).run
            work_at(host, self.config, self.machine, desk, run, job)
            return job, detail(self.store, job.run_id, [task])
        attempt = execute(job, engine, archive)
        commit(self.store, attempt)
        if attempt.record()["verdict"]["name"] == "ok":
            commit(self.store, evaluate(attempt, evaluator, dataset, scenario, engine, archive))
        return job, detail(self.store, job.run_id, [task])

    def _publish_due(self) -> None:
        """Note rules of tasks with runs that have changed, draw the keys of split topics, and publish the scores that are due."""
        if not self.dry_run:
            used = {run.submission.task for run in self.workspace.runs}
            note_policies(self.store, (task for name, task in self.tasks.items() if name in used))
            for task in draw_keys(self.store, self.tasks.values()):
                self.listener.say(f"{task.id}: a key was drawn, by which topics are split and names made up")
            for task, date in open_names_due(self.store, self.tasks.values(), self.clock):
                self.listener.say(f"{task.id}: names are shown, due {date.own}")
            for task, dataset, date in publish_due(self.store, self.tasks.values(), self.clock):
                self.listener.say(f"{task.id}/{dataset}: scores are published, due {date.own}")

    def _evaluators_now(self) -> dict[str, str]:
        """The identities of the evaluators' images by task, of tasks where something waits and as far as an engine says them."""
        found = {}
        for name in {run.submission.task for run in self.workspace.runs if run.waiting} & self.tasks.keys():
            with suppress(RunnerError):
                image = self.tasks[name].evaluator_image or self.machine.evaluator()
                found[name] = self.machine.engine().resolve(image).id
        return found

    def _images(self, tasks: Iterable[Task]) -> dict[str, str]:
        """The identities of our images that work on these tasks needs."""
        sidecars = ["sidecars"] if any(task.needs_sidecars for task in tasks) else []
        return self.machine.images(["evaluator", *sidecars])

    def _work(self, todo: Plan, jobs: int | None, control: Control) -> Result:
        if not todo.work:
            return Result({}, {})
        steps: dict[str, list[Planned]] = {}
        for planned in todo.work:
            steps.setdefault(planned.run.submission.task, []).append(planned)
        tasks = [self.workspace.tasks[name] for name in sorted(steps)]
        engine = self.machine.engine()
        engine.reap()
        images = self._images(tasks)
        evaluators: dict[str, Evaluator] = {}
        unusable: dict[str, Undone] = {}
        for task in tasks:
            try:
                evaluators[task.id] = self._checked_evaluator(task, steps[task.id], images)
                self._say_without_key(task)
            except RunnerError as error:
                self.listener.problem(error)
                unusable |= {p.run.id: Undone(error.what, error.exit_code) for p in steps[task.id]}
        left = replace(todo, work=tuple(p for p in todo.work if p.run.id not in unusable))
        workspace = replace(self.workspace, evaluators=evaluators)
        with control.interruptible(), self.listener.progress(len(left.work)) as on_progress:
            local = LocalExecutor(engine, workspace, control, jobs=jobs)
            executor = over_hosts(self.config, local, self.listener.say)
            pool = Pool(executor, workspace, control, on_progress=on_progress)
            done = pool.run(left)
        return Result(done, pool.failed | unusable)

    def _checked_evaluator(
        self, task: Task, steps: Sequence[Planned], images: Mapping[str, str]
    ) -> Evaluator:
        """The evaluator of a task whose files and limits are fit for the planned steps. Raises RunnerError otherwise."""
        used = sorted({p.run.dataset for p in steps})
        check_task(task, self.config, used, optional=False)  # the plan has no software where they are missing
        here = [p for p in steps if stays(self.config, self.workspace, p)]
        bundles, whose = self.workspace.bundles, [(p.run.submission, p.step) for p in here]
        limits = [needs_of(self.workspace.task_for(one), bundles.get(one.id), step) for one, step in whose]
        self.machine.engine(limits)
        replies = replies_of(self.config.home, task.id)
        return self._evaluator(task, [task.datasets[name] for name in used], images, replies)

    def _evaluator(
        self, task: Task, datasets: Iterable[Dataset], images: Mapping[str, str], replies: Path | None
    ) -> Evaluator:
        sidecars = images.get("sidecars")
        engine = self.machine.engine()
        return Evaluator.of(task, datasets, engine, images["evaluator"], sidecars=sidecars, replies=replies)

    def _say_without_key(self, task: Task) -> None:
        """Say before hours of work that models cannot be asked."""
        gateway = task.services.get("gateway")
        if gateway is not None and not gateway_ready(gateway):
            unset = f"{gateway.options['key']} is not set"
            self.listener.say(f"{task.id}: {unset}: models are not asked, only kept replies are used")

    def _make_stages(self, only: str | None, runs: Sequence[Run] | None = None) -> None:
        """Make what stages take from runs, where these are settled and it was never made; say what is missing.

        ``runs`` are all runs, where they were read already.
        """
        listener, made, tasks = self.listener, False, self.workspace.tasks
        stages = Stages(self.config, self.store, tasks, runs)
        for state in stages.states(only):
            name = f"{state.task.id}/{state.dataset.id}"
            if nobody := why_no_runs(state.task, state.dataset):
                listener.say(nobody)
            if state.name == "missing" and not state.why:
                try:
                    built = stages.build(state.task, state.dataset)
                except RunnerError as error:
                    listener.problem(error)
                    continue
                made = True
                listener.say(f"{name}: made from {built.runs} runs, {built.debates} debates")
            elif state.name == "missing":
                listener.say(f"{name} cannot be made yet: {state.why}")
            elif state.name == "changed":
                again = f"runner data stage {state.task.id} {state.dataset.id}"
                listener.say(f"{name} is made from other runs than there are now: {again}")
        if made:  # where the inputs of such a dataset are is looked up when its task is loaded
            self.tasks = load_tasks(self.config)[0]
            self.workspace = replace(self.workspace, tasks=self.tasks)
