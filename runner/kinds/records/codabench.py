"""A bundle of Codabench (``competition.yaml``, version 2) as a task.

Source: the description of the YAML in the documentation of Codabench. Dates are UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import schemas
from runner.kinds.records.foreign import Asked, Given, Part, Taken, name_of, page, plain, untaken
from runner.kinds.release import MAX_ALL, Wrong, files_of, read
from runner.model.errors import RunnerError
from runner.tasks.data_files import within
from schemas import show

PREFIX = "codabench:"
DEPTH = 16
MOST_DATASETS = 50
_LONGEST = 30 * 24 * 3600  # seconds of a run
_PACKED = (".zip", ".tar", ".tgz", ".tar.gz")
_PROGRAM = "its program is not run here; measures are computed by their names"
_REGISTRATION = (
    "teams register with registration in task.yaml (approve: at-once, or organiser), or are added by you"
)
_WHY = {
    "scoring_program": _PROGRAM,
    "ingestion_program": "softwares bring their own image and read $inputDataset themselves",
    "docker_image": "softwares bring their own image",
    "public_data": "give it to participants yourself, or make a public dataset of it",
    "starting_kit": "runner task kit makes one",
    "image": "there are no logos",
    "queue": "where runs are done is said by RUNNER_ENGINES",
    "solutions": "softwares that prove a task are submissions here; name one as baseline in task.yaml",
    "submission_rule": "write pick in the table (latest, best, chosen)",
    "key": "only data in the bundle are read, and figures by their names",
    "hidden": "who sees scores is said by scores of the dataset",
    "auto_migrate_to_this_phase": "submissions name their datasets",
    "registration_auto_approve": _REGISTRATION,
    "hide_output": "what teams see of logs follows the visibility of a dataset",
    "hide_prediction_output": "what teams see of outputs follows the visibility of a dataset",
    "hide_score_output": "who sees scores is said by scores of the dataset",
}


@dataclass
class Phase:
    """A phase: dates, quota, and the tasks (by their index) that it has."""

    name: str
    start: str
    end: str
    quota: dict[str, int]
    seconds: int | None
    uploads: bool | None
    tasks: list[str]


@dataclass
class Data:
    """A task of a bundle: where its data lie in it."""

    name: str
    description: str
    inputs: str
    truths: str
    phases: list[Phase] = field(default_factory=list)


class _Bundle:
    """The files of a bundle; archives in it are unpacked, all within one limit."""

    def __init__(self, source: Path, scratch: Path, most: int) -> None:
        self.scratch = scratch
        files = files_of(source, _folder(scratch, "bundle"), most, DEPTH)
        found = [n for n in files if PurePosixPath(n).name in ("competition.yaml", "competition.yml")]
        if not found:
            raise Wrong("holds no competition.yaml", "name the bundle, a zip file or a folder")
        self.definition = min(found, key=lambda n: (n.count("/"), n))
        home = self.definition.rpartition("/")[0]
        self.files = {n.removeprefix(f"{home}/" if home else ""): path for n, path in files.items()}
        if source.is_dir():
            for name, path in files.items():
                if not within(path, source):
                    raise Wrong(
                        f'has a link "{show(name)}" that leads out of it', "put the file itself there"
                    )
        self.left = most - (0 if source.is_dir() else sum(path.stat().st_size for path in files.values()))
        self._unpacked: dict[str, Mapping[str, Path]] = {}

    def data(self, path: str) -> Mapping[str, Path]:
        """The files of a folder or an archive of the bundle; empty when it names none. Raises :class:`Wrong`."""
        name = "/".join(part for part in PurePosixPath(path).parts if part != ".")
        if name not in self.files:
            return {
                n.removeprefix(f"{name}/"): p
                for n, p in self.files.items()
                if name and n.startswith(f"{name}/")
            }
        if not name.lower().endswith(_PACKED):
            return {PurePosixPath(name).name: self.files[name]}
        if name not in self._unpacked:
            place = _folder(self.scratch, f"data-{len(self._unpacked)}")
            try:
                found = files_of(self.files[name], place, max(self.left, 0))
            except Wrong as error:
                raise Wrong(
                    f'has an archive "{show(name, 100)}" in it, which {error.what}', error.fix
                ) from None
            self.left -= sum(one.stat().st_size for one in found.values())
            self._unpacked[name] = found
        return self._unpacked[name]

    def text(self, path: str) -> str:
        """Return a page of the bundle; empty if it is not Markdown or text that can be read."""
        name = "/".join(part for part in PurePosixPath(path).parts if part != ".")
        fine = name in self.files and name.lower().endswith((".md", ".txt"))
        try:
            return page(read(self.files[name])) if fine else ""
        except Wrong:  # such as a web page
            return ""


def _folder(scratch: Path, name: str) -> Path:
    made = scratch / name
    made.mkdir()
    return made


def from_bundle(source: Path, scratch: Path, most: int = MAX_ALL) -> Taken:
    """The task in a bundle: a zip file, or its folder; what is packed in it has at most ``most`` bytes, unpacked.

    Raises:
        Wrong: it is none, or holds what no honest bundle does.
        RunnerError: E402 with what is wrong with its competition.yaml.
    """
    bundle = _Bundle(source, scratch, most)
    doc = schemas.load_yaml(
        read(bundle.files[PurePosixPath(bundle.definition).name]),
        f"{source.name}/{bundle.definition}",
        foreign=True,
    )
    if doc.problems:
        raise RunnerError("E402", "the competition.yaml cannot be read", problems=doc.problems)
    given = Given(doc.data)
    given.known("version")
    if "tasks" not in given.data:
        raise Wrong("has no tasks in its competition.yaml", "name a bundle of version 2")
    taken = Taken(
        given.text("title")[:200] or source.stem, [], "Codabench", description=given.text("description")
    )
    taken.contact = given.text("contact_email")
    phases, tasks = _phases(given, taken)
    _pages(given, bundle, taken)
    _datasets(phases, tasks, bundle, taken)
    taken.left += untaken(given, _WHY)
    return taken


def _phases(given: Given, taken: Taken) -> tuple[list[Phase], dict[str, Data]]:
    """The phases, and the tasks by their index."""
    phases: list[Phase] = []
    for row in given.rows("phases"):
        row.known("index")
        dates = _date(row, "start", taken), _date(row, "end", taken)
        seconds, uploads = row.whole("execution_time_limit"), row.flag("accepts_only_result_submissions")
        phases.append(Phase(row.text("name"), *dates, _quota(row), seconds, uploads, row.texts("tasks")))
    tasks = {
        row.text("index"): Data(
            row.text("name"), row.text("description"), row.text("input_data"), row.text("reference_data")
        )
        for row in given.rows("tasks")
    }
    for board in given.rows("leaderboards"):
        board.known("title", "key")
        for column in board.rows("columns"):
            column.known("index")
            lower = {"asc": True, "desc": False}.get(column.text("sorting"))
            name, title = column.text("key"), column.text("title")
            taken.asked.append(Asked(name or title, column.whole("precision"), lower))
    return phases, tasks


def _quota(row: Given) -> dict[str, int]:
    found = {"submissions": row.whole("max_submissions"), "per_day": row.whole("max_submissions_per_day")}
    return {key: value for key, value in found.items() if value is not None and value <= 1_000_000}


def _date(row: Given, key: str, taken: Taken) -> str:
    """A date as task.yaml has it; empty when there is none that can be read."""
    text = row.text(key)
    at = None
    try:
        if text and (at := datetime.fromisoformat(text)):
            at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        if at and at.year < 1970:
            raise ValueError
    except (ValueError, OverflowError):
        taken.left.append(f"{row.name}{key}: {show(text)} is no date that can be read")
        return ""
    return f"{at.isoformat(' ', 'seconds')[:19]} UTC" if at else ""


def _pages(given: Given, bundle: _Bundle, taken: Taken) -> None:
    """Terms and pages; those in HTML are named only."""
    pages = [(row.text("title"), row.text("file")) for row in given.rows("pages")]
    terms = given.text("terms")
    if words := bundle.text(terms):
        taken.terms = plain(words) if len(words) <= 2_000 else "see README.md"
        pages += [("Terms", terms)] if len(words) > 2_000 else []
    elif terms:
        taken.left.append(f"the terms in {show(terms, 100)}: write them as terms into task.yaml")
    for title, file in pages:
        if words := bundle.text(file):
            taken.pages.append((title, words))
        else:
            taken.left.append(f"the page {show(title)} ({show(file, 100)}): only Markdown is taken")


def _datasets(phases: list[Phase], tasks: Mapping[str, Data], bundle: _Bundle, taken: Taken) -> None:
    """A dataset for each task with reference data, with the dates and quota of the phases that have it."""
    for phase in phases:
        for index in phase.tasks:
            if index in tasks:
                tasks[index].phases.append(phase)
            else:
                taken.left.append(
                    f"the task {show(index)} of the phase {show(phase.name)}: the bundle does not have it"
                )
    if len(tasks) > MOST_DATASETS:
        raise Wrong(f"has more than {MOST_DATASETS} tasks", "take it over in parts")
    for index, data in tasks.items():
        if not data.truths:
            taken.left.append(f"the task {show(data.name or index)}: it has no reference data in the bundle")
            continue
        truths = bundle.data(data.truths)
        if not truths:
            raise Wrong(
                f"has no {show(data.truths, 100)}, which its competition.yaml names",
                "add it, or correct the name",
            )
        inputs = bundle.data(data.inputs) if data.inputs else {}
        name = name_of(data.name or index, [part.id for part in taken.parts], f"data-{len(taken.parts) + 1}")
        part = Part(name, "blinded", inputs, truths, data.description)
        _times(part, data.phases, taken)
        taken.parts.append(part)
    seconds = {min(phase.seconds, _LONGEST) for phase in phases if phase.seconds}
    taken.wall_clock = max(seconds, default=None)
    if len(seconds) > 1:
        taken.left.append("time limits of single phases: the largest is that of the task")
    if phases and all(phase.uploads for phase in phases):
        taken.workflow = "upload"


def _times(part: Part, phases: list[Phase], taken: Taken) -> None:
    first: Callable[[list[str]], str] = lambda dates: min(dates) if all(dates) and dates else ""  # noqa: E731
    part.opens = first([phase.start for phase in phases])
    ends = [phase.end for phase in phases]
    part.closes = max(ends) if all(ends) and ends else ""
    if phases:
        part.quota = phases[-1].quota
    if len(phases) > 1:
        names = ", ".join(show(phase.name) for phase in phases)
        taken.left.append(
            f"{part.id} is in several phases ({names}): one dataset, open from the first to the last, quota of the last"
        )
