"""The organisers' door: evaluate, cancel; and check, which needs no container."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.cli import context, output
from runner.cli.app import app
from runner.cli.plans import CHANGED, ask_again, plan_json, show_plan

if TYPE_CHECKING:
    from runner.execution.plan import Desktop, Plan, Selection
    from runner.execution.pool import Control, Moment, Undone
    from runner.model.config import Config
    from runner.model.limits import Limits
    from runner.model.run import Run
    from runner.model.task import Task
    from runner.records.store.connect import Store

ASK_ABOVE = 10


def selection(
    everything: bool,
    task: str | None,
    team: str | None,
    dataset: str | None,
    submission: str | None,
    run: str | None,
) -> Selection:
    from runner.execution.plan import Selection
    from runner.model.errors import RunnerError

    named = Selection(task, team, dataset, submission, run)
    if not everything and named == Selection():
        raise RunnerError(
            "E101",
            "nothing was named",
            why="An evaluation can take hours.",
            fix="runner evaluate --all, or name a --task, --team or --run",
        )
    return named


def _control(where: Config) -> Control:
    from runner.execution.pool import Control

    return Control(where.home / "cancel")


@contextmanager
def _interruptible(control: Control) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the work in order: containers go, what is sealed is committed."""

    def stop(number: int, _: object) -> None:
        control.stop.set()
        raise KeyboardInterrupt

    in_main = threading.current_thread() is threading.main_thread()
    old = signal.signal(signal.SIGTERM, stop) if in_main else None
    try:
        yield
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, old)


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """Something to tell moments to: a bar with what is running on a terminal, plain lines elsewhere."""
    import sys

    from runner.cli.render import became

    if not sys.stderr.isatty() or output.manners.quiet or total == 0:

        def line(moment: Moment) -> None:
            if moment.kind == "done":
                output.say(f"{moment.run.id}: {became(moment.run)}")
            elif moment.kind == "blocked":
                output.say(f"{moment.run.id}: not done: {moment.text}")

        yield line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    running: dict[str, str] = {}
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"),
        console=output.stderr_console(), transient=True,
    ) as bar:  # fmt: skip
        job = bar.add_task("runs", total=total, now="")

        def show(moment: Moment) -> None:
            if moment.kind == "started":
                running[moment.run.id] = moment.step
            else:
                running.pop(moment.run.id, None)
            if moment.kind in ("done", "blocked"):
                bar.advance(job)
                bar.console.print(f"{moment.run.id}: {moment.text or became(moment.run)}", markup=False)
            bar.update(job, now=", ".join(f"{step} {run}" for run, step in running.items()))

        yield show


def work(
    where: Config, desk: Desktop, todo: Plan, *, jobs: int | None, control: Control | None = None
) -> tuple[dict[str, Run], dict[str, Undone]]:
    """Do a plan with the engine of this machine; returns the runs it touched, and why it could not do others."""
    from runner.execution.attempt import Desk
    from runner.execution.pool import Pool, Undone
    from runner.execution.replies import replies_of
    from runner.model.errors import RunnerError
    from runner.tasks.files import check_task

    if not todo.work:
        return {}, {}
    names = sorted({p.run.submission.task for p in todo.work})
    engine = context.engine(where)
    engine.reap()
    own = context.own_images(where, engine, [desk.tasks[name] for name in names])
    evaluator = own["evaluator"]
    desks: dict[str, Desk] = {}
    bad: dict[str, Undone] = {}
    for name in names:
        task = desk.tasks[name]
        used = sorted({p.run.dataset for p in todo.work if p.run.submission.task == name})
        try:
            check_task(task, where, used)
            engine.require(_rooms(desk, task, todo))
            desks[name] = Desk.of(
                task,
                [task.datasets[d] for d in used],
                engine,
                evaluator,
                sidecars=own.get("sidecars"),
                replies=replies_of(where.home, task.id),
            )
            _say_without_key(task)
        except RunnerError as error:
            output.show_error(error)
            bad[name] = Undone(error.what, error.exit_code)
    from dataclasses import replace

    left = replace(todo, work=tuple(p for p in todo.work if p.run.submission.task not in bad))
    control = control or _control(where)
    with _interruptible(control), _progress(len(left.work)) as tell:
        pool = Pool(engine, desk, desks, control, jobs=jobs, tell=tell)
        done = pool.run(left)
    unusable = {p.run.id: bad[p.run.submission.task] for p in todo.work if p.run.submission.task in bad}
    return done, pool.failed | unusable


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


