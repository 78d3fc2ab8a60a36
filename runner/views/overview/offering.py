"""The data of tasks that are offered for download: each file is looked at and copied once, beside the clerk, and then published.

What is not looked at yet is not offered. When hidden files change, what is offered stays as it is until it was looked at again: nobody
sees by a list of public files that hidden ones were changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import schemas
from runner.exchange.pieces import Pieces, keep
from runner.exchange.published import FILE, Object, Publisher
from runner.model.errors import RunnerError, disk_error
from runner.tasks.files import terms_now
from runner.tasks.transfer.offers import Hidden, Offer, hidden_files, offers, read_hidden

if TYPE_CHECKING:
    from runner.model.task import Task

_Stamp = tuple[str, int, int, int]
_Files = tuple[tuple[str, Path], ...]


@dataclass(frozen=True)
class Reader:
    """For whom a list is made: whether it is a team that has signed in, and what it ``accepted`` (task, version, SHA-256)."""

    team: bool = False
    accepted: Collection[tuple[str, str, str]] = ()


@dataclass
class _Known:
    """What is known of a file: its pieces, as found beside hidden files that were so; or why it is not offered."""

    hidden: tuple[_Stamp, ...]
    pieces: Pieces | None = None
    why: RunnerError | None = None


class Offering:
    """Files that are offered, as objects.

    Args:
        to: Where they are published.
        problem: Is told once what is not offered, and why.
        beside: Whether a file is looked at and copied in a thread, and offered from the publishing after :meth:`collect` on.
    """

    def __init__(
        self, to: Publisher, problem: Callable[[RunnerError], None] = lambda _: None, *, beside: bool = False
    ) -> None:
        self._to, self._problem = to, problem
        self._threads = ThreadPoolExecutor(1, "offers") if beside else None
        self._known: dict[_Stamp, _Known] = {}
        self._asked: dict[_Stamp, tuple[tuple[_Stamp, ...], Future[Pieces]]] = {}
        self._hidden: tuple[tuple[_Stamp, ...], Hidden] | None = None
        self._files: _Files = ()
        self._missing: list[str] = []
        self.done = 0  # changes when a file was looked at

    def look(self, tasks: Iterable[Task]) -> None:
        """Note which files are hidden now, before anything is offered. Raises E402.

        While one is not there nothing is looked at: it could not be found in what is offered.
        """
        tasks = list(tasks)
        if not any(dataset.downloads for task in tasks for dataset in task.datasets.values()):
            return
        self._files = tuple(hidden_files(tasks))
        missing = [words for words, path in self._files if not path.exists()]
        if missing and missing != self._missing:
            what = f"no more data are offered for download: {missing[0]} are not there"
            fix = "put them in their place (runner doctor); truths that come later: make their folder, empty"
            self._problem(
                RunnerError("E402", what, why="Nobody can tell whether they are in what is offered.", fix=fix)
            )
        self._missing = missing

    def objects(self, task: Task, reader: Reader) -> Iterator[Object]:
        """The list of what is offered of a task, and the files of it that are open to a reader; nothing where nothing is offered.

        Raises as :func:`runner.tasks.transfer.offers.offers`, and E401 where the terms cannot be read.
        """
        if not any(one.downloads for one in task.datasets.values()):
            return
        ready = [(offer, self._ready(offer)) for offer in offers(task)]
        version, terms = terms_now(task) or ("", None)
        accepted = terms is not None and (task.id, version, terms.sha256) in reader.accepted
        open_ = {"everybody": True, "teams": reader.team and (terms is None or accepted)}
        listed: dict[str, list[dict[str, Any]]] = {}
        for offer, found in ready:
            if found is None:
                continue
            facts = {"name": offer.place, "size": found.size, "sha256": found.sha256}
            listed.setdefault(offer.dataset, []).append({**facts, "to": offer.to, "open": open_[offer.to]})
            if open_[offer.to]:
                name = PurePosixPath(offer.name).name
                kept = self._to.keep(schemas.canonical({**found.as_dict(), "name": name}))
                yield Object(f"data/{task.id}/{offer.dataset}/{offer.place}", FILE, name, kept)
        behind = any(offer.to == "teams" for offer, _ in ready)
        shown = None if terms is None else {"version": version, **vars(terms)}
        data = {
            **{
                "task": task.id,
                "title": task.title,
                "accepted": accepted,
                "terms": shown if behind else None,
            },
            "datasets": [
                _dataset(task, id, listed.get(id, ())) for id, one in task.datasets.items() if one.downloads
            ],
            "coming": sum(found is None and not self._refused(offer) for offer, found in ready),
        }
        yield self._to.object(f"data/{task.id}", "data", task.title, data)

    def collect(self) -> None:
        """Take what was looked at: the next publishing has it."""
        for stamp, (hidden, future) in list(self._asked.items()):
            if future.done():
                del self._asked[stamp]
                self._take(stamp, hidden, future.result)

    def close(self) -> None:
        """End, after the file that is being copied."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _ready(self, offer: Offer) -> Pieces | None:
        """The pieces of a file, if it was looked at as it is; None until then, and for what is refused."""
        try:
            stamp = _stamp(offer.path)
        except OSError:  # it went away: what is there then is looked at next
            return None
        known = self._known.get(stamp)
        there = known is not None and known.pieces is not None and self._has(known.pieces)
        try:
            hidden = tuple(_stamp(path) for _, path in self._files)
        except OSError:  # nothing is looked at before it is there again
            return known.pieces if known is not None and there else None
        if known is None or known.hidden != hidden or (known.pieces is not None and not there):
            if self._threads is None:
                self._take(stamp, hidden, lambda: self._look(offer, self._files, hidden))
                return self._known[stamp].pieces
            if stamp not in self._asked:
                self._asked[stamp] = hidden, self._threads.submit(self._look, offer, self._files, hidden)
        return known.pieces if known is not None and there else None

    def _refused(self, offer: Offer) -> bool:
        return any(
            known.why is not None for stamp, known in self._known.items() if stamp[0] == str(offer.path)
        )

    def _has(self, pieces: Pieces) -> bool:
        return self._to.has([Object("", "", "", one) for one in pieces.pieces])

    def _take(self, stamp: _Stamp, hidden: tuple[_Stamp, ...], give: Callable[[], Pieces]) -> None:
        try:
            self._known[stamp] = _Known(hidden, pieces=give())
        except (RunnerError, OSError) as error:
            why = (
                error
                if isinstance(error, RunnerError)
                else disk_error("data cannot be offered", error, self._to.root)
            )
            before = self._known.get(stamp)
            self._known[stamp] = _Known(hidden, why=why)
            if before is None or str(before.why) != str(why):
                self._problem(why)
        self.done += 1

    def _look(self, offer: Offer, files: _Files, hidden: tuple[_Stamp, ...]) -> Pieces:
        """Look at a file and copy it. Raises E403 for one that holds what is hidden, OSError."""
        if self._hidden is None or self._hidden[0] != hidden:
            self._hidden = hidden, read_hidden(files)
        self._hidden[1].refuse(offer)
        return keep(self._to, offer.path)


def _dataset(task: Task, id: str, files: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    of = task.datasets[id]
    said = {name: task.stated(name).get(id, "") for name in ("licence", "terms", "contact")}
    elsewhere = [
        {
            "name": one.name,
            "url": one.url if (one.url or "").startswith("https://") else None,
            "size": one.size,
        }
        for one in of.sources
        if one.name.split("/")[0] in of.downloads
    ]
    facts = {"id": id, "description": of.description, "citation": of.citation, **said}
    return {**facts, "files": list(files), "elsewhere": elsewhere}


def _stamp(path: Path) -> _Stamp:
    """What tells one state of a file from the next. Raises OSError."""
    facts = path.stat()
    return str(path), facts.st_size, facts.st_ino, facts.st_mtime_ns
