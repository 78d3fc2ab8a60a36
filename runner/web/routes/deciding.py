"""What organisers and assistants decide: at once for what discloses nothing and gives nobody power, as a proposal for the rest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from runner.web.door import FORM, Door
from runner.web.limits import Room
from runner.web.routes.base import Routes, text
from runner.web.rules import CONSOLE, ORGANISER, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

RUN = re.compile(r"[A-Za-z0-9_.-]{1,200}")
MOST_TEXT = 500  # characters of a reason


class Deciding(Routes):
    """Wishes of those who look after a task; work looks up whether they may, and does each once."""

    def __init__(self, door: Door, room: Room) -> None:
        super().__init__(door)
        self.room = room

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("POST", "/runs/{run}/review", self.review, CONSOLE, "manage"),
            Rule("POST", "/runs/{run}/rerun", self.rerun, CONSOLE, "manage"),
            Rule("POST", "/console/team", self.team, ORGANISER, "manage"),
            Rule("POST", "/console/withdraw", self.withdraw, ORGANISER, "manage"),
            Rule("POST", "/console/propose", self.propose, ORGANISER, "manage"),
        )

    async def review(self, call: Call) -> Response:
        """Approve or flag a run, or take that back."""
        return await self._ask(call, "review", ("state", "reason", "to"))

    async def rerun(self, call: Call) -> Response:
        """Have a run executed once more."""
        return await self._ask(call, "rerun", ("reason",))

    async def team(self, call: Call) -> Response:
        """Close the account of a team, or open it again."""
        return await self._ask(call, "team", ("team", "action", "reason"))

    async def withdraw(self, call: Call) -> Response:
        """Withdraw a submission of any team."""
        return await self._ask(call, "withdraw-any", ("submission", "reason"))

    async def propose(self, call: Call) -> Response:
        """Take a proposal: work keeps it, and nothing happens before somebody approves it there."""
        fields = ("action", "task", "dataset", "run", "stream", "lines", "role", "account", "reason")
        return await self._ask(call, "propose", fields)

    async def _ask(self, call: Call, kind: str, fields: tuple[str, ...]) -> Response:
        """Put what a form says into the inbox; it is answered on the request's page."""
        async with call.request.form(max_files=0, max_fields=10, max_part_size=4096) as form:
            given = text(form, FORM)
            data: dict[str, Any] = {
                name: said[:MOST_TEXT] for name in fields if (said := text(form, name).strip())
            }
        if not self.door.formed(call.visitor, call.request, given):
            why = "The form is not one of this session: load the page again."
            return self.door.refused(call.visitor, 403, why)
        if "run" in call.request.path_params:
            if not RUN.fullmatch(call.at("run")):
                return self.nothing(call)
            data["run"] = call.at("run")
        if data.get("action") == "publish":  # one choice on the page
            data["task"], _, data["dataset"] = data.get("dataset", "").partition("/")
        return await self.put(call, self.room, kind, data, f"{WORDS[kind]} {_words(data)}")


WORDS = {
    **{"review": "review", "rerun": "execute again", "team": "team", "withdraw-any": "withdraw"},
    "propose": "propose",
}


def _words(data: dict[str, Any]) -> str:
    """What a form says, in a line: without reasons, which may be long."""
    return " ".join(str(value) for name, value in data.items() if name not in ("reason", "to"))
