"""What has to be done: every run of every registered submission that has no settled outcome under its lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from runner.execution.job import Job
from runner.execution.lock import differences
from runner.execution.workspace import Workspace
from runner.model.errors import RunnerError, no_such
from runner.model.run import Run, Selection, run_named
from runner.model.task import Dataset, Task
from runner.tasks.files import missing_sources, why_stage_missing

Step = Literal["execute", "evaluate"]


@dataclass(frozen=True)
class Planned:
    """One run with something to do: its next step, why, and the runs it has to wait for.

    ``changed`` names what a run was executed under that is otherwise now: it would be executed again, which is for a person to
    decide. Empty for everything else. ``pausable``: a pause of its dataset that comes later holds it, too; not so
    what somebody asked for by name, and the evaluation of a run that was under way.
    """

    run: Run
    step: Step
    why: str
    needs: tuple[str, ...] = ()
    changed: str = ""
    job: Job | None = None  # to be executed; made later where runs that it takes as input are still to come
    pausable: bool = True

    @property
    def kind(self) -> str:
        """What is to be done, as people call it."""
        return work_of(self.run, self.step)


def work_of(run: Run, step: str) -> str:
    """A step as people call it: a run file is not executed, it is only evaluated."""
    return "evaluate" if run.submission.how == "uploaded" else step


@dataclass(frozen=True)
class Skipped:
    """One run with nothing to do, and why.

    ``blocked``: something would have to be corrected first. ``stale``: its scores were made from other truths or
    measures than there are now (evaluating again is for a person to decide). ``elsewhere``: the organiser has another
    engine for it. ``evaluated``: it was evaluated again already, and that waits to be accepted.
    """

    run: Run
    why: str
    blocked: bool = False
    stale: bool = False
    elsewhere: bool = False
    evaluated: bool = False

    @property
    def kind(self) -> str:
        """Why nothing is done, in a word or two."""
        if self.blocked:
            return "blocked"
        if self.elsewhere:
            return "left to the other engine"
        if self.evaluated:
            return "evaluated again"
        name = self.run.outcome.name
        return "stale" if self.stale else name if name in ("cancelled", "withdrawn", "running") else "settled"


@dataclass(frozen=True)
class Plan:
    """The work, in the order of registration, and what is left alone."""

    work: tuple[Planned, ...]
    skipped: tuple[Skipped, ...]

    @classmethod
    def joined(cls, plans: Iterable[Plan]) -> Plan:
        """One plan of several, in their order."""
        each = list(plans)
        return cls(tuple(p for one in each for p in one.work), tuple(s for one in each for s in one.skipped))

    @property
    def entries(self) -> tuple[Planned | Skipped, ...]:
        """All of it: the work first."""
        return (*self.work, *self.skipped)

    @property
    def again(self) -> tuple[Planned, ...]:
        """The executed runs that would be executed again, because something they were executed under has changed."""
        return tuple(p for p in self.work if p.changed)

    def keeping(self) -> Plan:
        """The plan without them: they stay as they are, and what was not evaluated yet is."""
        work = [
            _evaluation(p.run) if p.changed and p.run.outcome.todo == "evaluate" else p for p in self.work
        ]
        kept = tuple(
            Skipped(p.run, f"kept as it is: changed since it was executed: {p.changed}", stale=True)
            for p in work
            if p.changed
        )
        return Plan(tuple(p for p in work if not p.changed), self.skipped + kept)


def complete(wanted: Selection, tasks: Mapping[str, Task], runs: Sequence[Run]) -> Selection:
    """Return the selection with the whole id of a run that it names by the beginning of its id.

    Raises E102 for a name that does not exist, with the nearest one, and for the beginning of several ids.
    """
    known = {
        "task": (wanted.task, set(tasks)),
        "team": (wanted.team, {run.submission.team for run in runs}),
        "dataset": (wanted.dataset, {name for task in tasks.values() for name in task.datasets}),
        "submission": (wanted.submission, {run.submission.id for run in runs}),
    }
    for what, (name, names) in known.items():
        if name is not None and name not in names:
            raise no_such(what, name, names, fix="runner runs lists what is registered")
    if wanted.run is None:
        return wanted
    meant = [run.id for run in runs if replace(wanted, run=None).takes(run)]
    return replace(wanted, run=run_named(meant, wanted.run))


def plan(workspace: Workspace, selection: Selection, *, force: bool = False) -> Plan:
    """What has to be done for the selected runs. ``force`` executes settled ones again (as a new attempt)."""
    work: list[Planned] = []
    skipped: list[Skipped] = []
    for run in workspace.runs:
        if selection.takes(run):
            entry = _elsewhere(workspace, _entry(workspace, run, force))
            (work if isinstance(entry, Planned) else skipped).append(entry)  # type: ignore[arg-type]
    return Plan(tuple(work), tuple(skipped))


def plan_evaluations(
    workspace: Workspace, selection: Selection, *, accepting: Mapping[str, str] | None = None
) -> Plan:
    """Evaluations of all selected runs that have something to evaluate, whatever they were scored already.

    When ``accepting``, without those whose waiting evaluation was made from the truths and definitions that there are now, by the
    evaluators that there are now (``accepting``: the identities of their images by task, as far as they are known): what was shown
    is what is to count.
    """
    chosen = [
        run
        for run in workspace.runs
        if selection.takes(run) and run.outcome.verdict == "ok" and run.outcome.name != "withdrawn"
    ]
    there: set[str] = set()
    if accepting is not None:
        images = accepting
        there = {r.id for r in chosen if workspace.evaluated_again(r, images.get(r.submission.task))}
    work, skipped = list[Planned](), list[Skipped]()
    for run in chosen:
        if run.id in there:
            skipped.append(Skipped(run, "evaluated again", evaluated=True))
        elif (unusable := _without_task(_Case(workspace, run, force=False))) is not None:
            skipped.append(unusable)
        else:
            work.append(Planned(run, "evaluate", "asked for", pausable=False))
    return Plan(tuple(work), tuple(skipped))


def _elsewhere(workspace: Workspace, entry: Planned | Skipped) -> Planned | Skipped:
    """``entry``, or a run left to the organiser's other engine."""
    if not isinstance(entry, Planned) or workspace.engine_for not in ("public", "blinded"):
        return entry
    visibility = workspace.tasks[entry.run.submission.task].datasets[entry.run.dataset].visibility
    if visibility == workspace.engine_for:
        return entry
    return Skipped(
        entry.run,
        f"its dataset is {visibility}, and this engine is for {workspace.engine_for} ones (RUNNER_ENGINE_FOR)",
        elsewhere=True,
    )


