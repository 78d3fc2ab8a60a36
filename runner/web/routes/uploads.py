"""Uploads that go on after a cut, by the protocol tus 1.0.0 (https://tus.io/protocols/resumable-upload).

Its core, and the extensions creation, expiration, checksum and termination. What is sent here is nobody's hand-in yet: a
route that takes a file also takes the id of an upload of the same team instead. ``Upload-Metadata`` of a new one has ``sha256``, the
digest of the whole: what came has it, or is not taken (460).
"""

from __future__ import annotations

import base64
import binascii
import os
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING, BinaryIO

from runner.web.door import Door
from runner.web.limits import content_length, whole_number
from runner.web.routes.api import ROOT, json_answer
from runner.web.routes.base import Routes
from runner.web.rules import EVERYBODY, TEAM, Call, Operation, Rule
from runner.web.uploads import SHA256, Full, Upload, Uploads, checksum

if TYPE_CHECKING:
    import hashlib

    from starlette.responses import Response

VERSION = "1.0.0"
MEDIA = "application/offset+octet-stream"
_VERSION = {"Tus-Resumable": f"The version of the protocol: {VERSION}."}
_EXPIRES = {"Upload-Expires": "When it goes, unless more is sent."}
_OFFSET = {"Upload-Offset": "Bytes that are there."}
_OFFERED = Operation(
    status=204,
    tells=_VERSION
    | {
        "Tus-Version": "Versions of the protocol that are spoken.",
        "Tus-Extension": "What of its extensions is offered.",
        "Tus-Checksum-Algorithm": "By what checksums may be.",
        "Tus-Max-Size": "Bytes that an upload may have.",
    },
)
_CREATE = Operation(
    status=201,
    sends=_VERSION
    | {
        "Upload-Length": "Bytes that are to come.",
        "Upload-Metadata": "Pairs of a name and a value in base64, with commas between; sha256 is the SHA-256 (hex) of the whole.",
    },
    tells=_VERSION | _EXPIRES | {"Location": "Where it is."},
    also=("412",),
)
_HEAD = Operation(
    tells=_VERSION | _EXPIRES | _OFFSET | {"Upload-Length": "Bytes of the whole."}, also=("423", "507")
)
_APPEND = Operation(
    status=204,
    sends=_VERSION | {"Upload-Offset": "Where the content begins: the bytes that are there."},
    may_send={"Upload-Checksum": "sha256 or sha1, a blank, and the digest of the content in base64."},
    tells=_VERSION | _EXPIRES | _OFFSET,
    media=MEDIA,
    also=("409", "412", "415", "423", "460"),
)
_REMOVE = Operation(status=204, tells=_VERSION, also=("423",))
BUSY = "Another request is sending, checking or submitting this upload. Try again in a few seconds."
BUSY_SECONDS = 5  # after which a client tries again
_BLOCK = 1024 * 1024  # bytes that are written at once


