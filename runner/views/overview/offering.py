"""The data of tasks that are offered for download: each file is looked at and copied once, beside the clerk, and then published.

What is not looked at yet is not offered. When hidden files change, what is offered stays as it is until it was looked at again: nobody
sees by a list of public files that hidden ones were changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
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

RETRY = 60.0  # seconds after which is tried again what an error of the disk ended
_Stamp = tuple[str, int, int, int]
_Files = tuple[tuple[str, Path], ...]


@dataclass(frozen=True)
class Reader:
    """For whom a list is made: whether it is a team that has signed in, and what it ``accepted`` (task, version, SHA-256)."""

    team: bool = False
    accepted: Collection[tuple[str, str, str]] = ()


@dataclass
class _Known:
    """What is known of a file: its pieces, as found beside hidden files that were so; None where it was refused."""

    hidden: tuple[_Stamp, ...]
    pieces: Pieces | None = None

    @property
    def refused(self) -> bool:
        """Whether it is not offered as it is."""
        return self.pieces is None


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
        self._failed: dict[_Stamp, float] = {}  # when the disk failed
        self._said: dict[_Stamp, str] = {}
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
            "coming": sum(found is None and not self._is_refused(offer) for offer, found in ready),
        }
        yield self._to.object(f"data/{task.id}", "data", task.title, data)

    def collect(self) -> None:
        """Take what was looked at: the next publishing has it, and tries again what an error of the disk ended."""
        for stamp, (hidden, future) in list(self._asked.items()):
            if future.done():
                del self._asked[stamp]
                self._take(stamp, hidden, future.result)
        for stamp, failed in list(self._failed.items()):
            if time.monotonic() - failed > RETRY:
                del self._failed[stamp]
                self.done += 1

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
        looked = known is not None and known.hidden == hidden and (known.pieces is None or there)
        if not looked and stamp not in self._failed:
            if self._threads is None:
                self._take(stamp, hidden, lambda: self._look(offer, self._files, hidden))
                known = self._known.get(stamp)
                return None if known is None else known.pieces
            if stamp not in self._asked:
                self._asked[stamp] = hidden, self._threads.submit(self._look, offer, self._files, hidden)
        return known.pieces if known is not None and there else None

    def _is_refused(self, offer: Offer) -> bool:
        """Whether a file was refused as it is now."""
        with suppress(OSError):
            known = self._known.get(_stamp(offer.path))
            return known is not None and known.refused
        return False

    def _has(self, pieces: Pieces) -> bool:
        return self._to.has([Object("", "", "", one) for one in pieces.pieces])

    def _take(self, stamp: _Stamp, hidden: tuple[_Stamp, ...], give: Callable[[], Pieces]) -> None:
        """Note what became of a look. Only that it was refused lasts: the disk may be as it should the next time."""
        self.done += 1
        try:
            self._known[stamp] = _Known(hidden, give())
            self._said.pop(stamp, None)
            return
        except OSError as error:
            self._failed[stamp] = time.monotonic()
            why: RunnerError = disk_error("data cannot be offered", error, self._to.root)
        except Exception as error:  # noqa: BLE001  (hostile bytes: whatever the parser of an archive raises)
            self._known[stamp] = _Known(hidden)
            why = error if isinstance(error, RunnerError) else _unread(Path(stamp[0]), error)
        if self._said.get(stamp) != str(why):
            self._said[stamp] = str(why)
            self._problem(why)

    def _look(self, offer: Offer, files: _Files, hidden: tuple[_Stamp, ...]) -> Pieces:
        """Look at a file and copy it. Raises E403 for one that holds what is hidden, OSError."""
        if self._hidden is None or self._hidden[0] != hidden:
            self._hidden = hidden, read_hidden(files)
        self._hidden[1].refuse(offer)
        return keep(self._to, offer.path)


def _unread(path: Path, error: Exception) -> RunnerError:
    what = f"{schemas.show(path.name, 200)} cannot be looked into, and is not offered for download"
    why = f"It ends with {type(error).__name__}: {schemas.show(str(error), 200)}."
    return RunnerError("E403", what, why=why, fix="offer its files as they are, each packed with gzip or not")


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
