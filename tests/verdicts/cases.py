"""The misbehaving softwares beside this file, and a project that holds them all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
TASK, DATASET, TEAM = "verdicts", "tiny", "misbehaving"
KEYS = {"says", "verdict", "outcome", "blame", "text", "codes", "hint"}


@dataclass(frozen=True)
class Case:
    """One system and its result: ``text`` are pieces of what its team is shown, ``codes`` findings, ``hint`` a piece of the hint."""

    name: str
    says: str
    command: str | tuple[str, ...]
    verdict: str
    outcome: str
    blame: str
    text: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    hint: str = ""


def load_case(folder: Path) -> Case:
    """The case in ``folder``. Raises ValueError for an unknown or missing key."""
    expected = yaml.safe_load((folder / "expected.yaml").read_text(encoding="utf-8"))
    if not expected.keys() <= KEYS or not {"says", "verdict", "outcome", "blame"} <= expected.keys():
        raise ValueError(f"{folder.name}/expected.yaml: keys {sorted(expected)}")
    return Case(
        name=folder.name,
        says=expected["says"],
        command=_command(folder),
        verdict=expected["verdict"],
        outcome=expected["outcome"],
        blame=expected["blame"],
        text=tuple(expected.get("text", ())),
        codes=tuple(expected.get("codes", ())),
        hint=expected.get("hint", ""),
    )


def _command(folder: Path) -> str | tuple[str, ...]:
    if (folder / "software.yaml").is_file():
        command = yaml.safe_load((folder / "software.yaml").read_text(encoding="utf-8"))["command"]
        return command if isinstance(command, str) else tuple(command)
    if (folder / "main.sh").is_file():
        return ("sh", f"/cases/{folder.name}/main.sh")
    return ("python3", f"/cases/{folder.name}/main.py")


def load_cases() -> list[Case]:
    """All cases, by name."""
    return [load_case(path.parent) for path in sorted(HERE.glob("*/expected.yaml"))]


def image_context(to: Path) -> Path:
    """Copy what the shared image is built from into the new folder ``to`` (no truths, no task); returns it."""
    to.mkdir(parents=True)
    for name in ("Dockerfile", "common.py"):
        shutil.copy(HERE / name, to / name)
    for program in sorted(HERE.glob("*/main.*")):
        (to / program.parent.name).mkdir(exist_ok=True)
        shutil.copy(program, to / program.parent.name / program.name)
    return to


def write_task(root: Path) -> Path:
    """Write the task into ``root/tasks/verdicts`` and make ``root/submissions``; returns the task's folder."""
    (root / "submissions").mkdir(parents=True, exist_ok=True)
    return Path(shutil.copytree(HERE / "task", root / "tasks" / TASK))


def write_submission(root: Path, case: Case, image: str, team: str = TEAM) -> Path:
    """Write ``root/submissions/<team>/<case>/submission.yaml`` with ``image`` (an id or tag); returns its folder."""
    folder = root / "submissions" / team / case.name
    folder.mkdir(parents=True)
    command = case.command if isinstance(case.command, str) else list(case.command)
    # JSON is YAML, and quotes everything.
    lines = {"task": TASK, "image": image, "command": command, "tag": "case", "description": case.says}
    (folder / "submission.yaml").write_text(
        "".join(f"{key}: {json.dumps(value)}\n" for key, value in lines.items()), encoding="utf-8"
    )
    return folder


def write_project(root: Path, image: str, cases: Iterable[Case] | None = None) -> list[Case]:
    """Write a whole project into ``root``: the task, and every case as a software of one team."""
    chosen = list(load_cases() if cases is None else cases)
    write_task(root)
    for case in chosen:
        write_submission(root, case, image)
    return chosen
