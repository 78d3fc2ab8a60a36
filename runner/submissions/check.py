"""What the schema cannot say about a submission.yaml: paths that stay inside its folder, and what the task offers.

Both read the definition as :func:`schemas.usable` leaves it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import schemas
from runner.model.limits import asked, beyond
from runner.model.names import unasked
from runner.model.problems import Pointer, Problems
from runner.model.task import Task
from runner.submissions.run_files import cell_of, default_of, entries
from runner.tasks.data_files import inside

Raw = Mapping[str, Any]


def check_paths(folder: Path, data: Raw, problems: Problems, of: str = "submission") -> None:
    """Note build contexts, Dockerfiles and run files that are not there, or not inside ``folder``, that ``of`` something."""
    if "build" in data:
        _check_build(folder, data["build"], problems)
    for at, entry in entries(data):
        if "file" in entry:
            _check_file(folder, at, entry["file"], "the run file", problems, of)


def _check_build(folder: Path, build: Raw, problems: Problems) -> None:
    if "git" in build or "commit" in build:
        for key, other in (("git", "commit"), ("commit", "git")):
            if other not in build:
                problems.add(("build", key), f"build has {key} and no {other}", f"add {other}")
        if "shared" in build:
            what = "shared files do not go with build.git"
            problems.add(("build", "shared"), what, "commit them to the repository")
        return  # its files are not here yet
    context = build.get("context", ".")
    at, what = ("build", "context"), f'the build context "{schemas.show(context)}" is not'
    base = inside(folder, context)
    if base is None:
        problems.add(at, f"{what} inside the submission's folder", "build from a folder inside it", "E202")
    elif not base.is_dir():
        problems.add(at, f"{what} a folder", "correct the name")
    else:
        dockerfile = build.get("dockerfile", "Dockerfile")
        _check_file(base, ("build", "dockerfile"), dockerfile, "the Dockerfile", problems)
        _check_shared(folder.parent, base, build.get("shared", ()), problems)


def _check_shared(team: Path, context: Path, shared: Iterable[str | None], problems: Problems) -> None:
    """Files of other softwares of the team, which are copied into the context under their own names."""
    taken = {os.fsencode(path.name) for path in context.iterdir()}
    for i, name in enumerate(shared):
        if name is not None:
            at, copy = ("build", "shared", i), Path(name).name
            _check_file(team, at, name, "the shared file", problems, of="team")
            if os.fsencode(copy) in taken:
                what = f'the build context has another "{schemas.show(copy)}"'
                problems.add(at, what, "remove one of the two")
            taken.add(os.fsencode(copy))


def _check_file(
    base: Path, at: Pointer, name: str, noun: str, problems: Problems, of: str = "submission"
) -> None:
    """A file that must be a regular one inside ``base``, the folder ``of`` something. Nothing is said of its content."""
    path, what = inside(base, name), f'{noun} "{schemas.show(name)}"'
    if path is None:
        fix = "copy it there, and name it relative to the folder"
        problems.add(at, f"{what} is not inside the {of}'s folder", fix, "E202")
        return
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            problems.add(at, f"{what} is not a regular file", "name a file")
    except (OSError, ValueError):
        problems.add(at, f"{what} does not exist", "correct the name, or add the file")


def check_fit(data: Raw, task: Task, problems: Problems) -> None:
    """Note datasets, scenarios, workflows, limits and forms of taking part that the task does not offer."""
    of = f'the task "{task.id}"'
    if "run" in data:
        _check_run_files(data, task, problems)
    for i, name in enumerate(data.get("datasets", ())):
        problems.known(("datasets", i), "dataset", name, task.datasets, of=of)
    for i, name in enumerate(data.get("scenarios", () if "run" in data else ("default",))):
        problems.known(("scenarios", i), "scenario", name, task.scenarios, of=of)
    if "run" in data and "workflow" in data:
        what = "run files are taken as they are"
        problems.add(("workflow",), what, "remove workflow, or name an image")
    else:
        problems.known(("workflow",), "workflow", data.get("workflow"), task.workflows, of=of)
    wanted = asked(data.get("limits", {}))
    if "run" in data and wanted:
        problems.add(("limits",), "run files are not executed", "remove limits, or name an image")
        wanted = {}
    for key, what, fix in beyond(task.limits, task.frame, wanted):
        problems.add(("limits", key), what, fix)
    if "run" in data and not task.takes_uploads:
        problems.add(("run",), f"{of} takes software, not run files", "name an image, or build one")
    for key in ("image", "build"):
        if key in data and "run" not in data and not task.takes_software:
            problems.add((key,), f"{of} takes run files, not software", "name your run files under run:")


def check_asked(said: Raw, task: Task, problems: Problems, at: Pointer | None = None) -> None:
    """Note what the task asks teams to say and this submission does not, or the other way round; ``at`` a place other than the key."""
    for key, what, fix in unasked(said, task.id, task.asks):
        problems.add(((key,) if key in said else ()) if at is None else at, what, fix)


def _check_run_files(data: Raw, task: Task, problems: Problems) -> None:
    """Run files that name a dataset or scenario which is not there, or none where there are several."""
    cells: dict[tuple[str, ...], int] = {}
    for n, (at, entry) in enumerate(entries(data)):
        for noun, choices in (("dataset", list(task.datasets)), ("scenario", list(task.scenarios))):
            if noun in entry:
                problems.known((*at, noun), noun, entry[noun], choices, of=f'the task "{task.id}"')
            elif not default_of(data, noun, task):
                listed = schemas.show(", ".join(choices), 200)
                fix = f"name the {noun} of each file, one of: {listed}"
                problems.add(at, f"the run file does not say which {noun} it answers", fix)
        cell = cell_of(data, entry, task)
        if "name" in entry and cells.setdefault((entry["name"], *cell), n) != n:
            what = f'two run files of "{entry["name"]}" are for {" in ".join(filter(None, cell))}'
            problems.add(at, what, "keep one of them, or give them different names", "E201")
