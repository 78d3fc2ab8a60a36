"""The console of organisers and assistants: what waits, what needs somebody, what people did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.web.pages import page
from runner.web.routes.base import Routes
from runner.web.rules import CONSOLE, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response


class Console(Routes):
    """What those see who look after a task."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (Rule("GET", "/console", self.console, CONSOLE),)

    async def console(self, call: Call) -> Response:
        """The console."""
        found = self.object(call, "console", "console")
        data = call.view.data(found) if found else None
        live = self.live(call, "/console") if found else None
        age = call.published.age()
        return page(
            "console", call.visitor, call.published, title="Console", live=live, shown=data, age=age, up=()
        )
