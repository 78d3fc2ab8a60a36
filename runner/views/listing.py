"""The runs that an audience may know of, one after the other: for lists and data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from runner.model.run import Run, run_named
from runner.model.task import Dataset, Task
from runner.records.store import queries
from runner.views.audience import Audience, not_for, permissions_for
from runner.views.redact import RunView, redact_row

if TYPE_CHECKING:
    from runner.records.store.connect import Store
    from runner.records.store.run_detail import RunDetail


@dataclass(frozen=True)
class ListedRun:
    """A run, and what the audience may see of it (``view``). The rest is for asking further under the same rules."""

    run: Run
    view: RunView
    dataset: Dataset
    published: bool


def known_dataset(tasks: Mapping[str, Task], task: str, dataset: str) -> Dataset:
    """The dataset of a run; when its task is gone, one that is closed to everybody but the organiser."""
    if _is_known(tasks, task, dataset):
        return tasks[task].datasets[dataset]
    return Dataset(dataset, "blinded", Path(), Path())


def _is_known(tasks: Mapping[str, Task], task: str, dataset: str) -> bool:
    """Whether there are rules for what is shown of a dataset, such as its public part and the decimals."""
    return task in tasks and dataset in tasks[task].datasets


def listed_runs(store: Store, tasks: Mapping[str, Task], audience: Audience) -> Iterator[ListedRun]:
    """Every run that ``audience`` may know of, in the order of registration; those that are still to be done, too."""
    published = {name: queries.published(store, name) for name in tasks}
    for run in queries.runs(store, tasks.values(), running=store.archive.live()):
        dataset = known_dataset(tasks, run.submission.task, run.dataset)
        known = _is_known(tasks, run.submission.task, run.dataset)
        is_published = known and dataset.id in published[run.submission.task]
        view = redact_row(run, audience, dataset, is_published)
        if view is not None:
            yield ListedRun(run, view, dataset, is_published)


def run_id(store: Store, tasks: Mapping[str, Task], audience: Audience, text: str) -> str:
    """The id of the one run that ``audience`` may know of and whose id is ``text`` or begins with it; ``#n`` stays.

    Raises E102 when no id does, or several do: then they are listed.
    """
    return run_named([one.run.id for one in listed_runs(store, tasks, audience)], text)


def looked_up(
    store: Store, tasks: Mapping[str, Task], audience: Audience, text: str
) -> tuple[RunDetail, Dataset, Task | None]:
    """The one run whose id is ``text`` or begins with it, its dataset, and its task while there is one.

    For an audience that may not know of a run it does not exist. Raises E102 for no run or several, E103 for a single
    attempt (``#n``) that the audience may not see, E307 when the archive is damaged.
    """
    from runner.records.store.run_detail import detail

    run = run_id(store, tasks, audience, text)
    wanted = run if audience.kind == "organiser" else run.partition("#")[0]
    found = detail(store, wanted, tasks.values(), running=store.archive.live())
    dataset = known_dataset(tasks, found.run.submission.task, found.run.dataset)
    found = _closed_unless_known(found, tasks)
    if not permissions_for(audience, found.run.submission.team, dataset, found.published).run:
        raise queries.no_run(run)
    if wanted != run:
        # Each attempt is another message of a software, and so is their number.
        if dataset.visibility != "public":
            raise not_for(audience, "single attempts of a run on a blinded dataset")
        found = detail(store, run, tasks.values(), running=store.archive.live())
        found = _closed_unless_known(found, tasks)
    return found, dataset, tasks.get(found.run.submission.task)


def _closed_unless_known(found: RunDetail, tasks: Mapping[str, Task]) -> RunDetail:
    known = _is_known(tasks, found.run.submission.task, found.run.dataset)
    return found if known else replace(found, published=False)
