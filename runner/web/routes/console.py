"""The console of organisers and assistants: what waits, what needs somebody, what people did; and what an organiser proposes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from runner.exchange.inbox import Inbox, Refused, Request
from runner.web.door import FORM, Door
from runner.web.pages import page
from runner.web.routes.base import Routes, text
from runner.web.rules import CONSOLE, ORGANISER, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

FIELDS = ("action", "task", "dataset", "run", "role")


class Console(Routes):
    """What those see who look after a task."""

    def __init__(self, door: Door, inbox: Inbox) -> None:
        super().__init__(door)
        self.inbox = inbox

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/console", self.console, CONSOLE),
            Rule("POST", "/console/propose", self.propose, ORGANISER, "manage"),
        )

    async def console(self, call: Call) -> Response:
        """The console."""
        found = self.object(call, "console", "console")
        asked = [
            one | {"answer": answer}
            for one in self.door.sessions.noted(None)
            if (answer := self.answer(call, one["id"])) is None or not answer["accepted"]
        ]
        return page(
            "console",
            call.visitor,
            call.published,
            title="Console",
            live=self.live(call, "/console") if found else None,
            shown=call.view.data(found) if found else None,
            age=call.published.age(),
            asked=asked[:10] if call.visitor.role == "organiser" else [],
            field=FORM,
        )

    async def propose(self, call: Call) -> Response:
        """Take a proposal: work keeps it, and nothing happens before somebody approves it there."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse, RedirectResponse

        async with call.request.form(max_files=0, max_fields=8, max_part_size=4096) as form:
            given = text(form, FORM)
            data = {name: value for name in FIELDS if (value := text(form, name).strip())}
        if not self.door.formed(call.visitor, call.request, given):
            return self.door.refused(
                call.visitor, 403, "The form is not one of this session: load the page again."
            )
        if data.get("action") == "publish":  # one choice on the page
            data["task"], _, data["dataset"] = data.get("dataset", "").partition("/")
        grant = call.visitor.grant
        if grant is None:
            return self.nothing(call)
        arrival = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        asked = Request.new("propose", grant.account, grant.token, None, arrival, data)
        try:
            done = await run_in_threadpool(self.inbox.put, asked, call.visitor.key)
        except (Refused, OSError):
            return self.door.refused(
                call.visitor, 507, "It could not be kept, and was not taken. Try again later."
            )
        self.noted(done, arrival, " ".join(data.values()))
        if call.visitor.session is None:
            facts = {"request": done.id, "arrival": arrival, "at": "/console"}
            return JSONResponse(facts, 202, {"Location": "/console", "Cache-Control": "no-store"})
        return RedirectResponse("/console", 303)
