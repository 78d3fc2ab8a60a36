"""The run files that a submission.yaml names: what each is for, and whose run it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.model.names import IDENTIFIER, look_alike, reserved
from runner.model.task import Task
from runner.submissions.definition import Upload

Raw = Mapping[str, Any]


def entries(data: Raw) -> list[tuple[tuple[str | int, ...], Raw]]:
    """The run files of a definition that :func:`schemas.usable` gave, each with its place, in the long form."""
    runs = data.get("run", [])
    if isinstance(runs, str):
        return [(("run",), {"file": runs})]
    return [
        (("run", i), {"file": entry} if isinstance(entry, str) else entry)
        for i, entry in enumerate(runs)
        if entry is not None
    ]


def default_of(data: Raw, noun: str, task: Task | None) -> str:
    """The dataset or scenario of a run file that names none; empty when it cannot be known."""
    given = data.get(f"{noun}s")
    if given:
        return str(given[0]) if len(given) == 1 else ""
    if noun == "scenario" and (task is None or "default" in task.scenarios):
        return "default"
    choices = [] if task is None else list(task.datasets if noun == "dataset" else task.scenarios)
    return choices[0] if len(choices) == 1 else ""


def cell_of(data: Raw, entry: Raw, task: Task | None) -> tuple[str, str]:
    """Dataset and scenario of a run file; empty where they cannot be known."""
    dataset, scenario = (entry.get(key) or default_of(data, key, task) for key in ("dataset", "scenario"))
    return dataset, scenario


def by_software(folder: Path, software: str, data: Raw, task: Task | None) -> dict[str, list[Upload]]:
    """The run files by the software that they are runs of.

    A name that is given decides. Files without one are the folder's ``software``, one file for each dataset and
    scenario; where there are more, each is a software of its own: the file's name without its ending, or
    ``software-N`` (N: its place in the list) when that is no name or belongs to another one. Adding files at the
    end of the list changes no name.
    """
    numbered = [(n, entry, cell_of(data, entry, task)) for n, (_, entry) in enumerate(entries(data), 1)]
    unnamed = [cell for _, entry, cell in numbered if "name" not in entry]
    single = len(set(unnamed)) == len(unnamed)
    taken = {(entry["name"], cell) for _, entry, cell in numbered if "name" in entry}
    found: dict[str, list[Upload]] = {}
    for n, entry, cell in numbered:
        name = entry.get("name") or (software if single else _stem(entry["file"]))
        if "name" not in entry:
            if not name or (name, cell) in taken or look_alike(name, {known for known, _ in taken}):
                name = f"software-{n}"
            taken.add((name, cell))
        found.setdefault(name, []).append(Upload(folder / entry["file"], *cell))
    return found


def _stem(file: str) -> str:
    """A file's name without its endings as a software's name; empty when it cannot be made one."""
    stem = file.rsplit("/", 1)[-1].removesuffix(".gz")
    stem = stem.rpartition(".")[0] or stem
    name = stem if IDENTIFIER.fullmatch(stem) else re.sub(r"[^A-Za-z0-9._-]+|\.{2,}", "-", stem).strip("-._")
    return name if IDENTIFIER.fullmatch(name) and not reserved("software", name) else ""