def _rooms(desk: Desktop, task: Task, todo: Plan) -> list[Limits]:
    """What the machine must be able to give for the planned steps of a task."""
    from runner.execution.pool import room_of

    return [
        room_of(task, desk.bundles.get(p.run.submission.id), p.step)
        for p in todo.work
        if p.run.submission.task == task.id
    ]


def _say_without_key(task: Task) -> None:
    """Say before hours of work that models cannot be asked."""
    from runner.tasks.services import gateway_ready

    gateway = task.services.get("gateway")
    if gateway is not None and not gateway_ready(gateway):
        output.say(
            f"{task.id}: {gateway.options['key']} is not set: models are not asked, only kept replies are used"
        )


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


def named_things_exist(desk: Desktop, wanted: Selection) -> None:
    from runner.model.errors import RunnerError

    every = desk.all_runs()
    known = {
        "task": (wanted.task, set(desk.tasks)),
        "team": (wanted.team, {r.submission.team for r in every}),
        "dataset": (wanted.dataset, {d for t in desk.tasks.values() for d in t.datasets}),
        "submission": (wanted.submission, {r.submission.id for r in every}),
        "run": (wanted.run, {r.id for r in every}),
    }
    import schemas

    for what, (name, names) in known.items():
        if name is not None and name not in names:
            raise RunnerError(
                "E102",
                f"there is no {what} {schemas.show(name)}",
                why=schemas.closest(name, names).strip(),
                fix="runner runs lists what is registered",
            )


def boards(store: Any, desk: Desktop, wanted: Selection, done: dict[str, Run]) -> None:
    from runner.cli.leaderboard import print_table
    from runner.views.audience import ORGANISER
    from runner.views.leaderboard.table import build

    touched = {r.submission.task for r in done.values()}
    used = {r.submission.task for r in desk.all_runs()}
    first = True
    for name, task in desk.tasks.items():
        if name not in used or wanted.task not in (None, name) or (done and name not in touched):
            continue
        for table in task.tables.values():
            if table.part_of is not None:
                continue  # a single cell of a table that is printed
            if not first:
                output.data("")
            first = False
            print_table(build(store, task, table.id, ORGANISER))
    _due(store, desk)


def _due(store: Any, desk: Desktop) -> None:
    """Say which rounds are over and wait to be frozen."""
    from runner.views.leaderboard.rounds import due

    for task, state in due(desk.tasks.values(), store):
        ended = state.ends.says()
        output.say(
            f"the round {state.round.id} of {task.id} is over since {ended}: runner round freeze {task.id} {state.round.id}"
        )


def result_json(
    store: Any,
    desk: Desktop,
    todo: Plan,
    done: dict[str, Run],
    unsettled: dict[str, str],
    changes: dict[str, Any] | None = None,
) -> None:
    """Print what was done as JSON; ``changes``: what evaluating again changed."""
    from runner.views.audience import ORGANISER, redact_row

    rows = []
    for run in done.values():
        view = redact_row(run, ORGANISER, desk.tasks[run.submission.task].datasets[run.dataset])
        rows.append(dict(view or {}))
    more = {} if changes is None else {"changes": changes}
    output.as_json({**plan_json(todo), "done": rows, "unsettled": unsettled, **more})


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
        _control(where).request(found.id)
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
