"""The organisers' door: evaluate, cancel; and check, which needs no container."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context, output
from runner.cli.app import app
from runner.cli.boards import boards
from runner.cli.plans import (
    CHANGED,
    ask_again,
    named_things_exist,
    plan_json,
    result_json,
    selection,
    show_plan,
)
from runner.cli.working import control_of, work

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.records.store.connect import Store

ASK_ABOVE = 10


def _make_stages(where: Config, store: Store, only: str | None) -> None:
    """Make what stages take from runs, where these are settled and it was never made; say what is missing."""
    from runner.execution import stage as stages
    from runner.model.errors import RunnerError
    from runner.tasks.load import load_tasks

    tasks, _ = load_tasks(where)  # what is wrong with others is said where they are used
    for state in stages.states(where, store, tasks, None if only is None else [only]):
        name, command = f"{state.task.id}/{state.dataset.id}", f"{state.task.id} {state.dataset.id}"
        if nobody := stages.uncounted(state.task, state.dataset):
            output.say(nobody)
        if state.name == "missing" and not state.why:
            try:
                made = stages.build(where, store, tasks, state.task, state.dataset)
            except RunnerError as error:
                output.show_error(error)
                continue
            output.say(f"{name}: made from {made.runs} runs, {made.debates} debates")
        elif state.name == "missing":
            output.say(f"{name} cannot be made yet: {state.why}")
        elif state.name == "changed":
            output.say(f"{name} is made from other runs than there are now: runner data stage {command}")


@app.command(
    epilog="Examples:  runner evaluate --all  |  runner evaluate --task vaswani --team mine  |  runner evaluate --all --dry-run"
)
def evaluate(
    everything: context.AllOption = False,
    task: context.TaskOption = None,
    team: context.TeamOption = None,
    dataset: context.DatasetOption = None,
    submission: context.SubmissionOption = None,
    run: context.RunOption = None,
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
    from runner.execution.plan import plan
    from runner.model.errors import PLATFORM, RunnerError
    from runner.records.commit import adopt, coordinator

    if changed not in CHANGED:
        raise RunnerError(
            "E101", f"there is no --changed {output.printable(changed)}", fix=f"use {', '.join(CHANGED)}"
        )
    where = context.config()
    wanted = selection(everything, task, team, dataset, submission, run)
    with context.store(where) as store, nullcontext() if dry_run else coordinator(where):
        if not dry_run and (adopted := adopt(store)):
            output.say(f"taken over from an interrupted command: {adopted}")
        if not dry_run:
            _make_stages(where, store, task)
        desk = context.desktop(
            where, store, own_profile=_own_profile(where), sidecars=context.sidecars(where)
        )
        named_things_exist(desk, wanted)
        todo = plan(desk, wanted, force=force)
        if changed == "keep":
            todo = todo.keeping()
        show_plan(todo)
        if dry_run:
            if as_json:
                output.as_json(plan_json(todo))
            return
        if force and len(todo.work) > ASK_ABOVE and not yes:
            raise RunnerError(
                "E101",
                f"--force would execute {len(todo.work)} runs again",
                why="It costs their time once more.",
                fix="add --yes if that is meant",
            )
        if changed == "ask" and todo.again:
            todo = ask_again(todo)
        done, failed = work(where, desk, todo, jobs=jobs)
        if done:
            _make_stages(where, store, task)
        waiting = {r.id: r.outcome.says for r in done.values() if r.outcome.name in ("pending", "running")}
        unsettled = {name: undone.why for name, undone in failed.items()} | waiting
        if as_json:
            result_json(store, desk, todo, done, unsettled)
        else:
            boards(store, desk, wanted, done)
    if unsettled:
        for name, why in sorted(unsettled.items()):
            output.say(f"not settled: {name}: {why}")
        raise typer.Exit(PLATFORM)


def _own_profile(where: Config) -> bool:
    """Whether locks are made for the platform's own seccomp profile: asked of the engine, if it answers."""
    from runner.model.errors import RunnerError
    from runner.provision.images import open_engine

    try:
        return open_engine(where).info().seccomp
    except RunnerError:
        return True


@app.command(epilog="Examples:  runner cancel mine.dense.1a2b3c4d.test")
def cancel(run: context.RunArgument) -> None:
    """Stop a run, or keep a waiting one from starting. It costs no quota."""
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
        control_of(where).request(found.id)
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
    loaded = context.one_task(where, task)
    code = check_file(loaded, public_dataset(loaded, dataset), file, scenario=scenario, as_json=as_json)
    if code:
        raise typer.Exit(code)
