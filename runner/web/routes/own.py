"""What a team asks for its own submissions, and the logs of its runs: from a form, and under ``/api/v1``."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import schemas
from runner.exchange.tails import Tail
from runner.web.door import FORM, Door
from runner.web.limits import Room
from runner.web.routes.api import ROOT, tagged
from runner.web.routes.base import Routes, text
from runner.web.rules import SIGNED_IN, TEAM, Call, Operation, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

SUBMISSION = re.compile(r"[A-Za-z0-9_.-]{1,120}")
MOST_REASON = 500  # characters
MOST_MAIL = 100
_NOTICES = {
    "about": "What the team wants to be told: done, held, deadline, with commas between; empty: no mail.",
    "mail": "Where to; left out: its contact.",
}
_REASON = {"reason": "Why, for the event log; at most 500 characters."}


def _running(tail: Tail) -> dict[str, Any]:
    """The log of a run that goes on: both streams in one, as the sandbox writes them, without what came before its end."""
    lines = tail.text.splitlines()
    if tail.first:
        lines[:1] = [f"[cut: the first {tail.first:,} characters and the rest of this line]"]
    return {"stdout": lines, "stderr": [], "running": True}


class Own(Routes):
    """What a team decides itself, and what its softwares wrote."""

    def __init__(self, door: Door, room: Room) -> None:
        super().__init__(door)
        self.room = room

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        one, asked = "/submissions/{submission}", Operation("api-asked", status=202)
        why = Operation("api-asked", status=202, query=_REASON)
        log, notices = Operation("run-log"), Operation("api-asked", status=202, query=_NOTICES)
        return (
            Rule("GET", "/runs/{run}/log", self.log, SIGNED_IN),
            Rule("GET", "/runs/{run}/ir-metadata.yml", self.metadata, SIGNED_IN),
            Rule("POST", f"{one}/withdraw", self.withdraw, TEAM, "hand-in"),
            Rule("POST", f"{one}/choose", self.choose, TEAM, "hand-in"),
            Rule("POST", "/notices", self.notices, TEAM, "hand-in"),
            Rule("GET", f"{ROOT}/notices", self.told, TEAM, operation=Operation("notices-of-team")),
            Rule("POST", f"{ROOT}/notices", self.notices, TEAM, "hand-in", operation=notices),
            Rule("GET", f"{ROOT}/runs/{{run}}/log", self.log, SIGNED_IN, operation=log),
            Rule("POST", f"{ROOT}{one}/withdraw", self.withdraw, TEAM, "hand-in", operation=why),
            Rule("POST", f"{ROOT}{one}/choose", self.choose, TEAM, "hand-in", operation=asked),
        )

    async def log(self, call: Call) -> Response:
        """The log of a run, where its team may read it: stdout and stderr by line; of a run that goes on its end."""
        from starlette.responses import PlainTextResponse

        found = self.object(call, f"logs/{call.at('run')}", "log")
        # While an attempt goes on, its log is shown and not that of an earlier one, as on the page of the run.
        tail = self.writing(call, call.at("run"))
        if found is None and tail is None:
            return self.nothing(call)
        if found is not None and tail is None:
            if call.visitor.program:
                return tagged(call, lambda: call.view.read(found.data), found.data[:32])
            data = call.view.data(found)
        else:
            data = _running(tail or Tail())
            if call.visitor.program:
                body = schemas.canonical(data)
                return tagged(call, lambda: body, hashlib.sha256(body).hexdigest()[:32])
        lines = [line for stream in ("stdout", "stderr") for line in data[stream]]
        return PlainTextResponse("".join(f"{line}\n" for line in lines), 200, {"Cache-Control": "no-store"})

    async def metadata(self, call: Call) -> Response:
        """The ir-metadata.yml of a run, as a file, for whoever may have its files."""
        from starlette.responses import Response

        found = self.object(call, f"metadata/{call.at('run')}", "metadata")
        if found is None:
            return self.nothing(call)
        keep = {"Cache-Control": "no-store", "Content-Disposition": 'attachment; filename="ir-metadata.yml"'}
        return Response(call.view.data(found)["yaml"], 200, keep, "application/yaml")

    async def withdraw(self, call: Call) -> Response:
        """Ask that a submission of the team be withdrawn."""
        return await self._ask(call, "withdraw", ("reason",))

    async def choose(self, call: Call) -> Response:
        """Ask that a submission of the team be the one that counts, where a table says ``pick: chosen``."""
        return await self._ask(call, "choose", ())

    async def told(self, call: Call) -> Response:
        """What the team is told by mail."""
        found = self.object(call, "notices", "notices")
        if found is None:
            return self.nothing(call)
        return tagged(call, lambda: call.view.read(found.data), found.data[:32])

    async def notices(self, call: Call) -> Response:
        """Ask that the team be told what it wants, or nothing, and where to."""
        query = call.request.query_params
        async with call.request.form(max_files=0, max_fields=8, max_part_size=4096) as form:
            given = text(form, FORM)
            about = [one for one in form.getlist("about") if isinstance(one, str)]
            mail = (text(form, "mail") or query.get("mail", "")).strip()
        about = sorted({one for one in about or query.get("about", "").split(",") if one})
        data: dict[str, Any] = {"about": about, **({"mail": mail[:MOST_MAIL]} if mail else {})}
        said = f"notices: {', '.join(about) or 'none'}"
        if not self.door.formed(call.visitor, call.request, given):
            return self.door.refused(
                call.visitor, 403, "The form is not one of this session: load the page again."
            )
        return await self.put(call, self.room, "notices", data, said[:MOST_MAIL])

    async def _ask(self, call: Call, kind: str, fields: tuple[str, ...]) -> Response:
        """Put a request about a submission into the inbox; whose it is, work looks up."""
        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            given = text(form, FORM)
            said = {name: text(form, name) or call.request.query_params.get(name, "") for name in fields}
        submission = call.at("submission")
        if not self.door.formed(call.visitor, call.request, given):
            return self.door.refused(
                call.visitor, 403, "The form is not one of this session: load the page again."
            )
        if not SUBMISSION.fullmatch(submission):
            return self.nothing(call)
        more = {name: value[:MOST_REASON] for name, value in said.items() if value}
        data: dict[str, Any] = {"submission": submission, **more}
        return await self.put(call, self.room, kind, data, f"{kind} {submission}")
