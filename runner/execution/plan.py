"""What has to be done: every run of every registered submission that has no settled outcome under its lock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from runner.execution.job import InputRun, Job
from runner.execution.lock import make_job
from runner.execution.replies import replies_of
from runner.model.config import EngineFor
from runner.model.errors import RunnerError
from runner.model.run import Run, run_id
from runner.model.task import Task
from runner.records.store.connect import Store
from runner.records.store.queries import pending_measures, runs, values
from runner.submissions.bundle import Bundle
from runner.tasks.data_files import files_digest, folder_files
from runner.tasks.files import missing_sources, not_made, truths_digest

Step = Literal["execute", "evaluate"]
BASELINES = "baselines"


@dataclass(frozen=True)
class Planned:
    """One run with something to do: its next step, why, and the runs it has to wait for.

    ``changed`` names what a settled run was executed under that is otherwise now: it would be executed again, which is for
    a person to decide. Empty for everything else.
    """

    run: Run
    step: Step
    why: str
    needs: tuple[str, ...] = ()
    changed: str = ""


@dataclass(frozen=True)
class Skipped:
    """One run with nothing to do, and why.

    ``blocked``: something would have to be mended first. ``stale``: its scores were made from other truths or
    measures than there are now (evaluating again is for a person to decide). ``elsewhere``: the organiser has another
    engine for it.
    """

    run: Run
    why: str
    blocked: bool = False
    stale: bool = False
    elsewhere: bool = False


@dataclass(frozen=True)
class Plan:
    """The work, in the order of registration, and what is left alone."""

    work: tuple[Planned, ...]
    skipped: tuple[Skipped, ...]

    @property
    def again(self) -> tuple[Planned, ...]:
        """The settled runs that would be executed again, because something they were executed under has changed."""
        return tuple(p for p in self.work if p.changed)

    def keeping(self) -> Plan:
        """The plan without them: they stay as they are."""
        kept = tuple(
            Skipped(p.run, f"kept as it is: changed since it was executed: {p.changed}", stale=True)
            for p in self.again
        )
        return Plan(tuple(p for p in self.work if not p.changed), self.skipped + kept)


@dataclass(frozen=True)
class Selection:
    """Which runs a command is about; None means any."""

    task: str | None = None
    team: str | None = None
    dataset: str | None = None
    submission: str | None = None
    run: str | None = None

    def takes(self, run: Run) -> bool:
        """Whether ``run`` is meant."""
        pairs = (
            (self.task, run.submission.task),
            (self.team, run.submission.team),
            (self.dataset, run.dataset),
            (self.submission, run.submission.id),
            (self.run, run.id),
        )
        return all(wanted is None or wanted == actual for wanted, actual in pairs)


@dataclass(frozen=True)
class Desktop:
    """What planning looks at: the store, the loaded tasks and the registered bundles by submission id."""

    store: Store
    tasks: Mapping[str, Task]
    bundles: Mapping[str, Bundle]
    own_profile: bool = True
    sidecars: str | None = None  # the image beside interactive software; None: not known here
    engine_for: EngineFor = "both"

    def all_runs(self) -> list[Run]:
        return runs(self.store, self.tasks.values(), running=self.store.archive.live())

    def input_ids(self, run: Run) -> dict[str, str]:
        """Input name → run id for a software that takes other runs as input.

        The input is the latest submission of the named software that was not withdrawn, in the same cell.
        Raises E207 when there is none, or when it belongs to another team.
        """
        bundle = self.bundles[run.submission.id]
        found = {}
        for name, source in bundle.data["inputs"].items():
            team, software = owner_of(source, run.submission.team)
            mine = [
                other.submission
                for other in self.all_runs()
                if (other.submission.team, other.submission.software) == (team, software)
                and other.submission.task == run.submission.task
                and other.submission.withdrawn is None
            ]
            if not mine:
                raise RunnerError(
                    "E207", f"the input {name} ({source}) is not registered", fix=f"register {source} first"
                )
            found[name] = run_id(mine[-1].id, run.dataset, run.scenario)
        return found

    def job(self, run: Run) -> Job:
        """The job of ``run``. Raises RunnerError when its task, data or inputs are not there."""
        task = self.tasks[run.submission.task]
        inputs = [self._input(task, name, source) for name, source in self.input_ids(run).items()]
        return make_job(
            self.bundles[run.submission.id],
            task,
            task.datasets[run.dataset],
            run.scenario,
            own_profile=self.own_profile,
            input_runs=inputs,
            sidecars=self.sidecars,
            replies=replies_of(self.store.archive.root.parent, task.id),
        )

    def _input(self, task: Task, name: str, source: str) -> InputRun:
        attempts = self.store.archive.attempts(task.id, source)
        good = [a for a in attempts if a.record()["verdict"]["name"] == "ok"]
        if not good:
            raise RunnerError(
                "E207", f"the input run {source} has not succeeded", fix=f"runner show {source}"
            )
        output = good[-1].output
        return InputRun(name, source, output, files_digest(folder_files(output)))


def owner_of(source: str, team: str) -> tuple[str, str]:
    """Team and software of an input (``software`` of the own team, or ``team/software``). Raises E207.

    Runs of other teams would give their results away, so only the own team's and the baselines' are open.
    """
    owner, _, software = source.rpartition("/")
    owner = owner or team
    if owner not in (team, BASELINES):
        raise RunnerError(
            "E207",
            f"the input {source} belongs to another team",
            why="Its runs are not yours to read.",
            fix=f"name a software of your own, or {BASELINES}/…",
        )
    return owner, software


def plan(desk: Desktop, selection: Selection, *, force: bool = False) -> Plan:
    """What has to be done for the selected runs. ``force`` executes settled ones again (as a new attempt)."""
    work: list[Planned] = []
    skipped: list[Skipped] = []
    for run in desk.all_runs():
        if selection.takes(run):
            entry = _elsewhere(desk, _entry(desk, run, force))
            (work if isinstance(entry, Planned) else skipped).append(entry)  # type: ignore[arg-type]
    return Plan(tuple(work), tuple(skipped))


def _elsewhere(desk: Desktop, entry: Planned | Skipped) -> Planned | Skipped:
    """``entry``, or a run left to the organiser's other engine."""
    if not isinstance(entry, Planned) or desk.engine_for not in ("public", "blinded"):
        return entry
    visibility = desk.tasks[entry.run.submission.task].datasets[entry.run.dataset].visibility
    if visibility == desk.engine_for:
        return entry
    return Skipped(
        entry.run,
        f"its dataset is {visibility}, and this engine is for {desk.engine_for} ones (RUNNER_ENGINE_FOR)",
        elsewhere=True,
    )


