"""``runner demo``: the whole main job, on the bundled tasks, in one command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context, output
from runner.cli.app import app
from runner.model.errors import PLATFORM, RunnerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner.model.config import Config
    from runner.model.task import Task
    from runner.records.store.connect import Store

# What is run: hidden where the task has something hidden. Without a word those that take a minute in all.
SHOWN = {
    "vaswani": "test",
    "touche-2021-task1": "sample",
    "perspective-2024": "test-1",
    "rad-2025-debate": "test",
    "rad-2025-judging": "test",
    "report-generation": "test",
    "penguins": "test",
    "report-questions": "test",
    "acl-outcomes": "test",
}
USUAL = (
    "vaswani",
    "touche-2021-task1",
    "perspective-2024",
    "penguins",
    "report-questions",
    "acl-outcomes",
)
TEAMS = ("baselines", "broken")


@app.command(epilog="Examples:  runner demo  |  runner demo --task rad-2025-debate")
def demo(
    task: Annotated[
        list[str] | None,
        typer.Option("--task", help="This task; repeatable (default: those of batch runs)."),
    ] = None,
) -> None:
    """Submit the baselines and some broken softwares, run them on the hidden split, print the leaderboard."""
    run_demo(context.config(), task or ())


def run_demo(where: Config, only: Sequence[str] = ()) -> None:
    """Submit the baselines and the broken softwares, run what is missing, print the leaderboards.

    Our own images are built first where they are missing.
    ``only`` are the tasks that are shown (none: the usual ones). Raises typer.BadParameter for those that the demo has
    not.
    The broken softwares are registered without the local check, which would refuse them: that is what they
    are for. A second time nothing is built, registered or run again. Raises typer.Exit when something was not
    settled.
    """
    from runner import provision
    from runner.cli.plans import show_plan
    from runner.execution.coordinator import EvaluationRequest
    from runner.execution.plan import Plan
    from runner.model.run import Selection

    if wrong := sorted(set(only) - set(SHOWN)):
        raise typer.BadParameter(f"the demo has no {', '.join(wrong)}; it has {', '.join(SHOWN)}")
    known = context.all_tasks(where)
    tasks = {name: known[name] for name in SHOWN if name in known and name in (only or USUAL)}
    provision.run(where, output.say)
    failed = _hand_in(where, tasks)
    with context.coordinating() as coordinator:
        coordinator.machine.engine()  # its profile is in every lock: without an engine there is nothing to plan
        wanted = [Selection(task=name, dataset=SHOWN[name]) for name in tasks]
        todo = Plan.joined([coordinator.plan(EvaluationRequest(named, stages=False)) for named in wanted])
        show_plan(todo)
        _, unsettled = coordinator.run(todo, EvaluationRequest(stages=False))
        for task in tasks.values():
            _board(coordinator.store, task)
    for name, why in {**failed, **{run: undone.why for run, undone in unsettled.items()}}.items():
        output.say(f"not done: {name}: {why}")
    output.say(next_commands(tasks))
    if failed or unsettled:
        raise typer.Exit(PLATFORM)


def next_commands(tasks: Mapping[str, Task]) -> str:
    """What to try now, on the first task that was run."""
    hints = ["runner runs", "runner show RUN"]
    hints += [f"runner leaderboard {name} --as public --format html > board.html" for name in [*tasks][:1]]
    return f"next: {' · '.join(hints)}"


def _hand_in(where: Config, tasks: dict[str, Task]) -> dict[str, str]:
    """Register what is not registered yet; returns what could not be, and why."""
    from concurrent.futures import ThreadPoolExecutor

    from runner.cli.packing import pack_one, register_one
    from runner.records.store.queries import submissions
    from runner.submissions.load import find_submissions

    with context.store(where) as store:
        registered = {(s.task, s.team, s.software) for s in submissions(store)}
    failed: dict[str, str] = {}
    for team in TEAMS:
        found, errors = find_submissions(where, team)
        for error in errors:
            output.show_error(error)
            failed[team] = error.what
        new = [s for s in found if s.task in tasks and (s.task, team, s.software) not in registered]
        # Builds wait for the disk more than they compute; submissions are registered in their order.
        with ThreadPoolExecutor(2) as pool:
            packed = [pool.submit(pack_one, where, submission, None, check=False) for submission in new]
            for submission, bundle in zip(new, packed, strict=True):
                try:
                    if (made := bundle.result()) is not None:
                        output.say(f"registered {register_one(where, tasks, made.folder).submission}")
                except RunnerError as error:
                    output.show_error(error)
                    failed[f"{team}/{submission.software}"] = error.what
    return failed


def _board(store: Store, task: Task) -> None:
    """Print the task's first leaderboard on what the demo ran."""
    from runner.cli.boards import print_table
    from runner.views.audience import ORGANISER
    from runner.views.leaderboard.table import build

    for name, table in task.tables.items():
        if [cell.dataset for cell in table.cells] == [SHOWN[task.id]]:
            print_table(build(store, task, name, ORGANISER))
            output.data("")
            break
