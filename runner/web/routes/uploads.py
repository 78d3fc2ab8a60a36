"""Uploads that continue after a cut: one resumable PUT.

``PUT /api/v1/uploads/SHA256`` with ``Content-Range: bytes FIRST-LAST/SIZE`` sends a part of the content with that digest, and
``bytes */SIZE`` with an empty body asks for the offset. The first request begins the upload. The answer tells the id, with which a route that accepts a
file accepts the complete upload instead, and how many bytes have arrived. Content with another digest is removed (422).
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, BinaryIO

from runner.web.door import Door
from runner.web.limits import content_length
from runner.web.routes.api import ROOT, json_answer
from runner.web.routes.base import Routes
from runner.web.rules import TEAM, Call, Operation, Rule
from runner.web.uploads import SHA256, Full, Upload, Uploads

if TYPE_CHECKING:
    from starlette.responses import Response

_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18})", re.ASCII)
_PUT = Operation(
    "api-upload",
    sends={"Content-Range": "bytes FIRST-LAST/SIZE, or bytes */SIZE without content to ask for the offset."},
    media="application/octet-stream",
    also=("409", "422", "423"),
)
_REMOVE = Operation(status=204, also=("423",))
BUSY = "Another request is sending, checking or submitting this upload. Try again in a few seconds."
BUSY_SECONDS = 5  # after which a client tries again
_BLOCK = 1024 * 1024  # bytes that are written at once
_NOT_KEPT = "The disk of the server refused it. Try again later."


class Uploading(Routes):
    """What teams send in parts."""

    def __init__(self, door: Door, uploads: Uploads) -> None:
        super().__init__(door)
        self.uploads = uploads

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        all_, one = f"{ROOT}/uploads", f"{ROOT}/uploads/{{sha256}}"
        return (
            Rule("GET", all_, self.list, TEAM, "hand-in", operation=Operation("api-upload", paged=True)),
            Rule("PUT", one, self.receive, TEAM, "hand-in", operation=_PUT, most=None),
            Rule("DELETE", one, self.remove, TEAM, "hand-in", operation=_REMOVE),
        )

    async def list(self, call: Call) -> Response:
        """The uploads of the team."""
        items = await self.door.on_disk(self.uploads.listed, str(call.visitor.team))
        return json_answer(call, {"items": items, "next": None})

    async def receive(self, call: Call) -> Response:
        """Begin an upload, or add the next part to it. The digest is checked once all bytes have arrived."""
        sha256, part = call.at("sha256"), _RANGE.fullmatch(call.request.headers.get("content-range", ""))
        length = content_length(call.request.headers)
        first, last, size = (
            (None if text is None else int(text) for text in part.groups()) if part else (None,) * 3
        )
        expected = 0 if first is None or last is None else last + 1 - first
        if (
            not SHA256.fullmatch(sha256)
            or size is None
            or length != expected
            or (last or 0) > max(size - 1, 0)
        ):
            why = "The address ends with a SHA-256; Content-Range is bytes FIRST-LAST/SIZE, and the body has that length."
            return self.door.refused(call.visitor, 400, why)
        try:
            team, now = str(call.visitor.team), self.door.now()
            found = await self.door.on_disk(self.uploads.begin, team, size, sha256, now)
        except Full as full:
            return self.door.refused(call.visitor, full.status, str(full))
        except OSError:
            return self.door.refused(call.visitor, 507, _NOT_KEPT)
        with self.uploads.only(found.id) as free:
            if not free:
                return self._busy(call)
            try:
                if self.uploads.get(team, found.id) is None:  # submitted just now
                    return self._busy(call)
                if found.size != size or (first is not None and first != self.uploads.offset(found)):
                    why = (
                        "It is at another offset, or has another size: ask with Content-Range: bytes */SIZE."
                    )
                    return self.door.refused(call.visitor, 409, why)
                self.uploads.keep_free(length)
                return await self._receive(call, found)
            except OSError:
                return self.door.refused(call.visitor, 507, _NOT_KEPT)

    async def remove(self, call: Call) -> Response:
        """Remove an upload."""
        from starlette.responses import Response

        found = self.uploads.find(str(call.visitor.team), call.at("sha256"))
        if found is None:
            return self.nothing(call)
        with self.uploads.only(found.id) as free:
            if not free:
                return self._busy(call)
            await self.door.on_disk(self.uploads.forget, found.id)
        return Response(b"", 204, {"Cache-Control": "no-store"})

    async def _receive(self, call: Call, upload: Upload) -> Response:
        """Add the body to an upload, and finish it with its last byte. What came before a cut stays. Raises OSError."""
        from starlette.responses import JSONResponse

        await self._write(call, upload)
        settle = self.uploads.settle
        is_whole = self.uploads.is_unsettled(upload)
        if is_whole and await self.door.digest_on_disk(settle, upload.team, upload.id) is None:
            why = "What was sent has another SHA-256, and was removed."
            return self.door.refused(call.visitor, 422, why)
        return JSONResponse(self.uploads.as_dict(upload), 200, {"Cache-Control": "no-store"})

    async def _write(self, call: Call, upload: Upload) -> None:
        """Write the body to the disk, block by block. Raises OSError, ClientDisconnect."""
        block = bytearray()
        file = await self.door.on_disk(self.uploads.open, upload)
        try:
            async for part in call.request.stream():
                block += part
                if len(block) >= _BLOCK:
                    full, block = block, bytearray()
                    self.uploads.keep_free(len(full))
                    await self.door.on_disk(file.write, full)
        finally:  # a cut, too: what came is not sent again
            await self.door.on_disk(_end, file, block)

    def _busy(self, call: Call) -> Response:
        """423: another request has the upload."""
        return self.door.refused(call.visitor, 423, BUSY, wait=BUSY_SECONDS)


def _end(file: BinaryIO, block: bytearray) -> None:
    """Write the last block and close the file, which is on the disk then. Raises OSError."""
    with file:
        file.write(block)
        file.flush()
        os.fsync(file.fileno())