class Uploading(Routes):
    """What teams send in parts."""

    def __init__(self, door: Door, uploads: Uploads) -> None:
        super().__init__(door)
        self.uploads = uploads

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        all_, one = f"{ROOT}/uploads", f"{ROOT}/uploads/{{id}}"
        return (
            Rule("OPTIONS", all_, self.options, EVERYBODY, operation=_OFFERED),
            Rule("GET", all_, self.list, TEAM, "hand-in", operation=Operation("api-upload", paged=True)),
            Rule("POST", all_, self.create, TEAM, "hand-in", operation=_CREATE),
            Rule("HEAD", one, self.head, TEAM, "hand-in", operation=_HEAD),
            Rule("PATCH", one, self.append, TEAM, "hand-in", operation=_APPEND, most=None),
            Rule("DELETE", one, self.remove, TEAM, "hand-in", operation=_REMOVE),
        )

    async def options(self, call: Call) -> Response:
        """What of the protocol is offered."""
        extensions = "creation,expiration,checksum,termination"
        more = {"Tus-Version": VERSION, "Tus-Extension": extensions, "Tus-Checksum-Algorithm": "sha256,sha1"}
        return _empty(204, **more, **{"Tus-Max-Size": str(self.uploads.bounds.each)})

    async def list(self, call: Call) -> Response:
        """The uploads of the team: what a program looks at to go on with one that another began."""
        found = await self.door.on_disk(_listed, self.uploads, str(call.visitor.team))
        return json_answer(call, {"items": found, "next": None})

    async def create(self, call: Call) -> Response:
        """Begin an upload."""
        if (wrong := self._other_version(call)) is not None:
            return wrong
        length = whole_number(call.request.headers.get("upload-length", ""))
        sha256 = _metadata(call.request.headers.get("upload-metadata", "")).get("sha256", "")
        if length is None or not SHA256.fullmatch(sha256):
            why = "Upload-Length says how many bytes are to come, sha256 in Upload-Metadata their SHA-256 (hex, in base64)."
            return self.door.refused(call.visitor, 400, why)
        try:
            team, now = str(call.visitor.team), self.door.now()
            made = await self.door.on_disk(self.uploads.create, team, length, sha256, now)
        except Full as full:
            return self.door.refused(call.visitor, full.status, str(full))
        except OSError:
            return self.door.refused(call.visitor, 507, "The disk of the server refused it. Try again later.")
        if made.size == 0:
            await self.door.on_disk(self.uploads.finish, made, self.door.now())
        return _empty(201, Location=f"{ROOT}/uploads/{made.id}", **self._times(made))

    async def head(self, call: Call) -> Response:
        """Return the offset of an upload. The digest is checked first if all bytes have arrived."""
        found = self._of(call)
        try:
            if found is not None and self.uploads.is_unsettled(found):
                with self.uploads.only(found.id) as free:
                    if not free:
                        return self._busy(call)
                    found = await self.door.digest_on_disk(self.uploads.settle, found.team, found.id)
            offset = None if found is None else self.uploads.offset(found)
        except FileNotFoundError:  # submitted or removed just now
            return self.nothing(call)
        except OSError:
            return self.door.refused(call.visitor, 507, "The disk of the server refused it. Try again later.")
        if found is None:
            return self.nothing(call)
        more = {"Upload-Offset": str(offset), "Upload-Length": str(found.size)}
        return _empty(200, **more, **self._times(found))

    async def append(self, call: Call) -> Response:
        """Take more of an upload, from where it is."""
        if self._of(call) is None:
            return self.nothing(call)
        if (wrong := self._other_version(call)) is not None:
            return wrong
        if call.request.headers.get("content-type") != MEDIA:
            return self.door.refused(call.visitor, 415, f"The content is {MEDIA}.")
        with self.uploads.only(call.at("id")) as free:
            if not free:
                return self._busy(call)
            found = self._of(call)  # it may have been submitted just now
            if found is None:
                return self.nothing(call)
            try:
                offset = whole_number(call.request.headers.get("upload-offset", ""))
                if offset != self.uploads.offset(found):
                    return self.door.refused(
                        call.visitor, 409, "It is at another offset: ask for that with HEAD."
                    )
                self.uploads.keep_free(content_length(call.request.headers))
                return await self._taken(call, found)
            except OSError:
                return self.door.refused(
                    call.visitor, 507, "The disk of the server refused it. Try again later."
                )

    async def remove(self, call: Call) -> Response:
        """Remove an upload."""
        found = self._of(call)
        if found is None:
            return self.nothing(call)
        with self.uploads.only(found.id) as free:
            if not free:
                return self._busy(call)
            await self.door.on_disk(self.uploads.remove, found)
        return _empty(204)

    async def _taken(self, call: Call, upload: Upload) -> Response:
        """Add the body to an upload, and end it with its last byte. What came before a cut stays. Raises OSError."""
        name, _, expected = call.request.headers.get("upload-checksum", "").partition(" ")
        digest, began = checksum(name), self.uploads.offset(upload)
        if name and digest is None:
            return self.door.refused(call.visitor, 400, "Checksums are sha256 or sha1.")
        if not await self._written(call, upload, digest, upload.size - began):
            await self.door.on_disk(self.uploads.cut, upload, began)
            return self.door.refused(call.visitor, 413, "That is more than Upload-Length said.")
        if digest is not None and base64.b64encode(digest.digest()).decode() != expected:
            await self.door.on_disk(self.uploads.cut, upload, began)
            return _empty(460)
        whole = self.uploads.offset(upload) == upload.size and upload.arrival is None
        if whole and await self.door.digest_on_disk(self.uploads.finish, upload, self.door.now()) is None:
            return _empty(460)
        return _empty(204, **{"Upload-Offset": str(self.uploads.offset(upload))}, **self._times(upload))

    async def _written(self, call: Call, upload: Upload, digest: hashlib._Hash | None, left: int) -> bool:
        """Write the body to the disk, block by block; False for more than is ``left``. Raises OSError, ClientDisconnect."""
        block = bytearray()
        file = await self.door.on_disk(self.uploads.open, upload)
        try:
            async for part in call.request.stream():
                block += part
                left -= len(part)
                if left < 0:
                    block.clear()
                    return False
                if len(block) >= _BLOCK:
                    full, block = block, bytearray()
                    self.uploads.keep_free(len(full))
                    await self.door.on_disk(_add, file, full, digest)
        finally:  # a cut, too: what came is not sent again
            await self.door.on_disk(_end, file, block, digest)
        return True

    def _busy(self, call: Call) -> Response:
        """423: another request has the upload."""
        return self.door.refused(call.visitor, 423, BUSY, wait=BUSY_SECONDS)

    def _of(self, call: Call) -> Upload | None:
        return self.uploads.get(call.visitor.team, call.at("id"))

    def _times(self, upload: Upload) -> dict[str, str]:
        try:
            at = datetime.fromtimestamp(self.uploads.expires(upload), UTC)
        except OSError:  # of another digest: it went
            return {}
        return {"Upload-Expires": format_datetime(at, usegmt=True)}

    def _other_version(self, call: Call) -> Response | None:
        return (
            None
            if call.request.headers.get("tus-resumable") == VERSION
            else _empty(412, **{"Tus-Version": VERSION})
        )


