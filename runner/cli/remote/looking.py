"""Looking at runs and requests of a server: what it gives the team, printed as what is on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from runner.cli import output
from runner.cli.remote.client import Client
from runner.cli.remote.servers import server
from runner.model.errors import RunnerError, no_such
from runner.views.redact import RunView, received


def runs_at(to: str, wanted: Mapping[str, str | None], outcome: str | None) -> list[RunView]:
    """The team's runs at a server, those whose facts are as ``wanted`` and whose outcome is, where these are named."""
    with Client(server(to)) as client, _as_expected():
        rows = client.all("runs")
        return [
            received(row, client.server.team)
            for row in rows
            if outcome in (None, row["outcome"]["name"])
            and all(value is None or row[key] == value for key, value in wanted.items())
        ]


def show_at(to: str, run: str, *, as_json: bool, part: bool) -> None:
    """Print a run as the server gives it to its team. Raises E101 where a ``part`` of its inside, or a page, is wanted."""
    from runner.cli import render

    if part:
        what = "of a run at a server only the whole is shown"
        raise RunnerError("E101", what, fix="its page at the server has all that is inside")
    with Client(server(to)) as client, _as_expected():
        data = client.get("runs", _run_id(client, run))
        view = received(data, client.server.team)
        if as_json:
            output.as_json(data)
        else:
            render.show(view)
            render.hint(str(view["hint"]))


def logs_at(to: str, run: str) -> None:
    """Print the log of a run as its team may read it: stdout to stdout, stderr to stderr."""
    with Client(server(to)) as client, _as_expected():
        found = client.get("runs", _run_id(client, run), "log")
        for stream, file in (("stdout", sys.stdout), ("stderr", sys.stderr)):
            for line in found[stream]:
                file.write(output.printable(line) + "\n")


def status_at(to: str | None, request: str | None, *, as_json: bool, wait: bool) -> int:
    """Print what became of the requests of a team, or of one; returns the exit code: 1 where that one was refused."""
    with Client(server(to)) as client, _as_expected():
        if request is not None:
            if wait:
                client.decision(request)
            one = client.get("requests", request)
            output.as_json(one) if as_json else output.facts(_facts(one))
            return 1 if one["answer"] is not None and not one["answer"]["accepted"] else 0
        asked = client.all("requests")
        found = [client.find("tasks", task["id"], "standing") for task in client.all("tasks")]
        standing = [one for one in found if one is not None]
    if as_json:
        output.as_json({"requests": asked, "standing": standing})
        return 0
    rows = [(one["arrival"], one["what"], _state(one["answer"]), one["id"]) for one in asked]
    if rows:
        output.table(("arrived", "what", "state", "request"), rows)
    else:
        output.say("nothing was handed in there")
    for one in standing:
        left = f"{one['team']['left']} of {one['team']['limit']} submissions may be handed in now"
        deadline = one["team"].get("deadline")
        output.say(f"{one['task']}: {left}" + (f"; deadline {deadline}" if deadline else ""))
    return 0


def _facts(one: Mapping[str, Any]) -> dict[str, str]:
    answer = one["answer"] or {}
    facts = {name: str(one.get(name) or "") for name in ("what", "arrival", "sha256")}
    facts |= {"request": str(one["id"]), "state": _state(one["answer"])}
    facts |= {"submission": str(answer.get("submission") or ""), "runs": " ".join(answer.get("runs", ()))}
    return facts | {name: str(answer.get(name) or "") for name in ("why", "fix")}


def _state(answer: Mapping[str, Any] | None) -> str:
    if answer is None:
        return "received"
    return "taken" if answer["accepted"] else f"refused ({answer.get('code')}): {answer.get('what')}"


def _run_id(client: Client, text: str) -> str:
    """The id of the team's one run whose id is ``text`` or begins with it. Raises E102."""
    ids = [str(row["run"]) for row in client.all("runs")]
    found = [one for one in ids if one == text] or [one for one in ids if one.startswith(text)]
    if len(found) != 1:
        why = f"Several runs begin so: {', '.join(found)}." if found else ""
        fix = f"runner runs --to {client.server.name} lists them"
        raise no_such("run", text, ids, of=client.server.name, why=why, fix=fix)
    return found[0]


@contextmanager
def _as_expected() -> Iterator[None]:
    """What a server gives in another form than this program knows is E312."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = "the server gives something else than this program knows"
        fix = "take the version of the program that the organiser names"
        raise RunnerError("E312", what, why=f"{type(error).__name__}: {error}.", fix=fix) from error
