"""``runner task check --ready``: what an organiser looks at before a task opens, a line each, with the command or edit that helps."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.doctor.checks import Check, caution, failed, passed
from runner.doctor.tasks import sources_check, truths_check
from runner.model.calendar import calendar
from runner.model.clock import Clock
from runner.tasks.data_files import within

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.run import Run
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store

CLOSE = 0.8  # of a limit: a baseline that uses more leaves others little room
CANARY = 12  # characters of a text that can be told from chance
MOST = 20_000  # lines of a file
_LICENCE = re.compile(r"licen[cs]e|public domain|CC[- ]BY|CC0", re.I)
_CONTACT = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+|mailto:|contact", re.I)
_TERMS = re.compile(r"terms|rules|conditions of (?:use|participation)", re.I)


def ready(config: Config, task: Task, store: Store, clock: Clock) -> list[Check]:
    """The list for ``task``, in the order in which people do these things. Raises E401 when a date is none."""
    return [
        *_data(config, task),
        *_words(task),
        *_baselines(task, store),
        _quota(task),
        *_dates(task, clock),
        *_strangers(config, task, store),
    ]


def _data(config: Config, task: Task) -> Iterator[Check]:
    yield sources_check([task])
    gone = [d.id for d in task.datasets.values() if d.stage is None and not d.truths.is_dir()]
    if gone:
        yield failed("truths", f"not there: {', '.join(gone)}", f"runner task check {task.id}")
    else:
        hidden = [f"{task.id}/{d.id}" for d in task.datasets.values() if d.visibility == "blinded"]
        yield truths_check(config, [] if task.demo else hidden)
    if task.demo:
        what = "demo: true: truths of blinded datasets may lie in the tree, and dates are not enforced"
        yield caution("demo", what, "remove demo from task.yaml, and move the truths (docs/how-to/data.md)")


def _words(task: Task) -> Iterator[Check]:
    """What the task's README has to say to those who take part."""
    file = task.folder / "README.md"
    text = file.read_text("utf-8", "replace") if file.is_file() else ""
    name = f"tasks/{task.id}/README.md"
    licensed = _LICENCE.search(text) or any(task.folder.glob("LICEN[CS]E*"))
    for what, found, fix in (
        ("licence", licensed, f"say in {name} where the data come from and under which licence"),
        ("terms", _TERMS.search(text), f"say in {name} under which terms teams take part"),
        ("contact", _CONTACT.search(text), f"say in {name} whom teams can ask, with an address"),
    ):
        yield passed(what, f"{name} speaks of it") if found else caution(what, f"{name} does not say", fix)


def _baselines(task: Task, store: Store) -> Iterator[Check]:
    """Whether each baseline was run and scored in every cell of its tables, and how near it came to the limits."""
    from runner.records.store.queries import runs

    named = {
        (table.baseline, cell)
        for table in task.tables.values()
        for cell in table.cells
        if table.baseline and task.datasets[cell.dataset].stage is None
    }
    if not named:
        yield failed(
            "baseline", "no table names one", "write baseline: team/software into a table of task.yaml"
        )
        return
    latest: dict[tuple[str, object], Run] = {
        (f"{run.submission.team}/{run.submission.software}", run.cell): run
        for run in runs(store, [task], task=task.id)
    }
    for name in sorted({name for name, _ in named if name}):
        wanted = [cell for one, cell in named if one == name]
        mine = [latest[name, cell] for cell in wanted if (name, cell) in latest]
        team, _, software = name.partition("/")
        scored = [run for run in mine if run.outcome.name == "scored"]
        if len(scored) < len(wanted):
            what = f"{name} is scored in {len(scored)} of {len(wanted)} cells of its tables"
            send = f"runner submit --team {team} --software {software}; "
            yield failed("baseline", what, f"{'' if mine else send}runner evaluate --task {task.id}")
            continue
        yield passed("baseline", f"{name} is scored in all {len(wanted)} cells of its tables")
        yield _limits(task, name, scored)


def _limits(task: Task, name: str, scored: Iterable[Run]) -> Check:
    limits = task.limits
    shares = {"memory": 0.0, "wall_clock": 0.0, "cpu_time": 0.0}
    for run in scored:
        for key, used, most in (
            ("memory", run.memory_peak, limits.memory),
            ("wall_clock", run.wall_seconds, limits.wall_clock),
            ("cpu_time", run.cpu_seconds, limits.cpu_time),
        ):
            if used is not None and most is not None:
                shares[key] = max(shares[key], used / most)
    said = ", ".join(f"{share:.0%} of {key}" for key, share in shares.items() if share)
    near = [key for key, share in shares.items() if share > CLOSE]
    if near:
        return caution("limits", f"{name} uses {said}", f"raise {', '.join(near)} under limits in task.yaml")
    return passed("limits", f"{name} uses {said or 'what was not measured'}")


def _quota(task: Task) -> Check:
    quota = task.quota
    said = f"{quota.submissions:,} submissions a team, {quota.attempts:,} attempts a run"
    if "quota" in task.definition:
        return passed("quota", said)
    return caution("quota", f"{said}: the default, nobody set it", "write quota into task.yaml")


