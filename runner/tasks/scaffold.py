"""``runner task new``: a small task that works at once, or one on a collection that exists; to be changed into a real one."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.kinds import KindSpec, kind_spec, kinds_with
from runner.model.names import check_name
from runner.model.problems import refuse
from runner.tasks import compose
from runner.tasks.check_data import check_task
from runner.tasks.data_files import within
from runner.tasks.load import load_task_file
from schemas.files import put_in_place, scratch_folder


def new_task(config: Config, task_id: str, kind: str = "adhoc") -> Path:
    """Write a working skeleton to ``tasks/<task_id>`` and return that folder.

    The folder appears as a whole or not at all. Raises E208 for what is not a name, and E101 for a kind without
    a skeleton or when the folder exists already.
    """
    skeleton = _spec(kind, "skeleton").skeleton
    assert skeleton is not None
    with _placed(config, task_id) as folder:
        for name, text in skeleton(task_id).items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            data = text.encode()
            file.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
        _finish(config, folder)
    return config.tasks / task_id


def new_task_from(
    config: Config,
    task_id: str,
    source: str,
    *,
    kind: str = "adhoc",
    public: int = 0,
    say: Callable[[str], None],
) -> tuple[Path, Path]:
    """Make ``tasks/<task_id>`` from a collection, with the truths of its blinded dataset where participants are not.

    Both folders appear as a whole or not at all.

    Args:
        config: where the project and the truths are.
        task_id: the task's name.
        source: a folder, an archive, a file, or ``irds:ID``.
        kind: the task's kind.
        public: how many topics everybody sees with their truths; the others are blinded.
        say: is given what was taken as what, and what was left.

    Returns:
        The task's folder and that of its hidden truths.

    Raises:
        RunnerError: E208 for what is not a name; E101 for a kind that cannot read collections, and for a folder that is
            there already; E403 when the truths would lie in the project; E402 with all that is wrong with the
            collection; E102 and E407 when there is none to read.
    """
    collect = _spec(kind, "collection").collection
    assert collect is not None
    root = config.truths or config.home / "truths"
    if within(root, config.root):
        raise RunnerError(
            "E403",
            "the truths would lie in the tree that participants get",
            why=f"They would be in {schemas.show(str(root), 200)}.",
            fix="set RUNNER_TRUTHS, or truths in proctor.yaml, to a folder outside the project",
        )
    hidden = root / task_id
    with _placed(config, task_id) as folder:
        if os.path.lexists(hidden):
            fix = "choose another name, or move them away first"
            raise RunnerError(
                "E101", f"truths of a task {task_id} exist already", why=f"In {hidden}.", fix=fix
            )
        root.mkdir(parents=True, exist_ok=True)
        with scratch_folder(root) as scratch:
            folder.mkdir()
            refuse(
                collect(task_id, source, folder, scratch / task_id, public, say),
                "no task was made of this collection",
            )
            _finish(replace(config, truths=scratch), folder)
            put_in_place(scratch / task_id, hidden)
    return config.tasks / task_id, hidden


def _spec(kind: str, part: Literal["skeleton", "collection"]) -> KindSpec:
    """What is known of a kind that has this part. Raises E101 for one that has not."""
    spec = kind_spec(kind)
    if getattr(spec, part) is None:
        noun = "skeleton" if part == "skeleton" else "reader of collections"
        raise RunnerError(
            "E101",
            f'there is no {noun} for the kind "{schemas.show(kind)}"',
            why=f"There is one for: {', '.join(kinds_with(part))}.",
            fix="choose one of these, or copy the folder of a task of that kind",
        )
    return spec


def _finish(config: Config, folder: Path) -> None:
    task = load_task_file(config, folder)
    check_task(task, config)
    compose.write(task)


@contextmanager
def _placed(config: Config, task_id: str) -> Iterator[Path]:
    """Where the new task's folder is to be made; it becomes ``tasks/<task_id>`` at the end. Raises E208 and E101."""
    check_name("task", task_id)
    target = config.tasks / task_id
    if os.path.lexists(target):
        raise RunnerError(
            "E101", f"tasks/{task_id} exists already", fix="choose another name, or remove that folder first"
        )
    config.tasks.mkdir(parents=True, exist_ok=True)  # a new project's first task
    with tempfile.TemporaryDirectory(dir=config.tasks, prefix=".new-") as staging:
        folder = Path(staging) / task_id
        yield folder
        try:
            folder.rename(target)
        except OSError:  # somebody else was faster
            shutil.rmtree(folder)
            raise RunnerError("E101", f"tasks/{task_id} exists already", fix="choose another name") from None
