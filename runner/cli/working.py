"""Doing a plan with what a person sees of it: progress, problems, and Ctrl-C in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runner.cli import context, output

if TYPE_CHECKING:
    from runner.execution.plan import Desktop, Plan
    from runner.execution.pool import Control, Moment, Undone
    from runner.model.config import Config
    from runner.model.limits import Limits
    from runner.model.run import Run
    from runner.model.task import Task


def control_of(where: Config) -> Control:
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
    control = control or control_of(where)
    with _interruptible(control), _progress(len(left.work)) as tell:
        pool = Pool(engine, desk, desks, control, jobs=jobs, tell=tell)
        done = pool.run(left)
    unusable = {p.run.id: bad[p.run.submission.task] for p in todo.work if p.run.submission.task in bad}
    return done, pool.failed | unusable


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