def _listed(uploads: Uploads, team: str) -> list[dict[str, object]]:
    """Return what a program may know of the uploads of a team."""
    items: list[dict[str, object]] = []
    for upload in uploads.of(team):
        with suppress(FileNotFoundError):  # submitted or removed just now
            offset = uploads.offset(upload)
            items.append({"id": upload.id, "sha256": upload.sha256, "size": upload.size, "offset": offset})
    return items


def _add(file: BinaryIO, block: bytearray, digest: hashlib._Hash | None) -> None:
    """Write a block to the file of an upload, and count it in the checksum. Raises OSError."""
    if digest is not None:
        digest.update(block)
    file.write(block)


def _end(file: BinaryIO, block: bytearray, digest: hashlib._Hash | None) -> None:
    """Write the last block and close the file, which is on the disk then. Raises OSError."""
    with file:
        _add(file, block, digest)
        file.flush()
        os.fsync(file.fileno())


def _metadata(text: str) -> dict[str, str]:
    """The pairs of an ``Upload-Metadata``; what is none of base64 is left out."""
    found = {}
    for pair in text.split(","):
        name, _, value = pair.strip().partition(" ")
        try:
            found[name] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
    return found


def _empty(status: int, **headers: str) -> Response:
    from starlette.responses import Response

    return Response(b"", status, {"Tus-Resumable": VERSION, "Cache-Control": "no-store", **headers})
