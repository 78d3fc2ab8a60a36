"""More than one machine: hosts that execute software, and what brings them together."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.cli import context, options, output
from runner.cli.app import app, group
from runner.model.errors import PLATFORM, RunnerError
from schemas.files import make_private

if TYPE_CHECKING:
    from runner.execution.cluster.host import Station
    from runner.execution.cluster.storage.grants import Store

cluster = group(
    "cluster", "Hosts that execute software, or evaluate: their certificates, and what brings them together."
)
GIB = 1 << 30
CredentialsOption = Annotated[
    Path | None,
    typer.Option(
        "--store-credentials", envvar="RUNNER_STORE_CREDENTIALS", help="File of what opens the stores."
    ),
]
OriginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--store-origin",
        envvar="RUNNER_STORE_ORIGIN",
        help="Hold no credentials of stores: use what the coordinator grants, at this origin (https://HOST) alone. May be given several times.",
    ),
]
CertificatesOption = Annotated[
    Path | None,
    typer.Option(
        "--certificates",
        envvar="RUNNER_CERTIFICATES",
        help="Folder with ca.pem, cert.pem and key.pem of this machine.",
    ),
]


@app.command(
    epilog="Examples:  runner worker tls://10.0.0.1:8786 --artefacts file:///srv/artefacts --certificates /etc/proctor/host2"
)
def worker(
    scheduler: Annotated[str, typer.Argument(help="Address of the scheduler: tls://HOST:PORT.")],
    artefacts: Annotated[
        str,
        typer.Option(
            "--artefacts", envvar="RUNNER_ARTEFACTS", help="Where files are laid down for hosts, and by them."
        ),
    ],
    certificates: CertificatesOption = None,
    name: Annotated[
        str | None, typer.Option("--name", help="What the host is called; default: as its system says.")
    ] = None,
    state: Annotated[
        Path, typer.Option("--state", help="A folder of its own, for what it keeps.", show_default=False)
    ] = Path("/var/lib/proctor-worker"),
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="At most so many at once.")] = None,
    keep: Annotated[
        int, typer.Option("--keep", min=1, help="GiB of data and images kept for the next runs.")
    ] = 50,
    label: Annotated[
        list[str] | None, typer.Option("--label", help="A word about this host; may be given several times.")
    ] = None,
    blinded: Annotated[
        str | None,
        typer.Option(
            "--blinded-artefacts",
            envvar="RUNNER_BLINDED_ARTEFACTS",
            help="The store of what concerns hidden data, where that is another one; without it, public data only.",
        ),
    ] = None,
    credentials: CredentialsOption = None,
    store_origin: OriginOption = None,
    evaluations: Annotated[
        bool, typer.Option("--evaluations", help="Evaluate, and execute no software: this host sees truths.")
    ] = False,
) -> None:
    """Work on this machine for a coordinator elsewhere, until it is ended: what runs then is done first."""
    from runner.execution.cluster.line import check_address, check_installed
    from runner.execution.cluster.members import work
    from runner.execution.cluster.storage.stores import store_of_host

    check_installed()
    check_address(scheduler, certificates)
    stores = [store_of_host(one, credentials, store_origin or ()) for one in (artefacts, blinded) if one]
    station = _station(name or platform.node(), stores, state.absolute(), keep * GIB)
    station.steps, station.labels = jobs, tuple(label or ())
    station.role = "evaluations" if evaluations else "software"
    try:
        work(station, scheduler, certificates, output.say)
    finally:
        station.close()
        station.engine.close()


def _station(name: str, stores: Sequence[Store], state: Path, keep: int) -> Station:
    """This machine as a host, with one store or the open and the blinded one. Raises E301, E302, E304 and E305 where its engine cannot run software as it has to be run."""
    from runner.execution.cluster.host import Station
    from runner.execution.cluster.storage.cache import Cache
    from runner.model.config import Config
    from runner.model.errors import disk_error
    from runner.provision.engine import open_engine
    from runner.provision.images import images, states

    try:
        make_private(state)
    except OSError as error:
        raise disk_error(f"{state} cannot be made", error) from error
    context.report_wide_mode(state)
    config = Config(root=state, home=state, truths=None, engine=os.environ.get("DOCKER_HOST") or None)
    engine = open_engine(config, output.say)
    engine.require()
    images(engine)  # what software is given and writes is kept by a container of ours
    gone = engine.reap()
    if gone:
        output.say(f"removed what an earlier worker left: {len(gone)}")
    open_, blinded = stores[0], stores[1] if len(stores) > 1 else None
    cache, own = Cache(state / "cache", open_, keep), tuple(one.id for one in states(engine) if one.id)
    return Station(name, engine, open_, cache, blinded=blinded, images=own)


@cluster.command(
    epilog="Examples:  runner cluster scheduler --listen tls://10.0.0.1:8786 --certificates /etc/proctor/host1"
)
def scheduler(
    listen: Annotated[
        str, typer.Option("--listen", help="Where hosts and coordinator find it: tls://HOST:PORT.")
    ],
    certificates: CertificatesOption = None,
    gone_after: Annotated[
        int, typer.Option("--gone-after", min=5, help="Seconds after which a host that says nothing is lost.")
    ] = 30,
) -> None:
    """Bring hosts and coordinator together, until it is ended. It keeps nothing: it can be ended and started at any time."""
    from runner.execution.cluster.line import check_address, check_installed
    from runner.execution.cluster.members import schedule

    check_installed()
    check_address(listen, certificates)
    schedule(listen, certificates, output.say, gone_after)


@cluster.command(epilog="Examples:  runner cluster show  |  runner cluster show --json")
def show(as_json: options.JsonOption = False) -> None:
    """Show the hosts that are there, what they have and are at, and why one is given no work. Exit code 3 where a scheduler does not answer."""
    from runner.engines.sandbox import sandbox_digest
    from runner.execution.cluster.joining import Wanted, shown, unfit
    from runner.execution.cluster.line import AWAY, hosts_now
    from runner.execution.cluster.places import places

    where, rows, away = context.config(), list[dict[str, Any]](), False
    if not (found := places(where)):
        raise RunnerError(
            "E101", "no cluster is named", fix="name its scheduler: RUNNER_CLUSTER=tls://HOST:8786"
        )
    sandbox = sandbox_digest(context.machine(where).own_profile())
    for place in found:
        wanted = Wanted(place.role, sandbox, place.stores(where.store_credentials))
        hosts, problems = hosts_now(place.address, place.certificates)
        rows += [
            {**shown(said), "address": address, "why_not": unfit(said, wanted), "cluster": place.role}
            for address, said in sorted(hosts.items())
        ]
        for problem in problems:
            output.say(problem)
        away |= not hosts and any(AWAY in problem for problem in problems)
    if as_json:
        output.as_json(rows)
    elif rows or not away:
        _print(rows)
    if away:
        raise typer.Exit(PLATFORM)


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    output.table(
        ["Host", "For", "Address", "Processors", "Memory", "At work", "Kept", "Free", "Given work"],
        [
            [
                str(row.get("name", "")),
                row["cluster"],
                row["address"],
                str(row.get("cpus", "")),
                _gib(row.get("memory")),
                str(len(row.get("at_work") or ())),
                _gib(row.get("cached")),
                _gib(row.get("room")),
                row["why_not"] or _what(row.get("full")),
            ]
            for row in rows
        ],
    )
    if not rows:
        output.say("no host is there: runner worker on each of them")


def _what(full: object) -> str:
    """What a host is given that is given work; ``full`` is what had no room there."""
    return f"what fits: {output.printable(str(full)[:300])}" if full else "yes"


def _gib(size: object) -> str:
    return f"{size / GIB:.1f} GiB" if isinstance(size, int | float) else ""


@cluster.command(epilog="Examples:  runner cluster reap")
def reap() -> None:
    """Remove the containers that killed workers left at this machine's engine; whatever a live process has stays.

    For what ends workers without asking them, such as a batch system (its epilogue). A worker does the same when it starts.
    """
    from runner.model.config import Config
    from runner.provision.engine import open_engine

    nowhere = Path("/nonexistent")
    where = Config(root=nowhere, home=nowhere, truths=None, engine=os.environ.get("DOCKER_HOST") or None)
    engine = open_engine(where, output.say)
    try:
        output.say(f"removed what killed workers left: {len(engine.reap())}")
    finally:
        engine.close()


@cluster.command(epilog="Examples:  runner cluster certificates /etc/proctor 10.0.0.1 host2.example.org")
def certificates(
    folder: Annotated[Path, typer.Argument(help="Where they are made; the authority's key stays in it.")],
    hosts: Annotated[list[str], typer.Argument(help="Names or addresses of the machines.")],
) -> None:
    """Make a key and a certificate for each machine of a cluster, signed by an authority that is good for nothing else.

    Take each machine its own folder, and no other.
    """
    from runner.cli.serving import check_installed
    from runner.execution.cluster.certificates import make

    check_installed("cryptography")
    for made in make(folder.absolute(), hosts):
        output.data(str(made))
