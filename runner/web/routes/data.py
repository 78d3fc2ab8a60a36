"""The data of a task that are downloaded: what there is, the files in ranges, and the terms that open them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from runner.exchange.pieces import Pieces
from runner.exchange.published import FILE, Object
from runner.web.caching import matches
from runner.web.door import FORM, Door
from runner.web.limits import Room, whole_number
from runner.web.routes.api import ROOT, tagged
from runner.web.routes.base import Routes, text
from runner.web.rules import EVERYBODY, TEAM, Call, Operation, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_TERMS = {
    "version": "Version of the terms that the team accepts.",
    "sha256": "SHA-256 of their text: both as the list of the data has them.",
}
_SENT = {
    "Range": "One range of bytes, such as bytes=1000-; of several the whole file is sent.",
    "If-Range": "The entity tag of what is there already: of another file the whole is sent.",
}
_TOLD = {"Content-Disposition": "The name of the file.", "Accept-Ranges": "bytes"}


class Data(Routes):
    """What of a task's data was published to whoever asks."""

    def __init__(self, door: Door, room: Room) -> None:
        super().__init__(door)
        self.room = room

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        task, file = "/tasks/{task}", "/tasks/{task}/data/{dataset}/{side}/{name:path}"
        sent = Operation(
            media_given="application/octet-stream", may_send=_SENT, tells=_TOLD, also=("206", "416")
        )
        accepts = Operation("api-asked", status=202, query=_TERMS)
        return (
            Rule("GET", file, self.file, EVERYBODY),
            Rule("POST", f"{task}/terms", self.accept, TEAM, "hand-in"),
            Rule("GET", f"{ROOT}{task}/data", self.listed, EVERYBODY, operation=Operation("task-data")),
            Rule("GET", f"{ROOT}{file}", self.file, EVERYBODY, operation=sent),
            Rule("POST", f"{ROOT}{task}/terms", self.accept, TEAM, "hand-in", operation=accepts),
        )

    async def listed(self, call: Call) -> Response:
        """What of the data of a task may be downloaded, with size and SHA-256, and the terms for it."""
        found = self.object(call, f"data/{call.at('task')}", "data")
        if found is None:
            return self.nothing(call)
        return tagged(call, lambda: call.view.read(found.data), found.data[:32])

    async def file(self, call: Call) -> Response:
        """A file of the data, or a range of it; its entity tag is its SHA-256."""
        path = "/".join(call.at(part) for part in ("task", "dataset", "side", "name"))
        found = self.object(call, f"data/{path}", FILE)
        return self.nothing(call) if found is None else _sent(call, found)

    async def accept(self, call: Call) -> Response:
        """Accept the terms of a task for the team, in the version that was read."""
        query = call.request.query_params
        async with call.request.form(max_files=0, max_fields=8, max_part_size=4096) as form:
            given, accepted = text(form, FORM), text(form, "accepted")
            said = {name: text(form, name) or query.get(name, "") for name in _TERMS}
        if not self.door.formed(call.visitor, call.request, given):
            why = "The form is not one of this session: load the page again."
            return self.door.refused(call.visitor, 403, why)
        task = call.at("task")
        found = self.object(call, f"data/{task}", "data")
        terms = call.view.data(found)["terms"] if found else None
        if terms is None:
            return self.nothing(call)
        if call.visitor.session is not None and not accepted:
            return self.door.refused(call.visitor, 400, "Tick that the team accepts the terms.")
        if said != {"version": terms["version"], "sha256": terms["sha256"]}:
            why = "These are not the terms as they are now: read them again on the page of the task."
            return self.door.refused(call.visitor, 400, why)
        data = {"task": task, "terms_version": said["version"], "terms_sha256": said["sha256"]}
        return await self.put(call, self.room, "terms", data, f"terms {said['version']} of {task}")


def _sent(call: Call, found: Object) -> Response:
    """A file in pieces, or what is asked for of it, without holding more than a block of it."""
    from starlette.responses import Response, StreamingResponse

    data = call.view.data(found)
    file, root = Pieces.read(data), call.published.root
    kept = "no-cache" if call.visitor.grant is None else "private, no-cache"
    tag = file.sha256
    headers: dict[str, str] = {"ETag": f'"{tag}"', "Cache-Control": kept, "Accept-Ranges": "bytes"}
    if known := matches(call.request, tag):
        return Response(None, 304, {**headers, "ETag": known})
    span = _span(call, file.size, tag)
    if span is None:
        return Response(None, 416, {**headers, "Content-Range": f"bytes */{file.size}"})
    start, end = span
    part = span != (0, file.size)
    headers |= {
        "Content-Length": str(end - start),
        "Content-Disposition": f'attachment; filename="{_plain(data["name"])}"',
        **({"Content-Range": f"bytes {start}-{end - 1}/{file.size}"} if part else {}),
    }
    file.check(root, start, end)
    status, media = 206 if part else 200, "application/octet-stream"
    if call.request.method == "HEAD":
        return Response(None, status, headers, media)
    return StreamingResponse(file.blocks(root, start, end), status, headers, media)


def _span(call: Call, size: int, tag: str) -> tuple[int, int] | None:
    """Which bytes are asked for, from and up to (not included); all where that cannot be told or another file is meant, None for
    none that are there."""
    asked = _RANGE.fullmatch(call.request.headers.get("range", ""))
    if asked is None or asked[1] == asked[2] == "":
        return 0, size
    if call.request.headers.get("if-range", f'"{tag}"') != f'"{tag}"':
        return 0, size
    start, last = whole_number(asked[1]), whole_number(asked[2])
    if start is None:  # the last bytes
        return (max(0, size - last), size) if last and size else None
    if last is not None and last < start:
        return 0, size
    end = size if last is None else min(size, last + 1)
    return (start, end) if start < size else None


def _plain(name: Any) -> str:
    """A file's name for a header: what could end it there is taken out."""
    return re.sub(r"[^A-Za-z0-9_.+=@,-]", "_", str(name))
