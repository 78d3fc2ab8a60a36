"""Handing in: a run file by a form, or by a program with a token."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import schemas
from runner.exchange.handing_in import Form, Takes, check_fields
from runner.exchange.inbox import Ready, Refused, Request
from runner.exchange.receipts import receipt
from runner.model.errors import Problem, RunnerError
from runner.model.limits import MIB
from runner.web.accepted import summary
from runner.web.door import FORM, Door
from runner.web.limits import NoRoom, Room, content_length
from runner.web.pages import page
from runner.web.routes.api import ROOT, json_answer
from runner.web.routes.base import Routes, text
from runner.web.routes.uploads import BUSY, BUSY_SECONDS
from runner.web.rules import TEAM, Call, Operation, Rule
from runner.web.uploads import Uploads

if TYPE_CHECKING:
    from starlette.responses import Response

Kind = Literal["run-file", "software"]
FIELDS = ("software", "dataset", "scenario", "tag", "description", "method", "paper", "affiliation")
NOT_KEPT = "It could not be kept, and was not taken. Try again later."
_RUN_FILE = Operation("api-taken", takes="inbox-run-file", status=202, also=("423",))
_FIELDS = {"upload": "Id of a complete upload, which holds the parcel.", "software": "Name of the software."}
_SOFTWARE = Operation("api-taken", status=202, query=_FIELDS, also=("423",))
_NO_UPLOAD = Problem("", "upload: there is no complete upload of that id", "send the file first, whole")
_NO_FILE = Problem(
    "", 'the field "file" is missing', "the run file; or the id of a complete upload as upload"
)
_NO_NAME = Problem("", 'the field "name" is missing', "how the file is called, such as run.txt")
_NO_FILE_NAME = Problem("", "the file has no name", "how the file is called, such as run.txt")
LOCK_SECONDS = 5.0  # for which a submission waits until another one of the same upload is over
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
        length = content_length(call.request.headers)
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
        from starlette.datastructures import UploadFile

        async with call.request.form(max_files=1, max_fields=20, max_part_size=65536) as form:
            if not self.door.formed(call.visitor, call.request, text(form, FORM)):
                return self.door.refused(
                    call.visitor, 403, "The form is not one of this session: load the page again."
                )
            file, upload = form.get("file"), text(form, "upload")
            filename = (file.filename or "") if isinstance(file, UploadFile) else text(form, "name")
            name = _PLAIN.sub("-", filename)[-100:].lstrip("._-") or "run.txt"
            said = {field: value for field in FIELDS if (value := text(form, field).strip())}
            data = {"task": call.at("task"), "file": name, **said}
            if not isinstance(file, UploadFile) and upload:
                return await self._submit_upload(call, "run-file", data, upload, named=bool(filename))
            missing = _NO_FILE if not isinstance(file, UploadFile) else None if filename else _NO_FILE_NAME
            if (wrong := self._wrong("run-file", call, data, missing)) is not None:
                return self.door.refused(call.visitor, 400, error=wrong)
            assert isinstance(file, UploadFile)
            return await self._put(call, self._request(call, "run-file", data), file.file, began)

    async def software(self, call: Call) -> Response:
        """Take a software: its parcel is a complete upload of the team."""
        if (no := await self._not_now(call, "software")) is not None:
            return no
        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            said = {name: text(form, name) or call.request.query_params.get(name, "") for name in _FIELDS}
        data = {"task": call.at("task"), "software": said["software"].strip()}
        return await self._submit_upload(call, "software", data, said["upload"])

    async def _submit_upload(
        self, call: Call, kind: Kind, data: dict[str, str], id: str, *, named: bool = True
    ) -> Response:
        """Accept a complete upload of the team; if that was done with the same ``data`` before, answer the same again.

        Args:
            call: Whose submission it is.
            kind: Of the request.
            data: As the kind asks for it.
            id: Of the upload.
            named: False if the file has no name, and needs one.
        """
        # After a lost connection or a killed server the client submits an upload again: that is the same request.
        request = replace(self._request(call, kind, data), id=schemas.digest([kind, id, data])[:32])
        async with self._alone(id) as free:
            if not free:
                return self.door.refused(call.visitor, 423, BUSY, wait=BUSY_SECONDS)
            note = await self.door.on_disk(self.door.accepted.find, request.team, request.id)
            if note is not None:
                return self._answer(call, {**note, "size": note["size"] or self._announced(id)})
            try:
                upload = await self.door.on_disk(self.uploads.get, request.team, id)
                if upload is not None and self.uploads.is_unsettled(upload):
                    upload = await self.door.digest_on_disk(self.uploads.settle, request.team, id)
            except OSError:
                return self.door.refused(call.visitor, 507, NOT_KEPT)
            missing = None if named else _NO_NAME
            if upload is None or upload.arrival is None:
                missing = _NO_UPLOAD
            if (wrong := self._wrong(kind, call, data, missing)) is not None:
                return self.door.refused(call.visitor, 400, error=wrong)
            assert upload is not None
            answer = await self._put(call, request, self.uploads.ready(upload), upload.began)
            if not self.uploads.is_there(upload):
                with suppress(OSError):  # what is left is swept later
                    await self.door.on_disk(self.uploads.forget, upload.id)
            return answer

    async def _put(self, call: Call, request: Request, payload: BinaryIO | Ready, began: str) -> Response:
        """Put a submission into the inbox, and answer where it is."""
        try:
            done = await self.door.on_disk(self.room.put, request, call.visitor.key, payload)
        except NoRoom as full:
            return self.no_room(call, full)
        except Refused:
            return self.door.refused(call.visitor, 413, "Texts or file are too long; nothing was taken.")
        except OSError:
            return self.door.refused(call.visitor, 507, NOT_KEPT)
        what = summary(done.kind, done.data)
        signed = await self.door.on_disk(self.door.accepted.note, done, began, what)
        return self._answer(call, {**asdict(done), "receipt": signed})

    def _answer(self, call: Call, note: Mapping[str, Any]) -> Response:
        """The answer to a submission that is noted as a request: its address for programs, its page for people."""
        from starlette.responses import JSONResponse, RedirectResponse

        if call.visitor.session is not None:
            return RedirectResponse(f"/requests/{note['id']}", 303)
        where = f"{ROOT}/requests/{note['id']}"
        facts: dict[str, Any] = {"request": note["id"], "at": where}
        facts |= {name: note[name] for name in ("arrival", "sha256", "size")}
        if note["receipt"] is not None:
            facts["receipt"] = receipt(note["receipt"], None)
        return JSONResponse(facts, 202, {"Location": where, "Cache-Control": "no-store"})

    @asynccontextmanager
    async def _alone(self, id: str) -> AsyncIterator[bool]:
        """Wait until no other request has an upload, at most :data:`LOCK_SECONDS`; gives False where one still has it."""
        last = time.monotonic() + LOCK_SECONDS
        while True:
            with self.uploads.only(id) as free:
                if free or time.monotonic() > last:
                    yield free
                    return
            await asyncio.sleep(0.05)

    def _announced(self, id: str) -> int:
        """The size of an upload that was submitted, as long as that is known."""
        upload = self.uploads.facts(id)
        return upload.size if upload else 0

    def _request(self, call: Call, kind: Kind, data: Mapping[str, str]) -> Request:
        grant = call.visitor.grant
        assert grant is not None
        return Request.new(kind, grant.account, grant.token, grant.team, self.door.now(), data)

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
        self, kind: Kind, call: Call, data: dict[str, str], missing: Problem | None
    ) -> RunnerError | None:
        """The error that the fields of a hand-in are, with what of its file is ``missing``; None for good ones."""
        takes = self._takes(call) if kind == "run-file" else None
        more = [missing] if missing else []
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
