"""What teams hand in: ``submissions/<team>/<software>/submission.yaml``."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import schemas
from runner.model.config import Config
from runner.model.errors import Problem, RunnerError, no_such
from runner.model.task import Task, Workflow
from runner.tasks.check import NAME, by_line, converted
from runner.tasks.data_files import inside
from runner.tasks.load import load_task, load_tasks, task_ids


@dataclass(frozen=True)
class Build:
    """How to build the image: folder and Dockerfile inside the submission's folder.

    ``shared`` are files of other softwares of the team; the build finds copies of them in the context.
    """

    context: Path
    dockerfile: str = "Dockerfile"
    network: bool = False
    args: Mapping[str, str] = field(default_factory=dict)
    shared: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Upload:
    """A run file that is handed in, and what it is for. ``dataset`` is empty only when its task cannot be loaded."""

    path: Path
    dataset: str = ""
    scenario: str = "default"


@dataclass(frozen=True)
class SubmissionFile:
    """A submission.yaml, loaded and checked. Exactly one of ``image``, ``build`` and ``run`` is set.

    ``folder`` holds the file; ``build.context`` and the run files are paths inside it. ``tag`` is the run tag (the
    software's name unless given). ``command`` is a list (run directly), a string (run by the image's ``sh -c``), or None (the image's own
    entrypoint). ``run`` are run files to upload, at most one for each dataset and scenario; a list of files can be
    several softwares, so that ``software`` need not be the folder's name. ``datasets`` are those it takes part in
    (None: all). ``workflow`` is its choice where the task offers several (None: the task's first).
    """

    team: str
    software: str
    task: str
    folder: Path
    scenarios: tuple[str, ...] = ("default",)
    image: str | None = None
    build: Build | None = None
    run: tuple[Upload, ...] = ()
    datasets: tuple[str, ...] | None = None
    command: str | tuple[str, ...] | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""
    description: str = ""
    method: Literal["automatic", "manual"] = "automatic"
    workflow: Workflow | None = None
    definition: Mapping[str, Any] = field(default_factory=dict)


def load_submission(
    config: Config, team: str, software: str, tasks: Mapping[str, Task] | None = None
) -> SubmissionFile:
    """The submission of a team's software that fills a folder alone. Raises as :func:`load_submissions`, and E207."""
    found = load_submissions(config, team, software, tasks)
    if len(found) != 1:
        raise RunnerError(
            "E207",
            f"{team}/{software} is {len(found)} softwares",
            why=f"Its run files are those of {', '.join(s.software for s in found)}.",
            fix="name one of them",
        )
    return found[0]


def load_submissions(
    config: Config, team: str, software: str, tasks: Mapping[str, Task] | None = None
) -> list[SubmissionFile]:
    """The submission in the folder of a team's software, checked; several when its run files are those of several
    softwares. All problems are in the error.

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
    return _build(config, team, software, folder, doc.data, tasks)


def find_submissions(
    config: Config,
    team: str | None = None,
    software: str | None = None,
    tasks: Mapping[str, Task] | None = None,
) -> tuple[list[SubmissionFile], list[RunnerError]]:
    """All submissions (of one team, of that name) that can be used, sorted, and one error for each that cannot.

    A team or software that was asked for by name and does not exist is an error (E102, E208). ``software`` is
    the name of a folder, or of one of the softwares that the run files of a folder are.
    """
    pairs = _pairs(config, team, software)
    within = not pairs and team is not None and software is not None
    if within:  # not a folder, perhaps one of the softwares in a folder
        pairs = _pairs(config, team, None)
    loaded: dict[str, Task] = dict(tasks or {})
    if tasks is None:
        loaded = _tasks(config)
    found: list[SubmissionFile] = []
    errors: list[RunnerError] = []
    for one_team, one_software in pairs:
        try:
            found += load_submissions(config, one_team, one_software, loaded)
        except RunnerError as error:
            errors.append(error)
    if within:
        found = [s for s in found if s.software == software]
        pairs, errors = [(s.team, s.software) for s in found], []
    found, twice = _once(found)
    errors += twice
    if not pairs and team is not None:
        try:
            _names(team, software or "x")
            errors.append(_missing(config, team, software))
        except RunnerError as error:
            errors.append(error)
    return found, errors


def _once(found: list[SubmissionFile]) -> tuple[list[SubmissionFile], list[RunnerError]]:
    """The submissions whose name is their own, and an error for every name that two folders of a team give."""
    first: dict[tuple[str, str], SubmissionFile] = {}
    errors = []
    for one in found:
        other = first.setdefault((one.team, one.software), one)
        if other is not one:
            errors.append(
                RunnerError(
                    "E201",
                    f"two softwares of {one.team} are called {one.software}",
                    why=f"One in the folder {schemas.show(other.folder.name)}, one in {schemas.show(one.folder.name)}.",
                    fix="give the run file another name: in submission.yaml",
                )
            )
    return list(first.values()), errors


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
        why = f"submissions/{team}/ does not exist."
        return no_such("team", team, teams, why=why, fix="see the folders under submissions/")
    softwares = [name for _, name in _pairs(config, team, None)]
    if software is None:
        return RunnerError(
            "E102",
            f"the team {team} has no software",
            why=f"No folder of submissions/{team}/ holds a submission.yaml.",
            fix="add one; submissions/README.md says how",
        )
    why = f"submissions/{team}/{software}/submission.yaml does not exist."
    known = f"known: {schemas.show(', '.join(softwares), 200) or 'none'}"
    return no_such("software", software, softwares, of=f"the team {team}", why=why, fix=known)


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
    for pointer, entry in _entries(data):
        if isinstance(entry.get("file"), str):
            for code, what, fix in _file(folder, entry["file"], "the run file"):
                add(code, pointer, what, fix)
    for problem in _fits(config, data, tasks):
        add(*problem)
    return found


def _entries(data: Mapping[str, Any]) -> list[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """The run files of a definition, each with its place, in the long form; tolerant, the schema speaks of the rest."""
    runs = data.get("run")
    if isinstance(runs, str):
        return [(("run",), {"file": runs})]
    return [
        (("run", i), {"file": entry} if isinstance(entry, str) else entry)
        for i, entry in enumerate(runs if isinstance(runs, list) else ())
        if isinstance(entry, str | dict)
    ]


_Found = tuple[str, tuple[str | int, ...], str, str]


def _file(base: Path, name: str, what: str, of: str = "submission") -> list[tuple[str, str, str]]:
    """Problems with a file that must be a regular one inside ``base``. Says nothing of its content."""
    path = inside(base, name)
    if path is None:
        return [
            (
                "E202",
                f'{what} "{schemas.show(name)}" is not inside the {of}\'s folder',
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
    found: list[_Found] = [
        (code, at, what, fix) for code, what, fix in _file(base, dockerfile, "the Dockerfile")
    ]
    taken = {os.fsencode(path.name) for path in base.iterdir()}
    shared = build.get("shared")
    for i, name in enumerate(shared if isinstance(shared, list) else ()):
        if isinstance(name, str):
            problems = _file(folder.parent, name, "the shared file", "team")
            if os.fsencode(Path(name).name) in taken:
                what = f'the build context has another "{schemas.show(Path(name).name)}"'
                problems.append(("E201", what, "remove one of the two"))
            taken.add(os.fsencode(Path(name).name))
            found += [(code, ("build", "shared", i), what, fix) for code, what, fix in problems]
    return found


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
    found: list[_Found] = _uploads_fit(data, task) if "run" in data else []
    datasets = data.get("datasets")
    for i, dataset in enumerate(datasets if isinstance(datasets, list) else ()):
        found += _known(("datasets", i), dataset, task.datasets, task.id, "dataset")
    scenarios = data.get("scenarios", [] if "run" in data else ["default"])
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
    found += _workflow_fits(data, task)
    if not task.takes_uploads and "run" in data:
        found.append(
            (
                "E207",
                ("run",),
                f'the task "{name}" takes software, not run files',
                "name an image, or build one",
            )
        )
    if not task.takes_software and "run" not in data and ("image" in data or "build" in data):
        found.append(
            (
                "E207",
                ("image",) if "image" in data else ("build",),
                f'the task "{name}" takes run files, not software',
                "name your run files under run:",
            )
        )
    return found


def _workflow_fits(data: Mapping[str, Any], task: Task) -> list[_Found]:
    """A choice that the task does not offer, or that means nothing for run files."""
    chosen = data.get("workflow")
    if not isinstance(chosen, str):
        return []
    if "run" in data:
        return [
            ("E207", ("workflow",), "run files are taken as they are", "remove workflow, or name an image")
        ]
    return _known(("workflow",), chosen, dict.fromkeys(task.workflows), task.id, "workflow")


def _known(
    at: tuple[str | int, ...], name: object, known: Mapping[str, object], task: str, what: str
) -> list[_Found]:
    if not isinstance(name, str) or name in known:
        return []
    near = schemas.closest(name, known).strip()
    fix = near or f"name one of: {schemas.show(', '.join(known), 200)}"
    return [("E207", at, f'the task "{task}" has no {what} "{schemas.show(name)}"', fix)]


def _uploads_fit(data: Mapping[str, Any], task: Task) -> list[_Found]:
    """Run files that name a dataset or scenario which is not there, or none where there are several."""
    found: list[_Found] = []
    cells: dict[tuple[str, str, str], int] = {}
    for n, (at, entry) in enumerate(_entries(data), 1):
        for what, choices in (("dataset", task.datasets), ("scenario", task.scenarios)):
            if what in entry:
                found += _known((*at, what), entry[what], choices, task.id, what)
            elif not _usual(data, what, task):
                found.append(
                    (
                        "E207",
                        at,
                        f"the run file does not say which {what} it answers",
                        f"write {{file: …, {what}: …}} with one of: {schemas.show(', '.join(choices), 200)}",
                    )
                )
        name, cell = entry.get("name"), _cell(data, entry, task)
        if isinstance(name, str) and cells.setdefault((name, *cell), n) != n:
            found.append(
                (
                    "E201",
                    at,
                    f'two run files of "{schemas.show(name)}" are for {" in ".join(filter(None, cell))}',
                    "keep one of them, or give them different names",
                )
            )
    return found


def _usual(data: Mapping[str, Any], what: str, task: Task | None) -> str:
    """The dataset or scenario of a run file that names none; empty when it cannot be known."""
    given = data.get(f"{what}s")
    if isinstance(given, list) and given:
        return str(given[0]) if len(given) == 1 else ""
    if task is None:
        return "default" if what == "scenario" else ""
    if what == "scenario" and "default" in task.scenarios:
        return "default"
    choices = list(task.datasets if what == "dataset" else task.scenarios)
    return choices[0] if len(choices) == 1 else ""


def _cell(data: Mapping[str, Any], entry: Mapping[str, Any], task: Task | None) -> tuple[str, str]:
    """Dataset and scenario of a run file."""
    dataset, scenario = (str(entry.get(k) or _usual(data, k, task)) for k in ("dataset", "scenario"))
    return dataset, scenario


def _named_runs(
    folder: Path, software: str, data: Mapping[str, Any], task: Task | None
) -> dict[str, list[Upload]]:
    """The run files by the software that they are runs of.

    A name that is given decides. Files without one are the folder's software, one file for each dataset and
    scenario; where there are more, each is a software of its own: the file's name without its ending, or
    ``software-N`` (N: its place in the list) when that is no name or belongs to another one. Adding files at the
    end of the list changes no name.
    """
    rows = [(n, e, _cell(data, e, task)) for n, (_, e) in enumerate(_entries(data), 1)]
    unnamed = [cell for _, entry, cell in rows if "name" not in entry]
    one = len(set(unnamed)) == len(unnamed)
    taken = {(str(e["name"]), cell) for _, e, cell in rows if "name" in e}
    found: dict[str, list[Upload]] = {}
    for n, entry, cell in rows:
        name = entry.get("name") or (software if one else _stem(entry["file"]))
        if "name" not in entry:
            if not name or (name, cell) in taken:
                name = f"software-{n}"
            taken.add((name, cell))
        found.setdefault(name, []).append(Upload(folder / entry["file"], *cell))
    return found


def _stem(file: str) -> str:
    """A file's name without its endings as a software's name; empty when it cannot be made one."""
    stem = file.rsplit("/", 1)[-1].removesuffix(".gz")
    stem = stem.rpartition(".")[0] or stem
    name = re.sub(r"[^a-z0-9-]+", "-", stem.lower()).strip("-")
    return name if NAME.fullmatch(name) else ""


def _build(
    config: Config,
    team: str,
    folder_name: str,
    folder: Path,
    data: Mapping[str, Any],
    tasks: Mapping[str, Task] | None,
) -> list[SubmissionFile]:
    build, command = data.get("build"), data.get("command")
    groups: dict[str, list[Upload]] = {folder_name: []}
    if "run" in data:
        groups = _named_runs(folder, folder_name, data, _task(config, data["task"], tasks))
    return [
        SubmissionFile(
            team=team,
            software=software,
            task=data["task"],
            folder=folder,
            scenarios=tuple(dict.fromkeys(run.scenario for run in runs))
            or tuple(data.get("scenarios", ["default"])),
            image=data.get("image"),
            build=None if build is None else Build(
                context=folder / build.get("context", "."),
                dockerfile=build.get("dockerfile", "Dockerfile"),
                network=build.get("network", False),
                args=build.get("args", {}),
                shared=tuple(folder.parent / name for name in build.get("shared", ())),
            ),
            run=tuple(runs),
            datasets=tuple(data["datasets"]) if "datasets" in data else None,
            command=tuple(command) if isinstance(command, list) else command,
            inputs=data.get("inputs", {}),
            tag=data.get("tag", software),
            description=data.get("description", ""),
            method=data.get("method", "automatic"),
            workflow=data.get("workflow"),
            definition=data,
        )
        for software, runs in groups.items()
    ]  # fmt: skip


def _task(config: Config, name: str, tasks: Mapping[str, Task] | None) -> Task | None:
    """The task of that name; None when it cannot be loaded, which is not the team's fault."""
    if tasks is not None and name in tasks:
        return tasks[name]
    try:
        return load_task(config, name) if tasks is None else None
    except RunnerError:
        return None