class _Case:
    """One run as the rules look at it. What takes time is found out when a rule asks for it, and once."""

    def __init__(self, workspace: Workspace, run: Run, force: bool) -> None:
        self.workspace, self.run, self.force = workspace, run, force or run.outcome.again
        self.name = run.outcome.name

    @property
    def task(self) -> Task:
        return self.workspace.tasks[self.run.submission.task]

    @property
    def dataset(self) -> Dataset:
        return self.task.datasets[self.run.dataset]

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """The runs that this one takes as input. Raises E207."""
        return tuple(self.workspace.input_ids(self.run).values())

    @cached_property
    def job(self) -> Job | None:
        """The run's job, None where it takes other runs as input. Raises RunnerError when it cannot be made."""
        return None if self.needs else self.workspace.job(self.run)

    @cached_property
    def changed(self) -> str:
        """What of the lock is not as it was when the deciding attempt was made; empty for none or the same.

        Empty, too, for a run that takes others as input. Raises RunnerError when its job cannot be made, unless the run only has to
        be evaluated.
        """
        run, compared = self.run, ("scored", "invalid", "failed", "pending")
        if run.lock_digest is None or self.name not in compared or run.outcome.attempt is None:
            return ""
        job = self.job if not self.only_evaluated or self.executable else None
        if job is None or job.lock_digest == run.lock_digest:
            return ""
        archive = self.workspace.store.archive
        old = archive.attempt(run.submission.task, run.id, run.outcome.attempt).lock()
        found = differences(old, job.lock)
        if job.workflow == "interactive" and job.sidecars is None and found == ["sidecars"]:
            return ""  # nobody asked the engine which image there is now
        return ", ".join(found) or "its lock"

    @property
    def only_evaluated(self) -> bool:
        """Whether it was executed and has to be evaluated, which takes no job, and nobody wants it executed again."""
        return self.run.outcome.todo == "evaluate" and not self.force

    @property
    def executable(self) -> bool:
        """Whether it could be executed once more: its bundle, inputs and data are there, and the task still offers what it asks for."""
        if self.run.submission.id not in self.workspace.bundles or missing_sources(self.dataset):
            return False
        try:
            _ = self.job
        except RunnerError:
            return False
        return True

    @property
    def to_execute(self) -> bool:
        """Whether the run is to be executed: never was, is tried again, is other work now, or somebody wants it."""
        return bool(self.force or self.run.outcome.todo == "run" or self.changed)

    @property
    def used_up(self) -> bool:
        """Whether it has had the attempts that its task allows, and nobody wants another."""
        return not self.force and self.run.attempts >= self.task.quota.attempts

    def execution(self, why: str, changed: str = "") -> Planned:
        """The run as one to execute."""
        return Planned(self.run, "execute", why, self.needs, changed, self.job, pausable=not self.force)


def _entry(workspace: Workspace, run: Run, force: bool) -> Planned | Skipped:
    """What :data:`_RULES` say of a run, in their order: the first that says something decides."""
    case = _Case(workspace, run, force)
    for rule in _RULES:
        if (entry := rule(case)) is not None:
            return entry
    return Skipped(run, case.name)


