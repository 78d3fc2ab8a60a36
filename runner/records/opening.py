"""Opening what is closed: the mean scores on a dataset to everybody, one run to its team. What was seen was seen.

The one implementation behind `runner publish`, `runner release`, and proposals from the web that are approved.
"""

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


def publish(store: Store, task: Task, dataset: str) -> bool:
    """Open the mean scores on a dataset of a task to everybody; False where they were open already."""
    if dataset in published(store, task.id):
        return False
    store.commit("dataset-published", {"task": task.id, "dataset": dataset}, actor="organiser")
    return True


def closed_run(store: Store, tasks: Mapping[str, Task], run: str) -> Run:
    """A run that can be opened to its team, or closed again. Raises E101 on public data, E102 where nothing was executed."""
    found = find_run(store, run, tasks.values(), running=store.archive.live())
    task = tasks.get(found.submission.task)
    if task and found.dataset in task.datasets and task.datasets[found.dataset].visibility == "public":
        what, why = f"{found.id} is on a public dataset", "Its team sees everything."
        raise RunnerError("E101", what, why=why, fix="nothing to do")
    if found.outcome.attempt is None:
        raise RunnerError("E102", f"{found.id} has no attempt to be released", fix="runner evaluate")
    return found


def release(store: Store, run: Run, reason: str = "", *, undo: bool = False) -> bool:
    """Open a run of :func:`closed_run` to its team, or close it again; False where it was so already."""
    if run.released is not undo:
        return False
    data = {"task": run.submission.task, "run": run.id, "attempt": run.outcome.attempt}
    more = {} if undo else {"reason": schemas.show(reason, 500)}
    store.commit("run-closed" if undo else "run-released", {**data, **more}, actor="organiser")
    return True
