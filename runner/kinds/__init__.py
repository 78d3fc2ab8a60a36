"""What the runner knows of each kind of task: a folder a kind with ``SPEC``, found by :func:`runner.model.kinds.kind_spec`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from runner.model.errors import RunnerError, no_such
from runner.model.kinds import kind_spec, kinds_with

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task

Say = Callable[[str], None]


def quiet(_: str) -> None:
    """Say nothing."""


def import_release(task: Task, dataset: Dataset, source: Path, say: Say = quiet) -> None:
    """Make ``dataset`` from the release ``source`` (a folder or an archive).

    ``say`` is given what is no problem but has to be known, such as files that were passed over.
    Raises E101 when the kind of ``task`` has no importer, E102 when there is no such file, E402 with every
    problem of the release; then nothing was written.
    """
    importer = kind_spec(task.kind).importer
    if importer is None:
        raise RunnerError(
            "E101",
            f"there is no importer for tasks of the kind {task.kind}",
            why=f"There is one for {', '.join(kinds_with('importer'))}.",
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
    split = task.options.get("split", {}).get(dataset.id, dataset.id)
    problems = importer(source, dataset.inputs.parent, split, truths=dataset.truths, say=say)
    if problems:
        raise RunnerError(
            "E402",
            f"{source.name} was not imported",
            why="The release is not as it should be. Nothing was written.",
            fix="correct what is listed",
            problems=problems,
        )