def _without_task(case: _Case) -> Skipped | None:
    """A run whose task or dataset is not there (any more): it can be neither executed nor evaluated."""
    run = case.run
    if run.submission.task not in case.workspace.tasks:
        return Skipped(run, f"its task {run.submission.task} cannot be loaded", blocked=True)
    if run.dataset not in case.task.datasets:
        return Skipped(run, f"the task has no dataset {run.dataset} any more", blocked=True)
    return None


def _without_bundle(case: _Case) -> Skipped | None:
    """A run whose bundle is not there (any more): it cannot be executed."""
    if case.only_evaluated or case.run.submission.id in case.workspace.bundles:
        return None
    return Skipped(case.run, "its bundle is missing or damaged", blocked=True)


def _without_data(case: _Case) -> Skipped | None:
    """A run that is to be worked on, and whose dataset was not made or not fetched."""
    if case.name in ("withdrawn", "running", "scored", "invalid", "failed"):
        return None
    if why := why_stage_missing(case.dataset):
        return Skipped(case.run, why, blocked=True)
    software = not case.only_evaluated and not case.workspace.bundles[case.run.submission.id].data["runs"]
    if missing := missing_sources(case.dataset, optional=software):
        return Skipped(
            case.run,
            f"E402: {len(missing)} of the files of {case.task.id}/{case.dataset.id} have not been fetched. "
            f"Fix: runner data pull {case.task.id} --dataset {case.dataset.id}",
            blocked=True,
        )
    return None


def _not_ours(case: _Case) -> Skipped | None:
    """A run that was taken back, or that somebody else executes now."""
    if case.name == "withdrawn":
        return Skipped(case.run, "withdrawn")
    return Skipped(case.run, "another process is running it") if case.name == "running" else None


def _without_inputs(case: _Case) -> Skipped | None:
    """A run whose input runs are not registered, or whose job cannot be made for another reason."""
    try:
        _ = case.only_evaluated or case.needs, case.changed, case.to_execute and case.job
    except RunnerError as error:
        return Skipped(case.run, f"{error.what}. Fix: {error.fix}", blocked=True)
    return None


def _paused(case: _Case) -> Skipped | None:
    """A run of a dataset, or of a task, that the organiser has paused. One that is forced is begun all the same."""
    why = case.workspace.why_paused(case.run)
    if not why or case.force or not (case.to_execute or case.run.outcome.todo == "evaluate"):
        return None
    return Skipped(case.run, why, blocked=True)


def _used_up(case: _Case) -> Skipped | None:
    """A run that would be executed once more than the task allows."""
    if not case.used_up or not case.to_execute or case.run.outcome.todo == "evaluate":
        return None
    return Skipped(case.run, f"it has had its {case.task.quota.attempts} attempts", blocked=True)


def _to_execute(case: _Case) -> Planned | None:
    """A run that was never executed, is to be tried again, or would be other work now."""
    run = case.run
    if case.force:
        return case.execution("asked for by the organiser" if case.run.outcome.again else "forced")
    if run.outcome.todo == "run":
        why = "our side failed: tried again" if run.attempts else "not executed yet"
        return case.execution(why)
    if case.changed and not case.used_up:
        return case.execution(f"changed since it was executed: {case.changed}", case.changed)
    return None


def _to_evaluate(case: _Case) -> Planned | None:
    """A run that was executed only."""
    if case.run.outcome.todo != "evaluate":
        return None
    return _evaluation(case.run)


def _evaluation(run: Run) -> Planned:
    return Planned(run, "evaluate", "executed, not evaluated yet")


def _waiting(case: _Case) -> Skipped | None:
    """A run that a person has to start again."""
    if case.name not in ("held", "cancelled"):
        return None
    why = f"{case.name}; runner evaluate --run {case.run.id} --force starts it again"
    return Skipped(case.run, why, blocked=case.name == "held")


def _stale(case: _Case) -> Skipped | None:
    """A run whose scores are not what they would be now: a later evaluation failed, or truths or measures have changed."""
    run = case.run
    if case.name not in ("scored", "invalid"):
        return None
    found = list(run.stale)
    if case.dataset.truths.is_dir() and case.workspace.digest(run, "truths") != run.truths_digest:
        found.append("The truths have changed since it was scored.")
    if case.name == "scored" and case.workspace.measures_of(run) != set(case.task.measures):
        found.append("The measures have changed since it was scored.")
    if not found:
        return None
    stale = " ".join(found).rstrip(".")
    return Skipped(run, f"{stale}; runner reevaluate --run {run.id}", stale=True)


# In this order: each may take for granted what those before it have ruled out.
_RULES: tuple[Callable[[_Case], Planned | Skipped | None], ...] = (
    _without_task,
    _without_bundle,
    _without_data,
    _not_ours,
    _without_inputs,
    _paused,
    _used_up,
    _to_execute,
    _to_evaluate,
    _waiting,
    _stale,
)
