"""What a campaign would cost: from what the baselines used, the teams that are expected, and what each of them may hand in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from runner.model.run import cells
from runner.records.store.charges import spent
from runner.records.store.queries import runs

if TYPE_CHECKING:
    from runner.model.run import Run
    from runner.model.task import Cell, Task
    from runner.records.store.connect import Store


LEVELS = (1.0, 0.9, 0.7)  # shares of the budget at which it is said, the highest first
HOUR = 3600.0


@dataclass(frozen=True)
class CellCost:
    """What one run in a cell costs, by the mean of ``runs`` runs of baselines that ended well; None where there is none.

    ``processor`` and ``gpu`` are hours, ``disk`` is bytes in the archive before compression.
    """

    dataset: str
    scenario: str
    runs: int
    processor: float | None = None
    gpu: float | None = None
    disk: float | None = None


@dataclass(frozen=True)
class Estimate:
    """The cost of ``teams`` teams that hand in ``submissions`` each; totals are over the cells that were measured.

    ``unmeasured``: cells of which nothing is known. ``used``: hours of processor time that runs of the task used so far.
    Evaluations, sidecars and attempts that are repeated are not in it.
    """

    task: str
    teams: int
    submissions: int
    cells: tuple[CellCost, ...]
    processor: float
    gpu: float
    disk: float
    used: float
    budget: float | None

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """The cells without a run of a baseline, as ``dataset/scenario``."""
        return tuple(f"{one.dataset}/{one.scenario}" for one in self.cells if not one.runs)

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {**asdict(self), "unmeasured": list(self.unmeasured)}


def estimate(store: Store, task: Task, *, teams: int, submissions: int | None = None) -> Estimate:
    """What ``teams`` teams cost that hand in ``submissions`` each (None: their whole quota), in every cell of the task."""
    each = task.quota.submissions if submissions is None else submissions
    named = {table.baseline for table in task.tables.values() if table.baseline}
    mine = [
        run
        for run in runs(store, [task], task=task.id)
        if f"{run.submission.team}/{run.submission.software}" in named and run.outcome.name == "scored"
    ]
    found = tuple(_cell(store, task, cell, (run for run in mine if run.cell == cell)) for cell in cells(task))
    many = teams * each
    return Estimate(
        task.id,
        teams,
        each,
        found,
        many * sum(one.processor or 0 for one in found),
        many * sum(one.gpu or 0 for one in found),
        many * sum(one.disk or 0 for one in found),
        spent(store, task.id) / HOUR,
        task.budget_hours,
    )


def budget_warning(task: Task, hours: float) -> str:
    """What to say of ``hours`` of processor time that the runs of ``task`` have used; empty below 70 % and without a budget."""
    if task.budget_hours is None:
        return ""
    share = hours / task.budget_hours
    level = next((level for level in LEVELS if share >= level), None)
    if level is None:
        return ""
    reached = "is used up" if level == LEVELS[0] else f"is used to {int(share * 100)} %"
    return (
        f"the budget of {task.id} {reached}: {hours:,.1f} of {task.budget_hours:,g} hours of processor time; "
        "nothing is closed because of it"
    )


def _cell(store: Store, task: Task, cell: Cell, found: Iterable[Run]) -> CellCost:
    measured = [run for run in found if run.wall_seconds is not None]
    if not measured:
        return CellCost(cell.dataset, cell.scenario, 0)
    n = len(measured)
    wall = [run.wall_seconds or 0.0 for run in measured]
    # Where processor time could not be read, all processors that it might have used count.
    processor = [
        (run.cpu_seconds if run.cpu_seconds is not None else seconds * task.limits.cpus)
        + (run.first_seconds or 0.0)
        for run, seconds in zip(measured, wall, strict=True)
    ]
    disk = sum(
        entry["size"]
        for run in measured
        for entry in store.archive.attempt(task.id, run.id, run.outcome.attempt or 1).manifest().values()
    )
    hours = sum(processor) / n / HOUR
    return CellCost(cell.dataset, cell.scenario, n, hours, sum(wall) / n / HOUR * task.limits.gpus, disk / n)
