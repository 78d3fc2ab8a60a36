"""Review: what was done, in plain words, and runs approved, flagged and commented."""

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


@app.command(
    epilog="Examples:  runner review RUN --approve  |  runner review RUN --flag 'same output as another team' --to organiser  |  runner review RUN --comment 'thank you for the fix' --to team  |  runner review RUN --undo"
)
def review(
    run: options.RunArgument,
    approve: Annotated[bool, typer.Option("--approve", help="It may stand on everybody's boards.")] = False,
    flag: Annotated[
        str | None, typer.Option("--flag", metavar="REASON", help="Something is wrong with it.")
    ] = None,
    comment: Annotated[str | None, typer.Option("--comment", metavar="TEXT", help="Write about it.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Neither approved nor flagged any more.")] = False,
    to: Annotated[
        str, typer.Option("--to", help="Who reads a flag or comment: organiser, or team (its team, too).")
    ] = "organiser",
) -> None:
    """Approve, flag or comment a run. Where task.yaml says review: required, others see it on boards only once it is approved.

    An approval and a flag hold for the attempt that counts now. Its team sees an approval; a flag or comment only with --to team.
    """
    from runner.records.review import comment_run, decide

    decisions = [approve, flag is not None, undo]
    if sum(decisions) > 1 or not (any(decisions) or comment is not None):
        fix = "give one of --approve, --flag REASON and --undo, or --comment TEXT, which goes with each"
        raise RunnerError("E101", "what is decided about the run is not clear", fix=fix)
    if to not in ("organiser", "team"):
        raise no_such("reader", to, ("organiser", "team"), fix="use organiser or team", code="E101")
    where = context.config()
    tasks = context.all_tasks(where)
    with context.store(where) as store:
        from runner.views.audience import ORGANISER
        from runner.views.listing import run_id

        name = run_id(store, tasks, ORGANISER, run)
        if any(decisions):
            state = "approved" if approve else "open" if undo else "flagged"
            new = decide(store, tasks, name, state, flag or "", to)
            output.say(f"{name} is {_STATES[state]}{'' if new else ' already'}")
        if comment is not None:
            comment_run(store, tasks, name, comment, to)
            output.say(f"{name} was commented, for {'its team, too' if to == 'team' else 'organisers only'}")


_STATES = {"approved": "approved", "flagged": "flagged", "open": "neither approved nor flagged"}


@app.command(
    "release-log",
    epilog="Examples:  runner release-log RUN --lines 10-14 --dry-run  |  runner release-log RUN --lines 10-14 --stream stderr",
)
def release_log(
    run: options.RunArgument,
    lines: Annotated[str, typer.Option("--lines", metavar="A-B", help="Which lines, from 1, such as 10-14.")],
    stream: Annotated[str, typer.Option("--stream", help="stdout or stderr.")] = "stderr",
    dry_run: options.DryRunOption = False,
) -> None:
    """Give the team of a run on a blinded dataset some lines of its log, without what stands in the hidden files.

    Read them first, with --dry-run: a software can write hidden topics in a form that nobody recognises. All excerpts of a team on a
    dataset have at most so many bytes as log_excerpts in task.yaml says; each can carry 8 bits.
    """
    from runner.views import excerpts

    where = context.config()
    with context.store(where) as store:
        made = excerpts.prepared(store, context.all_tasks(where), run, stream, lines)
        if not dry_run:
            made.give(store)
    for line in made.numbered():
        output.data(output.printable(line))
    done = "would go" if dry_run else "go" if made.new else "went already"
    output.say(made.says(done))
    output.say(made.left_says())
