"""Pages that show what was published: tasks, a task, leaderboards, runs; style sheets; whether anybody works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.exchange.published import DIGEST
from runner.web.pages import HAND_IN, STYLE, page
from runner.web.routes.base import Routes
from runner.web.rules import EVERYBODY, SIGNED_IN, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response


class Reading(Routes):
    """What was published."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/", self.tasks, EVERYBODY),
            Rule("GET", "/tasks/{task}", self.task, EVERYBODY),
            Rule("GET", "/tasks/{task}/{table:path}", self.board, EVERYBODY),
            Rule("GET", "/runs/{run}", self.run, SIGNED_IN),
            Rule("GET", "/site.css", self.site_style, EVERYBODY),
            Rule("GET", "/hand-in.js", self.hand_in_script, EVERYBODY),
            Rule("GET", "/favicon.ico", self.icon, EVERYBODY),
            Rule("GET", "/styles/{digest}.css", self.style, EVERYBODY),
            Rule("GET", "/healthz", self.health, EVERYBODY),
        )

    async def tasks(self, call: Call) -> Response:
        """The tasks and their leaderboards."""
        found = call.view.get("tasks")
        tasks = call.view.data(found) if found else []
        live = self.live(call, "/")
        return page("tasks", call.visitor, call.published, title="Tasks", live=live, tasks=tasks)

    async def task(self, call: Call) -> Response:
        """One task: what it is, in full, and its leaderboards."""
        found = self.object(call, f"tasks/{call.at('task')}", "task")
        if found is None:
            return self.nothing(call)
        data = call.view.data(found)
        text = call.view.text(found)
        return page(
            "task",
            call.visitor,
            call.published,
            title=found.title,
            live=(f"/{found.path}", found.etag),
            task=data,
            piece=text,
            style=found.style,
        )

    async def board(self, call: Call) -> Response:
        """A leaderboard."""
        path = f"tasks/{call.at('task')}"
        task = self.object(call, path, "task")
        up = [(task.title, f"/{path}")] if task else []
        return self.piece(call, f"{path}/{call.at('table')}", "board", up)

    async def run(self, call: Call) -> Response:
        """A run, as its team may see it."""
        up = [(f"Team {call.visitor.team}", "/team")] if call.visitor.team else []
        return self.piece(call, f"runs/{call.at('run')}", "run", up)

    async def site_style(self, call: Call) -> Response:
        """The style sheet of all pages."""
        return _style(STYLE.encode(), "no-cache")

    async def hand_in_script(self, call: Call) -> Response:
        """The script of the page by which run files are handed in: dropping them."""
        from starlette.responses import Response

        return Response(HAND_IN, 200, {"Cache-Control": "no-cache"}, "text/javascript")

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
        """Whether the front answers; of work it says only whether it was heard of lately."""
        from starlette.responses import PlainTextResponse

        age = call.published.age()
        return PlainTextResponse("ok\n" if age is not None and age < 60 else "ok, but nobody works\n")


def _style(text: bytes, keep: str) -> Response:
    from starlette.responses import Response

    return Response(text, 200, {"Cache-Control": keep}, "text/css")
