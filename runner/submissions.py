"""What teams hand in: ``submissions/<team>/<software>/submission.yaml``."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import schemas
from runner.config import Config
from runner.errors import Problem, RunnerError
from runner.tasks import NAME, Task, by_line, converted, inside, load_task, load_tasks, task_ids


@dataclass(frozen=True)
class Build:
    """How to build the image: folder and Dockerfile inside the submission's folder."""

    context: Path
    dockerfile: str = "Dockerfile"
    network: bool = False
    args: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SubmissionFile:
    """A submission.yaml, loaded and checked. Exactly one of ``image``, ``build`` and ``run`` is set.

    ``folder`` holds the file; ``build.context`` and ``run`` are paths inside it. ``tag`` is the run tag (the
    software's name unless given). ``command`` is a list (run directly), a string (run by the image's ``sh -c``), or None (the image's own
    entrypoint). ``run`` are run files to upload.
    """

    team: str
    software: str
    task: str
    folder: Path
    scenarios: tuple[str, ...] = ("default",)
    image: str | None = None
    build: Build | None = None
    run: tuple[Path, ...] = ()
    command: str | tuple[str, ...] | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""
    description: str = ""
    method: Literal["automatic", "manual"] = "automatic"
    definition: Mapping[str, Any] = field(default_factory=dict)


def load_submission(
    config: Config, team: str, software: str, tasks: Mapping[str, Task] | None = None
) -> SubmissionFile:
    """The submission of a team's software, checked. All problems are in the error.

    Raises E208 for what is not a name, E102 when there is no such submission, E202 when a path leaves its folder,
    E201 when submission.yaml is not valid, E207 when it does not fit its task. ``tasks`` are tasks already
    loaded; a task that cannot be loaded at all is not the team's fault and is left for whoever needs it.
    """
    _names(team, software)
    folder = config.submissions / team / software
    name = f"submissions/{team}/{software}/submission.yaml"
    if inside(config.submissions, f"{team}/{software}") is None:
        raise RunnerError(
            "E202",
            f"the folder of {team}/{software} is a link that leaves submissions/",
            fix="copy the folder itself",
        )
    if not os.path.lexists(folder / "submission.yaml"):
        raise _missing(config, team, software)
    if inside(folder, "submission.yaml") is None:
        raise RunnerError(
            "E202", f"{name} is a link that leaves its folder", fix="replace it by the file itself"
        )
    doc = schemas.load_yaml(folder / "submission.yaml", name)
    found = [("E201", p) for p in converted(schemas.validate(doc, "submission"))]
    if isinstance(doc.data, dict):
        found += _checks(config, folder, doc, tasks)
    if found:
        codes = {code for code, _ in found}
        code = next(c for c in ("E202", "E201", "E207") if c in codes)
        count = "one problem" if len(found) == 1 else f"{len(found)} problems"
        raise RunnerError(
            code, f"the submission {team}/{software} cannot be used", why=f"{count} found.",
            fix="mend what is listed", problems=by_line(found),
        )  # fmt: skip
    return _build(team, software, folder, doc.data)


def find_submissions(
    config: Config,
    team: str | None = None,
    software: str | None = None,
    tasks: Mapping[str, Task] | None = None,
) -> tuple[list[SubmissionFile], list[RunnerError]]:
    """All submissions (of one team, of that name) that can be used, sorted, and one error for each that cannot.

    A team or software that was asked for by name and does not exist is an error (E102, E208).
    """
    pairs = _pairs(config, team, software)
    loaded: dict[str, Task] = dict(tasks or {})
    if tasks is None:
        loaded = _tasks(config)
    found: list[SubmissionFile] = []
    errors: list[RunnerError] = []
    for one_team, one_software in pairs:
        try:
            found.append(load_submission(config, one_team, one_software, loaded))
        except RunnerError as error:
            errors.append(error)
    if not pairs and team is not None:
        try:
            _names(team, software or "x")
            errors.append(_missing(config, team, software))
        except RunnerError as error:
            errors.append(error)
    return found, errors


def _tasks(config: Config) -> dict[str, Task]:
    return load_tasks(config)[0]


def _pairs(config: Config, team: str | None, software: str | None) -> list[tuple[str, str]]:
    """Team and software of every folder that holds a submission.yaml; hidden folders are left out."""
    pairs = []
    for team_folder in _folders(config.submissions):
        if team is not None and team_folder.name != team:
            continue
        for folder in _folders(team_folder):
            if (software is None or folder.name == software) and os.path.lexists(folder / "submission.yaml"):
                pairs.append((team_folder.name, folder.name))
    return sorted(pairs)


def _folders(parent: Path) -> list[Path]:
    try:
        return [p for p in parent.iterdir() if not p.name.startswith(".") and p.is_dir()]
    except OSError:
        return []


def _names(team: str, software: str) -> None:
    for what, name in (("team", team), ("software", software)):
        if not NAME.fullmatch(name):
            raise RunnerError(
                "E208",
                f'"{schemas.show(name)}" is not a name for a {what}',
                why=f"It is the name of a folder under submissions/{'' if what == 'team' else schemas.show(team) + '/'}.",
                fix="use lower-case letters, digits and hyphens, starting with a letter or digit, at most 40",
            )


def _missing(config: Config, team: str, software: str | None) -> RunnerError:
    teams = [p.name for p in _folders(config.submissions)]
    if team not in teams:
        near = schemas.closest(team, teams).strip()
        return RunnerError(
            "E102",
            f'there is no team "{team}"',
            why=f"submissions/{team}/ does not exist.",
            fix=near or "see the folders under submissions/",
        )
    softwares = [name for _, name in _pairs(config, team, None)]
    if software is None:
        return RunnerError(
            "E102",
            f'the team "{team}" has no software',
            why=f"No folder of submissions/{team}/ holds a submission.yaml.",
            fix="add one; submissions/README.md says how",
        )
    near = schemas.closest(software, softwares).strip()
    return RunnerError(
        "E102",
        f'the team "{team}" has no software "{software}"',
        why=f"submissions/{team}/{software}/submission.yaml does not exist.",
        fix=near or f"known: {schemas.show(', '.join(softwares), 200) or 'none'}",
    )


