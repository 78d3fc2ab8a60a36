"""Where the inputs and truths of a dataset lie, and whether any that are hidden lie in what participants get.

What is hidden (inputs and truths of blinded datasets, unless the task is a demo) lies below one private root, as
``<task>/<dataset>/inputs`` and ``truths``; the rest in the task's folder. ``RUNNER_TRUTHS``, the older setting, has truths
as ``<task>/<dataset>/``, and is read where the private root has none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from runner.model.config import Config
from runner.model.mapping import rows
from runner.model.task import Dataset, Side
from runner.tasks.data_files import inside, within
from schemas import show
from schemas.files import make_private

Raw = Mapping[str, Any]
SIDES: tuple[Side, ...] = ("inputs", "truths")


class Exposed(NamedTuple):
    """A hidden folder that participants could find: the position of its dataset in the definition, and where it lies."""

    position: int
    dataset: str
    side: Side
    folder: Path


def tree(config: Config) -> Path:
    """What participants clone: the git repository around the project, or else the project's own folder."""
    root = config.root
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)


def private_root(config: Config) -> Path:
    """The folder of what is hidden, whether it is there or not."""
    return config.private or config.home / "private"


def make_private_root(config: Config, datasets: Iterable[Dataset]) -> None:
    """Make the private root for its owner alone, if hidden files of one of the datasets belong below it. Raises OSError."""
    root = private_root(config)
    if any(within(folder, root) for dataset in datasets for folder in (dataset.inputs, dataset.truths)):
        make_private(root)


def where_hidden(task: str, dataset: str, side: Side = "truths") -> str:
    """Where one side of a hidden dataset belongs, in words for people."""
    return f"$RUNNER_PRIVATE/{show(task)}/{show(dataset)}/{side}"


def how_to_hide(config: Config, task: str, dataset: str, side: Side = "truths") -> str:
    """The fix for hidden data in the tree, with a private root that ``runner task hide`` accepts."""
    if within(private_root(config), tree(config)):
        return f"set RUNNER_PRIVATE to a folder outside the project, then: runner task hide {show(task)}"
    return f"runner task hide {show(task)} (moves them to {where_hidden(task, dataset, side)})"


def is_hidden(data: Raw, row: Raw) -> bool:
    """Whether the inputs and truths of a dataset have to lie outside the tree."""
    return row.get("visibility") == "blinded" and data.get("demo") is not True


def stage_folder(config: Config, task: str, dataset: str) -> Path:
    """Where the versions of a dataset lie that is made from runs."""
    return config.home / "stages" / task / dataset


def current_version(folder: Path) -> str | None:
    """The version of a stage's dataset that is in force; None when none was made."""
    try:
        text = (folder / "current").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return text if re.fullmatch(r"[0-9a-f]{64}", text) else None


def in_task(folder: Path, row: Raw, side: Side) -> Path | None:
    """Where one side of a dataset lies in the task's folder, unless it is hidden; None when that is not inside it."""
    given: str = row.get(side, f"datasets/{row['id']}/{side}")
    return inside(folder, given)


def inputs_folder(config: Config, folder: Path, data: Raw, row: Raw) -> Path | None:
    """Where a dataset's inputs are; None when that is not inside the task's folder (or the stage's).

    Hidden ones that still lie in the task's folder are used from there, too, until they are moved: that they are in reach is
    said by :func:`exposed`.
    """
    if "id" not in row:
        return None
    if "from" in row:
        made = stage_folder(config, folder.name, row["id"])
        return made / (current_version(made) or "none") / "inputs"
    here = in_task(folder, row, "inputs")
    if here is None or not is_hidden(data, row):
        return here
    name: str = row["id"]
    away = private_root(config) / folder.name / name / "inputs"
    return here if holds_files(here) and not holds_files(away) else away


def truths_folder(config: Config, folder: Path, data: Raw, row: Raw) -> Path | None:
    """Where a dataset's truths are: in the task's folder, or outside the tree when they are hidden or come later."""
    # What is made from runs is judged later: its labels are data of this place, never part of the tree.
    if "truths" in row or not (is_hidden(data, row) or "from" in row):
        return in_task(folder, row, "truths")
    name: str = row["id"]
    away = private_root(config) / folder.name / name / "truths"
    older = (config.truths or config.home / "truths") / folder.name / name
    unset = config.private is None and config.truths is not None
    return older if not holds_files(away) and (unset or holds_files(older)) else away


def holds_files(folder: Path) -> bool:
    """Whether something lies in the folder, or it cannot be looked into."""
    try:
        with os.scandir(folder) as entries:
            return any(entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def exposed(config: Config, folder: Path, data: Raw) -> Iterator[Exposed]:
    """What is hidden of a task and lies in the tree: in use, or left there beside what is used."""
    base = tree(config)
    for i, row in rows(data, "datasets"):
        if "id" not in row or "from" in row or not is_hidden(data, row):
            continue
        used = {
            "inputs": inputs_folder(config, folder, data, row),
            "truths": truths_folder(config, folder, data, row),
        }
        for side in SIDES:
            for path in dict.fromkeys((in_task(folder, row, side), used[side])):
                if path is not None and holds_files(path) and within(path, base):
                    yield Exposed(i, row["id"], side, path)
