"""The pages of runs, as whoever may see a run sees it: made again only where what they are made of has changed.

What they are made of is said in :meth:`RunPages._made_of`: everything but two things that change with other runs, which stand in one part
of a page (:func:`runner.views.show.page.topics_part`). Those are the medians beside the scores by topic, and whether the plot is drawn. Where
only they changed, that part is made again, and put into the page that is there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import schemas
from runner.exchange.look import source
from runner.exchange.published import Damaged, Object, Publisher, View
from runner.model.task import Cell
from runner.records.store.run_detail import detail
from runner.records.store.states import States
from runner.views.audience import Audience
from runner.views.comparison import page as comparison
from runner.views.hints import hint
from runner.views.irmetadata import NAME as METADATA
from runner.views.irmetadata import to_take
from runner.views.listing import ListedRun
from runner.views.logs import log_of
from runner.views.plots.published import Drawings, Figure, figure_of_run
from runner.views.redact import RunView, published_before, redact_run
from runner.views.show import page as run_page
from runner.views.show.contents import inside
from runner.views.show.topics import Counting, Medians, topics_of

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store
    from runner.records.store.run_detail import RunDetail


class Made(NamedTuple):
    """What was made of a run last: its ``page``, its plot and what stands ``beside``, and the digest of what all that was made of.

    ``part`` is where on the page that stands which other runs change, by the places of its first character and behind its last; ``medians``
    and ``drawn`` say of what it was made. ``outside`` are files that do not lie in the run's folder of the archive.
    """

    of: str
    page: Object
    plot: tuple[Object, ...]
    beside: tuple[Object, ...]
    part: tuple[int, int]
    measures: frozenset[str]  # that have scores by topic
    medians: str
    drawn: bool
    outside: tuple[Path, ...]

    @property
    def objects(self) -> tuple[Object, ...]:
        """All that is published of the run."""
        return (self.page, *self.plot, *self.beside)


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
    _medians: dict[tuple[str, ...], tuple[Medians | None, str]] = field(default_factory=dict)

    @cached_property
    def _view(self) -> View:
        return View(self.to.root, "")

    @cached_property
    def _live(self) -> Mapping[str, int]:
        return self.store.archive.live()

    @cached_property
    def states(self) -> States:
        """What the store holds about each run."""
        return States(self.store)

    def of(self, listed: ListedRun, audience: Audience) -> Iterable[Object]:
        """A run, and its log where the audience may read it: those of the last time where they would be made of the same."""
        name, before = listed.run.id, self.kept.get(listed.run.id)
        made = None
        if before is not None and before.of == self._made_of(listed, audience, before.outside):
            made = self._again(listed, audience, before) if self.to.has(before.objects) else None
        made = made or self._anew(listed, audience)
        self.kept[name] = made
        return made.objects

    def _made_of(self, listed: ListedRun, audience: Audience, outside: Iterable[Path]) -> str:
        """The digest of all that a run's objects are made of, but for what other runs change: who looks, what the store holds about it and
        what follows from that, its files, its task, and the task's data, of which pages show parts."""
        run, task = listed.run, self.tasks.get(listed.run.submission.task)
        folder = self.store.archive.root / run.submission.task / run.id
        return _digest(
            str(audience),
            self.states.of(run.id, run.submission),
            # What runs now is no row. A set is written in its order, which another process would not have.
            (replace(run, changed=frozenset()), sorted(run.changed), listed.dataset, listed.published),
            "" if task is None else task.digest,
            self._files_of(task),
            [*_facts_below(folder), *map(self._fact_outside, outside)],
        )

    def _anew(self, listed: ListedRun, audience: Audience) -> Made:
        name, dataset, task = listed.run.id, listed.dataset, self.tasks.get(listed.run.submission.task)
        found = detail(self.store, name, [] if task is None else [task], running=self._live)
        outside = tuple(self._outside(found))
        of = self._made_of(listed, audience, outside)
        view = redact_run(found, audience, dataset)
        measures = frozenset(view["topic_scores"])
        medians, of_medians = self._medians_of(listed, audience, measures)
        beside = tuple(self._beside(found, view, task, dataset))
        drawn = figure_of_run(view, topics_of(view, task), self.drawings)
        takes = any(one.kind == "metadata" for one in beside)
        within, helps = inside(found, task, audience, dataset), hint(view, task)
        topics = topics_of(view, task, medians)
        part = run_page.topics_part(topics, drawn.html if drawn else "")
        address = f"/runs/{name}/{METADATA}" * takes
        text = run_page.page(
            view, within.contents, None, topics, helps, task, piece=True, by_topic=part, metadata=address
        )
        begin = text.index(part)
        data = {**view, **within.data(), "hint": helps}
        style = self.to.keep((source(run_page.STYLE) or "").encode())
        page = self.to.object(f"runs/{name}", "run", name, data, text, style)
        place = (begin, begin + len(part))
        return Made(
            of, page, self._plot(drawn), beside, place, measures, of_medians, _settled(drawn), outside
        )

    def _again(self, listed: ListedRun, audience: Audience, before: Made) -> Made | None:
        """What was made before, where need be with another part that other runs change: what that needs of the run was published with the
        page. None where that is damaged."""
        medians, of = self._medians_of(listed, audience, before.measures)
        if before.drawn and before.medians == of:
            return before
        try:
            view = published_before(self._view.data(before.page), audience)
            text = self._view.text(before.page)
        except Damaged:
            return None
        task = self.tasks.get(listed.run.submission.task)
        drawn = figure_of_run(view, topics_of(view, task), self.drawings)
        part = run_page.topics_part(topics_of(view, task, medians), drawn.html if drawn else "")
        begin, end = before.part
        page = replace(before.page, page=self.to.keep((text[:begin] + part + text[end:]).encode()))
        place = (begin, begin + len(part))
        return before._replace(
            page=page, plot=self._plot(drawn), part=place, medians=of, drawn=_settled(drawn)
        )

    def _plot(self, drawn: Figure | None) -> tuple[Object, ...]:
        return (self.drawings.object(drawn),) if drawn and drawn.drawn else ()

    def _outside(self, found: RunDetail) -> Iterator[Path]:
        """The files of a run elsewhere than in its folder of the archive: what its team says of it, and its contents in the content store."""
        if found.declared is not None:
            yield found.declared
        contents = self.store.archive.contents
        for sealed in {
            one.path: one for one in (found.attempt, found.evaluation, found.newest) if one
        }.values():
            for entry in sealed.manifest().values():
                if entry.get("stored") and (place := contents.find(entry["sha256"])) is not None:
                    yield place

    def _fact_outside(self, path: Path) -> tuple[str, int, int]:
        """Of a content without its time, which is another one whenever somebody hands in the same; its name is its digest."""
        name, size, at = _fact(path)
        return name, size, 0 if path.is_relative_to(self.store.archive.contents.root) and size >= 0 else at

    def _beside(
        self, found: RunDetail, view: RunView, task: Task | None, dataset: Dataset
    ) -> Iterator[Object]:
        """What stands beside the page of a run, as far as its audience may have it: what it is compared by, log and metadata."""
        name, audience = found.run.id, view.audience
        contents = inside(found, task, audience, dataset).contents
        if task is not None and (shown := comparison.published(found, view, dataset, contents)):
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
            self._files[task.id] = _digest([[*_facts_below(folder)] for folder in sorted(folders)])
        return self._files[task.id]

    def _medians_of(
        self, listed: ListedRun, audience: Audience, measures: frozenset[str]
    ) -> tuple[Medians | None, str]:
        """The medians beside a run that has scores by topic on ``measures``, and their digest: the same for all runs of an audience on a
        dataset and scenario."""
        run, task = listed.run, self.tasks.get(listed.run.submission.task)
        if task is None:
            return None, ""
        where = (task.id, run.dataset, run.scenario)
        key = (str(audience), *where, *sorted(measures))
        if key not in self._medians:
            if where not in self._counting:
                cell = Cell(run.dataset, run.scenario)
                self._counting[where] = Counting(self.store, task, cell, organiser=False)
            found = self._counting[where].medians(audience, listed.dataset, measures)
            self._medians[key] = found, _digest(found)
        return self._medians[key]


def _settled(drawn: Figure | None) -> bool:
    """Whether a plot is as it stays."""
    return drawn is None or drawn.drawn


def _facts_below(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Name, size and time of a folder and of all that is in it."""
    yield _fact(folder)
    for place, folders, files in os.walk(folder):
        folders.sort()
        yield from (_fact(os.path.join(place, name)) for name in sorted((*folders, *files)))  # noqa: PTH118  (much quicker)


def _fact(path: Path | str) -> tuple[str, int, int]:
    try:
        at = os.lstat(path)
    except OSError:
        return str(path), -1, -1
    return str(path), at.st_size, at.st_mtime_ns


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
