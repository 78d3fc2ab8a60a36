"""What somebody without an account gets to see of blinded data: the tree that is cloned, its history, the task's
screen, and boards. Of runs nobody but their team knows anything.

Texts of the hidden files are looked for there (:mod:`runner.views.hidden`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from runner.doctor.checks import Check, caution, failed, passed
from runner.tasks.data_files import within
from runner.tasks.folders import exposed
from runner.views.hidden import Search, search_for, values_of

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store

NAMED = 5  # places that an alarm names


def strangers(config: Config, task: Task, store: Store) -> Iterator[Check]:
    """A line for each blinded dataset: an alarm when anything of its hidden files is where everybody sees it."""
    hidden = [d for d in task.datasets.values() if d.visibility == "blinded" and d.stage is None]
    if not hidden:
        yield passed("strangers", "no dataset is blinded")
        return
    if task.demo:
        why = "not looked for: the blinded data of a demo may lie in the tree"
        yield caution("strangers", why, "remove demo from task.yaml")
        return
    inside = [f"{one.side} of {one.dataset}" for one in exposed(config, task.folder, task.definition)]
    if inside:
        what = f"ALARM: {', '.join(inside)} lie in the tree that participants clone"
        yield failed("strangers: tree", what, f"runner task hide {task.id}")
    search = search_for(task)
    for name, text in _public(task, store):
        search.text(name, text)
    for path in _handed_out(task, hidden):
        search.file(path.relative_to(task.folder).as_posix(), path)
    yield from _history(task, search)
    for dataset, canaries in search.looked_for.items():
        yield _verdict(f"strangers: {dataset}", len(canaries.texts), search.found[dataset])


def _verdict(name: str, count: int, places: set[str]) -> Check:
    if places:
        more = f" and {len(places) - NAMED:,} more" if len(places) > NAMED else ""
        what = f"ALARM: text of its hidden files is in what everybody sees: {', '.join(sorted(places)[:NAMED])}{more}"
        fix = "see where it comes from (a description, a copy, a name), and take it out"
        if any("(history)" in place for place in places):
            fix += "; what was committed stays in the history: publish a new repository without it"
        return failed(name, what, fix)
    if not count:
        return caution(name, "its hidden files hold no text that is long enough to look for")
    where = "the task's folder, its screen, its boards, or the history of its repository"
    return passed(name, f"none of {count:,} texts of its hidden files is in {where}")


def _history(task: Task, search: Search) -> Iterator[Check]:
    """Look into what a clone of the repository brings; a line only where that cannot be done for all of it."""
    from runner.submissions.source import history

    name, passed_over = "strangers: history", 0
    try:
        for path, data in history(task.folder):
            if data is None:
                passed_over += 1
            else:
                search.file(path, data, f"{path or 'a commit message'} (history)")
    except OSError as error:
        yield caution(name, f"not looked at: {error}", "look through it before you publish the repository")
    if passed_over:
        what = f"{passed_over:,} files in it are too large, and were not looked at"
        yield caution(name, what, "see that none of them holds hidden data (git rev-list --objects --all)")


def _public(task: Task, store: Store) -> Iterator[tuple[str, str]]:
    """What everybody sees, by name: the task's own files and screen, and each board as it is exported."""
    from runner.model.errors import RunnerError
    from runner.views.audience import PUBLIC
    from runner.views.leaderboard.export import export
    from runner.views.leaderboard.table import build
    from runner.views.overview.facts import overview

    yield "task show", "\n".join(values_of(overview(task).as_dict()))
    for name in ("task.yaml", "README.md", "compose.yaml"):
        if (task.folder / name).is_file():
            yield name, (task.folder / name).read_text("utf-8", "replace")
    for table in task.tables.values():
        if table.part_of is None:
            try:
                shown = build(store, task, table.id, PUBLIC)
            except RunnerError:  # it is closed to everybody
                continue
            yield f"board {table.id}", "\n".join(values_of(json.loads(export(shown, "json"))))


def _handed_out(task: Task, hidden: Iterable[Dataset]) -> Iterator[Path]:
    """The files of the task's folder but for those of its blinded datasets."""
    folders = [folder for d in hidden for folder in (d.inputs, d.truths)]
    for path in sorted(task.folder.rglob("*")):
        if path.is_file() and not any(within(path, folder) for folder in folders):
            yield path
