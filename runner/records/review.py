"""What organisers decide and write about runs, and open of what is closed. Each is an event; what was seen was seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import schemas
from runner.model.errors import RunnerError
from runner.records.store.queries import find_run, published

if TYPE_CHECKING:
    from runner.model.run import Run
    from runner.model.task import Task
    from runner.records.store.connect import Store

MAX_TEXT = 2000  # characters


def decide(
    store: Store,
    tasks: Mapping[str, Task],
    run_id: str,
    state: str,
    reason: str = "",
    to: str = "organiser",
    *,
    seen: Run | None = None,
) -> bool:
    """Approve (``approved``) or flag (``flagged``) the attempt of a run that counts now, or take that back (``open``).

    Args:
        store: The open store.
        tasks: The tasks that there are.
        run_id: The whole id of the run.
        state: What is decided.
        reason: Why it is flagged; needed for that.
        to: ``organiser``, or ``team``: its team is told of the flag, too.
        seen: The run as it is told to who decides (None: as it is).

    Returns:
        Whether that was new.

    Raises:
        RunnerError: E101 for a flag without a reason or with one that is too long, E102 for a run without an attempt.
    """
    found = _executed(store, tasks, run_id, "reviewed", seen)
    reason = _text(reason, "the reason of a flag") if state == "flagged" else ""
    before = (
        ("open", "", to)
        if found.review is None
        else (found.review.state, found.review.reason, found.review.to)
    )
    if before[:2] == (state, reason) and (state != "flagged" or before[2] == to):
        return False
    data = {"task": found.submission.task, "run": found.id, "attempt": found.outcome.attempt}
    store.commit("run-reviewed", {**data, "state": state, "reason": reason, "to": to}, actor="organiser")
    return True


def _executed(
    store: Store, tasks: Mapping[str, Task], run_id: str, what: str, seen: Run | None = None
) -> Run:
    """Return a run, or the one that was ``seen``. Raises E102 where it has no attempt to be ``what``."""
    run = seen or find_run(store, run_id, tasks.values(), running=store.archive.live())
    if run.outcome.attempt is None:
        raise RunnerError("E102", f"{run.id} has no attempt to be {what}", fix="runner evaluate")
    return run


def restart(store: Store, tasks: Mapping[str, Task], run_id: str, reason: str = "") -> bool:
    """Have a run executed once more, whatever became of it: what was scored counts until then, and no quota is charged.

    Returns:
        Whether that was new: False where it waits for its execution anyway. One that is being executed is not executed
        once more behind that.

    Raises:
        RunnerError: E102 for a run that is not there or was withdrawn; E101 for one without a software.
    """
    found = find_run(store, run_id, tasks.values(), running=store.archive.live())
    if found.outcome.name == "withdrawn":
        raise RunnerError(
            "E102", f"{found.id} was withdrawn", why="It is not executed again.", fix="nothing to do"
        )
    if found.submission.how == "uploaded":
        why = "A run file is handed in; nothing is executed."
        raise RunnerError(
            "E101", f"{found.id} has no software", why=why, fix="runner reevaluate scores it again"
        )
    if found.outcome.todo == "run":
        return False
    facts = {"task": found.submission.task, "run": found.id, "submission": found.submission.id}
    place = {"dataset": found.dataset, "scenario": found.scenario, "reason": schemas.show(reason, 500)}
    store.commit("run-restarted", {**facts, **place}, actor="organiser")
    return True


def comment_run(store: Store, tasks: Mapping[str, Task], run_id: str, text: str, to: str) -> None:
    """Write a comment on a run, ``to`` the organisers, or its team, too. Raises E101 and E102 as :func:`decide`."""
    found = _executed(store, tasks, run_id, "commented")
    data = {"task": found.submission.task, "run": found.id, "text": _text(text, "a comment"), "to": to}
    store.commit("run-commented", data, actor="organiser")


def _text(text: str, what: str) -> str:
    if not text.strip() or len(text) > MAX_TEXT:
        why = f"It has {len(text):,} characters; 1 to {MAX_TEXT:,} are taken."
        raise RunnerError("E101", f"{what} must be a text", why=why, fix="write a sentence or two")
    return schemas.show(text, MAX_TEXT)


def publish(store: Store, task: Task, dataset: str) -> bool:
    """Open the mean scores on a dataset of a task to everybody; False where they were open already."""
    if dataset in published(store, task.id):
        return False
    store.commit("dataset-published", {"task": task.id, "dataset": dataset}, actor="organiser")
    return True


def closed_run(store: Store, tasks: Mapping[str, Task], run: str) -> Run:
    """A run that can be opened to its team, or closed again. Raises E101 on public data, E102 where nothing was executed."""
    found = _executed(store, tasks, run, "released")
    task = tasks.get(found.submission.task)
    if task and found.dataset in task.datasets and task.datasets[found.dataset].visibility == "public":
        what, why = f"{found.id} is on a public dataset", "Its team sees everything."
        raise RunnerError("E101", what, why=why, fix="nothing to do")
    return found


def release(store: Store, run: Run, reason: str = "", *, undo: bool = False) -> bool:
    """Open a run of :func:`closed_run` to its team, or close it again; False where it was so already."""
    if run.released is not undo:
        return False
    data = {"task": run.submission.task, "run": run.id, "attempt": run.outcome.attempt}
    more = {} if undo else {"reason": schemas.show(reason, 500)}
    store.commit("run-closed" if undo else "run-released", {**data, **more}, actor="organiser")
    return True
