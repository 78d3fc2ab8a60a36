"""The pages of runs, as whoever may see a run sees it: made again only where what they are made of has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import schemas
from runner.exchange.look import source
from runner.exchange.published import Object, Publisher
from runner.model.task import Cell
from runner.records.store.run_detail import detail
from runner.views.audience import Audience
from runner.views.comparison import page as comparison
from runner.views.hints import hint
from runner.views.irmetadata import NAME as METADATA
from runner.views.irmetadata import to_take
from runner.views.listing import ListedRun
from runner.views.logs import log_of
from runner.views.plots.figure import Figure, figure_of_run
from runner.views.redact import RunView, redact_run
from runner.views.show import page as run_page
from runner.views.show.contents import inside
from runner.views.show.topics import Counting, Medians, topics_of
from runner.work.drawings import Drawings

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store
    from runner.records.store.run_detail import RunDetail


class Made(NamedTuple):
    """What was made of a run last: the digest of what all ``objects`` were made of, and of what those ``beside`` its page were."""

    of: str
    objects: tuple[Object, ...]
    beside_of: str
    beside: tuple[Object, ...]


Kept = dict[str, Made]  # by run


@dataclass(frozen=True)
class RunPages:
    """What the pages of runs are made of: the store, the tasks by id, where they go, and what was ``kept`` of the last time."""

    store: Store
    tasks: Mapping[str, Task]
    to: Publisher
    kept: Kept
    drawings: Drawings
    _files: dict[str, str] = field(default_factory=dict)
    _counting: dict[tuple[str, ...], Counting] = field(default_factory=dict)
    _medians: dict[tuple[str, ...], Medians | None] = field(default_factory=dict)

    def of(self, listed: ListedRun, audience: Audience) -> Iterable[Object]:
        """A run, and its log where the audience may read it: those of the last time where they would be made of the same."""
        name, dataset, task = listed.run.id, listed.dataset, self.tasks.get(listed.run.submission.task)
        live = self.store.archive.live()
        found = detail(self.store, name, [] if task is None else [task], running=live)
        view = redact_run(found, audience, dataset)
        medians = self._medians_of(view, task, dataset)
        known = (self._files_of(task), "" if task is None else task.digest)
        beside_of = _digest(str(audience), found, dataset, known)
        made_of = _digest(beside_of, medians)  # which change with every run of anybody
        before = self.kept.get(name)
        if before is not None and before.of == made_of and self.to.has(before.objects):
            return before.objects
        if before is not None and before.beside_of == beside_of and self.to.has(before.beside):
            beside = before.beside
        else:
            beside = tuple(self._beside(found, view, task, dataset))
        drawn = figure_of_run(view, topics_of(view, task), self.drawings.figure)
        takes = any(one.kind == "metadata" for one in beside)
        page = self._page(found, view, task, dataset, medians, drawn, f"/runs/{name}/{METADATA}" * takes)
        plots = (self.drawings.object(drawn),) if drawn and drawn.drawn else ()
        waits = drawn is not None and not drawn.drawn
        made = Made("" if waits else made_of, (page, *plots, *beside), beside_of, beside)
        self.kept[name] = made
        return made.objects

    def _page(
        self,
        found: RunDetail,
        view: RunView,
        task: Task | None,
        dataset: Dataset,
        medians: Medians | None,
        drawn: Figure | None,
        metadata: str,
    ) -> Object:
        """The page of a run, with its drawing and the address of its metadata."""
        name = found.run.id
        within, helps = inside(found, task, view.audience, dataset), hint(view, task)
        known = (view, within.contents, None, topics_of(view, task, medians), helps, task)
        text = run_page.page(*known, piece=True, plot=drawn.html if drawn else "", metadata=metadata)
        data = {**view, **within.data(), "hint": helps}
        style = self.to.keep((source(run_page.STYLE) or "").encode())
        return self.to.object(f"runs/{name}", "run", name, data, text, style)

    def _beside(
        self, found: RunDetail, view: RunView, task: Task | None, dataset: Dataset
    ) -> Iterator[Object]:
        """What stands beside the page of a run, as far as its audience may have it: what it is compared by, log and metadata."""
        name, audience = found.run.id, view.audience
        contents = inside(found, task, audience, dataset).contents
        if task is not None and (shown := comparison.published(found, task, view, dataset, contents)):
            beside, texts = shown
            kept = self.to.keep(schemas.canonical(texts)) if texts else ""
            if kept:  # the same for all runs of a dataset
                yield Object(f"texts/{kept}", "texts", "Topics", kept)
            style = self.to.keep((source(run_page.STYLE) or "").encode())
            yield self.to.object(f"beside/{name}", "beside", name, {**beside, "texts": kept}, style=style)
        if log := log_of(found, audience, dataset):
            yield self.to.object(f"logs/{name}", "log", name, log)
        if metadata := to_take(found, audience, dataset):
            yield self.to.object(f"metadata/{name}", "metadata", name, {"yaml": metadata})

    def _files_of(self, task: Task | None) -> str:
        """The names, sizes and times of a task's data: pages of runs show parts of them, such as the text of a topic."""
        if task is None:
            return ""
        if task.id not in self._files:
            folders = {folder for one in task.datasets.values() for folder in (one.inputs, one.truths)}
            self._files[task.id] = schemas.digest(
                [
                    [str(path), at.st_size, at.st_mtime_ns]
                    for folder in sorted(folders)
                    for path in sorted(folder.rglob("*"))
                    if (at := path.stat(follow_symlinks=False))
                ]
            )
        return self._files[task.id]

    def _medians_of(self, view: RunView, task: Task | None, dataset: Dataset) -> Medians | None:
        """The medians beside a run: the same for all runs of an audience on a dataset and scenario, and slow to compute."""
        where = (view["task"], view["dataset"], view["scenario"])
        key = (str(view.audience), *where, *sorted(view["topic_scores"]))
        if task is None:
            return None
        if key not in self._medians:
            if where not in self._counting:
                cell = Cell(view["dataset"], view["scenario"])
                self._counting[where] = Counting(self.store, task, cell, organiser=False)
            self._medians[key] = self._counting[where].medians(view, dataset)
        return self._medians[key]


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
