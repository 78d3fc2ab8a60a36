"""What somebody without an account gets to see of blinded data: the tree that is cloned, its history, the task's
screen, and boards. Of runs nobody but their team knows anything.

Texts of the hidden files are looked for there, as whole lines and values, and within longer texts where they have some words.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.doctor.checks import Check, caution, failed, passed
from runner.tasks.data_files import within
from runner.tasks.folders import exposed

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store

CANARY = 12  # characters of a text that can be told from chance
WORDS = 4  # of a text that is looked for within longer ones
MOST = 20_000  # lines of a file
NAMED = 5  # places that an alarm names
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^>]*>")
_JSON = tuple('{["')


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
    known = {text for d in task.datasets.values() if d.visibility == "public" for text in _dataset_texts(d)}
    search = Search({d.id: Canaries(_dataset_texts(d) - known) for d in hidden})
    for name, text in _public(task, store):
        search.text(name, text)
    for path in _handed_out(task, hidden):
        search.file(path.relative_to(task.folder).as_posix(), path.read_bytes())
    yield from _history(task, search)
    for dataset, canaries in search.looked_for.items():
        yield _verdict(f"strangers: {dataset}", len(canaries.texts), search.found[dataset])


class Canaries:
    """Texts of hidden files, and whether they are within others, however these are wrapped, cased or punctuated."""

    def __init__(self, texts: set[str]) -> None:
        self.texts = texts
        self._by_beginning: dict[tuple[str, ...], list[str]] = {}
        for text in texts:
            words = _words(text)
            if len(words) >= WORDS:
                self._by_beginning.setdefault(tuple(words[:WORDS]), []).append(f" {' '.join(words)} ")

    def within(self, text: str) -> bool:
        """Whether one of at least :data:`WORDS` words is in ``text``."""
        words = _words(text)
        begun = set(zip(*(words[n:] for n in range(WORDS)), strict=False)) & self._by_beginning.keys()
        if not begun:
            return False
        whole = f" {' '.join(words)} "
        return any(one in whole for key in begun for one in self._by_beginning[key])


class Search:
    """Where the canaries of each dataset were ``found``, by name."""

    def __init__(self, looked_for: Mapping[str, Canaries]) -> None:
        self.looked_for = looked_for
        self.found: dict[str, set[str]] = {dataset: set() for dataset in looked_for}

    def text(self, name: str, text: str) -> None:
        """Look into what people read: any canary in it is one."""
        for dataset, canaries in self.looked_for.items():
            if any(one in text for one in canaries.texts) or canaries.within(text):
                self.found[dataset].add(name)

    def file(self, name: str, data: bytes, place: str | None = None) -> None:
        """Look into the file ``name``: short texts are looked for as whole lines and values only; ``place`` is what it is called."""
        texts, whole = _texts(name, data)
        for dataset, canaries in self.looked_for.items():
            if not texts.isdisjoint(canaries.texts) or canaries.within(whole):
                self.found[dataset].add(place or name)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


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

    yield "task show", "\n".join(_values(overview(task).as_dict()))
    for name in ("task.yaml", "README.md", "compose.yaml"):
        if (task.folder / name).is_file():
            yield name, (task.folder / name).read_text("utf-8", "replace")
    for table in task.tables.values():
        if table.part_of is None:
            try:
                shown = build(store, task, table.id, PUBLIC)
            except RunnerError:  # it is closed to everybody
                continue
            yield f"board {table.id}", "\n".join(_values(json.loads(export(shown, "json"))))


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
    return {text for file in files for text in _texts(file.name, file.read_bytes())[0]}


def _texts(name: str, data: bytes) -> tuple[set[str], str]:
    """Texts by which the beginning of a file would be known again (values of JSON, lines without tags; no short ones), and all of it."""
    whole: list[str] = []
    found: set[str] = set()
    if name.endswith(".json"):
        try:
            found.update(_values(json.loads(data)))
        except (ValueError, RecursionError):
            pass
        else:
            return {text for text in found if len(text) >= CANARY}, "\n".join(found)
    for line in islice(_lines(name, data), MOST):
        text = line.decode("utf-8", "replace").strip()
        try:
            values = list(_values(json.loads(text))) if text[:1] in _JSON else None
        except (ValueError, RecursionError):
            values = None
        if values is None:
            values = [_TAG.sub(" ", text).strip() if "<" in text else text]
        found.update(values)
        whole += values
    return {text for text in found if len(text) >= CANARY}, "\n".join(whole)


def _lines(name: str, data: bytes) -> Iterator[bytes]:
    """The lines of a file, unpacked where its name says that it is; as far as they can be read."""
    with gzip.open(BytesIO(data)) if name.endswith(".gz") else BytesIO(data) as lines:
        try:
            yield from lines
        except (OSError, EOFError, zlib.error):
            return


def _values(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data.strip()
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _values(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _values(value)
