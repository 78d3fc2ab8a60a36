"""Which datasets take a bundle: those it is for, that are open, and whose required one it was scored on."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime

from runner.model.errors import RunnerError
from runner.model.names import BASELINES
from runner.model.run import cells as counted
from runner.model.task import Cell, Task
from runner.records.deadlines import check_open
from runner.records.store.connect import Store
from runner.records.store.queries import runs
from runner.submissions.bundle import Bundle


def datasets_of(bundle: Bundle, task: Task) -> tuple[str, ...]:
    """The datasets that a bundle which fits ``task`` is for."""
    wanted = counted(task) if bundle.cells is None else [Cell(*cell) for cell in bundle.cells]
    return tuple(dict.fromkeys(cell.dataset for cell in wanted))


def datasets_taken(bundle: Bundle, task: Task, received: datetime, store: Store) -> tuple[str, ...]:
    """The datasets that take a bundle: those it names, all of them; of one that names none those that are open. Raises E210, and
    E218 where another dataset comes first."""
    team, named = bundle.data["team"], bundle.cells is not None
    ready = check_open(task, team, received, store, datasets_of(bundle, task), named=named)
    early = {name: error for name in ready if (error := _too_early(bundle, task, name, store))}
    for error in early.values():
        if named or len(early) == len(ready):
            raise error
    return tuple(name for name in ready if name not in early)


def _too_early(bundle: Bundle, task: Task, name: str, store: Store) -> RunnerError | None:
    """Why a dataset that requires another one does not take a bundle yet; None when the same image was scored there (of run
    files: the same software)."""
    first, data = task.datasets[name].requires, bundle.data
    if first is None or data["team"] == BASELINES:  # what the organiser brings along proves the whole task
        return None
    image, software = data["image"], data["software"]
    found = [
        run.outcome
        for run in runs(store, [task], task=task.id, team=data["team"])
        if run.dataset == first
        and (run.submission.image == image["id"] if image else run.submission.software == software)
    ]
    if any(outcome.name == "scored" for outcome in found):
        return None
    what = f"{task.id}/{name} takes what was scored on {first}"
    state = f"its run there is {found[-1].name}" if found else "it was not handed in there"
    whose = "The same image" if image else f"A run of {software}"
    why = f"{whose} has no score on {first} yet: {state}."
    return RunnerError(
        "E218", what, why=why, fix=f"hand it in with datasets: [{first}], wait for its score, then for {name}"
    )


def cells_on(bundle: Bundle, task: Task, datasets: Container[str]) -> list[list[str]]:
    """The cells of a bundle that names no dataset, on these."""
    scenarios = bundle.data["scenarios"]
    found = [cell for cell in counted(task) if cell.dataset in datasets and cell.scenario in scenarios]
    return [[cell.dataset, cell.scenario] for cell in found]