def _entry(desk: Desktop, run: Run, force: bool) -> Planned | Skipped:
    task, name = desk.tasks.get(run.submission.task), run.outcome.name
    if task is None:
        return Skipped(run, f"its task {run.submission.task} cannot be loaded", blocked=True)
    if run.submission.id not in desk.bundles:
        return Skipped(run, "its bundle is missing or damaged", blocked=True)
    if run.dataset not in task.datasets:
        return Skipped(run, f"the task has no dataset {run.dataset} any more", blocked=True)
    if name not in ("withdrawn", "running", "scored", "invalid", "failed") and (
        why := not_made(task.datasets[run.dataset])
    ):
        return Skipped(run, why, blocked=True)
    if name not in ("withdrawn", "running", "scored", "invalid", "failed") and (
        missing := missing_sources(task.datasets[run.dataset])
    ):
        return Skipped(
            run,
            f"E402: {len(missing)} of the files of {task.id}/{run.dataset} have not been fetched. "
            f"Fix: runner data pull {task.id} --dataset {run.dataset}",
            blocked=True,
        )
    if name == "withdrawn":
        return Skipped(run, "withdrawn")
    if name == "running":
        return Skipped(run, "another process is running it")
    try:
        needs = tuple(desk.input_ids(run).values())
        changed = "" if needs else _changed(desk, run)
    except RunnerError as error:
        return Skipped(run, f"{error.what}. Fix: {error.fix}", blocked=True)
    wants_run = force or run.outcome.todo == "run" or changed
    if wants_run and run.attempts >= task.quota.attempts and not force:
        return Skipped(run, f"it has had its {task.quota.attempts} attempts", blocked=True)
    if force:
        return Planned(run, "execute", "forced", needs)
    if run.outcome.todo == "run":
        return Planned(
            run, "execute", "not executed yet" if not run.attempts else "our side failed: tried again", needs
        )
    if changed:
        settled = changed if name in ("scored", "invalid", "failed") else ""
        return Planned(run, "execute", f"changed since it was executed: {changed}", needs, settled)
    if run.outcome.todo == "evaluate":
        return Planned(run, "evaluate", "executed, not evaluated yet")
    if name in ("held", "cancelled"):
        return Skipped(
            run, f"{name}; runner evaluate --run {run.id} --force starts it again", blocked=name == "held"
        )
    if name in ("scored", "invalid") and (stale := _stale(desk, run, task)):
        return Skipped(run, f"{stale}; runner reevaluate --run {run.id}", stale=True)
    return Skipped(run, name)


def _stale(desk: Desktop, run: Run, task: Task) -> str:
    """What an evaluation was made from and has changed, and that a later one failed; empty for nothing."""
    found = list(run.stale)
    dataset = task.datasets[run.dataset]
    if dataset.truths.is_dir() and truths_digest(dataset) != run.truths_digest:
        found.append("The truths have changed since it was scored.")
    known = {*values(desk.store, run), *pending_measures(desk.store, run)}
    if run.outcome.name == "scored" and known != set(task.measures):
        found.append("The measures have changed since it was scored.")
    return " ".join(found).rstrip(".")


def _changed(desk: Desktop, run: Run) -> str:
    """What of the lock is not as it was when the deciding attempt was made; empty for none or the same."""
    if run.lock_digest is None or run.outcome.name not in ("scored", "invalid", "failed", "pending"):
        return ""
    job = desk.job(run)
    if job.lock_digest == run.lock_digest or run.outcome.attempt is None:
        return ""
    old = desk.store.archive.attempt(run.submission.task, run.id, run.outcome.attempt).lock()
    found = _differences(old, job.lock)
    if job.workflow == "interactive" and job.sidecars is None and found == ["sidecars"]:
        return ""  # nobody asked the engine which image there is now
    return ", ".join(found) or "its lock"


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += _differences(before, after, f"{prefix}{key}.")
        else:
            found.append(f"{prefix}{key}")
    return found
