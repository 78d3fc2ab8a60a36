"""A team's own pages: its runs, what is left of its quota, and what it asked for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from runner.exchange.handing_in import submission_phase
from runner.exchange.inbox import ID
from runner.exchange.receipts import published_key, receipt
from runner.web.door import FORM, Door
from runner.web.limits import Room
from runner.web.pages import page
from runner.web.routes.base import Routes
from runner.web.rules import ASKING, EVERYBODY, TEAM, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response


# Kinds of requests by which something was decided, and nothing handed in.
DECIDES = ("withdraw", "choose", "review", "rerun", "team", "withdraw-any", "terms")


class Team(Routes):
    """What a team sees of itself."""

    def __init__(self, door: Door, room: Room) -> None:
        super().__init__(door)
        self.room = room

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/team", self.team, TEAM),
            Rule("GET", "/requests/{id}", self.request, ASKING),
            Rule("GET", "/requests/{id}/receipt", self.receipt, ASKING),
            Rule("GET", "/keys", self.keys, EVERYBODY),
        )

    async def team(self, call: Call) -> Response:
        """The team's runs and quota, and what it handed in here."""
        found = call.view.get("runs")
        runs = call.view.data(found) if found else []
        left = [call.view.data(one) for one in call.view.below("standing/")]
        standing = [one | self._hand_ins(call, one["task"], one["team"]["closes"]) for one in left]
        asked = [
            one | {"answer": self.answer(call, one["id"])}
            for one in self.door.sessions.noted(call.visitor.team)
        ]
        title = f"Team {call.visitor.team}"
        bounds = await self.door.on_disk(list, self.room.bounds(str(call.visitor.team)))
        return page(
            "team",
            call.visitor,
            call.published,
            title=title,
            live=self.live(call, "/team"),
            runs=runs[::-1],
            queue=call.view.data(queue) if (queue := call.view.get("queue")) else None,
            standing=standing,
            notices=call.view.data(told) if (told := call.view.get("notices")) else None,
            bounds=[(one.says, one.words) for one in bounds],
            field=FORM,
            asked=asked,
        )

    def _hand_ins(self, call: Call, task: str, closes: Mapping[str, str | None]) -> dict[str, Any]:
        """Return what a task accepts, and whether it accepts submissions of this team now."""
        found = self.object(call, f"tasks/{task}", "task")
        if found is None:
            return {"takes": [], "phase": "over"}
        data, now = call.view.data(found), datetime.fromisoformat(self.door.now())
        return {"takes": list(data["takes"]), "phase": submission_phase(data, closes, now)}

    async def request(self, call: Call) -> Response:
        """What became of a request of the visitor's team; programs are sent to the API."""
        from starlette.responses import RedirectResponse

        if not ID.fullmatch(call.at("id")):
            return self.nothing(call)
        if call.visitor.session is None:
            where = f"/api/v1/requests/{call.at('id')}"
            return RedirectResponse(where, 308, {"Cache-Control": "no-store"})
        found = self._found(call)
        if found is None:
            return self.nothing(call)
        id, asked, answer = found
        team = call.visitor.team
        console = None if team else self.object(call, "console", "console")
        proposals = call.view.data(console).get("decided", {}) if console else {}
        shown = page(
            "request",
            call.visitor,
            call.published,
            title="What you handed in" if team else "What you asked for",
            up=[(f"Team {team}", "/team") if team else ("Console", "/console")],
            asked=asked,
            answer=answer,
            id=id,
            decided=proposals.get(id),
            receipt=_receipt(asked, answer) is not None,
            decides=answer is not None and answer.get("kind") in DECIDES,
        )
        if answer is None:  # without scripts a page can still look again
            shown.headers["Refresh"] = "2"
        return shown

    async def receipt(self, call: Call) -> Response:
        """The receipt of a request of the visitor's team, as a file."""
        from starlette.responses import JSONResponse

        found = self._found(call)
        if found is None or (whole := _receipt(*found[1:])) is None:
            return self.nothing(call)
        name = f'attachment; filename="receipt-{found[0][:8]}.json"'
        return JSONResponse(whole, headers={"Cache-Control": "no-store", "Content-Disposition": name})

    async def keys(self, call: Call) -> Response:
        """The public keys with which receipts are signed."""
        from starlette.responses import JSONResponse

        keys = {"front": self.door.sessions.signer.public, "work": published_key(call.published.root)}
        return JSONResponse({"schema_version": 1, **keys}, headers={"Cache-Control": "no-cache"})

    def _found(self, call: Call) -> tuple[str, dict[str, Any] | None, dict[str, Any] | None] | None:
        """A request of the visitor's team, by its id: what the front noted of it, and its answer; None where there is neither."""
        id = call.at("id")
        if not ID.fullmatch(id):
            return None
        known, answer = self.door.sessions.noted(call.visitor.team, id), self.answer(call, id)
        return (id, known[0] if known else None, answer) if known or answer else None


def _receipt(asked: Mapping[str, Any] | None, answer: Mapping[str, Any] | None) -> dict[str, Any] | None:
    arrival = asked["receipt"] if asked else None
    decision = answer.get("receipt") if answer else None
    return receipt(arrival, decision) if arrival or decision else None
