"""``runner reevaluate``: archived runs are evaluated again, and what that changed is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from runner.cli import options, output
from runner.cli.app import app
from runner.model.errors import ORGANISER, PLATFORM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.execution.pool import Undone
    from runner.execution.reevaluation import Rank, Value
    from runner.model.run import Run

VALUES = ("run", "measure", "old", "new", "difference")
RANKS = ("table", "software", "old rank", "new rank")


@app.command(
    epilog="Examples:  runner reevaluate --task vaswani --all  |  runner reevaluate --run baselines.bm25.1a2b3c4d.test"
)
def reevaluate(
    everything: options.AllOption = False,
    task: options.TaskOption = None,
    team: options.TeamOption = None,
    dataset: options.DatasetOption = None,
    submission: options.SubmissionOption = None,
    run: options.RunOption = None,
    dry_run: options.DryRunOption = False,
    jobs: options.JobsOption = None,
    verbose: options.VerboseOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Evaluate archived runs again (after a correction of qrels or measures), and say what that changed. Never runs software again.

    Exit code 4 when an evaluation failed for the organiser's files, 3 when it failed otherwise: the old scores stay, marked as stale.
    """
    from runner.cli.boards import boards
    from runner.cli.plans import planned, result_json
    from runner.execution.coordinator import EvaluationRequest
    from runner.execution.reevaluation import as_data, changed_ranks, changed_values, picture

    wanted = options.selection(everything, task, team, dataset, submission, run)
    request = EvaluationRequest(wanted, jobs=jobs, only_evaluate=True)
    with planned(request, dry_run=dry_run, as_json=as_json, verbose=verbose) as (coordinator, todo):
        if todo is None:
            return
        store, known = coordinator.store, coordinator.tasks
        tasks = [known[name] for name in dict.fromkeys(p.run.submission.task for p in todo.work)]
        before = picture(store, tasks, [p.run for p in todo.work])
        done, failed = coordinator.run(todo, request)
        after = picture(store, tasks, done.values())
        found = changed_values(before, after, [name for name, run_ in done.items() if not run_.outcome.fault])
        ranks = changed_ranks(before, after)
        if as_json:
            undone = {**{name: failure.why for name, failure in failed.items()}, **_faults(done)}
            result_json(coordinator, todo, done, undone, as_data(found, ranks))
        else:
            boards(coordinator, wanted, done)
            _show(found, ranks)
    _end(done, failed)


def _faults(done: Mapping[str, Run]) -> dict[str, str]:
    return {name: run.outcome.reason for name, run in done.items() if run.outcome.fault}


def _show(found: list[Value], ranks: list[Rank]) -> None:
    """Print what changed: values of runs first, then ranks."""
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
        places = [(f"{r.task} {r.table}", r.software, _place(r.old), _place(r.new)) for r in ranks]
        output.table(RANKS, places, right=RANKS[2:])
    elif found:
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
