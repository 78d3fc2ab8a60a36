"""What commands have in common: where things are, which tasks there are, who looks, and the engine."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from runner.cli import output
from runner.model.errors import no_such

if TYPE_CHECKING:
    from runner.engines.base import Engine
    from runner.execution.coordinator import Coordinator
    from runner.execution.machine import Machine
    from runner.model.config import Config
    from runner.model.limits import Limits
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store
    from runner.submissions.definition import SubmissionFile
    from runner.views.audience import Audience


_reported_homes: set[Path] = set()


def config(*, report_mode: bool = True) -> Config:
    """The configuration of this invocation.

    With ``report_mode``, a data directory that other users may enter is reported on stderr, once in a process.
    """
    from runner.model.config import load

    where = load(actor=output.options.actor)
    if report_mode:
        report_wide_mode(where.home)
    return where


def report_wide_mode(home: Path) -> None:
    """Report a data directory that other users may enter, and how to close it. An existing mode is never changed."""
    from runner.model.config import wide_mode, wide_mode_text

    mode = wide_mode(home)
    if mode is not None and home not in _reported_homes:
        _reported_homes.add(home)
        output.say(f"CAUTION: {wide_mode_text(mode)}. Fix: chmod 700 {shlex.quote(str(home))}")


def receiving() -> Config:
    """The configuration of an invocation that takes submissions in: what teams wrote is a stranger's then."""
    from dataclasses import replace

    return replace(config(), handing_in=True)


def all_tasks(where: Config) -> dict[str, Task]:
    """Every task that can be loaded; what is wrong with the others is said and skipped."""
    from runner.tasks.load import load_tasks

    found, errors = load_tasks(where)
    for error in errors:
        output.show_error(error)
    return found


def load_task(where: Config, name: str) -> Task:
    """The task called ``name``. Raises E102 or E401."""
    from runner.tasks.load import load_task

    return load_task(where, name)


def get_dataset(task: Task, name: str) -> Dataset:
    """The dataset ``name`` of ``task``. Raises E102."""
    if name not in task.datasets:
        raise no_such("dataset", name, task.datasets, of=task.id, fix="name one of them")
    return task.datasets[name]


def registered_baselines(where: Config, task: Task) -> frozenset[str]:
    """Return the registered systems of a task if one of its baselines has no folder, otherwise an empty set."""
    named = {table.baseline for table in task.tables.values() if table.baseline}
    if all((where.submissions / name / "submission.yaml").is_file() for name in named):
        return frozenset()
    from runner.records.store.queries import registered_softwares  # needs SQLAlchemy

    with store(where) as opened:
        return registered_softwares(opened, task.id)


def dataset(task: str, name: str) -> tuple[Config, Task, Dataset]:
    """The configuration, a task and one of its datasets. Raises E102 or E401."""
    where = config()
    loaded = load_task(where, task)
    return where, loaded, get_dataset(loaded, name)


@contextmanager
def store(where: Config) -> Iterator[Store]:
    """The open store of this data directory."""
    from runner.records.store.connect import open_store

    with open_store(where) as opened:
        yield opened


def engine(where: Config, limits: Iterable[Limits] = ()) -> Engine:
    """The engine, checked to enforce the sandbox and to be large enough. Raises E301, E302, E305."""
    return machine(where).engine(limits)


def machine(where: Config) -> Machine:
    """This machine: its engine, opened when it is needed, and our images in it."""
    from runner.execution.machine import Machine

    return Machine(where, output.say)


@contextmanager
def coordinating(*, dry_run: bool = False, verbose: bool = False) -> Iterator[Coordinator]:
    """The coordinator of this invocation's data directory, which reports to the terminal, with ``verbose`` run by run.

    Raises E306.
    """
    from runner.cli.terminal import Terminal
    from runner.execution.coordinator import coordinating as opened

    where = config()
    with opened(where, Terminal(verbose=verbose), dry_run=dry_run, machine=machine(where)) as coordinator:
        yield coordinator


def select_submissions(
    where: Config, team: str | None, software: str | None
) -> tuple[list[SubmissionFile], int]:
    """The usable submission files of a team, and the exit code for the others (0: none); one must be usable.

    What is wrong with the others is said.
    """
    from runner.submissions.load import find_submissions

    found, errors = find_submissions(where, team, software)
    if not found and len(errors) == 1:
        raise errors[0]
    for error in errors:
        output.show_error(error)
    if not found:
        raise typer.Exit(errors[0].exit_code if errors else 2)
    return found, max((error.exit_code for error in errors), default=0)


def audience(text: str) -> Audience:
    """The audience named on the command line. Raises E101."""
    from runner.views.audience import Audience

    return Audience.parse(text)