def _dates(task: Task, clock: Clock) -> Iterator[Check]:
    """The dates of the task, and of datasets that have some of their own."""
    dates, now = calendar(task), clock.now()
    spans = {"dates": (dates.opens, dates.closes)} if dates.phases.keys() != task.datasets.keys() else {}
    for name, phase in dates.phases.items():
        spans[f"dates: {name}"] = (phase.opens or dates.opens, phase.closes or dates.closes)
    for name, (opens, closes) in spans.items():
        if closes is None:
            yield caution(name, "it never closes", "write closes into task.yaml")
        elif closes.end <= now:
            yield failed(name, f"it has closed: {closes.own}", "write a later date for closes into task.yaml")
        elif opens is None:
            yield caution(name, "it is open from now on", "write opens into task.yaml")
        else:
            yield passed(name, f"opens {opens.own}, closes {closes.own}")


def _strangers(config: Config, task: Task, store: Store) -> Iterator[Check]:
    """What somebody without an account gets to see of blinded data: the tree, the task's pages, and the boards."""
    hidden = [d for d in task.datasets.values() if d.visibility == "blinded" and d.stage is None]
    if not hidden:
        yield passed("strangers", "no dataset is blinded")
        return
    if task.demo:
        yield caution(
            "strangers", "not looked for: the blinded data of a demo may lie in the tree", "remove demo"
        )
        return
    inside = [d.id for d in hidden if within(d.inputs, config.root)]
    if inside:
        what = f"the inputs of {', '.join(inside)} lie in the tree that participants clone"
        yield caution("strangers: tree", what, "keep these folders out of what you hand out")
    views = _public(task, store)
    known = {text for d in task.datasets.values() if d.visibility == "public" for text in _dataset_texts(d)}
    files = {path.relative_to(task.folder).as_posix(): _texts(path) for path in _handed_out(task, hidden)}
    for dataset in hidden:
        canaries = _dataset_texts(dataset) - known
        found = {name for name, text in views.items() if any(one in text for one in canaries)}
        found |= {name for name, texts in files.items() if not texts.isdisjoint(canaries)}
        name = f"strangers: {dataset.id}"
        if found:
            what = f"ALARM: text of its hidden files is in what everybody sees: {', '.join(sorted(found))}"
            yield failed(
                name, what, "see where it comes from (a description, a copy, a name), and take it out"
            )
        elif canaries:
            what = f"none of {len(canaries):,} texts of its hidden files is in the task's folder, its screen or its boards"
            yield passed(name, what)
        else:
            yield caution(name, "its hidden files hold no text that is long enough to look for")


def _public(task: Task, store: Store) -> Mapping[str, str]:
    """What everybody sees, by name: the task's own files and screen, and each board as it is exported."""
    from runner.model.errors import RunnerError
    from runner.views.audience import PUBLIC
    from runner.views.leaderboard.export import export
    from runner.views.leaderboard.table import build
    from runner.views.overview.facts import overview

    seen = {"task show": json.dumps(overview(task).as_dict(), ensure_ascii=False, default=str)}
    for name in ("task.yaml", "README.md", "compose.yaml"):
        if (task.folder / name).is_file():
            seen[name] = (task.folder / name).read_text("utf-8", "replace")
    for table in task.tables.values():
        if table.part_of is None:
            try:
                shown = build(store, task, table.id, PUBLIC)
            except RunnerError:  # it is closed to everybody
                continue
            seen[f"board {table.id}"] = export(shown, "json")
    return seen


def _handed_out(task: Task, hidden: Iterable[Dataset]) -> Iterator[Path]:
    """The files of the task's folder but for those of its blinded datasets."""
    folders = [folder for d in hidden for folder in (d.inputs, d.truths)]
    for path in sorted(task.folder.rglob("*")):
        if path.is_file() and not any(within(path, folder) for folder in folders):
            yield path


def _dataset_texts(dataset: Dataset) -> set[str]:
    """Texts of the topics and the truths of a dataset."""
    files = [path for path in sorted(dataset.truths.rglob("*")) if path.is_file()]
    if dataset.topics and (dataset.inputs / dataset.topics).is_file():
        files.append(dataset.inputs / dataset.topics)
    return {text for file in files for text in _texts(file)}


def _texts(file: Path) -> set[str]:
    """Texts by which the beginning of a file would be known again: values of JSON lines, and lines without tags; no short ones."""
    found: set[str] = set()
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as lines:
        for line in islice(lines, MOST):
            text = line.decode("utf-8", "replace").strip()
            try:
                found.update(_values(json.loads(text)))
            except (ValueError, RecursionError):
                found.add(re.sub(r"<[^>]*>", " ", text).strip())
    return {text for text in found if len(text) >= CANARY}


def _values(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data.strip()
    elif isinstance(data, dict):
        for value in data.values():
            yield from _values(value)
    elif isinstance(data, list):
        for value in data:
            yield from _values(value)
