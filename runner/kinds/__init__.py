"""Turning releases of other organisers' data into datasets of a task.

An importer belongs to a kind of task. It is a module of this package that is named in :data:`IMPORTERS`, with a
function ``import_release(source, target, split, *, truths, say)``: it tells ``say`` what was passed over, and writes ``target/inputs`` and ``truths`` from the
folder or archive ``source``, as a whole or not at all, and returns every problem it found.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from runner.model.errors import Problem, RunnerError, no_such

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task

Say = Callable[[str], None]


def quiet(_: str) -> None:
    """Say nothing."""


IMPORTERS = {"debate": "rad", "diversity": "perspective", "meta": "rad_judging"}  # kind of task -> module


def import_release(task: Task, dataset: Dataset, source: Path, say: Say = quiet) -> None:
    """Make ``dataset`` from the release ``source`` (a folder or an archive).

    ``say`` is told what is no problem but has to be known, such as files that were passed over.
    Raises E101 when the kind of ``task`` has no importer, E102 when there is no such file, E402 with every
    problem of the release; then nothing was written.
    """
    if task.kind not in IMPORTERS:
        raise RunnerError(
            "E101",
            f"there is no importer for tasks of the kind {task.kind}",
            why=f"There is one for {', '.join(sorted(IMPORTERS))}.",
            fix="import single files with --as, or put the files where task.yaml says",
        )
    if not source.exists():
        raise no_such("file or folder", source, fix="name the release", limit=1000)
    if dataset.inputs.name != "inputs":
        raise RunnerError(
            "E401",
            f"the inputs of {dataset.id} are in the folder {dataset.inputs.name}",
            why="An importer makes a folder called inputs.",
            fix="take inputs: out of task.yaml",
        )
    module = import_module(f"{__name__}.{IMPORTERS[task.kind]}")
    split = task.options.get("split", {}).get(dataset.id, dataset.id)
    problems: list[Problem] = module.import_release(
        source, dataset.inputs.parent, split, truths=dataset.truths, say=say
    )
    if problems:
        raise RunnerError(
            "E402",
            f"{source.name} was not imported",
            why="The release is not as it should be. Nothing was written.",
            fix="mend what is listed",
            problems=problems,
        )
