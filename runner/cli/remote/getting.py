"""Getting the data that a task offers at a server: each file goes on where it was cut, and is in its place once its SHA-256 is right.

The server need not be trusted: a name that would lead out of the folder is no name, and no more bytes are taken than were said.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import typer

import schemas
from runner.cli import output
from runner.cli.remote.asking import decided
from runner.cli.remote.client import API, ASK_AGAIN, Client
from runner.cli.remote.servers import server
from runner.cli.terminal import transfers
from runner.model.errors import RunnerError, no_such
from runner.model.task import Source
from runner.tasks.data_files import inside
from runner.tasks.transfer.fetch import Fetched, pull

OPENS = 60.0  # seconds until what was accepted is open
_EXACT = re.compile(r"(.*)@([0-9a-f]{64})", re.DOTALL)  # VERSION@SHA256 names one text


def get_data(
    to: str | None, task: str, dataset: str, folder: Path, accept: str | None
) -> list[dict[str, Any]]:
    """Get the files of a dataset that are open to the team.

    Args:
        to: The server.
        task: Of the server.
        dataset: Of the task.
        folder: Where its files go, as ``inputs/…`` and ``truths/…``.
        accept: The terms that the team accepts: ``VERSION@SHA256``, or their version alone, with which it is shown the text and asked;
            None: it accepts none now.

    Returns:
        For each file what became of it.

    Raises:
        RunnerError: E102 for what is not offered, E103 where terms have to be accepted first, E406 and E407 for a file, and as
            :class:`runner.cli.remote.client.Client`.
    """
    with Client(server(to)) as client:
        found = _accepted(client, client.get("task-data", "tasks", task, "data"), accept)
        there = {str(one["id"]): one for one in found["datasets"]}
        if dataset not in there:
            raise no_such("dataset", dataset, there, of=f"the data of {task} at {client.server.name}")
        files = there[dataset]["files"]
        got = []
        with transfers() as bars:
            for one in files:
                if one["open"]:
                    got.append(_got(client, task, dataset, one, folder, bars))
        shut = [str(one["name"]) for one in files if not one["open"]]
        if shut:
            raise _not_open(found, task, dataset, shut, client.server.name)
        if found["coming"]:
            output.say(
                f"{found['coming']} more are being made ready at the server: give the same command later"
            )
        return got


def _accepted(client: Client, found: Mapping[str, Any], accept: str | None) -> Mapping[str, Any]:
    """What is offered once the terms are accepted, if they are to be: those alone that were read here or are named by their SHA-256."""
    terms, task = found["terms"], str(found["task"])
    if accept is None or terms is None or found["accepted"] or not _means(client, terms, task, accept):
        return found
    said = {name: str(terms[name]) for name in ("version", "sha256")}
    decided(client, str(client.post("api-asked", "tasks", task, "terms", params=said)["request"]))
    last = time.monotonic() + OPENS
    while not found["accepted"] and time.monotonic() < last:
        time.sleep(ASK_AGAIN)
        found = client.get("task-data", "tasks", task, "data")
    return found


def _means(client: Client, terms: Mapping[str, Any], task: str, accept: str) -> bool:
    """Whether ``accept`` accepts these terms: by their SHA-256, or because somebody has read them now and says so.

    Raises E103 for other terms, E312 where the server's digest is not that of its text.
    """
    version, sha256 = str(terms["version"]), str(terms["sha256"])
    if hashlib.sha256(str(terms["text"]).encode()).hexdigest() != sha256:
        what = f"the SHA-256 that {client.server.name} gives is not that of the terms it shows"
        raise RunnerError("E312", what, fix="tell the organiser")
    exact = _EXACT.fullmatch(accept)
    if exact and exact.groups() == (version, sha256):
        return True
    if accept != version:
        same = exact is not None and exact[1] == version
        what = f"the terms are of version {schemas.show(version, 40)} now"
        what = f"{what[:-4]}, but with another text than you name" if same else what
        fix = f"read them: the same command without --accept-terms shows them, or {client.server.url}/tasks/{task}"
        raise RunnerError("E103", what, fix=fix)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False  # nobody reads them now: they are shown, with the words that accept just them
    _show(terms)
    return typer.confirm(f"Does your team accept these terms, version {schemas.show(version, 40)}?", err=True)


def _show(terms: Mapping[str, Any]) -> None:
    """Also for who wants to hear nothing: they are asked about it."""
    for line in str(terms["text"]).splitlines():
        typer.echo(output.printable(line), err=True)


def _not_open(found: Mapping[str, Any], task: str, dataset: str, shut: list[str], name: str) -> RunnerError:
    what = f"not open to your team: {schemas.show(', '.join(shut), 300)}"
    terms = found["terms"]
    if terms is None or found["accepted"]:
        return RunnerError("E103", what, fix="runner login with the token of your team, or ask the organiser")
    _show(terms)
    version = schemas.show(terms["version"], 40)
    why = f"They are for teams that accepted the terms above, version {version}."
    # Quoted for a shell: it is copied, and the version is the server's own word.
    exactly = shlex.quote(f"{version}@{terms['sha256']}")
    fix = f"runner data get {task} {dataset} --to {name} --accept-terms {exactly}"
    return RunnerError("E103", what, why=why, fix=fix)


def _got(
    client: Client, task: str, dataset: str, one: Mapping[str, Any], folder: Path, bars: Any
) -> dict[str, Any]:
    """Get one file; what became of it."""
    name, where = str(one["name"]), client.server.name
    path = inside(folder, name)
    if path is None:
        what = f"{schemas.show(name, 200)} would lie outside of {folder}"
        raise RunnerError("E406", what, why="A link leads out of it.", fix="name another folder with --out")
    parts = (*API, "tasks", task, "data", dataset, *name.split("/"))
    url = f"{client.server.url}/{'/'.join(quote(part, safe='') for part in parts)}"
    source = Source(name, path, url, int(one["size"]), str(one["sha256"]))
    try:
        done: Fetched = pull(
            source,
            on_progress=lambda of, there, total: bars(of.name, there, total),
            wait=lambda seconds: time.sleep(seconds),
            ask=client.stream,
        )
    except RunnerError as error:
        raise _of_server(error, where) from None
    state = "is in its place" if done.new else "was there already"
    output.say(f"{output.printable(str(path))} {state}, {done.size:,} bytes")
    return {
        "dataset": dataset,
        "name": name,
        "path": str(path),
        "size": done.size,
        "sha256": done.sha256,
        "new": done.new,
    }


def _of_server(error: RunnerError, name: str) -> RunnerError:
    """An error of a file in the words of who asks a server, and has no task.yaml."""
    if error.code not in ("E406", "E407"):
        return error
    what, why = (text.replace("task.yaml", name) for text in (error.what, error.why))
    fix = (
        error.fix
        if "task.yaml" not in error.fix
        else "give the same command again; if it stays so, tell the organiser"
    )
    return RunnerError(error.code, what, why=why, fix=fix)
