"""What organisers do with runs: evaluate, cancel; and check, which needs no container."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context, options, output
from runner.cli.app import app
from runner.cli.boards import boards
from runner.cli.plans import by_reason, changed_choice, planned, result_json
from runner.model.errors import PLATFORM, RunnerError

if TYPE_CHECKING:
    from runner.execution.coordinator import Coordinator


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
        if found.outcome.name not in ("pending", "running"):
            why = "Only waiting and running runs can be cancelled."
            raise RunnerError("E102", f"{found.id} is {found.outcome.name}", why=why)
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
