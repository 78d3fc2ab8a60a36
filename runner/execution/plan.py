"""What has to be done: every run of every registered submission that has no settled outcome under its lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import schemas
from runner.execution.workspace import Workspace
from runner.model.errors import RunnerError
from runner.model.run import Run
from runner.model.task import Task
from runner.records.store.queries import pending_measures, values
from runner.tasks.files import missing_sources, not_made, truths_digest

Step = Literal["execute", "evaluate"]


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

    @classmethod
    def joined(cls, plans: Iterable[Plan]) -> Plan:
        """One plan of several, in their order."""
        each = list(plans)
        return cls(tuple(p for one in each for p in one.work), tuple(s for one in each for s in one.skipped))

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


def check_names(workspace: Workspace, wanted: Selection) -> None:
    """Raise E102 for a selection that names what is nowhere, with the nearest name that there is."""
    known = {
        "task": (wanted.task, set(workspace.tasks)),
        "team": (wanted.team, {r.submission.team for r in workspace.runs}),
        "dataset": (wanted.dataset, {d for t in workspace.tasks.values() for d in t.datasets}),
        "submission": (wanted.submission, {r.submission.id for r in workspace.runs}),
        "run": (wanted.run, {r.id for r in workspace.runs}),
    }
    for what, (name, names) in known.items():
        if name is not None and name not in names:
            raise RunnerError(
                "E102",
                f"there is no {what} {schemas.show(name)}",
                why=schemas.closest(name, names).strip(),
                fix="runner runs lists what is registered",
            )


def plan(workspace: Workspace, selection: Selection, *, force: bool = False) -> Plan:
    """What has to be done for the selected runs. ``force`` executes settled ones again (as a new attempt)."""
    work: list[Planned] = []
    skipped: list[Skipped] = []
    for run in workspace.runs:
        if selection.takes(run):
            entry = _elsewhere(workspace, _entry(workspace, run, force))
            (work if isinstance(entry, Planned) else skipped).append(entry)  # type: ignore[arg-type]
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


def _entry(workspace: Workspace, run: Run, force: bool) -> Planned | Skipped:
    task, name = workspace.tasks.get(run.submission.task), run.outcome.name
    if task is None:
        return Skipped(run, f"its task {run.submission.task} cannot be loaded", blocked=True)
    if run.submission.id not in workspace.bundles:
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
        needs = tuple(workspace.input_ids(run, workspace.runs).values())
        changed = "" if needs else _changed(workspace, run)
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
    if name in ("scored", "invalid") and (stale := _stale(workspace, run, task)):
        return Skipped(run, f"{stale}; runner reevaluate --run {run.id}", stale=True)
    return Skipped(run, name)


def _stale(workspace: Workspace, run: Run, task: Task) -> str:
    """What an evaluation was made from and has changed, and that a later one failed; empty for nothing."""
    found = list(run.stale)
    dataset = task.datasets[run.dataset]
    if dataset.truths.is_dir() and truths_digest(dataset) != run.truths_digest:
        found.append("The truths have changed since it was scored.")
    known = {*values(workspace.store, run), *pending_measures(workspace.store, run)}
    if run.outcome.name == "scored" and known != set(task.measures):
        found.append("The measures have changed since it was scored.")
    return " ".join(found).rstrip(".")


def _changed(workspace: Workspace, run: Run) -> str:
    """What of the lock is not as it was when the deciding attempt was made; empty for none or the same."""
    if run.lock_digest is None or run.outcome.name not in ("scored", "invalid", "failed", "pending"):
        return ""
    job = workspace.job(run)
    if job.lock_digest == run.lock_digest or run.outcome.attempt is None:
        return ""
    old = workspace.store.archive.attempt(run.submission.task, run.id, run.outcome.attempt).lock()
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
