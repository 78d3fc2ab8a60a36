"""Data of tasks that does not come with them: fetch it, import it, or make it from runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.cli import context, options, output
from runner.cli.app import group
from runner.cli.terminal import transfers
from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from runner.model.task import Source
    from runner.tasks.transfer.fetch import Fetched

data = group("data", "Data that does not come with a task: fetch it, import it, or make it from runs.")


@data.command(
    epilog="Examples:  runner data pull touche-2021-task1  |  runner data pull touche-2021-task1 --dataset touche-2021"
)
def pull(
    task: options.TaskArgument, dataset: options.DatasetOption = None, as_json: options.JsonOption = False
) -> None:
    """Fetch a task's remote files and check their hashes. Start it again after any interruption: it goes on."""
    from runner.tasks.files import missing_sources
    from runner.tasks.folders import make_private_root
    from runner.tasks.transfer.fetch import pull as fetch

    where = context.config()
    loaded = context.load_task(where, task)
    chosen = [context.get_dataset(loaded, dataset)] if dataset else list(loaded.datasets.values())
    make_private_root(where, chosen)
    results: list[dict[str, Any]] = []
    worst = 0
    with transfers() as bars:

        def on_progress(source: Source, done: int, total: int | None) -> None:
            bars(source.name, done, total)

        for part, source in [(d, s) for d in chosen for s in d.sources if s.url is not None]:
            try:
                results.append(_fetched(part.id, fetch(source, on_progress=on_progress)))
            except RunnerError as error:  # the other files are still wanted
                output.show_error(error)
                worst = max(worst, error.exit_code)
    for part, source in [(d, s) for d in chosen for s in missing_sources(d) if s.url is None]:
        name = output.printable(source.name)
        output.say(
            f"{part.id}/{name} has no address: get the file (see the task's README), "
            f"then: runner data import {loaded.id} {part.id} FILE --as {name}"
        )
    if not results and not any(part.sources for part in chosen):
        output.say(f"{loaded.id} names no remote files")
    output.finish(worst, results if as_json else None)


