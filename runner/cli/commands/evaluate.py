"""What organisers do with runs: evaluate, evaluate again (what that changes is printed, and counts once it is accepted), cancel; and
check, which needs no container."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context, options, output
from runner.cli.app import app
from runner.cli.boards import boards
from runner.cli.plans import by_reason, changed_choice, planned, result_json
from runner.model.errors import ORGANISER, PLATFORM, RunnerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner.execution.coordinator import Coordinator
    from runner.execution.pool import Undone
    from runner.execution.reevaluation import Rank, Value
    from runner.model.run import Run, Selection
    from runner.records.store.connect import Store

VALUES = ("run", "measure", "old", "new", "difference")
RANKS = ("table", "software", "rank", "new", "score", "new")


@app.command(
    epilog="Examples:  runner evaluate --all  |  runner evaluate --task vaswani --team mine  |  runner evaluate --all --dry-run"
)
def evaluate(
    everything: options.AllOption = False,
    task: options.TaskOption = None,
    team: options.TeamOption = None,
    dataset: options.DatasetOption = None,
    submission: options.SubmissionOption = None,
    run: options.RunOption = None,
    dry_run: options.DryRunOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Execute settled runs again, as a new attempt.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before forcing many runs.")] = False,
    changed: Annotated[
        str,
        typer.Option(
            "--changed",
            help="Settled runs whose limits, image or data have changed since: ask, again (execute them again) or keep.",
        ),
    ] = "ask",
    jobs: options.JobsOption = None,
    verbose: options.VerboseOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Run what is missing, evaluate it, post it, print the leaderboard. Start it again after any interruption."""
    from runner.execution.coordinator import EvaluationRequest

    wanted = options.selection(everything, task, team, dataset, submission, run)
    request = EvaluationRequest(wanted, force, changed_choice(changed), jobs=jobs)
    with planned(request, dry_run=dry_run, as_json=as_json, verbose=verbose, yes=yes) as (coordinator, todo):
        if todo is None:
            return
        result = coordinator.run(todo, request)
        unsettled = result.unsettled()
        if as_json:
            result_json(coordinator, todo, result.done, unsettled)
        else:
            boards(coordinator, wanted, result.done)
        _say_budgets(coordinator)
    for line in by_reason((name, f"not settled: {why}") for name, why in sorted(unsettled.items())):
        output.say(line)
    if unsettled:
        raise typer.Exit(PLATFORM)


def _say_budgets(coordinator: Coordinator) -> None:
    """Warn of tasks whose runs have used much of what their organiser planned."""
    from runner.records.store.charges import spent
    from runner.views.estimate import HOUR, budget_warning

    for task in coordinator.tasks.values():
        if task.budget_hours and (said := budget_warning(task, spent(coordinator.store, task.id) / HOUR)):
            output.say(f"warning: {said}")


@app.command(epilog="Examples:  runner cancel mine.dense.1a2b3c4d.test")
def cancel(run: options.RunArgument) -> None:
    """Stop a run, or keep a waiting one from starting. It costs no quota."""
    from runner.execution.pool import Control
    from runner.records.store.queries import find_run
    from runner.views.audience import ORGANISER
    from runner.views.listing import run_id

    where = context.config()
    with context.store(where) as store:
        live = store.archive.live()
        tasks = context.all_tasks(where)
        found = find_run(store, run_id(store, tasks, ORGANISER, run), tasks.values(), running=live)
        why = "Only waiting and running runs can be cancelled."
        if found.outcome.name not in ("pending", "running"):
            raise RunnerError("E102", f"{found.id} is {found.outcome.name}", why=why)
        # What was sealed is committed in a moment, and evaluated then.
        sealed = store.archive.has_attempt(found.submission.task, found.id, found.attempts + 1)
        if sealed or found.outcome.todo == "evaluate":
            raise RunnerError("E102", f"{found.id} has been executed, and is evaluated next", why=why)
        facts = {"task": found.submission.task, "run": found.id, "submission": found.submission.id}
        data = {**facts, "dataset": found.dataset, "scenario": found.scenario}
        store.commit("run-cancelled", data, actor="organiser")
        # Also when it does not run yet: a worker may be about to start it.
        Control.of(where).request(found.id)
    output.say(f"{found.id} is {'being stopped' if found.id in live else 'cancelled'}")


