"""The machine and the data directory: setup, doctor, store, gc."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context, options, output
from runner.cli.app import app, group
from runner.model.errors import PLATFORM
from runner.tasks.services import data_digest

if TYPE_CHECKING:
    from runner.model.config import Config

stores = group("store", "The derived database: rebuild it, verify what it is made from.")


@app.command(epilog="Examples:  runner setup  |  runner setup --all  |  RUNNER_BASE=local runner setup")
def setup(
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also what is made when first needed: sidecars' image, tools."),
    ] = False,
    front: Annotated[
        bool, typer.Option("--front", help="Also the image of the front, for deploy/compose.yaml.")
    ] = False,
) -> None:
    """Make this machine ready: packages, container engine, base image, our own images. Does nothing twice."""
    from runner import provision as machine

    for name, image in machine.run(context.config(), output.say, everything=everything, front=front).items():
        output.say(f"ready: {name} {image.id[7:19]}")


@app.command(epilog="Examples:  runner doctor  |  runner doctor --json")
def doctor(as_json: options.JsonOption = False) -> None:
    """Check this machine: one line each, PASS, CAUTION or FAIL, with the command that corrects it."""
    from runner.doctor import diagnose, worst

    checks = diagnose(context.config(report_mode=False))
    if as_json:
        output.as_json([check.as_dict() for check in checks])
    else:
        output.checks(checks)
    if worst(checks) == "FAIL":
        raise typer.Exit(PLATFORM)


@stores.command(epilog="Examples:  runner store rebuild")
def rebuild(
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Also from a log that holds less than was recorded once; that is written down in it.",
        ),
    ] = False,
) -> None:
    """Make the database again from the archive and the event log, and the kept replies of models from the archive."""
    from runner.execution.replies import rebuild as replies_again
    from runner.records.archive import RunArchive
    from runner.records.store.connect import rebuild as build_again

    where = context.config()
    position = build_again(where, accept_loss=accept_loss)
    archive = RunArchive(where.archive)
    kept = sum(replies_again(where.home, archive, task) for task in archive.tasks())
    output.say(
        f"rebuilt from {position.seq} events, head {position.hash or 'none'}"
        + (f"; kept replies of models: {kept}" if kept else "")
    )


@stores.command(
    epilog="Examples:  runner store verify  |  runner store verify --head 9f86d081884c7d65  |  runner store verify --json"
)
def verify(
    head: Annotated[
        list[str] | None,
        typer.Option(
            "--head",
            help="A head as a receipt or a frozen round names it (12 digits or more): is it still on the chain? Repeatable.",
        ),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Compare event log, archive, registered bundles, frozen rounds and database with each other and with the last known head."""
    from runner.records.store.verify import damage_found
    from runner.records.store.verify import verify as look

    where = context.config()
    result = look(where, head or ())
    if as_json:
        output.as_json(result.as_dict())
    if result.problems:
        raise damage_found(result.problems, f"{where.home} is damaged")
    for note in result.notes:
        output.say(note)
    output.say(f"all hashes match: {result.events} events, head {result.head or 'none'}")


@stores.command(epilog="Examples:  runner store backup /media/disk/proctor.tar.gz")
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    accept_damage: Annotated[
        bool,
        typer.Option("--accept-damage", help="Write the backup even if records are lost or changed."),
    ] = False,
) -> None:
    """Write all that cannot be made again into one file: event log, rounds, submissions, archive.

    Everything that is copied is compared with the event log before.
    """
    from runner.records.backup import backup as write
    from runner.work.members.accounts import copy_accounts

    where = context.config()
    size = write(where, file, partial(copy_accounts, where), accept_damage=accept_damage)
    output.say(f"{file} holds the backup, {size:,} bytes; tasks/, truths and images are not in it")


@stores.command(epilog="Examples:  RUNNER_HOME=.runner-new runner store restore /media/disk/proctor.tar.gz")
def restore(file: Annotated[Path, typer.Argument(help="A file of runner store backup.")]) -> None:
    """Put a backup into an empty data directory, make the database again, and compare both with the event log."""
    from runner.records.backup import restore as put_back
    from runner.records.store.verify import damage_found, verify_backed_up

    where = context.config()
    put_back(file, where.home)
    rebuild(accept_loss=False)
    if problems := verify_backed_up(where):
        raise damage_found(problems, f"{file} was restored, and its records are damaged")


