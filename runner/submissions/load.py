"""What teams hand in: ``submissions/<team>/<software>/submission.yaml``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import schemas
from runner.model.config import Config
from runner.model.errors import Problem, RunnerError, no_such
from runner.model.limits import asked
from runner.model.mapping import from_mapping
from runner.model.names import ABOUT, DISPLAYED, SAID, check_apart, check_name, text_problem
from runner.model.problems import Problems
from runner.model.task import Task
from runner.submissions.check import check_asked, check_fit, check_paths
from runner.submissions.definition import Build, SubmissionFile
from runner.submissions.run_files import by_software
from runner.tasks.data_files import inside
from runner.tasks.load import load_task, load_tasks, task_ids

Tasks = Mapping[str, Task]


def load_submission(config: Config, team: str, software: str, tasks: Tasks | None = None) -> SubmissionFile:
    """The submission of a team's software that fills a folder alone. Raises as :func:`load_submissions`, and E207."""
    found = load_submissions(config, team, software, tasks)
    if len(found) != 1:
        why = f"Its run files are those of {', '.join(s.software for s in found)}."
        raise RunnerError(
            "E207", f"{team}/{software} is {len(found)} softwares", why=why, fix="name one of them"
        )
    return found[0]


def load_submissions(
    config: Config, team: str, software: str, tasks: Tasks | None = None
) -> list[SubmissionFile]:
    """The submission in the folder of a team's software, checked; several when its run files are those of several
    softwares. All problems are in the error.

    Args:
        config: where the project and its data directory are.
        team: the team.
        software: the name of the folder.
        tasks: tasks already loaded; None loads what is needed. A task that cannot be loaded at all is not the team's
            fault and is left for whoever needs it.

    Raises:
        RunnerError: E208 for what is not a name, E102 when there is no such submission, E202 when a path leaves its
            folder, E201 when submission.yaml is not valid, E207 when it does not fit its task.
    """
    _check_names(team, software)
    folder = config.submissions / team / software
    name = f"submissions/{team}/{software}/submission.yaml"
    if inside(config.submissions, f"{team}/{software}") is None:
        what = f"the folder of {team}/{software} is a link that leaves submissions/"
        raise RunnerError("E202", what, fix="copy the folder itself")
    if not os.path.lexists(folder / "submission.yaml"):
        raise _missing(config, team, software)
    if inside(folder, "submission.yaml") is None:
        what = f"{name} is a link that leaves its folder"
        raise RunnerError("E202", what, fix="replace it by the file itself")
    doc = schemas.load_yaml(folder / "submission.yaml", name)
    problems = Problems(doc, "E201")
    problems.take(schemas.validate(doc, "submission"))
    data = schemas.usable(doc, "submission")
    task = _task(config, data.get("task"), tasks, problems)
    check_paths(folder, data, problems)
    if task is not None:
        check_fit(data, task, replace(problems, code="E207"))
        check_asked(data, task, replace(problems, code="E207"))
    for key in (*DISPLAYED, *ABOUT):
        if wrong := text_problem(key, data[key]) if key in data else "":
            problems.add((key,), f'"{key}" {wrong}', SAID[key])
    problems.refuse(f"the submission {team}/{software} cannot be used")
    runs = by_software(folder, software, data, task) if "run" in data else {software: []}
    if len(runs) > 1 and "display_name" in data:
        problems.add(
            ("display_name",), f"the run files are of {len(runs)} softwares", "name each: runner name"
        )
        problems.refuse(f"the submission {team}/{software} cannot be used")
    submission = _build(team, folder, data)
    return [
        replace(
            submission,
            software=name,
            tag=data.get("tag", name),
            run=tuple(files),
            scenarios=tuple(dict.fromkeys(file.scenario for file in files)) or submission.scenarios,
        )
        for name, files in runs.items()
    ]


def _task(config: Config, name: str | None, tasks: Tasks | None, problems: Problems) -> Task | None:
    """The task of that name; None when there is none, or when it cannot be loaded, which is not the team's fault."""
    if name is None:
        return None
    if tasks is not None and name in tasks:
        return tasks[name]
    known = task_ids(config)
    replace(problems, code="E207").known(("task",), "task", name, known)
    if name not in known or tasks is not None:
        return None
    try:
        return load_task(config, name)
    except RunnerError:
        return None


def _build(team: str, folder: Path, data: Mapping[str, Any]) -> SubmissionFile:
    """The submission of a definition that was found to be right, without its run files and what follows from them."""
    build = data.get("build")
    if build is not None:
        shared = [folder.parent / name for name in build.get("shared", ())]
        build = from_mapping(Build, build, context=folder / build.get("context", "."), shared=shared)
    return from_mapping(
        SubmissionFile,
        data,
        team=team,
        software=folder.name,
        folder=folder,
        build=build,
        run=(),
        limits=asked(data.get("limits", {})),
        definition=data,
    )


