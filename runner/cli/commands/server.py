"""Servers from afar: log in, log out, and what became of what was handed in there."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from runner.cli import options, output
from runner.cli.app import app
from runner.model.errors import RunnerError, no_such


@app.command(
    epilog="Examples:  runner login https://task.example.org  |  runner login https://task.example.org --name clef"
)
def login(
    url: Annotated[str, typer.Argument(help="The address of the server.")],
    name: Annotated[
        str | None, typer.Option("--name", help="How it is called here; default: by its host.")
    ] = None,
) -> None:
    """Log in to a server with the token that its organiser gave your team; then --to NAME means it.

    The token is asked for, without showing it; it may also stand in RUNNER_TOKEN or come by standard input. It is kept in your
    user folder, readable for you alone.
    """
    from runner.cli.remote.client import Client
    from runner.cli.remote.servers import Server, address, proposed, remember
    from runner.exchange.access import Token

    where = address(url)
    called = name or proposed(where)
    text = os.environ.get("RUNNER_TOKEN") or _asked(called)
    given = Token.read(text)
    if given is None and "/link/" in text:
        what, why = (
            "that is a one-time link, and no token",
            "It shows a token once, to who presses its button.",
        )
        fix = "open it in a browser, and log in with the token that it shows"
        raise RunnerError("E101", what, why=why, fix=fix)
    if given is None:
        what, why = "that is no token", "A token begins with proctor_ and has 64 characters."
        raise RunnerError("E101", what, why=why, fix="copy it whole, as the organiser gave it to you")
    with Client(Server(called, where, str(given), "")) as client:
        me = client.get("api-me", "me")
    team = str(me.get("team") or "")
    path = remember(Server(called, where, str(given), team))
    output.say(f"logged in to {called} ({where}) as {team or me.get('role')}; the token is in {path}")


@app.command(epilog="Examples:  runner logout local")
def logout(name: Annotated[str, typer.Argument(help="How the server is called here.")]) -> None:
    """Forget a server and the token for it. The token still opens it elsewhere: its organiser takes it away."""
    from runner.cli.remote.servers import forget, known

    if not forget(name):
        raise no_such("server", name, known(), why="Nobody logged in to it here.", fix="nothing to do")
    output.say(f"logged out of {name}")


@app.command(epilog="Examples:  runner status  |  runner status --to local  |  runner status REQUEST --wait")
def status(
    request: Annotated[
        str | None, typer.Argument(help="A request, as a hand-in printed it. Default: all of the team.")
    ] = None,
    to: options.ServerOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until the request is decided.")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Say what became of what was handed in at a server, and what may be handed in. Exit code 1 for a refused request."""
    from runner.cli.remote.looking import status_at

    if wait and request is None:
        raise RunnerError("E101", "--wait goes with a request", fix="runner status REQUEST --wait")
    output.finish(status_at(to, request, as_json=as_json, wait=wait), None)


@app.command(
    epilog="Examples:  runner notices  |  runner notices off --to local  |  runner notices on --about held --mail ada@example.org"
)
def notices(
    switch: Annotated[
        str | None, typer.Argument(metavar="[on|off]", help="Default: say what your team is told.")
    ] = None,
    about: Annotated[
        list[str] | None,
        typer.Option("--about", help="Only this: done, held or deadline; may be given several times."),
    ] = None,
    mail: Annotated[
        str | None, typer.Option("--mail", help="Where to: the contact of your team from now on.")
    ] = None,
    to: options.ServerOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Say what your team is told by mail from a server, or switch it: on, all or only some of it, or off.

    What the organiser does not send is not sent.
    """
    from runner.cli.remote.asking import decided
    from runner.cli.remote.client import Client
    from runner.cli.remote.servers import server

    if switch not in (None, "on", "off") or (switch != "on" and (about or mail)):
        fix = "runner notices on --about held, runner notices off, or runner notices alone"
        raise RunnerError("E101", "notices are switched on or off", fix=fix)
    kinds = about or (["done", "held", "deadline"] if switch == "on" else [])
    with Client(server(to)) as client:
        if switch is not None:
            asked = {"about": ",".join(kinds), **({"mail": mail} if mail else {})}
            decided(client, str(client.post("api-asked", "notices", params=asked)["request"]))
            output.say(f"notices are {switch}")
            return
        found = client.find("notices-of-team", "notices") or {"may": [], "about": [], "to": ""}
    if as_json:
        output.as_json(found)
        return
    told = {"told": found["about"], "sent by the organiser": found["may"]}
    output.facts({**{key: ", ".join(value) or "nothing" for key, value in told.items()}, "to": found["to"]})


def _asked(name: str) -> str:
    """The token, typed without being shown, or the first line of standard input."""
    import sys
    from getpass import getpass

    return getpass(f"token for {name}: ") if sys.stdin.isatty() else sys.stdin.readline()
