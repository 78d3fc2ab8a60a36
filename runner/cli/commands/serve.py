"""The server: the work process, the front, both together; and what was proposed on its pages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context, options, output
from runner.cli.app import app, group
from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from runner.work.proposals import Desk

BindOption = Annotated[
    str, typer.Option("--bind", help="Address and port on which the front listens; port 0: any that is free.")
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url", help="How people reach it, such as https://task.example.org; default http:// and --bind."
    ),
]
OidcOption = Annotated[
    Path | None,
    typer.Option("--oidc", help="A file that names a provider (OpenID Connect) where people sign in, too."),
]
ProxyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--proxy",
        help="Address of the server before it whose X-Forwarded-For is believed, such as 127.0.0.1; may be given several times.",
    ),
]
requests = group(
    "requests", "What organisers proposed on the web: nothing of it happens before it is approved here."
)
NumberArgument = Annotated[
    int, typer.Argument(help="The number of the proposal, as runner requests list has it.")
]


@app.command(epilog="Examples:  runner work  |  runner work --front https://task.example.org")
def work(
    front: Annotated[
        str | None,
        typer.Option("--front", help="The front, where it stands on another machine: work calls it."),
    ] = None,
    key: Annotated[
        bool,
        typer.Option("--key", help="Print the key by which a front on another machine knows work, and end."),
    ] = False,
) -> None:
    """Decide what comes into the inbox, run and evaluate it, publish what each may see; until it is ended.

    It ends in order at SIGTERM and Ctrl-C: containers go, what is sealed stays, and the next start goes on.
    """
    from runner.cli.serving import check_installed, work_key
    from runner.cli.terminal import Terminal
    from runner.work.front import Front
    from runner.work.loop import Work

    check_installed("cryptography")
    where = context.config()
    if key:
        output.data(work_key(where).public)
        return
    there = Front(front, work_key(where)) if front else None
    output.say(f"at work; inbox and published things are in {where.exchange}")
    try:
        Work(where, Terminal(verbose=True), machine=context.machine(where), front=there).run()
    except KeyboardInterrupt:
        output.say("ended; runner work goes on from here")


@app.command(
    epilog="Examples:  runner front  |  runner front --bind 127.0.0.1:8080 --url https://task.example.org --exchange /srv/task --state /var/lib/front"
)
def front(
    bind: BindOption = "127.0.0.1:8080",
    url: UrlOption = None,
    exchange: Annotated[
        Path | None,
        typer.Option(
            "--exchange",
            help="The folder with published/ and inbox/ (RUNNER_WEB); then no project is needed.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", help="A folder for its own database, which may be lost. Default: front in --exchange."
        ),
    ] = None,
    proxy: ProxyOption = None,
    work_key: Annotated[
        str | None,
        typer.Option("--work-key", help="The key of work on another machine (runner work --key)."),
    ] = None,
    oidc: OidcOption = None,
) -> None:
    """Serve the pages and take hand-ins. It needs neither the project nor the data directory: only the exchange folder."""
    from runner.cli.serving import serve_front

    folder = exchange or context.config().exchange
    serve_front(folder, state or folder / "front", bind, url, proxy or (), work_key, oidc)


@app.command(
    epilog="Examples:  runner serve  |  runner serve --bind 0.0.0.0:8080 --url https://task.example.org"
)
def serve(
    bind: BindOption = "127.0.0.1:8080",
    url: UrlOption = None,
    proxy: ProxyOption = None,
    oidc: OidcOption = None,
) -> None:
    """Start work and front, and start each again when it ends; until this is ended.

    Both run as the same user then, which is for trying and for one laptop: the front could read what work can.
    """
    from runner.cli.serving import check_address, check_installed, check_proxies, supervise

    check_installed()
    check_address(bind, url)
    proxies = [part for one in check_proxies(proxy or ()) for part in ("--proxy", one)]
    where = context.config()
    output.say("CAUTION: front and work are one user here; on a server start runner front as another one")
    provider = ["--oidc", str(oidc.resolve())] if oidc else []
    given = ["--bind", bind, *(["--url", url] if url else []), "--exchange", str(where.exchange), *proxies]
    given += provider
    supervise({"work": ["work"], "front": ["front", *given]})


@contextmanager
def _desk() -> Iterator[Desk]:
    from runner.work.managing import managing
    from runner.work.proposals import Desk

    where = context.config()
    with managing(where) as made:
        yield Desk(made, context.all_tasks(where))


@requests.command("list", epilog="Examples:  runner requests list  |  runner requests list --json")
def list_(as_json: options.JsonOption = False) -> None:
    """List what was proposed and waits, by its number."""
    from runner.work.proposals import waiting

    with _desk() as desk:
        found = waiting(desk.managing.store.log)
        teams = len(desk.managing.accounts.registrations.waiting())
    if teams:
        output.say(
            f"{teams} {'team waits' if teams == 1 else 'teams wait'} to be let in: runner team waiting"
        )
    if as_json:
        output.as_json([vars(one) | {"asked": dict(one.asked)} for one in found])
    elif not found:
        output.say("nothing is proposed")
    else:
        rows = [(str(one.number), one.time[:16].replace("T", " "), one.account, one.says) for one in found]
        output.table(("proposal", "UTC", "account", "what"), rows, right=("proposal",))


@requests.command(epilog="Examples:  runner requests show 17")
def show(number: NumberArgument) -> None:
    """Say what happens when a proposal is approved, from the data that are here."""
    with _desk() as desk:
        one = desk.find(number)
        output.data(f"proposal {one.number}: {one.says}")
        output.data(f"by {one.account}, {one.time}")
        for line in desk.shown(one):
            output.data(line)


@requests.command(epilog="Examples:  runner requests approve 17  |  runner requests approve 17 --yes")
def approve(
    number: NumberArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
) -> None:
    """Do what was proposed. Says first what happens, and asks."""
    with _desk() as desk:
        one = desk.find(number)
        for line in desk.shown(one):
            output.say(line)
        if not yes and not (sys.stdin.isatty() and typer.confirm("Do it?", default=False, err=True)):
            fix = f"runner requests approve {number} --yes, or runner requests reject {number}"
            raise RunnerError("E101", "nothing was done", why="Nobody said yes.", fix=fix)
        for line in desk.approve(one):
            output.data(line)
    output.say(f"proposal {number} is approved, and done")


@requests.command(epilog="Examples:  runner requests reject 17 --reason 'not before the workshop'")
def reject(number: NumberArgument, reason: options.ReasonOption = "") -> None:
    """Reject what was proposed: nothing happens."""
    with _desk() as desk:
        desk.reject(desk.find(number), reason)
    output.say(f"proposal {number} is rejected")