def _checks(
    config: Config, folder: Path, doc: schemas.Document, tasks: Mapping[str, Task] | None
) -> list[tuple[str, Problem]]:
    """What the schema cannot say: paths that exist inside the folder, and what the task offers."""
    found: list[tuple[str, Problem]] = []

    def add(code: str, pointer: Sequence[str | int], what: str, fix: str = "") -> None:
        problem = doc.problem(pointer, what, fix)
        found.append((code, Problem(problem.where, problem.what, problem.fix)))

    data = doc.data
    for problem in _build_paths(folder, data.get("build")):
        add(*problem)
    runs = data.get("run")
    for i, name in enumerate([runs] if isinstance(runs, str) else runs if isinstance(runs, list) else []):
        if isinstance(name, str):
            pointer: tuple[str | int, ...] = ("run",) if isinstance(runs, str) else ("run", i)
            for code, what, fix in _file(folder, name, "the run file"):
                add(code, pointer, what, fix)
    for problem in _fits(config, data, tasks):
        add(*problem)
    return found


_Found = tuple[str, tuple[str | int, ...], str, str]


def _file(base: Path, name: str, what: str) -> list[tuple[str, str, str]]:
    """Problems with a file that must be a regular one inside ``base``. Says nothing of its content."""
    path = inside(base, name)
    if path is None:
        return [
            (
                "E202",
                f'{what} "{schemas.show(name)}" is not inside the submission\'s folder',
                "copy it there, and name it relative to the folder",
            )
        ]
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return [
            ("E201", f'{what} "{schemas.show(name)}" does not exist', "correct the name, or add the file")
        ]
    return (
        [] if regular else [("E201", f'{what} "{schemas.show(name)}" is not a regular file', "name a file")]
    )


def _build_paths(folder: Path, build: object) -> list[_Found]:
    if not isinstance(build, dict):
        return []
    context = build.get("context", ".")
    dockerfile = build.get("dockerfile", "Dockerfile")
    if not isinstance(context, str) or not isinstance(dockerfile, str):
        return []
    at: tuple[str | int, ...] = ("build", "context") if "context" in build else ("build",)
    base = inside(folder, context)
    if base is None:
        return [
            (
                "E202",
                at,
                f'the build context "{schemas.show(context)}" is not inside the submission\'s folder',
                "build from a folder inside it",
            )
        ]
    if not base.is_dir():
        return [
            ("E201", at, f'the build context "{schemas.show(context)}" is not a folder', "correct the name")
        ]
    at = ("build", "dockerfile") if "dockerfile" in build else ("build",)
    return [(code, at, what, fix) for code, what, fix in _file(base, dockerfile, "the Dockerfile")]


def _fits(config: Config, data: Mapping[str, Any], tasks: Mapping[str, Task] | None) -> list[_Found]:
    name = data.get("task")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return []
    task = tasks.get(name) if tasks is not None else None
    if task is None:
        known = task_ids(config)
        if name not in known:
            near = schemas.closest(name, known).strip()
            return [
                (
                    "E207",
                    ("task",),
                    f'there is no task "{name}"',
                    near or f"known: {schemas.show(', '.join(known), 200) or 'none'}",
                )
            ]
        if tasks is not None:
            return []
        try:
            task = load_task(config, name)
        except RunnerError:
            return []
    found: list[_Found] = []
    scenarios = data.get("scenarios", ["default"])
    for i, scenario in enumerate(scenarios if isinstance(scenarios, list) else ()):
        if isinstance(scenario, str) and scenario not in task.scenarios:
            near = schemas.closest(scenario, task.scenarios).strip()
            at: tuple[str | int, ...] = ("scenarios", i) if "scenarios" in data else ()
            found.append(
                (
                    "E207",
                    at,
                    f'the task "{name}" has no scenario "{schemas.show(scenario)}"',
                    near or f"name some of: {schemas.show(', '.join(task.scenarios), 200)}",
                )
            )
    if task.workflow != "upload" and "run" in data:
        found.append(
            (
                "E207",
                ("run",),
                f'the task "{name}" takes software, not run files',
                "name an image, or build one",
            )
        )
    if task.workflow == "upload" and "run" not in data and ("image" in data or "build" in data):
        found.append(
            (
                "E207",
                ("image",) if "image" in data else ("build",),
                f'the task "{name}" takes run files, not software',
                "name your run files under run:",
            )
        )
    return found


def _build(team: str, software: str, folder: Path, data: Mapping[str, Any]) -> SubmissionFile:
    build, runs, command = data.get("build"), data.get("run", []), data.get("command")
    return SubmissionFile(
        team=team,
        software=software,
        task=data["task"],
        folder=folder,
        scenarios=tuple(data.get("scenarios", ["default"])),
        image=data.get("image"),
        build=None if build is None else Build(
            context=folder / build.get("context", "."),
            dockerfile=build.get("dockerfile", "Dockerfile"),
            network=build.get("network", False),
            args=build.get("args", {}),
        ),
        run=tuple(folder / name for name in ([runs] if isinstance(runs, str) else runs)),
        command=tuple(command) if isinstance(command, list) else command,
        inputs=data.get("inputs", {}),
        tag=data.get("tag", software),
        description=data.get("description", ""),
        method=data.get("method", "automatic"),
        definition=data,
    )  # fmt: skip