@app.command(epilog="Examples:  runner gc --dry-run  |  runner gc")
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Remove what nothing needs any more: leftovers of killed processes, data volumes of old inputs, contents of no run, and
    in the artefact stores of clusters what nobody brought for 30 days."""
    from runner.tasks.files import inputs_digest, missing_sources, truths_digest, view_addresses, view_digests
    from runner.tasks.views import sweep

    where = context.config()
    engine = context.engine(where)
    keep: set[str] = set()
    views: set[str] = set()
    for task in context.all_tasks(where).values():
        for dataset in task.datasets.values():
            if dataset.inputs.is_dir() and not missing_sources(dataset, "inputs", optional=False):
                keep.add(inputs_digest(dataset))
                for scenario in task.scenarios.values():
                    keep |= view_digests(dataset, scenario)
                    views |= view_addresses(dataset, scenario)
            if dataset.truths.is_dir() and not missing_sources(dataset, "truths", optional=False):
                keep.add(truths_digest(dataset))
        keep |= {model.digest.removeprefix("sha256:") for model in task.models}
        for service in task.services.values():
            if service.data is not None and service.data.is_dir():
                keep.add(str(data_digest(service)))
    swept = engine.reap(dry_run=dry_run)
    volumes = engine.gc(keep_digests=keep, dry_run=dry_run)
    folders = _old_folders(where, dry_run) + sweep(where.home / "views", views, dry_run=dry_run)
    contents, brought = _old_contents(where, dry_run), _old_artefacts(where, dry_run)
    if as_json:
        found = {"attempts": swept, "volumes": volumes, "folders": folders}
        output.as_json({**found, "contents": contents, "artefacts": brought})
    else:
        found = {"leftover attempts": swept, "data volumes": volumes, "scratch folders": folders}
        _said(dry_run, {**found, "contents": contents, "contents of artefact stores": brought})


def _said(dry_run: bool, found: Mapping[str, Sequence[str]]) -> None:
    """Say how much was removed; of what would be, every name."""
    for what, names in found.items() if dry_run else ():
        for name in names:
            output.data(f"{what}: {output.printable(name)}")
    counts = ", ".join(f"{len(names)} {what}" for what, names in reversed(list(found.items())))
    output.say(f"{'would remove' if dry_run else 'removed'}: {counts}")


def _old_contents(where: Config, dry_run: bool) -> list[str]:
    """Contents of the content store that no attempt, evaluation or submission needs. Without ``dry_run`` they are removed.

    Raises E307 when the archive does not say what it needs.
    """
    from runner.records.archive import RunArchive
    from runner.records.integrity import needed

    archive = RunArchive(where.archive)
    wanted = {content.sha256 for content in needed(archive, where.registered)}
    return archive.contents.sweep(wanted, dry_run=dry_run)


def _old_artefacts(where: Config, dry_run: bool) -> list[str]:
    """Contents of the artefact stores of clusters, where there are any, that nobody brought for so long that nobody orders them any more.

    Without ``dry_run`` they are removed. Raises E101, E313.
    """
    from runner.execution.cluster.places import places

    stores = [store for place in places(where) for store in place.stores(where.store_credentials).all()]
    return [name for store in stores for name in store.sweep_contents(dry_run=dry_run)]


def _old_folders(where: Config, dry_run: bool) -> list[str]:
    """What killed processes left on the disk: scratch folders of local checks a day old or more, runs half written.

    Without ``dry_run`` they are removed.
    """
    import time

    from runner.execution.trials.software import remove_scratch
    from runner.records.archive import RunArchive

    old = [p for p in where.home.glob("check-*") if p.is_dir() and time.time() - p.stat().st_mtime > 86400]
    if not dry_run:
        for folder in old:
            remove_scratch(folder)
    return [p.name for p in old] + RunArchive(where.archive).sweep(dry_run=dry_run)
