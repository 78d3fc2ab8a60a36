"""What each audience may see, made by the rules of :mod:`runner.views` and put into ``published/``.

Nothing is decided here: every object is what the command of the same name prints for that audience, and every piece of a
page what that command writes. The organiser's part is what teams see of their own runs, put together, and the console: the
front is never given what only the terminal may show. Assistants get less: no run on hidden data before its scores are everybody's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import schemas
from runner.exchange.look import source
from runner.exchange.published import Object, Publisher
from runner.exchange.receipts import published_key
from runner.model.calendar import announced
from runner.model.clock import Clock, SystemClock, stamp
from runner.model.errors import RunnerError
from runner.records.store.queries import frozen_rounds, published, submissions
from runner.submissions.parcel import parts_for
from runner.tasks.files import terms_of
from runner.views.audience import ORGANISER, PUBLIC, Audience, assistant_may_open
from runner.views.leaderboard.anonymous import sees_as
from runner.views.leaderboard.export import as_dict, each_as_dict, export
from runner.views.leaderboard.formats import ENDINGS
from runner.views.leaderboard.formats import page as board_page
from runner.views.leaderboard.rounds import board as board_of_round
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.leaderboard.table import build
from runner.views.listing import ListedRun, listed_runs
from runner.views.overview import about
from runner.views.overview.facts import Overview, overview, standing
from runner.views.overview.offering import Offering, Reader
from runner.views.overview.screen import parts, printed
from runner.views.overview.taking_part import baselines, participation
from runner.views.pages import render
from runner.views.plots.making import Board
from runner.views.plots.published import Drawings, Figure, below_board, figure_of_board, plots_page
from runner.views.redact import redact_row
from runner.views.show import page as run_page
from runner.work.console import console
from runner.work.live_logs import LiveLogs, growing
from runner.work.members.registrations import NO_REGISTRATIONS
from runner.work.run_pages import Kept, RunPages

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.records.store.connect import Store

_LISTED = ("id", "title", "description", "takes", "dates")  # what the list of tasks says of each


@dataclass(frozen=True)
class Desk:
    """What publishing looks at: the store, the tasks by id, and where it goes. ``problem`` is told what could not be made.

    ``notices`` says by team what it is told by mail, ``registrations`` are what the console says of them (:meth:`runner.work.members.registrations.Registrations.shown`).
    With the same ``kept`` at the next publishing, runs of which nothing has changed are not made again; ``drawings`` are those of
    plots, by default drawn while it is published; ``offering`` those of data that are downloaded, which goes by what teams ``accepted``.
    ``logs`` follow what softwares write as they run; without them nobody sees that before it is sealed.
    ``home`` tells in calendars who publishes, by default the key with which work signs. ``meanwhile`` is called between two runs and between two
    boards: publishing may take minutes, and what cannot wait for it is done then. It may raise what ends publishing.
    """

    store: Store
    tasks: Mapping[str, Task]
    to: Publisher
    problem: Callable[[RunnerError], None]
    clock: Clock = field(default_factory=SystemClock)
    kept: Kept = field(default_factory=dict)
    registrations: Mapping[str, Any] = field(default_factory=lambda: dict(NO_REGISTRATIONS))
    notices: Mapping[str, Any] = field(default_factory=dict)
    drawings: Drawings | None = None
    offering: Offering | None = None
    accepted: Mapping[str, Collection[tuple[str, str, str]]] = field(default_factory=dict)
    home: str = ""
    logs: LiveLogs | None = None
    meanwhile: Callable[[], None] = lambda: None
    _overviews: dict[str, tuple[Overview, str]] = field(default_factory=dict)
    _made: dict[tuple[str, ...], tuple[Object, ...]] = field(default_factory=dict)
    _figures: dict[Object, Figure | None] = field(default_factory=dict)  # of boards
    _tables: dict[Object, LeaderboardTable] = field(default_factory=dict)

    @cached_property
    def _run_pages(self) -> RunPages:
        return RunPages(self.store, self.tasks, self.to, self.kept, self._drawings)

    @cached_property
    def _offering(self) -> Offering:
        made = self.offering or Offering(self.to, self.problem)
        made.look(self.tasks.values())
        return made

    def _data(self, reader: Reader) -> Iterator[Object]:
        """What is offered of the data of each task, and what of it is open to a reader."""
        for _, task in sorted(self._announced().items()):
            with self._apart():
                yield from list(self._offering.objects(task, reader))

    @cached_property
    def _drawings(self) -> Drawings:
        return self.drawings or Drawings(self.to)

    def publish(self, teams: Sequence[str], closed: Sequence[str] = ()) -> bool:
        """Publish to everybody, each of ``teams``, the organiser and assistants what they may see now; whether anything changed.

        The console also names the teams whose account is ``closed``, and those without one. What cannot be made of a task or a run, because files of it are damaged, is left out: it stops nothing else.
        """
        everybody = list(self._styles())
        found = {"public": [*everybody, *self._boards(PUBLIC), *self._data(Reader())]}
        together: list[Object] = []
        rows: list[Any] = []
        hidden: set[str] = set()  # to assistants
        of_team: dict[str, list[ListedRun]] = {}
        for one in listed_runs(self.store, self.tasks, ORGANISER):
            of_team.setdefault(one.run.submission.team, []).append(one)
            if not assistant_may_open(one.dataset, one.published, one.run.released):
                hidden.add(one.run.id)
        self._share_logs(chain(*(of_team.get(team, ()) for team in teams)))
        handed_in: dict[str, list[str]] = {}
        for submission in submissions(self.store):
            handed_in.setdefault(submission.team, []).append(submission.id)
        for team in dict.fromkeys([*teams, *of_team]):
            audience = Audience("team", team)
            own, objects = self._runs(audience, of_team.get(team, ()))
            rows += own
            together += objects
            if team not in teams:  # baselines, and teams without an account: nobody signs in for them
                continue
            runs = self.to.object("runs", "runs", "Runs", own)
            left = self._standings(audience, of_team.get(team, ()))
            more = [self._queue(of_team, team), self._parts(handed_in.get(team, ()))]
            if team in self.notices:
                more.append(self.to.object("notices", "notices", "Notices", self.notices[team]))
            more += self._data(Reader(True, self.accepted.get(team, ())))
            found[str(audience)] = [*everybody, *self._boards(audience), runs, *more, *objects, *left]
        found["organiser"] = [*found["public"], self.to.object("runs", "runs", "Runs", rows), *together]
        rows = self._rows_for_assistants(of_team, of_team)
        shown = console(
            rows,
            chain(*of_team.values()),
            self._announced(),
            teams,
            self.store.log,
            self.store.archive.root.parent,
            {name: published(self.store, name) for name in self._announced()},
            self.registrations,
            closed,
        )
        both = self.to.object("console", "console", "Console", shown)
        found["organiser"].append(both)
        runs = self.to.object("runs", "runs", "Runs", rows)
        shut = {one for name in hidden & self.kept.keys() for one in self.kept[name].objects}
        open_ = [one for one in together if one not in shut and one.path.removeprefix("tails/") not in hidden]
        found["assistant"] = [*found["public"], runs, *open_, both]
        for name in self.kept.keys() - {one.run.id for one in chain(*of_team.values())}:
            del self.kept[name]
        changed = self.to.publish(found)
        if self.logs is not None:
            self.logs.settle()
        return changed

    def _share_logs(self, runs: Iterable[ListedRun]) -> None:
        if self.logs is not None:
            self.logs.share(growing(runs, self.store.archive, self.logs.attempts))

    def publish_to_everybody(self) -> bool:
        """Publish what everybody may see, and nothing else; whether anything changed."""
        return self.to.publish({"public": [*self._styles(), *self._boards(PUBLIC), *self._data(Reader())]})

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

    def _parts(self, own: Iterable[str]) -> Object:
        """The parts of images that a team need not send: of its ``own`` hand-ins, and of base images."""
        found = parts_for(self.store.archive.root.parent, own)
        return self.to.object("parts", "parts", "Parts", {"sha256": sorted(found)})

    def _styles(self) -> Iterator[Object]:
        for name in (board_page.STYLE, run_page.STYLE):
            digest = self._style(name)
            yield Object(f"styles/{digest}", "style", name, self.to.keep(b"{}"), None, digest)

    def _style(self, name: str) -> str:
        return self.to.keep((source(name) or "").encode())  # below that of all pages, which the front has

    def _boards(self, audience: Audience) -> Iterator[Object]:
        """The tasks, and their leaderboards as far as they are open."""
        listed = []
        for name, task in sorted(self._announced().items()):
            with self._apart():
                boards = [board for table in task.tables if (board := self._board(task, table, audience))]
                frozen = {
                    round_: self._frozen(task, round_, audience) for round_ in frozen_rounds(self.store, name)
                }
                open_ = {board[0].path.removeprefix(f"tasks/{name}/") for board in boards}
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
                        "tables": [one[0].path.rpartition("/")[2] for one in made],
                    }
                    for round_ in of.dates.rounds.values()
                    if (made := frozen.get(round_.id))
                ]
                yield from self._registering(task, of)
                yield from about.objects(of, self.to, self.home or published_key(self.to.root) or "")
                yield from chain(*boards, *chain(*frozen.values()))
                yield from self._plots(task, [one[0] for one in boards], chain(*frozen.values()))
                open_now = [self._tables[one[0]] for one in boards]
                cells = [table.id for table in task.tables.values() if table.part_of is not None]
                more = {"baselines": baselines(open_now, cells), "participation": participation(open_now)}
                said = {**facts, "boards": heads, "rounds": rounds, "printed": printed(of)}
                data = schemas.canonical({**said, **more})
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
            of = overview(task, published=published(self.store, task.id))
            text = render("runner.views.overview/overview.html", parts=list(parts(of)))
            self._overviews[task.id] = of, self.to.keep(text.encode())
        return self._overviews[task.id]

    def _frozen(self, task: Task, round_: str, audience: Audience) -> list[tuple[Object, ...]]:
        """The leaderboards of a round as it was frozen, as far as they are open."""
        made: list[tuple[Object, ...]] = []
        for table in task.tables:
            with self._apart():  # a snapshot that was damaged closes nothing else
                made += filter(None, [self._board(task, table, audience, round_)])
        return made

    def _board(
        self, task: Task, table: str, audience: Audience, round_: str | None = None
    ) -> tuple[Object, ...]:
        """A leaderboard and the files of it, if it is open: made once for all who see the same."""
        try:
            seen_by = sees_as(self.store, task, audience)
            key = (task.id, table, round_ or "", str(seen_by))
            if key not in self._made:
                self._made[key] = tuple(self._made_board(task, table, seen_by, round_))
                self.meanwhile()
            return self._made[key]
        except RunnerError as error:
            # Not open to them, or not a table of that round.
            if error.code == "E103" or (round_ is not None and error.code == "E102"):
                return ()
            raise

    def _made_board(self, task: Task, table: str, audience: Audience, round_: str | None) -> Iterator[Object]:
        if round_ is None:
            made = build(
                self.store, task, table, audience, running=list(self.store.archive.live()), each=True
            )
        else:
            made = board_of_round(self.store, task, round_, table, audience)
        drawn = figure_of_board(Board(self.store, task, made, audience), self._drawings)
        text = board_page.to_html(made, piece=True, task_at=f"/tasks/{task.id}") + below_board(task.id, drawn)
        path = f"tasks/{task.id}/{table}" if round_ is None else f"tasks/{task.id}/rounds/{round_}/{table}"
        style = self._style(board_page.STYLE)
        board = self.to.object(path, "board", f"{task.title}: {table}", as_dict(made), text, style)
        self._figures[board], self._tables[board] = drawn, made
        yield board
        if made.each:
            yield self.to.object(f"against/{path}", "tests", board.title, each_as_dict(made))
        for format, ending in ENDINGS.items():
            file = f"{path.removeprefix('tasks/').replace('/', '-')}.{ending}"
            yield Object(
                f"downloads/{path}.{ending}",
                "download",
                file,
                self.to.keep(b"{}"),
                self.to.keep(export(made, format).encode()),
            )

    def _plots(
        self, task: Task, boards: Sequence[Object], frozen: Iterable[tuple[Object, ...]]
    ) -> Iterator[Object]:
        """The plots of boards, and the page with those of all whole boards that are open now; nothing where nothing can be drawn."""
        shown = {
            one.digest: one
            for board in (*boards, *(made[0] for made in frozen))
            if (one := self._figures[board]) is not None
        }
        yield from (self._drawings.object(one) for one in shown.values() if one.drawn)
        if shown:
            whole = [board for board in boards if task.tables[self._tables[board].table].part_of is None]
            found = [
                (self._tables[board].heading or self._tables[board].table, one)
                for board in whole
                if (one := self._figures[board]) is not None
            ]
            data = [{"table": title, **one.brief()} for title, one in found]
            text = plots_page(task.title, found, parts=len(whole) < len(boards))
            yield self.to.object(f"plots-of/{task.id}", "plots", f"{task.title}: plots", data, text)

    def _runs(self, audience: Audience, runs: Sequence[ListedRun]) -> tuple[list[Any], list[Object]]:
        """The runs of a team: as rows, and each with all that the team may see of it."""
        rows: list[Any] = []
        objects: list[Object] = []
        for one in runs:
            row = redact_row(one.run, audience, one.dataset, one.published)
            if row is not None:
                rows.append(dict(row))
                with self._apart():
                    objects += self._run_pages.of(one, audience)
                    objects += self._tail(one.run.id)
                self.meanwhile()
        return rows, objects

    def _tail(self, name: str) -> Iterator[Object]:
        """Where the end of a log is that grows, for the team of a run: of those alone that :func:`growing` names."""
        if self.logs is not None and (file := self.logs.name_of(name)):
            yield self.to.object(f"tails/{name}", "tail", name, {"file": file})

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """What cannot be made in the block is told, and stops nothing else."""
        try:
            yield
        except RunnerError as error:
            self.problem(error)

    def _standings(self, audience: Audience, listed: Sequence[ListedRun]) -> Iterator[Object]:
        for name, task in self._announced().items():
            with self._apart():
                runs = [one.run for one in listed if one.run.submission.task == name]
                left = standing(self.store, task, str(audience.team), runs)
                of = replace(self._overview(task)[0], standing=left)
                said = {"task": name, "title": task.title, "team": left.as_dict(), "printed": printed(of)}
                yield self.to.object(f"standing/{name}", "standing", task.title, said)
