"""What each audience may see, made by the rules of :mod:`runner.views` and put into ``published/``.

Nothing is decided here: every object is what the command of the same name prints for that audience, and every piece of a
page what that command writes. The organiser's part is what teams see of their own runs, put together: the front is never
given what the organiser alone may see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runner.exchange.published import Object, Publisher
from runner.model.errors import RunnerError
from runner.views.audience import PUBLIC, Audience
from runner.views.leaderboard.export import as_dict
from runner.views.leaderboard.formats import page as board_page
from runner.views.leaderboard.table import build
from runner.views.listing import listed_runs, looked_up
from runner.views.overview.facts import overview, standing
from runner.views.overview.screen import lines
from runner.views.pages import asset, render
from runner.views.redact import redact_run
from runner.views.show import page as run_page
from runner.views.show.contents import inside
from runner.views.show.topics import medians_for, topics_of

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.records.store.connect import Store


@dataclass(frozen=True)
class Desk:
    """What publishing looks at: the store, the tasks by id, and where it goes."""

    store: Store
    tasks: Mapping[str, Task]
    to: Publisher

    def publish(self, teams: Sequence[str]) -> bool:
        """Publish to everybody, each of ``teams`` and the organiser what they may see now; whether anything changed.

        What cannot be made because a task's files or an archive are damaged is left out, and stays for others.
        """
        everybody = list(self._styles())
        found = {"public": [*everybody, *self._boards(PUBLIC)]}
        together: list[Object] = []
        rows: list[Any] = []
        for team in teams:
            audience = Audience("team", team)
            own, objects = self._runs(audience)
            rows += own
            together += objects
            runs = self.to.object("runs", "runs", "Runs", own)
            left = self._standings(audience)
            found[str(audience)] = [*everybody, *self._boards(audience), runs, *objects, *left]
        runs = self.to.object("runs", "runs", "Runs", rows)
        found["organiser"] = [*found["public"], runs, *together]
        return self.to.publish(found)

    def _styles(self) -> Iterator[Object]:
        for name in (board_page.STYLE, run_page.STYLE):
            digest = self._style(name)
            yield Object(f"styles/{digest}", "style", name, self.to.keep(b"{}"), None, digest)

    def _style(self, name: str) -> str:
        return self.to.keep(asset(name).encode())

    def _boards(self, audience: Audience) -> Iterator[Object]:
        """The tasks, and their leaderboards as far as they are open."""
        listed = []
        for name, task in sorted(self.tasks.items()):
            boards = []
            for table in task.tables.values():
                if (board := self._board(task, table.id, audience)) is not None:
                    boards.append(
                        {"id": table.id, "title": table.title or table.id, "part_of": table.part_of}
                    )
                    yield board
            of = overview(task)
            text = render("runner.views.overview/overview.html", lines=list(lines(of)))
            takes = of.as_dict()["takes"]
            facts = {"id": name, "title": task.title, "description": task.description, "tables": boards}
            listed.append(facts)
            style = self._style(run_page.STYLE)
            data = {**of.as_dict(), "boards": boards, "takes": takes}
            yield self.to.object(f"tasks/{name}", "task", task.title, data, text, style)
        yield self.to.object("tasks", "tasks", "Tasks", listed)

    def _board(self, task: Task, table: str, audience: Audience) -> Object | None:
        try:
            made = build(self.store, task, table, audience, running=list(self.store.archive.live()))
        except RunnerError as error:
            if error.code in ("E103", "E307"):  # not open to them, or damaged: there is none
                return None
            raise
        text = board_page.to_html(made, piece=True)
        path, style = f"tasks/{task.id}/{table}", self._style(board_page.STYLE)
        return self.to.object(path, "board", f"{task.title}: {table}", as_dict(made), text, style)

    def _runs(self, audience: Audience) -> tuple[list[Any], list[Object]]:
        """The runs of a team: as rows, and each with all that the team may see of it."""
        rows: list[Any] = []
        objects: list[Object] = []
        for listed in listed_runs(self.store, self.tasks, audience):
            rows.append(dict(listed.view))
            try:
                objects.append(self._run(listed.run.id, audience))
            except RunnerError as error:
                if error.code != "E307":
                    raise
        return rows, objects

    def _run(self, name: str, audience: Audience) -> Object:
        from runner.views.hints import hint

        found, dataset, task = looked_up(self.store, self.tasks, audience, name)
        view = redact_run(found, audience, dataset)
        within, helps = inside(found, task, audience, dataset), hint(view, task)
        topics = topics_of(view, task, medians_for(self.store, task, view, dataset))
        text = run_page.page(view, within.contents, None, topics, helps, piece=True)
        data = {**view, **within.data(), "hint": helps}
        return self.to.object(f"runs/{name}", "run", name, data, text, self._style(run_page.STYLE))

    def _standings(self, audience: Audience) -> Iterator[Object]:
        for name, task in self.tasks.items():
            of = overview(task, standing(self.store, task, str(audience.team)))
            left = {"task": name, "title": task.title, "team": of.as_dict()["team"]}
            yield self.to.object(f"standing/{name}", "standing", task.title, left)
