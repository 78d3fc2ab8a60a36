"""Handing in: a run file by a form, or by a program with a token."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, BinaryIO

from runner.exchange.inbox import Inbox, Ready, Refused, Request
from runner.exchange.receipts import receipt
from runner.model.clock import SystemClock, stamp
from runner.web.door import FORM, Door
from runner.web.pages import page
from runner.web.routes.api import ROOT
from runner.web.routes.base import Routes, text
from runner.web.rules import TEAM, Call, Operation, Rule
from runner.web.uploads import Upload, Uploads

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.responses import Response

FIELDS = ("software", "dataset", "scenario", "tag", "description", "method", "paper", "affiliation")
NOT_KEPT = "It could not be kept, and was not taken. Try again later."
MOST_WAITING = 100  # hand-ins of a team that are not decided, at a time
_KNOWN = 1000  # of the requests of a team, the newest that are looked at for that
_RUN_FILE = Operation("api-taken", takes="inbox-run-file", status=202)
_FIELDS = {"upload": "Id of a complete upload, which holds the parcel.", "software": "Name of the software."}
_SOFTWARE = Operation("api-taken", status=202, query=_FIELDS)
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


class HandingIn(Routes):
    """What is handed in, and kept before it is answered."""

    def __init__(self, door: Door, inbox: Inbox, uploads: Uploads) -> None:
        super().__init__(door)
        self.inbox, self.uploads = inbox, uploads

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/tasks/{task}/hand-in", self.hand_in_form, TEAM, "hand-in"),
            Rule("POST", "/tasks/{task}/hand-in", self.hand_in, TEAM, "hand-in", most=None),
            Rule(
                "POST",
                f"{ROOT}/tasks/{{task}}/run-files",
                self.hand_in,
                TEAM,
                "hand-in",
                operation=_RUN_FILE,
                most=None,
            ),
            Rule(
                "POST",
                f"{ROOT}/tasks/{{task}}/softwares",
                self.software,
                TEAM,
                "hand-in",
                operation=_SOFTWARE,
            ),
        )

    async def hand_in_form(self, call: Call) -> Response:
        """The form by which a run file is handed in."""
        found = self.object(call, f"tasks/{call.at('task')}", "task")
        if found is None:
            return self.nothing(call)
        left = self.object(call, f"standing/{call.at('task')}", "standing")
        return page(
            "hand_in",
            call.visitor,
            call.published,
            title="Hand in a run file",
            up=[(found.title, f"/tasks/{call.at('task')}")],
            task=call.view.data(found),
            team=call.view.data(left)["team"] if left else None,
            field=FORM,
        )

    async def hand_in(self, call: Call) -> Response:
        """Take a run file: it is in the inbox, on the disk, before this answers."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import RedirectResponse

        if (full := self._full(call)) is not None:
            return full
        began = _now()
        async with call.request.form(max_files=1, max_fields=20, max_part_size=65536) as form:
            if not self.door.formed(call.visitor, call.request, text(form, FORM)):
                return self.door.refused(
                    call.visitor, 403, "The form is not one of this session: load the page again."
                )
            (sent, filename, upload), grant = self._sent(call, form), call.visitor.grant
            if sent is None or grant is None or not filename:
                return self.door.refused(call.visitor, 400, "No file was sent: choose a run file.")
            name = _PLAIN.sub("-", filename)[-100:].lstrip("._-") or "run.txt"
            said = {field: value for field in FIELDS if (value := text(form, field).strip())}
            data = {"task": call.at("task"), "file": name, **said}
            arrival = _now()
            asked = Request.new("run-file", grant.account, grant.token, grant.team, arrival, data)
            try:
                done = await run_in_threadpool(self.inbox.put, asked, call.visitor.key, sent)
            except Refused:
                return self.door.refused(call.visitor, 413, "Texts or file are too long; nothing was taken.")
            except OSError:
                return self.door.refused(call.visitor, 507, NOT_KEPT)
        if upload is not None:
            self.uploads.forget(upload.id)
            began = upload.began
        what = f"{data.get('software', '')} for {call.at('task')}: {name}"
        signed = self.noted(done, began, what)
        where = f"{ROOT if call.visitor.program else ''}/requests/{done.id}"
        if call.visitor.session is None:
            return _taken(done, where, signed)
        return RedirectResponse(where, 303)

    async def software(self, call: Call) -> Response:
        """Take a software: its parcel is a complete upload of the team."""
        from starlette.concurrency import run_in_threadpool

        if (full := self._full(call)) is not None:
            return full
        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            said = {name: text(form, name) or call.request.query_params.get(name, "") for name in _FIELDS}
        upload, grant = self.uploads.whole(call.visitor.team, said["upload"]), call.visitor.grant
        if upload is None or grant is None:
            return self.door.refused(
                call.visitor, 400, "There is no complete upload of that id: send the parcel first."
            )
        data = {"task": call.at("task"), "software": said["software"]}
        asked = Request.new("software", grant.account, grant.token, grant.team, _now(), data)
        try:
            done = await run_in_threadpool(
                self.inbox.put, asked, call.visitor.key, self.uploads.ready(upload)
            )
        except (Refused, OSError):
            return self.door.refused(call.visitor, 507, NOT_KEPT)
        self.uploads.forget(upload.id)
        signed = self.noted(done, upload.began, f"{said['software']} for {call.at('task')}: a software")
        return _taken(done, f"{ROOT}/requests/{done.id}", signed)

    def _full(self, call: Call) -> Response | None:
        """The answer to a team of which so many hand-ins wait that others would lose their turn; None where there is room."""
        try:
            there = {id for _, id in self.inbox.waiting()}
        except OSError:
            return self.door.refused(call.visitor, 507, NOT_KEPT)
        if len(there) < MOST_WAITING:
            return None
        known = self.door.sessions.noted(call.visitor.team, most=_KNOWN)
        waiting = [one for one in known if one["id"] in there and self.answer(call, one["id"]) is None]
        if len(waiting) < MOST_WAITING:
            return None
        why = (
            f"{MOST_WAITING} hand-ins of your team wait to be looked at: send the next when some are decided."
        )
        return self.door.refused(call.visitor, 429, why, wait=60)

    def _sent(self, call: Call, form: FormData) -> tuple[BinaryIO | Ready | None, str, Upload | None]:
        """The file that came with a form, or the complete upload of the team that it names, and how the file is called."""
        from starlette.datastructures import UploadFile

        if isinstance(sent := form.get("file"), UploadFile):
            return sent.file, sent.filename or "", None
        upload = self.uploads.whole(call.visitor.team, text(form, "upload"))
        return (None if upload is None else self.uploads.ready(upload)), text(form, "name"), upload


def _taken(done: Request, where: str, signed: dict[str, Any]) -> Response:
    """The answer to a program whose hand-in is kept."""
    from starlette.responses import JSONResponse

    facts: dict[str, Any] = {
        "request": done.id,
        "arrival": done.arrival,
        "sha256": done.sha256,
        "size": done.size,
    }
    facts |= {"at": where, "receipt": receipt(signed, None)}
    return JSONResponse(facts, 202, {"Location": where, "Cache-Control": "no-store"})


def _now() -> str:
    return stamp(SystemClock().now())
