"""Looking at runs and requests of a server: what it gives the team, printed as what is on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runner.cli import output
from runner.cli.remote.client import Client
from runner.cli.remote.servers import server
from runner.model.errors import RunnerError, no_such
from runner.model.limits import in_units
from runner.views.redact import RunView, received

if TYPE_CHECKING:
    from runner.views.leaderboard.rows import LeaderboardTable


def runs_at(to: str, wanted: Mapping[str, str | None], outcome: str | None) -> list[RunView]:
    """The team's runs at a server, those whose facts are as ``wanted`` and whose outcome is, where these are named."""
    with Client(server(to)) as client, as_expected():
        rows = client.all("run-row", "runs")
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
    with Client(server(to)) as client, as_expected():
        data = client.get("run-view", "runs", _run_id(client, run))
        view = received(data, client.server.team)
        if as_json:
            output.as_json(data)
        else:
            render.show(view)
            render.hint(str(view["hint"]))


def logs_at(to: str, run: str) -> None:
    """Print the log of a run as its team may read it: stdout to stdout, stderr to stderr. Raises E102 if there is none yet."""
    with Client(server(to)) as client, as_expected():
        name = _run_id(client, run)
        found = client.find("run-log", "runs", name, "log")
        if found is None:
            why = "The run has not begun, its log is closed to the team, or it is not published yet."
            fix = f"runner show {name} --to {client.server.name} shows how far the run is"
            raise RunnerError("E102", f"{client.server.name} has no log of {name} now", why=why, fix=fix)
        for stream, file in (("stdout", sys.stdout), ("stderr", sys.stderr)):
            for line in found[stream]:
                file.write(output.printable(line) + "\n")
        if found.get("running"):
            output.say(f"{name} is still running; call again for more")


def status_at(to: str | None, request: str | None, *, as_json: bool, wait: bool) -> int:
    """Print what became of the requests of a team, or of one; returns the exit code: 1 where that one was refused."""
    with Client(server(to)) as client, as_expected():
        if request is not None:
            if wait:
                client.decision(request)
            one = client.get("api-request", "requests", request)
            output.as_json(one) if as_json else output.facts(_facts(one))
            return 1 if one["answer"] is not None and not one["answer"]["accepted"] else 0
        asked = client.all("api-request", "requests")
        found = [
            client.find("standing", "tasks", task["id"], "standing")
            for task in client.all("task-entry", "tasks")
        ]
        standing = [one for one in found if one is not None]
        bounds = (client.find("api-bounds", "bounds") or {"bounds": []})["bounds"]  # older servers have none
    if as_json:
        output.as_json({"requests": asked, "standing": standing, "bounds": bounds})
        return 0
    rows = [(one["arrival"], one["what"], _state(one["answer"]), one["id"]) for one in asked]
    if rows:
        output.table(
            ("arrived", "what", "state", "request"), rows, drop=("arrived", "what"), texts=("state",)
        )
    else:
        output.say("nothing was handed in there")
    for one in standing:
        left = f"{one['team']['left']} of {one['team']['limit']} submissions may be handed in now"
        deadline = one["team"].get("deadline")
        output.say(f"{one['task']}: {left}" + (f"; deadline {deadline}" if deadline else ""))
    for one in bounds:
        unit = in_units if one["unit"] == "bytes" else str
        output.say(f"{one['says']}: {unit(one['used'])} of {unit(one['most'])}")
    return 0


def board_at(
    to: str, task: str, table: str | None, round_: str | None, against: str | None = None
) -> LeaderboardTable:
    """A leaderboard as the server gives it to the team; without ``table`` the task's first that is open; ``against``: with tests
    against that row, by its name. Raises E102 where it has none so."""
    from runner.views.leaderboard.comparing import row_of
    from runner.views.leaderboard.formats.record import from_dict
    from runner.views.leaderboard.rows import software_of

    with Client(server(to)) as client, as_expected():
        name, of = client.server.name, client.get("overview", "tasks", task)
        if round_ is None:
            where, there = [], [str(one["id"]) for one in of["boards"]]
        else:
            frozen = {str(one["id"]): [str(one) for one in one["tables"]] for one in of["rounds"]}
            if round_ not in frozen:
                why = "It is not frozen yet, or not open."
                raise no_such("round", round_, frozen, of=f"{task} at {name}", why=why)
            where, there = ["rounds", round_], frozen[round_]
        wanted = table or (there[0] if there else "main")
        if wanted not in there:
            why = "It is not open yet, or there is none." if not there else ""
            raise no_such("table", wanted, there, of=f"{task} at {name}", why=why)
        path = ("tasks", task, *where, "boards", wanted)
        data = client.get("leaderboard", *path)
        made = from_dict(data, str(data["audience"]))
        if against is None:
            return made
        if round_ is not None:
            what, why = f"the round {round_} is frozen", "Its tests were kept with it."
            raise RunnerError("E101", what, why=why, fix="leave --against away")
        name = software_of(made.rows[row_of(made.rows, against)])
        data = client.get("leaderboard", *path, against=name)
        return from_dict(data, str(data["audience"]))


def receipt_at(to: str | None, request: str) -> dict[str, Any]:
    """The receipt of a request of the team: what the front signed, and what work did as far as it has decided. Raises E102 without either."""
    from runner.exchange.receipts import receipt

    with Client(server(to)) as client, as_expected():
        one = client.get("api-request", "requests", request)
        arrival, decision = one.get("receipt"), (one["answer"] or {}).get("receipt")
        name = client.server.name
    if arrival is None and decision is None:
        fix = f"runner status {output.printable(request)} --to {name}"
        raise RunnerError("E102", f"{name} has no receipt of that request", fix=fix)
    return receipt(arrival, decision)


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
    ids = [str(row["run"]) for row in client.all("run-row", "runs")]
    found = [one for one in ids if one == text] or [one for one in ids if one.startswith(text)]
    if len(found) != 1:
        why = f"Several runs begin so: {', '.join(found)}." if found else ""
        fix = f"runner runs --to {client.server.name} lists them"
        raise no_such("run", text, ids, of=client.server.name, why=why, fix=fix)
    return found[0]


@contextmanager
def as_expected() -> Iterator[None]:
    """What a server gives in another form than this program knows is E312."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = "the server gives something else than this program knows"
        fix = "take the version of the program that the organiser names"
        raise RunnerError("E312", what, why=f"{type(error).__name__}: {error}.", fix=fix) from error
