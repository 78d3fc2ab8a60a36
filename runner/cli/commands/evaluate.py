"""The organisers' door: evaluate, cancel; and check, which needs no container."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context, output
from runner.cli.app import app
from runner.cli.boards import boards
from runner.cli.plans import changed_choice, confirmed, plan_json, result_json, show_plan
from runner.cli.selecting import takes_selection

if TYPE_CHECKING:
    from runner.execution.plan import Selection


@app.command(
    epilog="Examples:  runner evaluate --all  |  runner evaluate --task vaswani --team mine  |  runner evaluate --all --dry-run"
)
@takes_selection
def evaluate(
    wanted: Selection,
    dry_run: context.DryRunOption = False,
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
    jobs: context.JobsOption = None,
    as_json: context.JsonOption = False,
) -> None:
    """Run what is missing, evaluate it, post it, print the leaderboard. Start it again after any interruption."""
    from runner.execution.coordinator import EvaluationRequest
    from runner.model.errors import PLATFORM

    request = EvaluationRequest(wanted, force, changed_choice(changed), jobs=jobs)
    with context.coordinating(dry_run=dry_run) as coordinator:
        if coordinator.adopted:
            output.say(f"taken over from an interrupted command: {coordinator.adopted}")
        todo = coordinator.plan(request)
        show_plan(todo)
        if dry_run:
            if as_json:
                output.as_json(plan_json(todo))
            return
        todo = confirmed(todo, request, yes)
        result = coordinator.run(todo, request)
        unsettled = result.unsettled()
        if as_json:
            result_json(coordinator, todo, result.done, unsettled)
        else:
            boards(coordinator, wanted, result.done)
    if unsettled:
        for name, why in sorted(unsettled.items()):
            output.say(f"not settled: {name}: {why}")
        raise typer.Exit(PLATFORM)


@app.command(epilog="Examples:  runner cancel mine.dense.1a2b3c4d.test")
def cancel(run: context.RunArgument) -> None:
    """Stop a run, or keep a waiting one from starting. It costs no quota."""
    from runner.execution.pool import Control
    from runner.model.errors import RunnerError
    from runner.records.store.queries import find_run

    where = context.config()
    with context.store(where) as store:
        live = store.archive.live()
        found = find_run(store, run, context.all_tasks(where).values(), running=live)
        if found.outcome.name not in ("pending", "running"):
            raise RunnerError(
                "E102",
                f"{found.id} is {found.outcome.name}",
                why="Only waiting and running runs can be cancelled.",
            )
        data = {
            "task": found.submission.task,
            "run": found.id,
            "submission": found.submission.id,
            "dataset": found.dataset,
            "scenario": found.scenario,
        }
        store.commit("run-cancelled", data, actor="organiser")
        # Also when it does not run yet: a worker may be about to start it.
        Control.of(where).request(found.id)
    output.say(f"{found.id} is {'being stopped' if found.id in live else 'cancelled'}")


@app.command(
    epilog="Examples:  runner check run.txt --task vaswani  |  runner check predictions.jsonl --task perspective-2024 --scenario explicit --json"
)
def check(
    file: Annotated[Path, typer.Argument(help="A run file.")],
    task: Annotated[
        str, typer.Option("--task", help="The task whose rules apply.", autocompletion=context.complete_task)
    ],
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Default: the task's first public dataset.")
    ] = None,
    scenario: Annotated[
        str | None, typer.Option("--scenario", help="Default: the task's scenario default, else its first.")
    ] = None,
    as_json: context.JsonOption = False,
) -> None:
    """Check a run file with the evaluator's checker; no container. Every problem with its line; 1 when invalid."""
    from runner.execution.trial import public_dataset
    from runner.submissions.check_file import check_file

    where = context.config()
    loaded = context.load_task(where, task)
    code = check_file(loaded, public_dataset(loaded, dataset), file, scenario=scenario, as_json=as_json)
    if code:
        raise typer.Exit(code)
