"""``runner reevaluate``: archived runs are evaluated again, and what that changed is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from runner.cli import context, output
from runner.cli.app import app
from runner.cli.selecting import takes_selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner.execution.plan import Selection
    from runner.execution.pool import Undone
    from runner.execution.reevaluation import Rank, Value
    from runner.model.run import Run


@app.command(
    epilog="Examples:  runner reevaluate --task vaswani --all  |  runner reevaluate --run baselines.bm25.1a2b3c4d.test"
)
@takes_selection
def reevaluate(
    wanted: Selection,
    dry_run: context.DryRunOption = False,
    jobs: context.JobsOption = None,
    as_json: context.JsonOption = False,
) -> None:
    """Evaluate archived runs again (after a correction of qrels or measures), and say what that changed. Never runs software again.

    Exit code 4 when an evaluation failed for the organiser's files, 3 when it failed otherwise: the old scores stay, marked as stale.
    """
    from runner.cli.boards import boards
    from runner.cli.plans import plan_json, result_json, show_plan
    from runner.execution.coordinator import EvaluationRequest
    from runner.execution.reevaluation import as_data, changed_ranks, changed_values, picture

    with context.coordinating(dry_run=dry_run) as coordinator:
        request = EvaluationRequest(wanted, jobs=jobs, only_evaluate=True)
        todo = coordinator.plan(request)
        show_plan(todo)
        if dry_run:
            if as_json:
                output.as_json(plan_json(todo))
            return
        store, known = coordinator.store, coordinator.workspace.tasks
        tasks = [known[name] for name in dict.fromkeys(p.run.submission.task for p in todo.work)]
        before = picture(store, tasks, [p.run for p in todo.work])
        done, failed = coordinator.run(todo, request)
        after = picture(store, tasks, done.values())
        found = changed_values(before, after, [name for name, one in done.items() if not one.outcome.fault])
        ranks = changed_ranks(before, after)
        if as_json:
            undone = {**{name: one.why for name, one in failed.items()}, **_faults(done)}
            result_json(coordinator, todo, done, undone, as_data(found, ranks))
        else:
            boards(coordinator, wanted, done)
            _tell(found, ranks)
    _end(done, failed)


def _faults(done: Mapping[str, Run]) -> dict[str, str]:
    return {name: run.outcome.reason for name, run in done.items() if run.outcome.fault}


def _tell(found: list[Value], ranks: list[Rank]) -> None:
    """Print what changed: values of runs first, then ranks."""
    if found:
        output.data("")
        output.table(
            ("run", "measure", "old", "new", "difference"),
            [
                (
                    v.run,
                    v.measure,
                    _figure(v.old) + (f" ({v.of})" if v.of else ""),
                    _figure(v.new),
                    "" if v.difference is None else f"{v.difference:+.4f}",
                )
                for v in found
            ],
            right=("old", "new", "difference"),
        )
    if ranks:
        output.data("")
        output.table(
            ("table", "software", "old rank", "new rank"),
            [(f"{r.task} {r.table}", r.software, _place(r.old), _place(r.new)) for r in ranks],
            right=("old rank", "new rank"),
        )
    elif found:
        output.say("no rank has changed")


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _place(rank: int | None) -> str:
    return "not ranked" if rank is None else str(rank)


def _end(done: Mapping[str, Run], failed: Mapping[str, Undone]) -> None:
    """Say what failed, and end with 4 where the organiser's files are at fault, with 3 otherwise."""
    from runner.model.errors import ORGANISER, PLATFORM

    codes: list[int] = [undone.exit_code for undone in failed.values()]
    for name, undone in failed.items():
        output.say(f"not evaluated: {name}: {undone.why}")
    for name, why in _faults(done).items():
        old = " Its old scores stand on the boards, marked as stale." if done[name].outcome.old else ""
        output.say(f"failed: {name}: {why}.{old} runner logs {name} --evaluator shows more")
        codes.append(ORGANISER if done[name].outcome.fault == "organiser" else PLATFORM)
    if codes:
        raise typer.Exit(_worst(codes))


def _worst(codes: Iterable[Any]) -> int:
    from runner.model.errors import ORGANISER, PLATFORM

    return ORGANISER if ORGANISER in codes else PLATFORM
