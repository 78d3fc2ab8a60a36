"""What each audience may see, made by the rules of :mod:`runner.views` and put into ``published/``.

Nothing is decided here: every object is what the command of the same name prints for that audience, and every piece of a
page what that command writes. The organiser's part is what teams see of their own runs, put together, and the console: the
front is never given what only the terminal may show. Assistants get less: no run on hidden data before its scores are everybody's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import schemas
from runner.exchange.published import Object, Publisher
from runner.model.calendar import announced
from runner.model.clock import Clock, SystemClock, stamp
from runner.model.errors import RunnerError
from runner.records.store.queries import frozen_rounds, published, submissions
from runner.records.store.run_detail import detail
from runner.submissions.parcel import parts_for
from runner.tasks.files import terms_of
from runner.views.audience import ORGANISER, PUBLIC, Audience, assistant_may_open
from runner.views.hints import hint
from runner.views.leaderboard.export import as_dict
from runner.views.leaderboard.formats import page as board_page
from runner.views.leaderboard.rounds import board as board_of_round
from runner.views.leaderboard.table import build
from runner.views.listing import ListedRun, listed_runs
from runner.views.logs import log_lines
from runner.views.overview.facts import Overview, overview, standing
from runner.views.overview.screen import lines
from runner.views.pages import asset, render
from runner.views.redact import RunView, redact_row, redact_run
from runner.views.show import page as run_page
from runner.views.show.contents import inside
from runner.views.show.topics import Medians, medians_for, topics_of
from runner.work.console import console

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store
    from runner.records.store.run_detail import RunDetail

MOST_LOG = 256 * 1024  # characters of a stream of a run's log

_LISTED = ("id", "title", "description", "takes", "dates")  # what the list of tasks says of each


@dataclass(frozen=True)
class Desk:
    """What publishing looks at: the store, the tasks by id, and where it goes. ``problem`` is told what could not be made."""

    store: Store
    tasks: Mapping[str, Task]
    to: Publisher
    problem: Callable[[RunnerError], None]
    clock: Clock = field(default_factory=SystemClock)
    _overviews: dict[str, tuple[Overview, str]] = field(default_factory=dict)
    _medians: dict[tuple[str, ...], Medians | None] = field(default_factory=dict)

    def publish(self, teams: Sequence[str]) -> bool:
        """Publish to everybody, each of ``teams``, the organiser and assistants what they may see now; whether anything changed.

        What cannot be made of a task or a run, because files of it are damaged, is left out: it stops nothing else.
        """
        everybody = list(self._styles())
        found = {"public": [*everybody, *self._boards(PUBLIC)]}
        together: list[Object] = []
        rows: list[Any] = []
        closed: set[str] = set()  # to assistants
        of_team: dict[str, list[ListedRun]] = {}
        for one in listed_runs(self.store, self.tasks, ORGANISER):
            of_team.setdefault(one.run.submission.team, []).append(one)
            if not assistant_may_open(one.dataset, one.published, one.run.released):
                closed |= {f"runs/{one.run.id}", f"logs/{one.run.id}"}
        for team in teams:
            audience = Audience("team", team)
            own, objects = self._runs(audience, of_team.get(team, ()))
            rows += own
            together += objects
            runs = self.to.object("runs", "runs", "Runs", own)
            left = self._standings(audience)
            more = [self._queue(of_team, team), self._parts(team)]
            found[str(audience)] = [*everybody, *self._boards(audience), runs, *more, *objects, *left]
        runs = self.to.object("runs", "runs", "Runs", rows)
        found["organiser"] = [*found["public"], runs, *together]
        rows = self._rows_for_assistants(of_team, of_team)
        shown = console(
            rows,
            chain(*of_team.values()),
            self._announced(),
            teams,
            self.store.log,
            self.store.archive.root.parent,
            {name: published(self.store, name) for name in self._announced()},
        )
        both = self.to.object("console", "console", "Console", shown)
        found["organiser"].append(both)
        rows = [row for row in rows if row["team"] in teams]
        runs = self.to.object("runs", "runs", "Runs", rows)
        open_ = [one for one in together if one.path not in closed]
        found["assistant"] = [*found["public"], runs, *open_, both]
        return self.to.publish(found)

    def _queue(self, of_team: Mapping[str, Sequence[ListedRun]], team: str) -> Object:
        """How many runs wait or are executed: in all, of a team, and of others that were handed in before its first."""
        waiting = [
            one.run.submission
            for one in chain(*of_team.values())
            if one.run.outcome.name in ("pending", "running")
        ]
        own = [one.seq for one in waiting if one.team == team]
        before = sum(one.seq < min(own) for one in waiting) if own else 0
        return self.to.object(
            "queue", "queue", "Queue", {"all": len(waiting), "own": len(own), "before": before}
        )

    def _rows_for_assistants(
        self, of_team: Mapping[str, Sequence[ListedRun]], teams: Iterable[str]
    ) -> list[Any]:
        """The runs of all teams in rows, without what was opened to a team alone."""
        rows = []
        for team in teams:
            for one in of_team.get(team, ()):
                run = replace(one.run, released=False)
                row = redact_row(run, Audience("team", team), one.dataset, one.published)
                rows += [] if row is None else [dict(row)]
        return rows

    def _announced(self) -> dict[str, Task]:
        """The tasks that the web shows now. Runs in others are shown to whose they are, and nothing else of them."""
        return announced(self.tasks, self.clock.now())

    def _parts(self, team: str) -> Object:
        """The parts of images that the team need not send: of its own hand-ins, and of base images."""
        ids = [one.id for one in submissions(self.store) if one.team == team]
        found = parts_for(self.store.archive.root.parent, ids)
        return self.to.object("parts", "parts", "Parts", {"sha256": sorted(found)})

    def _styles(self) -> Iterator[Object]:
        for name in (board_page.STYLE, run_page.STYLE):
            digest = self._style(name)
            yield Object(f"styles/{digest}", "style", name, self.to.keep(b"{}"), None, digest)

    def _style(self, name: str) -> str:
        return self.to.keep(asset(name).encode())

    def _boards(self, audience: Audience) -> Iterator[Object]:
        """The tasks, and their leaderboards as far as they are open."""
        listed = []
        for name, task in sorted(self._announced().items()):
            with self._apart():
                boards = [board for table in task.tables if (board := self._board(task, table, audience))]
                frozen = {
                    round_: self._frozen(task, round_, audience) for round_ in frozen_rounds(self.store, name)
                }
                open_ = {board.path.removeprefix(f"tasks/{name}/") for board in boards}
                heads = [
                    {"id": table.id, "title": table.title or table.id, "part_of": table.part_of}
                    for table in task.tables.values()
                    if table.id in open_
                ]
                of, text = self._overview(task)
                facts = of.as_dict()
                page = Object(f"tasks/{name}", "task", task.title, "", text, self._style(run_page.STYLE))
                listed.append({key: facts[key] for key in _LISTED} | {"tables": heads})
                rounds = [
                    {
                        "id": round_.id,
                        "title": round_.title,
                        "tables": [one.path.rpartition("/")[2] for one in made],
                    }
                    for round_ in of.dates.rounds.values()
                    if (made := frozen.get(round_.id))
                ]
                yield from self._registering(task, of)
                yield from (*boards, *(one for made in frozen.values() for one in made))
                data = schemas.canonical({**facts, "boards": heads, "rounds": rounds})
                yield replace(page, data=self.to.keep(data))
        yield self.to.object("tasks", "tasks", "Tasks", listed)

    def _registering(self, task: Task, of: Overview) -> Iterator[Object]:
        """How teams register for a task; nothing where they do not."""
        rules = of.dates.registration
        if rules is not None:
            terms = terms_of(task, rules)
            dates = {
                key: at.own if at.own == at.utc else f"{at.own} ({at.utc})"
                for key in ("opens", "closes")
                if (at := getattr(rules, key)) is not None
            }
            begins, ends = rules.opens and stamp(rules.opens.at), rules.closes and stamp(rules.closes.end)
            said = {"task": task.id, "title": task.title, "approve": rules.approve, "asks": dict(rules.asks)}
            read = None if terms is None else {"version": rules.terms_version, **vars(terms)}
            facts = {**said, "dates": dates, "begins": begins, "ends": ends, "terms": read}
            yield self.to.object(f"registration/{task.id}", "registration", task.title, facts)

    def _overview(self, task: Task) -> tuple[Overview, str]:
        """A task's overview, and the digest of its piece of a page: the same for everybody."""
        if task.id not in self._overviews:
            of = overview(task)
            text = render("runner.views.overview/overview.html", lines=list(lines(of)))
            self._overviews[task.id] = of, self.to.keep(text.encode())
        return self._overviews[task.id]

    def _frozen(self, task: Task, round_: str, audience: Audience) -> list[Object]:
        """The leaderboards of a round as it was frozen, as far as they are open."""
        made: list[Object] = []
        for table in task.tables:
            with self._apart():  # a snapshot that was damaged closes nothing else
                made += filter(None, [self._board(task, table, audience, round_)])
        return made

    def _board(self, task: Task, table: str, audience: Audience, round_: str | None = None) -> Object | None:
        try:
            if round_ is None:
                made = build(self.store, task, table, audience, running=list(self.store.archive.live()))
            else:
                made = board_of_round(self.store, task, round_, table, audience)
        except RunnerError as error:
            # Not open to them, or not a table of that round.
            if error.code == "E103" or (round_ is not None and error.code == "E102"):
                return None
            raise
        text = board_page.to_html(made, piece=True)
        path = f"tasks/{task.id}/{table}" if round_ is None else f"tasks/{task.id}/rounds/{round_}/{table}"
        style = self._style(board_page.STYLE)
        return self.to.object(path, "board", f"{task.title}: {table}", as_dict(made), text, style)

    def _runs(self, audience: Audience, runs: Sequence[ListedRun]) -> tuple[list[Any], list[Object]]:
        """The runs of a team: as rows, and each with all that the team may see of it."""
        rows: list[Any] = []
        objects: list[Object] = []
        for one in runs:
            row = redact_row(one.run, audience, one.dataset, one.published)
            if row is not None:
                rows.append(dict(row))
                with self._apart():
                    objects += self._run(one, audience)
        return rows, objects

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """What cannot be made in the block is told, and stops nothing else."""
        try:
            yield
        except RunnerError as error:
            self.problem(error)

    def _run(self, listed: ListedRun, audience: Audience) -> Iterator[Object]:
        """A run, and its log where the audience may read it."""
        name, dataset, task = listed.run.id, listed.dataset, self.tasks.get(listed.run.submission.task)
        live = self.store.archive.live()
        found = detail(self.store, name, [] if task is None else [task], running=live)
        view = redact_run(found, audience, dataset)
        within, helps = inside(found, task, audience, dataset), hint(view, task)
        topics = topics_of(view, task, self._medians_of(view, task, dataset))
        text = run_page.page(view, within.contents, None, topics, helps, piece=True)
        data = {**view, **within.data(), "hint": helps}
        yield self.to.object(f"runs/{name}", "run", name, data, text, self._style(run_page.STYLE))
        if log := _log(found, audience, dataset):
            yield self.to.object(f"logs/{name}", "log", name, log)

    def _medians_of(self, view: RunView, task: Task | None, dataset: Dataset) -> Medians | None:
        """The medians beside a run: the same for all runs of an audience on a dataset and scenario, and slow to compute."""
        where = (view["task"], view["dataset"], view["scenario"])
        key = (str(view.audience), *where, *sorted(view["topic_scores"]))
        if key not in self._medians:
            self._medians[key] = medians_for(self.store, task, view, dataset)
        return self._medians[key]

    def _standings(self, audience: Audience) -> Iterator[Object]:
        for name, task in self._announced().items():
            with self._apart():
                of = replace(self._overview(task)[0], standing=standing(self.store, task, str(audience.team)))
                left = {"task": name, "title": task.title, "team": of.as_dict()["team"]}
                yield self.to.object(f"standing/{name}", "standing", task.title, left)


def _log(found: RunDetail, audience: Audience, dataset: Dataset) -> dict[str, Any]:
    """The log of a run as ``runner logs`` prints it, ``stdout`` and ``stderr`` by line; only the beginning of a long one. Empty
    where there is none for this audience."""
    streams: dict[str, Any] = {}
    try:
        for stream in ("stdout", "stderr"):
            lines, left = [], MOST_LOG
            for line in log_lines(found, audience, dataset, stream):
                left -= len(line) + 1
                if left < 0:
                    lines.append(f"[cut: the server shows the first {MOST_LOG // 1024} KiB]")
                    break
                lines.append(line)
            streams[stream] = lines
    except RunnerError as error:
        if error.code not in ("E102", "E103"):
            raise
        return {}
    return streams
