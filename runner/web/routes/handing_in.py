"""Handing in: a run file by a form, or by a program with a token."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from runner.exchange.handing_in import Form, Takes, check_fields
from runner.exchange.inbox import Ready, Refused, Request
from runner.exchange.receipts import receipt
from runner.model.errors import Problem, RunnerError
from runner.model.limits import MIB
from runner.web.door import FORM, Door
from runner.web.limits import NoRoom, Room
from runner.web.pages import page
from runner.web.routes.api import ROOT, json_answer
from runner.web.routes.base import Routes, text
from runner.web.rules import TEAM, Call, Operation, Rule
from runner.web.uploads import Upload, Uploads

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.responses import Response

FIELDS = ("software", "dataset", "scenario", "tag", "description", "method", "paper", "affiliation")
NOT_KEPT = "It could not be kept, and was not taken. Try again later."
_RUN_FILE = Operation("api-taken", takes="inbox-run-file", status=202)
_FIELDS = {"upload": "Id of a complete upload, which holds the parcel.", "software": "Name of the software."}
_SOFTWARE = Operation("api-taken", status=202, query=_FIELDS)
_NO_UPLOAD = Problem("", "upload: there is no complete upload of that id", "send the file first, whole")
LARGE = (
    16 * MIB
)  # bytes of a form that is not taken where it would take what stays free of the disk: what is smaller is
_OF_FORMS = ("waiting", "waiting-bytes", "forms")  # the bounds that a form meets
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


class HandingIn(Routes):
    """What is handed in, and kept before it is answered."""

    def __init__(self, door: Door, uploads: Uploads, room: Room) -> None:
        super().__init__(door)
        self.uploads, self.waiting, self.room = uploads, door.waiting, room

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
            Rule("GET", f"{ROOT}/bounds", self.bounds, TEAM, operation=Operation("api-bounds")),
        )

    async def hand_in_form(self, call: Call) -> Response:
        """The form by which a run file is handed in."""
        found = self.object(call, f"tasks/{call.at('task')}", "task")
        if found is None:
            return self.nothing(call)
        try:
            Takes.published(call.view.data(found)).check("run files")
        except RunnerError as error:
            return self.door.refused(call.visitor, 404, error=error)
        left = self.object(call, f"standing/{call.at('task')}", "standing")
        bounds = await self.door.on_disk(list, self.room.bounds(str(call.visitor.team)))
        return page(
            "hand_in",
            call.visitor,
            call.published,
            title="Hand in a run file",
            up=[(found.title, f"/tasks/{call.at('task')}")],
            task=call.view.data(found),
            team=call.view.data(left)["team"] if left else None,
            bounds=[one for one in bounds if one.id in _OF_FORMS],
            field=FORM,
        )

    async def hand_in(self, call: Call) -> Response:
        """Take a run file: it is in the inbox, on the disk, before this answers."""
        if (no := await self._not_now(call, "run files")) is not None:
            return no
        began, team = self.door.now(), call.visitor.team
        if self.room.forms[team] >= self.waiting.forms:
            why = (
                f"{self.waiting.forms} files of your team are on their way: send the next when one is there."
            )
            return self.door.refused(call.visitor, 429, why, wait=10)
        length = int(call.request.headers.get("content-length", "0"))
        try:
            if length > LARGE:  # it is on the disk twice for a while: as it comes, and in the inbox
                self.uploads.keep_free(2 * length)
        except OSError:
            return self.door.refused(call.visitor, 507, NOT_KEPT)
        self.room.forms[team] += 1
        try:
            return await self._formed(call, began)
        finally:
            self.room.forms[team] -= 1

    async def _formed(self, call: Call, began: str) -> Response:
        """Take the form of a run file."""
        from starlette.responses import RedirectResponse

        async with call.request.form(max_files=1, max_fields=20, max_part_size=65536) as form:
            if not self.door.formed(call.visitor, call.request, text(form, FORM)):
                return self.door.refused(
                    call.visitor, 403, "The form is not one of this session: load the page again."
                )
            (sent, filename, upload), grant = self._sent(call, form), call.visitor.grant
            name = _PLAIN.sub("-", filename)[-100:].lstrip("._-") or "run.txt"
            said = {field: value for field in FIELDS if (value := text(form, field).strip())}
            data = {"task": call.at("task"), "file": name, **said}
            if (wrong := self._wrong("run-file", call, data, _missing(form, sent, filename))) is not None:
                return self.door.refused(call.visitor, 400, error=wrong)
            assert grant is not None and sent is not None
            arrival = self.door.now()
            asked = Request.new("run-file", grant.account, grant.token, grant.team, arrival, data)
            try:
                done = await self.door.on_disk(self.room.put, asked, call.visitor.key, sent)
            except NoRoom as full:
                return self.no_room(call, full)
            except Refused:
                return self.door.refused(call.visitor, 413, "Texts or file are too long; nothing was taken.")
            except OSError:
                return self.door.refused(call.visitor, 507, NOT_KEPT)
        if upload is not None:
            await self.door.on_disk(self.uploads.forget, upload.id)
            began = upload.began
        what = f"{data.get('software', '')} for {call.at('task')}: {name}"
        signed = await self.noted(done, began, what)
        where = f"{ROOT if call.visitor.session is None else ''}/requests/{done.id}"
        if call.visitor.session is None:
            return _taken(done, where, signed)
        return RedirectResponse(where, 303)

    async def software(self, call: Call) -> Response:
        """Take a software: its parcel is a complete upload of the team."""
        if (no := await self._not_now(call, "software")) is not None:
            return no
        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            said = {name: text(form, name) or call.request.query_params.get(name, "") for name in _FIELDS}
        upload, grant = self.uploads.whole(call.visitor.team, said["upload"]), call.visitor.grant
        data = {"task": call.at("task"), "software": said["software"].strip()}
        if (wrong := self._wrong("software", call, data, [_NO_UPLOAD] if upload is None else ())) is not None:
            return self.door.refused(call.visitor, 400, error=wrong)
        assert upload is not None and grant is not None
        asked = Request.new("software", grant.account, grant.token, grant.team, self.door.now(), data)
        try:
            done = await self.door.on_disk(self.room.put, asked, call.visitor.key, self.uploads.ready(upload))
        except NoRoom as full:
            return self.no_room(call, full)
        except (Refused, OSError):
            return self.door.refused(call.visitor, 507, NOT_KEPT)
        await self.door.on_disk(self.uploads.forget, upload.id)
        signed = await self.noted(done, upload.began, f"{data['software']} for {call.at('task')}: a software")
        return _taken(done, f"{ROOT}/requests/{done.id}", signed)

    async def bounds(self, call: Call) -> Response:
        """How much of every bound the team has used: what waits, and what it is sending."""
        found = await self.door.on_disk(list, self.room.bounds(str(call.visitor.team)))
        return json_answer(call, {"bounds": [asdict(one) for one in found]})

    def _takes(self, call: Call) -> Takes | None:
        """What the task takes, as far as it is published; None where it is not: work knows."""
        found = self.object(call, f"tasks/{call.at('task')}", "task")
        return None if found is None else Takes.published(call.view.data(found))

    async def _not_now(self, call: Call, given: Form) -> Response | None:
        """The answer to a hand-in that is not taken whatever it holds: the task takes others, or too many wait. None otherwise."""
        try:
            if (takes := self._takes(call)) is not None:
                takes.check(given)
        except RunnerError as error:
            return self.door.refused(call.visitor, 400, error=error)
        return await self._full(call)

    def _wrong(
        self, kind: Literal["run-file", "software"], call: Call, data: dict[str, str], more: Iterable[Problem]
    ) -> RunnerError | None:
        """The error that the fields of a hand-in are, with ``more`` problems; None for good ones."""
        takes = self._takes(call) if kind == "run-file" else None
        try:
            check_fields(kind, data, [*more, *(takes.run_file_problems(data) if takes else ())])
        except RunnerError as error:
            return error
        return None

    async def _full(self, call: Call) -> Response | None:
        """The answer to a team of which so many hand-ins wait that others would lose their turn; None where there is room."""
        try:
            await self.door.on_disk(self.room.check, call.visitor.team)
        except NoRoom as full:
            return self.no_room(call, full)
        except OSError:
            return self.door.refused(call.visitor, 507, NOT_KEPT)
        return None

    def _sent(self, call: Call, form: FormData) -> tuple[BinaryIO | Ready | None, str, Upload | None]:
        """The file that came with a form, or the complete upload of the team that it names, and how the file is called."""
        from starlette.datastructures import UploadFile

        if isinstance(sent := form.get("file"), UploadFile):
            return sent.file, sent.filename or "", None
        upload = self.uploads.whole(call.visitor.team, text(form, "upload"))
        return (None if upload is None else self.uploads.ready(upload)), text(form, "name"), upload


def _missing(form: FormData, sent: object, filename: str) -> Iterator[Problem]:
    """What of the file itself is not in a form."""
    if sent is None and text(form, "upload"):
        yield _NO_UPLOAD
    elif sent is None:
        yield Problem(
            "", 'the field "file" is missing', "the run file; or the id of a complete upload as upload"
        )
    elif not filename:
        yield Problem(
            "",
            'the field "name" is missing' if text(form, "upload") else "the file has no name",
            "how the file is called, such as run.txt",
        )


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