def find_submissions(
    config: Config, team: str | None = None, software: str | None = None, tasks: Tasks | None = None
) -> tuple[list[SubmissionFile], list[RunnerError]]:
    """All submissions (of one team, of that name) that can be used, sorted, and one error for each that cannot.

    A team or software that was asked for by name and does not exist is an error (E102, E208). ``software`` is
    the name of a folder, or of one of the softwares that the run files of a folder are.
    """
    pairs = _folders(config, team, software)
    in_a_folder = not pairs and team is not None and software is not None
    if in_a_folder:  # not a folder, perhaps one of the softwares in a folder
        pairs = _folders(config, team, None)
    loaded = load_tasks(config)[0] if tasks is None else tasks
    found: list[SubmissionFile] = []
    errors: list[RunnerError] = []
    for pair in pairs:
        try:
            found += load_submissions(config, *pair, loaded)
        except RunnerError as error:
            errors.append(error)
    if in_a_folder:
        found, errors = [s for s in found if s.software == software], []
    found, doubled = _with_own_names(found)
    errors += doubled
    if team is not None and not (found if in_a_folder else pairs):
        try:
            _check_names(team, software or "x")
            errors.append(_missing(config, team, software))
        except RunnerError as error:
            errors.append(error)
    return found, errors


def _with_own_names(found: list[SubmissionFile]) -> tuple[list[SubmissionFile], list[RunnerError]]:
    """The submissions whose name is their own, and an error for every name that two folders give, or nearly give."""
    first: dict[tuple[str, str], SubmissionFile] = {}
    errors = []
    for submission in found:
        named = submission.team, submission.software
        try:
            check_apart("team", named[0], {team for team, _ in first})
            check_apart("software", named[1], (software for team, software in first if team == named[0]))
        except RunnerError as error:
            errors.append(error)
            continue
        other = first.setdefault(named, submission)
        if other is not submission:
            what = f"two softwares of {submission.team} are called {submission.software}"
            folders = schemas.show(other.folder.name), schemas.show(submission.folder.name)
            why = f"One in the folder {folders[0]}, one in {folders[1]}."
            fix = "give the run file another name: in submission.yaml"
            errors.append(RunnerError("E201", what, why=why, fix=fix))
    return list(first.values()), errors


def _folders(config: Config, team: str | None, software: str | None) -> list[tuple[str, str]]:
    """Team and software of every folder that holds a submission.yaml; hidden folders are left out."""
    return sorted(
        (team_folder.name, folder.name)
        for team_folder in _visible(config.submissions)
        if team is None or team_folder.name == team
        for folder in _visible(team_folder)
        if (software is None or folder.name == software) and os.path.lexists(folder / "submission.yaml")
    )


def _visible(parent: Path) -> list[Path]:
    """The folders in a folder that are not hidden; none where it cannot be read."""
    try:
        return [p for p in parent.iterdir() if not p.name.startswith(".") and p.is_dir()]
    except OSError:
        return []


def _check_names(team: str, software: str) -> None:
    """Raise E208 for a team or software that cannot be called so."""
    check_name("team", team, "It is the name of a folder under submissions/.")
    check_name("software", software, f"It is the name of a folder under submissions/{team}/.")


def _missing(config: Config, team: str, software: str | None) -> RunnerError:
    """E102 for a team without a folder, without any software, or without this one."""
    teams = [p.name for p in _visible(config.submissions)]
    if team not in teams:
        why = f"submissions/{team}/ does not exist."
        return no_such("team", team, teams, why=why, fix="see the folders under submissions/")
    if software is None:
        why, fix = (
            f"No folder of submissions/{team}/ holds a submission.yaml.",
            "add one; submissions/README.md says how",
        )
        return RunnerError("E102", f"the team {team} has no software", why=why, fix=fix)
    softwares = [name for _, name in _folders(config, team, None)]
    why = f"submissions/{team}/{software}/submission.yaml does not exist."
    known = f"known: {schemas.show(', '.join(softwares), 200) or 'none'}"
    return no_such("software", software, softwares, of=f"the team {team}", why=why, fix=known)


def baseline_problems(task: Task, config: Config) -> list[Problem]:
    """What is wrong with the softwares that tables of ``task`` name as baselines; one that is not there is left out."""
    doc = schemas.load_yaml(task.folder / "task.yaml", f"tasks/{task.folder.name}/task.yaml")
    found: list[Problem] = []
    seen: set[str] = set()
    for i, table in enumerate(task.tables.values()):
        name = table.baseline
        if not name or name in seen or not (config.submissions / name / "submission.yaml").is_file():
            continue
        seen.add(name)
        team, _, software = name.partition("/")
        try:
            submissions = load_submissions(config, team, software, {task.id: task})
        except RunnerError as error:
            own = error.problems or [Problem(f"submissions/{name}/submission.yaml", error.what, error.fix)]
            found += [replace(problem, code="E402") for problem in own]
            continue
        others = {one.task for one in submissions} - {task.id}
        if others:
            what = f'the baseline "{schemas.show(name)}" takes part in {schemas.show(min(others))}, not here'
            found.append(
                replace(
                    doc.problem(("tables", i, "baseline"), what, "name a software of this task"), code="E402"
                )
            )
    return found
