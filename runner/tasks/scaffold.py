"""``runner task new``: a small task that works at once, to be changed into a real one."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from pathlib import Path

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.kinds import kind_spec, kinds_with
from runner.model.names import check_name
from runner.tasks import compose
from runner.tasks.check_data import check_task
from runner.tasks.load import load_task_file


def new_task(config: Config, task_id: str, kind: str = "adhoc") -> Path:
    """Write a working skeleton to ``tasks/<task_id>`` and return that folder.

    The folder appears as a whole or not at all. Raises E208 for what is not a name, and E101 for a kind without
    a skeleton or when the folder exists already.
    """
    check_name("task", task_id)
    skeleton = kind_spec(kind).skeleton
    if skeleton is None:
        raise RunnerError(
            "E101",
            f'there is no skeleton for the kind "{schemas.show(kind)}"',
            why=f"There is one for: {', '.join(kinds_with('skeleton'))}.",
            fix="choose one of these, or copy the folder of a task of that kind",
        )
    target = config.tasks / task_id
    if os.path.lexists(target):
        raise RunnerError(
            "E101", f"tasks/{task_id} exists already", fix="choose another name, or remove that folder first"
        )
    config.tasks.mkdir(parents=True, exist_ok=True)  # a new project's first task
    with tempfile.TemporaryDirectory(dir=config.tasks, prefix=".new-") as staging:
        folder = Path(staging) / task_id
        for name, text in skeleton(task_id).items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            data = text.encode()
            file.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
        task = load_task_file(config, folder)
        check_task(task, config)
        compose.write(task)
        try:
            folder.rename(target)
        except OSError:  # somebody else was faster
            shutil.rmtree(folder)
            raise RunnerError("E101", f"tasks/{task_id} exists already", fix="choose another name") from None
    return target
