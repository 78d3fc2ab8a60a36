"""A team's own pages: its runs, what is left of its quota, and what it asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.exchange.inbox import ID
from runner.web.pages import page
from runner.web.routes.base import Routes
from runner.web.rules import TEAM, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response


class Team(Routes):
    """What a team sees of itself."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/team", self.team, TEAM),
            Rule("GET", "/requests/{id}", self.request, TEAM),
        )

    async def team(self, call: Call) -> Response:
        """The team's runs and quota, and what it handed in here."""
        found = call.view.get("runs")
        runs = call.view.data(found) if found else []
        standing = [
            call.view.data(one) | {"takes": self._takes(call, one.path.removeprefix("standing/"))}
            for one in call.view.below("standing/")
        ]
        asked = [
            one | {"answer": self.answer(call, one["id"])}
            for one in self.door.sessions.noted(call.visitor.team)
        ]
        title = f"Team {call.visitor.team}"
        return page(
            "team",
            call.visitor,
            call.published,
            title=title,
            live=self.live(call, "/team"),
            runs=runs[::-1],
            standing=standing,
            asked=asked,
        )

    def _takes(self, call: Call, task: str) -> list[str]:
        found = self.object(call, f"tasks/{task}", "task")
        return list(call.view.data(found)["takes"]) if found else []

    async def request(self, call: Call) -> Response:
        """What became of a request of the visitor's team: a page, or JSON for programs with a token."""
        id = call.at("id")
        known = self.door.sessions.noted(call.visitor.team, id) if ID.fullmatch(id) else []
        answer = self.answer(call, id) if ID.fullmatch(id) else None
        if not known and answer is None:
            return self.nothing(call)
        asked = known[0] if known else None
        if call.visitor.session is None:
            from starlette.responses import JSONResponse

            facts = {"request": id, "asked": asked, "answer": answer}
            return JSONResponse(facts, headers={"Cache-Control": "no-store"})
        shown = page(
            "request",
            call.visitor,
            call.published,
            title="What you handed in",
            up=[(f"Team {call.visitor.team}", "/team")],
            asked=asked,
            answer=answer,
            id=id,
        )
        if answer is None:  # without scripts a page can still look again
            shown.headers["Refresh"] = "2"
        return shown
