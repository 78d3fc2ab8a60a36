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
from schemas.files import make_private

if TYPE_CHECKING:
    from runner.work.members.registrations import Registration
    from runner.work.proposals import Desk, Proposal

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
    "requests",
    "What organisers proposed on the web, and teams that registered: nothing happens before it is approved here.",
)
site = group("site", "The pages that everybody may see as files, which need no server.")
RequestArgument = Annotated[
    str,
    typer.Argument(
        metavar="REQUEST",
        help="The number of a proposal, or the account of a team that registered, as runner requests list has them.",
    ),
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
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            envvar="RUNNER_FRONT_DATABASE",
            show_envvar=False,
            help="postgresql://…, where its own database is not to be a file (RUNNER_FRONT_DATABASE, which keeps a password out of sight).",
        ),
    ] = None,
) -> None:
    """Serve the pages and take hand-ins. It needs neither the project nor the data directory: only the exchange folder."""
    from runner.cli.serving import serve_front

    if exchange is None:
        exchange = context.config().exchange
    folder = exchange
    serve_front(folder, state or folder / "front", bind, url, proxy or (), work_key, oidc, database or None)


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

    Both run as the same user then, which is for trying and for one laptop. Where the kernel does not keep the front from what
    work has, it says CAUTION.
    """
    from runner.cli.serving import PAGE, TWO_USERS, check_address, check_installed, check_proxies, supervise
    from runner.exchange.confined import offered

    check_installed()
    check_address(bind, url)
    proxies = [part for one in check_proxies(proxy or ()) for part in ("--proxy", one)]
    where = context.config(report_mode=False)  # runner work does
    make_private(where.home)  # before the front makes folders below it
    said = "front and work are one user here"
    if offered():
        output.say(f"{said}; this kernel keeps the front to its own folders. On a server they are two:")
    else:
        output.say(f"CAUTION: {said}; on a server start runner front as another one:")
    output.say(f"{PAGE}, {TWO_USERS}")
    provider = ["--oidc", str(oidc.resolve())] if oidc else []
    given = ["--bind", bind, *(["--url", url] if url else []), "--exchange", str(where.exchange), *proxies]
    given += provider
    supervise({"work": ["work"], "front": ["front", *given]})


@site.command(
    epilog="Examples:  runner site build public  |  runner site build public --url https://task.example.org/2031  |  runner site build public --check"
)
def build(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Is made; a site that was made before is replaced.")
    ],
    url: Annotated[
        str | None,
        typer.Option("--url", help="Where people will find it; entries of its feed are named by that."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Build nothing: say which links of the site that is there are broken."),
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Write what everybody may see now as pages in a folder: they outlive every server, and ask nothing of anybody.

    They open from the folder itself, or stand below any address. Links are checked before the folder takes its place. Exit
    code 1 with --check for links that are broken.
    """
    from runner.cli.serving import check_installed, check_people
    from runner.cli.site import URL
    from runner.cli.site import build as built
    from runner.web.links import check as checked

    if check:
        if not folder.is_dir():
            raise RunnerError("E102", f"there is no folder {folder}", fix=f"runner site build {folder}")
        pages, broken = checked(folder)
        if as_json:
            output.as_json({"pages": pages, "broken": [vars(one) for one in broken]})
        else:
            for one in broken:
                output.data(str(one))
            output.say(f"{pages} pages, {len(broken)} broken links")
        if broken:
            raise typer.Exit(1)
        return
    check_installed()
    where, at = context.config(), check_people(url) if url else URL
    with context.store(where) as store:
        pages, files = built(store, context.all_tasks(where), folder, output.show_error, url=at)
    if as_json:
        output.as_json({"pages": pages, "files": files, "folder": str(folder)})
    else:
        output.say(f"{pages} pages in {files} files; begin at {folder / 'index.html'}")


@contextmanager
def _desk() -> Iterator[Desk]:
    from runner.work.managing import managing
    from runner.work.proposals import Desk

    where = context.config()
    with managing(where) as made:
        yield Desk(made, context.all_tasks(where))


@contextmanager
def _either(text: str) -> Iterator[tuple[Desk, Proposal | Registration]]:
    """What a number or an account id names: a proposal or a registration. Raises E101 and E102."""
    with _desk() as desk:
        waits = desk.managing.accounts.registrations
        yield desk, desk.find(int(text)) if text.isdecimal() else waits.named(text)


@requests.command("list", epilog="Examples:  runner requests list  |  runner requests list --json")
def list_(as_json: options.JsonOption = False) -> None:
    """List what waits for a decision: proposals by their numbers, teams that registered by the ids of their accounts."""
    from runner.work.proposals import waiting

    with _desk() as desk:
        found = waiting(desk.managing.store.log)
        teams = desk.managing.accounts.registrations.waiting()
    if as_json:
        proposed = [{"kind": "proposal", **vars(one), "asked": dict(one.asked)} for one in found]
        keys = ("account", "team", "task", "arrival")
        output.as_json(
            [
                *proposed,
                *({"kind": "registration"} | {key: getattr(one, key) for key in keys} for one in teams),
            ]
        )
    elif not found and not teams:
        output.say("nothing is proposed, and nobody waits to be let in")
    else:
        rows = [(str(one.number), one.time[:16].replace("T", " "), one.account, one.says) for one in found]
        rows += [
            (
                one.account,
                one.arrival[:16].replace("T", " "),
                "",
                f"the team {one.team} registers for {one.task}",
            )
            for one in teams
        ]
        output.table(("request", "UTC", "by", "what"), rows)


@requests.command(epilog="Examples:  runner requests show 17  |  runner requests show a-0123456789abcdef")
def show(request: RequestArgument) -> None:
    """Say what happens when a request is approved, from the data that are here."""
    with _either(request) as (desk, one):
        for line in _head(one):
            output.data(line)
        for line in desk.shown(one):
            output.data(line)


@requests.command(epilog="Examples:  runner requests approve 17  |  runner requests approve 17 --yes")
def approve(
    request: RequestArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
) -> None:
    """Do what was proposed, or let a team in that registered. Says first what happens, and asks."""
    with _either(request) as (desk, one):
        for line in desk.shown(one):
            output.say(line)
        if not yes and not (sys.stdin.isatty() and typer.confirm("Do it?", default=False, err=True)):
            fix = f"runner requests approve {request} --yes, or runner requests reject {request}"
            raise RunnerError("E101", "nothing was done", why="Nobody said yes.", fix=fix)
        for line in desk.approve(one):
            output.data(line)
    output.say(f"{_named(one)} is approved, and done")


@requests.command(epilog="Examples:  runner requests reject 17 --reason 'not before the workshop'")
def reject(request: RequestArgument, reason: options.ReasonOption = "") -> None:
    """Reject what was proposed: nothing happens; or refuse a team that registered, which is told the reason."""
    with _either(request) as (desk, one):
        desk.reject(one, reason)
    output.say(f"{_named(one)} is rejected")


def _head(one: Proposal | Registration) -> list[str]:
    from runner.work.proposals import Proposal

    return (
        [f"{_named(one)}: {one.says}", f"by {one.account}, {one.time}"] if isinstance(one, Proposal) else []
    )


def _named(one: Proposal | Registration) -> str:
    from runner.work.proposals import Proposal

    return f"proposal {one.number}" if isinstance(one, Proposal) else f"the registration {one.account}"
