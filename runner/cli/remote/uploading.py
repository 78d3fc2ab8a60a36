"""Sending a file to a server so that it continues after a cut, also in another process (:mod:`runner.web.routes.uploads`).

A submission that is sent again is answered as the first time, so a lost connection loses nothing then either.

The server finds an upload by the digest of the file, so nothing has to be remembered here.
"""

from __future__ import annotations

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
_NOT_THERE = "the server has not kept what was sent"
_CONFLICT, _LARGE, _MISMATCH = 409, 413, 422


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
    at: int | None = None  # None: ask the server
    failed, last, removed = 0, -1, False
    while True:
        try:
            state = _put(client, file, at, size, sha256, chunk)
        except Cut as error:
            at, failed = None, failed + 1
            if failed >= TRIES:
                raise
            if failed == 2:  # once is a line that was cut
                output.say(f"{error.what}; it is tried again")
            wait(min(LONGEST, PAUSE * 2 ** (failed - 1)))
            continue
        if state is None:  # the server had something else, and removed it
            if removed:
                raise RunnerError("E312", _NOT_THERE, fix="submit again")
            at, last, removed = None, -1, True
            continue
        at = state["offset"]
        failed, last = (0, at) if at > last else (failed, last)
        on_progress(at)
        if at == size:
            return str(state["id"])


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


def _put(
    client: Client, file: BinaryIO, at: int | None, size: int, sha256: str, chunk: int
) -> dict[str, Any] | None:
    """Send one chunk from ``at``, or ask how far the upload is; return what the server says, None if it removed what it had."""
    part, range_ = b"", "*"
    if at is not None:
        file.seek(at)
        part = file.read(chunk)
        range_ = f"{at}-{at + len(part) - 1}"
    headers = {"Content-Type": "application/octet-stream", "Content-Range": f"bytes {range_}/{size}"}
    fine = (_CONFLICT, LOCKED, _MISMATCH, *([_LARGE] if part else []))
    said = client.send("PUT", *API, "uploads", sha256, headers=headers, data=part, fine=fine)
    if said.status_code in (*fine, _MISMATCH):
        said.close()
    if said.status_code == _MISMATCH:
        return None
    if said.status_code == _LARGE:  # what is announced is bounded when an upload begins
        what = (
            f"a request of {in_units(len(part))} is larger than the server, or what stands before it, takes"
        )
        fix = "write to its organiser: a proxy before the front bounds bodies (docs/how-to/serve.md)"
        raise RunnerError("E312", f"{client.server.name}: {what}", fix=fix)
    if said.status_code in (_CONFLICT, LOCKED):  # a connection that was cut may still be open there
        raise Cut("the server has another part of it than was sent", fix="submit again")
    state: dict[str, Any] = client.data(said, "api-upload")
    if not (at or 0) <= state["offset"] <= size or (part and state["offset"] == at):
        raise RunnerError("E312", "the server does not say how far an upload is", fix="submit again")
    return state
