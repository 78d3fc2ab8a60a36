"""The runs that an audience may know of, one after the other: for lists and data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner.model.errors import RunnerError
from runner.model.run import Run
from runner.model.task import Dataset, Task
from runner.records.store import queries
from runner.views.audience import Audience, escape
from runner.views.redact import RunView, redact_row

if TYPE_CHECKING:
    from runner.records.store.connect import Store


@dataclass(frozen=True)
class ListedRun:
    """A run, and what the audience may see of it (``view``). The rest is for asking further under the same rules."""

    run: Run
    view: RunView
    dataset: Dataset
    published: bool


def known_dataset(tasks: Mapping[str, Task], task: str, dataset: str) -> Dataset:
    """The dataset of a run; when its task is gone, one that is closed to everybody but the organiser."""
    if task in tasks and dataset in tasks[task].datasets:
        return tasks[task].datasets[dataset]
    return Dataset(dataset, "blinded", Path(), Path())


def listed_runs(store: Store, tasks: Mapping[str, Task], audience: Audience) -> Iterator[ListedRun]:
    """Every run that ``audience`` may know of, in the order of registration; those that are still to be done, too."""
    published = {name: queries.published(store, name) for name in tasks}
    for run in queries.runs(store, tasks.values(), running=store.archive.live()):
        dataset = known_dataset(tasks, run.submission.task, run.dataset)
        is_published = dataset.id in published.get(run.submission.task, ())
        view = redact_row(run, audience, dataset, is_published)
        if view is not None:
            yield ListedRun(run, view, dataset, is_published)


MOST_MATCHES = 10


def run_id(store: Store, tasks: Mapping[str, Task], audience: Audience, text: str) -> str:
    """The id of the one run that ``audience`` may know of and whose id is ``text`` or begins with it; ``#n`` stays.

    Raises E102 when no id does, or several do: then they are listed.
    """
    start, mark, attempt = text.partition("#")
    ids = [one.run.id for one in listed_runs(store, tasks, audience)]
    found = [start] if start in ids else [id for id in ids if start and id.startswith(start)]
    if len(found) == 1:
        return f"{found[0]}{mark}{attempt}"
    if not found:
        raise queries.no_run(text)
    matches = ", ".join(found[:MOST_MATCHES])
    more = f" and {len(found) - MOST_MATCHES:,} more" if len(found) > MOST_MATCHES else ""
    raise RunnerError(
        "E102",
        f"{escape(start, 200)} is the beginning of {len(found):,} runs",
        why=f"They are {matches}{more}.",
        fix="write more of the id",
    )