@app.command(
    epilog="Examples:  runner check run.txt --task vaswani  |  runner check predictions.jsonl --task perspective-2024 --scenario explicit --json"
)
def check(
    file: Annotated[Path, typer.Argument(help="A run file.")],
    task: options.NeededTask,
    dataset: options.PublicDatasetOption = None,
    scenario: Annotated[
        str | None, typer.Option("--scenario", help="Default: the task's scenario default, else its first.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Check a run file of your own with the evaluator's checker; no container. Every problem with its line; 1 when invalid.

    Files of others are checked in a container: runner register --table --check.
    """
    from runner.submissions.check_file import check_file, dataset_to_check

    where = context.config()
    loaded = context.load_task(where, task)
    code = check_file(loaded, dataset_to_check(loaded, dataset), file, scenario=scenario, as_json=as_json)
    if code:
        raise typer.Exit(code)


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
    discard: options.DiscardOption = False,
    reason: options.ReasonOption = "",
    dry_run: options.DryRunOption = False,
    jobs: options.JobsOption = None,
    verbose: options.VerboseOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Evaluate archived runs again (after a correction of qrels or measures), and say what that changes. Never runs software again.

    What gives another result does not count before it is accepted: until then the old scores stay, marked as stale. With
    --accept, what was evaluated again already, and would come out the same now, is not evaluated once more. With --discard the
    old scores stay for good, and are only stale if what they were computed from has changed.
    Exit code 4 when an evaluation failed for the organiser's files, 3 when it failed otherwise: the old scores stay then, too.
    """
    from runner.cli.boards import boards
    from runner.cli.plans import planned, result_json
    from runner.execution.coordinator import EvaluationRequest
    from runner.execution.reevaluation import as_data, changed_ranks, changed_values, outlook, picture

    wanted = options.selection(everything, task, team, dataset, submission, run)
    if discard:
        _discard(wanted, reason, accept=accept, dry_run=dry_run, as_json=as_json)
        return
    request = EvaluationRequest(wanted, jobs=jobs, only_evaluate=True, accepting=accept)
    with planned(request, dry_run=dry_run, as_json=as_json, verbose=verbose) as (coordinator, todo):
        if todo is None:
            return
        store, known = coordinator.store, coordinator.tasks
        runs = [entry.run for entry in todo.entries if entry.kind != "blocked"]
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

    from runner.records.commit import settle
    from runner.views.text import plural

    waiting = [run for run in runs if run.waiting is not None]
    if not waiting:
        return []
    these = plural(len(waiting), "run")
    if not accept and ask and sys.stdin.isatty() and sys.stderr.isatty():
        accept = typer.confirm(f"{these} evaluated again with another result. Should that count?", err=True)
    if accept:
        settle(store, waiting, reason)
        output.say(f"accepted: the new scores of {these} count from now on")
        return []
    output.say(
        f"{these} evaluated again with another result, which does not count yet: the old scores stay, marked as stale"
    )
    output.say("to have it count: the same command with --accept --reason TEXT; to drop it: with --discard")
    return waiting


def _discard(wanted: Selection, reason: str, *, accept: bool, dry_run: bool, as_json: bool) -> None:
    """Discard the evaluations of the selected runs that wait to be accepted. Raises E101 with ``accept``."""
    from runner.execution.plan import complete
    from runner.records.commit import settle
    from runner.records.store.queries import runs as all_runs
    from runner.views.text import plural

    if accept:
        raise RunnerError("E101", "--accept and --discard exclude each other", fix="name one of them")
    where = context.config()
    tasks = context.all_tasks(where)
    with context.store(where) as store:
        runs = list(all_runs(store, tasks.values()))
        wanted = complete(wanted, tasks, runs)
        waiting = [run for run in runs if run.waiting is not None and wanted.takes(run)]
        if not dry_run:
            settle(store, waiting, reason, accept=False)
    if as_json:
        output.as_json({"discarded": [run.id for run in waiting], "dry_run": dry_run})
    these = plural(len(waiting), "run")
    output.say(f"{'would be discarded' if dry_run else 'discarded'}: the new scores of {these}")


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
            difference = "" if v.difference is None else output.difference(v.difference)
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
