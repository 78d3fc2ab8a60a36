"""Sending a file to a server so that it goes on after a cut, also in another process: the client's side of tus 1.0.0.

A submission that is sent again is answered as the first time, so a lost connection loses nothing then either.

What a server has of a file is found by the file's digest, so that nothing has to be remembered here.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from runner.cli import output
from runner.cli.remote.client import API, LOCKED, Client, Cut
from runner.model.errors import RunnerError
from runner.model.limits import in_units

CHUNK = 8 * 1024 * 1024
TRIES = 8  # in a row without a byte that is new
PAUSE, LONGEST = 1.0, 20.0  # seconds before the next try: doubled each time
_ID, _NUMBER = re.compile(r"[A-Za-z0-9_-]{1,100}"), re.compile(r"[0-9]{1,15}")
_NOT_THERE = "the server has not kept what was sent"
_TUS = {"Tus-Resumable": "1.0.0"}
_MISSING, _CONFLICT, _LARGE, _MISMATCH = 404, 409, 413, 460


def upload(
    client: Client,
    file: BinaryIO,
    size: int,
    sha256: str,
    on_progress: Callable[[int], None],
    wait: Callable[[float], None] = lambda seconds: time.sleep(seconds),
    *,
    chunk: int = CHUNK,
) -> str:
    """Send a file, or what the server has not got of it yet.

    Args:
        client: The connection.
        file: What is sent; it can be sought.
        size: Its bytes.
        sha256: Its digest (hex), under which it is found again.
        on_progress: Told how many bytes are there.
        wait: Lets so many seconds pass.
        chunk: Bytes that are sent at once, and held in memory.

    Returns:
        The id of the complete upload, for the request that hands it in.

    Raises:
        RunnerError: As :meth:`Client.send`: what the server says; E312 when it cannot be reached again and again, or got
            something else than was sent.
    """
    id, failed, last, began = "", 0, -1, 0
    while True:
        try:
            if not id:
                id, began = _begun(client, size, sha256), began + 1
            at = _offset(client, id, size)
            if at is None:  # the server had something else, and removed it
                id = ""
                if began > 1:
                    raise RunnerError("E312", _NOT_THERE, fix="submit again")
                continue
            failed = 0 if at > last else failed
            last = max(at, last)
            on_progress(at)
            while at < size:
                at = _sent(client, id, file, at, chunk)
                failed, last = 0, at
                on_progress(at)
            return id
        except Cut as error:
            failed += 1
            if failed >= TRIES:
                raise
            if failed == 2:  # once is a line that was cut
                output.say(f"{error.what}; it is tried again")
        wait(min(LONGEST, PAUSE * 2 ** (failed - 1)))


def _begun(client: Client, size: int, sha256: str) -> str:
    """The id of the upload of this content: one that was begun before, or a new one."""
    for one in client.all("api-upload", "uploads"):
        if (one["sha256"], one["size"]) == (sha256, size):
            return str(one["id"])
    named = base64.b64encode(sha256.encode()).decode()
    headers = {**_TUS, "Upload-Length": str(size), "Upload-Metadata": f"sha256 {named}"}
    said = client.send("POST", *API, "uploads", headers=headers)
    id = str(said.headers.get("Location", "")).rpartition("/")[2]
    if not _ID.fullmatch(id):
        raise RunnerError("E312", "the server does not say where an upload goes", fix="submit again")
    return id


def submit_upload(
    client: Client,
    task: str,
    route: str,
    form: Mapping[str, str],
    wait: Callable[[float], None] = lambda seconds: time.sleep(seconds),
) -> Any:
    """Submit a complete upload, again after a failure that may pass; returns the data of the answer.

    Args:
        client: The connection.
        task: For which it is submitted.
        route: ``run-files`` or ``softwares``.
        form: The fields, with the id of the upload.
        wait: Lets so many seconds pass.

    Raises:
        RunnerError: As :meth:`Client.send`.
    """
    for failed in range(TRIES):
        try:
            return client.post("api-taken", "tasks", task, route, data=form)
        except Cut:
            if failed + 1 == TRIES:
                raise
        wait(min(LONGEST, PAUSE * 2**failed))


def _offset(client: Client, id: str, size: int) -> int | None:
    """Return how many bytes of ``size`` the server has; None if it has removed the upload."""
    said = client.send("HEAD", *API, "uploads", id, headers=_TUS, fine=(_MISSING,))
    if said.status_code == _MISSING:
        return None
    text = said.headers.get("Upload-Offset", "")
    if not _NUMBER.fullmatch(text) or int(text) > size:
        raise RunnerError("E312", "the server does not say how far an upload is", fix="submit again")
    return int(text)


def _sent(client: Client, id: str, file: BinaryIO, at: int, chunk: int) -> int:
    """Send one chunk from ``at``; how many bytes the server has then."""
    file.seek(at)
    part = file.read(chunk)
    checksum = base64.b64encode(hashlib.sha256(part).digest()).decode()
    headers = {
        **_TUS,
        "Content-Type": "application/offset+octet-stream",
        "Upload-Offset": str(at),
        "Upload-Checksum": f"sha256 {checksum}",
    }
    fine = (_CONFLICT, LOCKED, _MISMATCH, _LARGE)
    said = client.send("PATCH", *API, "uploads", id, headers=headers, data=part, fine=fine)
    said.close()
    if said.status_code == _LARGE:  # what is announced is bounded when an upload begins
        what = (
            f"a request of {in_units(len(part))} is larger than the server, or what stands before it, takes"
        )
        fix = "write to its organiser: a proxy before the front bounds bodies (docs/how-to/serve.md)"
        raise RunnerError("E312", f"{client.server.name}: {what}", fix=fix)
    if said.status_code == _MISMATCH:
        what = "the server got something else than was sent"
        raise Cut(what, fix="submit again; if it stays so, something on the way changes it")
    if said.status_code in (_CONFLICT, LOCKED):  # a connection that was cut may still be open there
        raise Cut("the server has another part of it than was sent", fix="submit again")
    return at + len(part)
