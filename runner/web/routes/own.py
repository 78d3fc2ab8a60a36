"""What a team asks for its own submissions, and the logs of its runs: from a form, and under ``/api/v1``."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from runner.exchange.inbox import Inbox, Refused, Request
from runner.exchange.receipts import receipt
from runner.web.door import FORM, Door
from runner.web.routes.api import ROOT, tagged
from runner.web.routes.base import Routes, text
from runner.web.rules import SIGNED_IN, TEAM, Call, Operation, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

SUBMISSION = re.compile(r"[A-Za-z0-9_.-]{1,120}")
MOST_REASON = 500  # characters
_REASON = {"reason": "Why, for the event log; at most 500 characters."}


class Own(Routes):
    """What a team decides itself, and what its softwares wrote."""

    def __init__(self, door: Door, inbox: Inbox) -> None:
        super().__init__(door)
        self.inbox = inbox

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        one, asked = "/submissions/{submission}", Operation("api-asked", status=202)
        why = Operation("api-asked", status=202, query=_REASON)
        log = Operation("run-log")
        return (
            Rule("GET", "/runs/{run}/log", self.log, SIGNED_IN),
            Rule("POST", f"{one}/withdraw", self.withdraw, TEAM, "hand-in"),
            Rule("POST", f"{one}/choose", self.choose, TEAM, "hand-in"),
            Rule("GET", f"{ROOT}/runs/{{run}}/log", self.log, SIGNED_IN, operation=log),
            Rule("POST", f"{ROOT}{one}/withdraw", self.withdraw, TEAM, "hand-in", operation=why),
            Rule("POST", f"{ROOT}{one}/choose", self.choose, TEAM, "hand-in", operation=asked),
        )

    async def log(self, call: Call) -> Response:
        """The log of a run, where its team may read it: stdout and stderr by line."""
        from starlette.responses import PlainTextResponse

        found = self.object(call, f"logs/{call.at('run')}", "log")
        if found is None:
            return self.nothing(call)
        if call.visitor.program:
            return tagged(call, lambda: call.view.read(found.data), found.data[:32])
        data = call.view.data(found)
        lines = [line for stream in ("stdout", "stderr") for line in data[stream]]
        return PlainTextResponse("".join(f"{line}\n" for line in lines), 200, {"Cache-Control": "no-store"})

    async def withdraw(self, call: Call) -> Response:
        """Ask that a submission of the team be withdrawn."""
        return await self._ask(call, "withdraw", ("reason",))

    async def choose(self, call: Call) -> Response:
        """Ask that a submission of the team be the one that counts, where a table says ``pick: chosen``."""
        return await self._ask(call, "choose", ())

    async def _ask(self, call: Call, kind: str, fields: tuple[str, ...]) -> Response:
        """Put a request about a submission into the inbox; whose it is, work looks up."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse, RedirectResponse

        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            given = text(form, FORM)
            said = {name: text(form, name) or call.request.query_params.get(name, "") for name in fields}
        submission, grant = call.at("submission"), call.visitor.grant
        if not self.door.formed(call.visitor, call.request, given):
            return self.door.refused(
                call.visitor, 403, "The form is not one of this session: load the page again."
            )
        if grant is None or not SUBMISSION.fullmatch(submission):
            return self.nothing(call)
        more = {name: value[:MOST_REASON] for name, value in said.items() if value}
        data: dict[str, Any] = {"submission": submission, **more}
        arrival = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        asked = Request.new(kind, grant.account, grant.token, grant.team, arrival, data)
        try:
            done = await run_in_threadpool(self.inbox.put, asked, call.visitor.key)
        except Refused:
            return self.door.refused(call.visitor, 413, "The text is too long; nothing was taken.")
        except OSError:
            return self.door.refused(
                call.visitor, 507, "It could not be kept, and was not taken. Try again later."
            )
        signed = self.noted(done, arrival, f"{kind} {submission}")
        where = f"{ROOT if call.visitor.program else ''}/requests/{done.id}"
        if call.visitor.session is None:
            facts = {"request": done.id, "arrival": arrival, "at": where, "receipt": receipt(signed, None)}
            return JSONResponse(facts, 202, {"Location": where, "Cache-Control": "no-store"})
        return RedirectResponse(where, 303)
