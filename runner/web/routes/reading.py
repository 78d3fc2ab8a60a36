"""Pages that show what was published: tasks, a task, runs; style sheets; whether anybody works."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from runner.exchange.handing_in import submission_phase
from runner.exchange.published import DIGEST
from runner.exchange.tails import Tail
from runner.web.door import FORM
from runner.web.pages import BOARD, HAND_IN, SCRIPT, STYLE, page
from runner.web.routes.base import Routes
from runner.web.rules import CONSOLE, EVERYBODY, SIGNED_IN, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response


class Reading(Routes):
    """What was published."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/", self.tasks, EVERYBODY),
            Rule("GET", "/tasks/{task}", self.task, EVERYBODY),
            Rule("GET", "/tasks/{task}/calendar.ics", self.calendar, EVERYBODY),
            Rule("GET", "/runs/{run}", self.run, SIGNED_IN),
            Rule("GET", "/site.css", self.site_style, EVERYBODY),
            Rule("GET", "/look.js", self.site_script, EVERYBODY),
            Rule("GET", "/board.js", self.board_script, EVERYBODY),
            Rule("GET", "/style", self.elements, EVERYBODY),
            Rule("GET", "/hand-in.js", self.hand_in_script, EVERYBODY),
            Rule("GET", "/robots.txt", self.robots, EVERYBODY),
            Rule("GET", "/favicon.ico", self.icon, EVERYBODY),
            Rule("GET", "/styles/{digest}.css", self.style, EVERYBODY),
            Rule("GET", "/healthz", self.health, EVERYBODY),
        )

    async def tasks(self, call: Call) -> Response:
        """The tasks and their leaderboards."""
        found = call.view.get("tasks")
        tasks = call.view.data(found) if found else []
        live = self.live(call, "/")
        return page(
            "tasks", call.visitor, call.published, title="Tasks", live=live, tasks=tasks, api="/api/v1/tasks"
        )

    async def task(self, call: Call) -> Response:
        """One task: what it is, in full, and its leaderboards."""
        found = self.object(call, f"tasks/{call.at('task')}", "task")
        if found is None:
            return self.nothing(call)
        data = call.view.data(found)
        text = call.view.text(found)
        about = self.object(call, f"about/{call.at('task')}", "about")
        offered = self.object(call, f"data/{call.at('task')}", "data")
        left = self.object(call, f"standing/{call.at('task')}", "standing")
        closes = call.view.data(left)["team"]["closes"] if left else None
        return page(
            "task",
            call.visitor,
            call.published,
            title=found.title,
            live=self.live(call, f"/{found.path}"),
            task=data,
            phase=submission_phase(data, closes, datetime.fromisoformat(self.door.now())),
            offered=call.view.data(offered) if offered else None,
            field=FORM,
            piece=text,
            style=found.style,
            about=call.view.text(about) if about else "",
            calendar=call.view.data(about)["dates"] if about else [],
            server=self.door.url,
            api=f"/api/v1/{found.path}",
            unlisted=unlisted(data),
        )

    async def calendar(self, call: Call) -> Response:
        """The dates of a task, for calendars."""
        from starlette.responses import Response

        found = self.object(call, f"calendar/{call.at('task')}", "calendar")
        if found is None:
            return self.nothing(call)
        kept = {"Cache-Control": "no-cache", "Content-Disposition": 'attachment; filename="calendar.ics"'}
        return Response(call.view.text(found).encode(), 200, kept, "text/calendar")

    async def run(self, call: Call) -> Response:
        """A run, as its team may see it."""
        log = self.writing(call, call.at("run"))
        if call.visitor.role in CONSOLE:
            return self._looked_after(call, log)
        up = [(f"Team {call.visitor.team}", "/team")] if call.visitor.team else []
        name, listed = call.at("run"), self.object(call, "runs", "runs")
        row = next((one for one in (call.view.data(listed) if listed else ()) if one["run"] == name), None)
        above = [*up, *self._software_of(call, row)]
        return self.piece(call, f"runs/{name}", "run", above, log=log)

    def _software_of(self, call: Call, row: Mapping[str, Any] | None) -> list[tuple[str, str]]:
        """The software of a run in the visitor's list of runs, and its page; nothing where that is not there for them."""
        if row is None or self.object(call, f"tasks/{row['task']}", "task") is None:
            return []
        name = f"{row['team']}/{row['software']}"
        return [(name, f"/tasks/{row['task']}/softwares/{name}")]

    def _looked_after(self, call: Call, log: Tail | None) -> Response:
        """A run for those who decide about it: its page where they may see it, else what the console says; and the forms."""
        name = call.at("run")
        found, console = self.object(call, f"runs/{name}", "run"), self.object(call, "console", "console")
        runs = self.object(call, "runs", "runs")
        lists = call.view.data(console) if console else {}
        rows = [row for key in ("held", "review", "queue") for row in lists.get(key, {}).get("runs", ())]
        listed = call.view.data(runs) if runs else []
        rows += listed
        named = [row for row in rows if row["run"] == name]
        row = {key: said for one in reversed(named) for key, said in one.items()} or None
        if row is None and found is None:
            return self.nothing(call)
        if row is not None:
            row.setdefault("again", self._is_public(call, row))
        return page(
            "run",
            call.visitor,
            call.published,
            title=name,
            up=[
                ("Console", "/console"),
                *self._software_of(call, next((one for one in listed if one["run"] == name), None)),
            ],
            live=self.live(call, f"/runs/{name}") if found else None,
            log=log if found else None,
            style=found.style if found else None,
            piece=call.view.text(found) if found else "",
            row=row,
            organiser=call.visitor.role == "organiser",
            field=FORM,
        )

    def _is_public(self, call: Call, row: Mapping[str, Any]) -> bool:
        """Whether a run of the list of all runs is on data that everybody has."""
        task = self.object(call, f"tasks/{row['task']}", "task")
        facts = call.view.data(task) if task else {}
        public = {
            one["id"]
            for one in facts.get("datasets", ())
            if one["visibility"] == "public" or facts.get("demo")
        }
        return row.get("dataset") in public

    async def site_style(self, call: Call) -> Response:
        """The style sheet of all pages."""
        return _style(STYLE.encode(), "no-cache")

    async def site_script(self, call: Call) -> Response:
        """The script of all pages: buttons that copy."""
        return _script(SCRIPT)

    async def board_script(self, call: Call) -> Response:
        """The script of leaderboards."""
        return _script(BOARD)

    async def elements(self, call: Call) -> Response:
        """Every element that pages are made of."""
        return page("style", call.visitor, call.published, title="Elements of these pages")

    async def hand_in_script(self, call: Call) -> Response:
        """The script of the page by which run files are handed in: dropping them."""
        return _script(HAND_IN)

    async def robots(self, call: Call) -> Response:
        """Which pages search engines leave alone: those of tasks with hidden data."""
        from starlette.responses import PlainTextResponse

        public = self.door.published.view("public")
        tasks = [one for one in public.below("tasks/") if one.kind == "task" and unlisted(public.data(one))]
        places = ("/{}$", "/{}.html$", "/{}/", "/downloads/{}/")  # no other task whose name begins like it
        told = [f"Disallow: {place.format(one.path)}" for one in tasks for place in places]
        return PlainTextResponse("\n".join(["User-agent: *", *(told or ["Disallow:"]), ""]))

    async def icon(self, call: Call) -> Response:
        """No icon: browsers ask for one by themselves."""
        from starlette.responses import Response

        return Response(status_code=204, headers={"Cache-Control": "public, max-age=86400"})

    async def style(self, call: Call) -> Response:
        """A style sheet that was published beside pages."""
        digest = call.at("digest")
        found = call.view.get(f"styles/{digest}") if DIGEST.fullmatch(digest) else None
        if found is None or found.style is None:
            return self.nothing(call)
        return _style(call.view.read(found.style), "public, max-age=31536000, immutable")

    async def health(self, call: Call) -> Response:
        """Whether the front answers, and is the one that is installed; of work only whether it was heard of lately."""
        from starlette.responses import PlainTextResponse

        age = call.published.age()
        said = "ok" if age is not None and age < 60 else "ok, but nobody works"
        older = ", and an older version than is installed" if self.door.program.older else ""
        return PlainTextResponse(f"{said}{older}\n")


def unlisted(task: Mapping[str, Any]) -> bool:
    """Whether search engines are asked to leave a task's pages alone: it has hidden data."""
    return any(one.get("visibility") == "blinded" for one in task.get("datasets", ()))


def _style(text: bytes, keep: str) -> Response:
    from starlette.responses import Response

    return Response(text, 200, {"Cache-Control": keep}, "text/css")


def _script(text: str) -> Response:
    from starlette.responses import Response

    return Response(text, 200, {"Cache-Control": "no-cache"}, "text/javascript")