@data.command(
    epilog="Examples:  runner data get my-task dev --to task.example.org  |  "
    'runner data get my-task dev --to task.example.org --accept-terms "2031-1" --out data'
)
def get(
    task: Annotated[str, typer.Argument(help="A task of the server.")],
    dataset: Annotated[str, typer.Argument(help="A dataset of which it offers something.")],
    to: options.ServerOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where its files go. By default TASK/DATASET here.")
    ] = None,
    accept: Annotated[
        str | None,
        typer.Option(
            "--accept-terms",
            help="The terms that your team accepts: VERSION, to be shown them and asked, or VERSION@SHA256, as the refusal names those that it shows.",
        ),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Get the data that a task offers at a server. Start it again after any interruption: it goes on."""
    from runner.cli.remote.getting import get_data

    found = get_data(to, task, dataset, out or Path(task) / dataset, accept)
    if as_json:
        output.as_json(found)


@data.command(
    "import",
    epilog="Examples:  runner data import perspective-2024 dev release.zip  |  "
    "runner data import touche-2021-task1 touche-2021 quality.qrels --as truths/quality.qrels",
)
def import_(
    task: options.TaskArgument,
    dataset: options.DatasetArgument,
    path: Annotated[Path, typer.Argument(help="A release (folder or archive), or with --as a single file.")],
    name: Annotated[
        str | None,
        typer.Option(
            "--as", help="The file of the dataset's sources that PATH is, such as truths/qrels.txt."
        ),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Make a dataset from an official release, or bring a single file whose hash task.yaml names."""
    from runner.kinds import import_release
    from runner.tasks.folders import make_private_root
    from runner.tasks.transfer.fetch import add_local_file

    where, loaded, chosen = context.dataset(task, dataset)
    make_private_root(where, [chosen])
    if name is not None:
        result = _fetched(chosen.id, add_local_file(chosen, name, path))
    else:
        import_release(loaded, chosen, path, output.say)
        output.say(f"{loaded.id}/{chosen.id} was imported; next: runner task check {loaded.id}")
        result = {"dataset": chosen.id, "inputs": str(chosen.inputs), "truths": str(chosen.truths)}
    if as_json:
        output.as_json(result)


@data.command(
    epilog="Examples:  runner data stage rad-2025-judging debates  |  runner data stage rad-2025-judging debates --dry-run"
)
def stage(
    task: options.TaskArgument,
    dataset: Annotated[str, typer.Argument(help="A dataset of the task that is made from runs.")],
    dry_run: options.DryRunOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Make the inputs of a dataset from archived runs (from: in task.yaml), blinded and shuffled."""
    from runner.execution.stage import Stages, why_no_runs

    where = context.config()
    tasks = context.all_tasks(where)
    loaded = tasks.get(task) or context.load_task(where, task)
    chosen = context.get_dataset(loaded, dataset)
    if chosen.stage is None:
        what, why = f"{loaded.id}/{chosen.id} is not made from runs", "Its task.yaml has no from: for it."
        raise RunnerError("E101", what, why=why, fix="runner data pull, or runner data import")
    with context.store(where) as store:
        if dry_run:
            sources, left_out = Stages(where, store, tasks).gather(chosen.stage)
            for source in sources:
                output.say(f"takes {source.run_id} (attempt {source.number})")
            for run, why in left_out.items():
                output.say(f"  leaves out {run}: {why}")
            if as_json:
                taken = [{"run": source.run_id, "attempt": source.number} for source in sources]
                output.as_json({"takes": taken, "leaves_out": dict(left_out)})
            return
        made = Stages(where, store, tasks).build(loaded, chosen)
    state = "was made" if made.new else "is in force; nothing has changed in it"
    lost = f"; {made.skipped} lines hold no debate, or one of over 1 MiB" if made.skipped else ""
    output.say(
        f"{loaded.id}/{chosen.id}: version {made.version[:12]} {state}: {made.debates} debates of {made.runs} runs{lost}"
    )
    if nobody := why_no_runs(loaded, chosen):
        output.say(nobody)
    if as_json:
        facts = {key: getattr(made, key) for key in ("version", "new", "debates", "runs", "skipped")}
        output.as_json({**facts, "inputs": str(made.folder / "inputs")})


@data.command(
    "convert-lookup",
    epilog="Examples:  runner data convert-lookup doc_mapping_ru.pkl lookup/neuclir_1_ru.jsonl.gz",
)
def convert_lookup(
    pickle: Annotated[Path, typer.Argument(help="A pickled dictionary of documents.")],
    target: Annotated[Path, typer.Argument(help="The file to make: .jsonl or .jsonl.gz.")],
    limit: Annotated[
        str,
        typer.Option(
            "--limit", help="The most that the file may take; it is held in memory until it is complete."
        ),
    ] = "2GiB",
    as_json: options.JsonOption = False,
) -> None:
    """Turn a pickled document look-up into JSON Lines, in the sandbox and without running what it holds."""
    from runner.execution.lookups import convert
    from runner.model.limits import parse_size
    from runner.provision.images import images

    try:
        most = parse_size(limit)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--limit") from None
    where = context.config()
    engine = context.engine(where)
    said = convert(engine, images(engine)["evaluator"], pickle, target, limit=most)
    output.say(said)
    if as_json:
        output.as_json({"file": str(target), "bytes": target.stat().st_size})


def _fetched(dataset: str, found: Fetched) -> dict[str, Any]:
    """Say what became of a file; the same for ``--json``."""
    name = output.printable(found.source.name)
    state = "is in its place" if found.new else "was there already"
    sure = "" if found.verified else f"; not verified: task.yaml names no hash (sha256: {found.sha256})"
    output.say(f"{dataset}/{name} {state}, {found.size:,} bytes{sure}")
    facts = {key: getattr(found, key) for key in ("size", "sha256", "verified", "new")}
    return {"dataset": dataset, "path": found.source.name, **facts}
