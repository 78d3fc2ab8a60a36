"""Looking after what was done: the event log in plain words."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Annotated

import typer

from runner.cli import context, options, output
from runner.cli.app import app
from runner.model.errors import RunnerError, no_such


@app.command(
    epilog="Examples:  runner events  |  runner events vaswani --team mine  |  runner events --kind run-released --since 2026-05-01  |  runner events --actor anna --json"
)
def events(
    task: options.OnlyTaskArgument = None,
    team: options.TeamOption = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only this kind, for example dataset-published.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", help='Only from a day (UTC) or time on: 2026-05-01, "2026-05-01 12:00 CEST".'
        ),
    ] = None,
    actor: Annotated[
        str | None, typer.Option("--actor", help="Only what this person did; also organiser or runner.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """List the event log: who did what and when, in plain words. Its chain of hashes is verified first. For organisers."""
    from runner.views.history import told

    where, moment = context.config(), None if since is None else _moment(since)
    with context.store(where) as store:
        everything = list(store.log)
    found = told(everything, task=task, team=team, kind=kind, since=moment, actor=actor)
    if task is not None and not found:
        from runner.tasks.load import task_ids

        known = {*task_ids(where), *(one.task for one in told(everything))}
        if task not in known:
            raise no_such("task", task, known, fix="see the folders under tasks/")
    if as_json:
        output.as_json([one.as_dict() for one in found])
    elif found:
        rows = [(str(one.event.seq), _minute(one.event.time), one.who, one.says) for one in found]
        output.table(("event", "UTC", "who", "what"), rows, right=("event",))
    else:
        output.say("no such events")
    last = everything[-1] if everything else None
    head = f": event {last.seq}, head {last.hash}" if last else ", and empty"
    output.say(f"the chain of the log is whole{head}")


def _minute(stamp: str) -> str:
    return stamp[:16].replace("T", " ")


def _moment(text: str) -> datetime:
    """The time that a person wrote; a day begins at midnight UTC. Raises E101."""
    from runner.model.dates import DateError, parse

    try:
        if len(text) == len("2026-05-01"):
            return datetime.combine(datetime.fromisoformat(text).date(), time(), UTC)
        return parse(text).at
    except (DateError, ValueError) as error:
        fix = 'write --since 2026-05-01, or --since "2026-05-01 12:00 UTC"'
        raise RunnerError("E101", f"--since: {output.printable(str(error))}", fix=fix) from error
