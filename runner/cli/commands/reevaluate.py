"""``runner reevaluate``: archived runs are evaluated again, what that changes is printed, and counts once it is accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from runner.cli import options, output
from runner.cli.app import app
from runner.model.errors import ORGANISER, PLATFORM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner.execution.pool import Undone
    from runner.execution.reevaluation import Rank, Value
    from runner.model.run import Run
    from runner.records.store.connect import Store

VALUES = ("run", "measure", "old", "new", "difference")
RANKS = ("table", "software", "rank", "new", "score", "new")


@app.command(
    epilog="Examples:  runner reevaluate --task vaswani --all  |  runner reevaluate --task vaswani --all --accept --reason 'qrels corrected'"
)
def reevaluate(
    everything: options.AllOption = False,
    task: options.TaskOption = None,
    team: options.TeamOption = None,
    dataset: options.DatasetOption = None,
    submission: options.SubmissionOption = None,
    run: options.RunOption = None,
    accept: options.AcceptOption = False,
    reason: options.ReasonOption = "",
    dry_run: options.DryRunOption = False,
    jobs: options.JobsOption = None,
    verbose: options.VerboseOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Evaluate archived runs again (after a correction of qrels or measures), and say what that changes. Never runs software again.

    What gives another result does not count before it is accepted: until then the old scores stay, marked as stale. With
    --accept, what was evaluated again already, and would come out the same now, is not evaluated once more.
    Exit code 4 when an evaluation failed for the organiser's files, 3 when it failed otherwise: the old scores stay then, too.
    """
    from runner.cli.boards import boards
    from runner.cli.plans import planned, result_json
    from runner.execution.coordinator import EvaluationRequest
    from runner.execution.reevaluation import as_data, changed_ranks, changed_values, outlook, picture

    wanted = options.selection(everything, task, team, dataset, submission, run)
    request = EvaluationRequest(wanted, jobs=jobs, only_evaluate=True, accepting=accept)
    with planned(request, dry_run=dry_run, as_json=as_json, verbose=verbose) as (coordinator, todo):
        if todo is None:
            return
        store, known = coordinator.store, coordinator.tasks
        runs = [entry.run for entry in todo.entries]
        tasks = [known[name] for name in dict.fromkeys(run_.submission.task for run_ in runs)]
        before = picture(store, tasks, runs)
        done, failed = coordinator.run(todo, request)
        runs = [done.get(run_.id, run_) for run_ in runs]
        after = outlook(store, tasks, runs)
        found = changed_values(before, after, [run_.id for run_ in runs if not run_.outcome.fault])
        ranks = changed_ranks(before, after)
        if not as_json:
            _show(found, ranks)
        waiting = _accepted(store, runs, accept, reason, ask=not as_json)
        if as_json:
            undone = {**{name: failure.why for name, failure in failed.items()}, **_faults(done)}
            changes = as_data(found, ranks) | {"waiting": [run_.id for run_ in waiting]}
            result_json(coordinator, todo, done, undone, changes)
        else:
            output.data("")
            boards(coordinator, wanted, done)
    _end(done, failed)


def _accepted(store: Store, runs: Sequence[Run], accept: bool, reason: str, *, ask: bool) -> list[Run]:
    """Have what waits count where that is wanted (a person at a terminal is asked); returns the runs that still wait."""
    import sys

    from runner.records.commit import accept as make_them_count
    from runner.views.text import plural

    waiting = [run for run in runs if run.waiting is not None]
    if not waiting:
        return []
    these = plural(len(waiting), "run")
    if not accept and ask and sys.stdin.isatty() and sys.stderr.isatty():
        accept = typer.confirm(f"{these} evaluated again with another result. Should that count?", err=True)
    if accept:
        make_them_count(store, waiting, reason)
        output.say(f"accepted: the new scores of {these} count from now on")
        return []
    output.say(
        f"{these} evaluated again with another result, which does not count yet: the old scores stay, marked as stale"
    )
    output.say("to have it count: the same command with --accept --reason TEXT")
    return waiting


def _faults(done: Mapping[str, Run]) -> dict[str, str]:
    return {name: run.outcome.reason for name, run in done.items() if run.outcome.fault}


def _show(found: list[Value], ranks: list[Rank]) -> None:
    """Print what changed: values of runs first, then rows of boards."""
    figure = output.figure
    if found:
        output.data("")
        values = []
        for v in found:
            old = output.figure(v.old) + (f" ({v.of})" if v.of else "")
            difference = "" if v.difference is None else f"{v.difference:+.4f}"
            values.append((v.run, v.measure, old, output.figure(v.new), difference))
        output.table(VALUES, values, right=VALUES[2:])
    if ranks:
        output.data("")
        places = [
            (
                f"{r.task} {r.table}",
                r.software,
                _place(r.old),
                _place(r.new),
                figure(r.old_score),
                figure(r.new_score),
            )
            for r in ranks
        ]
        output.table(RANKS, places, right=RANKS[2:])
    if found and all(r.old == r.new for r in ranks):
        output.say("no rank has changed")


def _place(rank: int | None) -> str:
    return "not ranked" if rank is None else str(rank)


def _end(done: Mapping[str, Run], failed: Mapping[str, Undone]) -> None:
    """Say what failed, and end with 4 where the organiser's files are at fault, with 3 otherwise."""

    codes: list[int] = [undone.exit_code for undone in failed.values()]
    for name, undone in failed.items():
        output.say(f"not evaluated: {name}: {undone.why}")
    for name, why in _faults(done).items():
        old = " Its old scores stand on the boards, marked as stale." if done[name].outcome.old else ""
        output.say(f"failed: {name}: {why}.{old} runner logs {name} --evaluator shows more")
        codes.append(ORGANISER if done[name].outcome.fault == "organiser" else PLATFORM)
    if codes:
        raise typer.Exit(ORGANISER if ORGANISER in codes else PLATFORM)
