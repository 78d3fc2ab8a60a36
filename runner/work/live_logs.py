"""What softwares write while they run: its end is published, second by second, to whoever may read the log of the run.

Which runs these may be says :func:`growing`, by the rules for logs that are sealed; :mod:`runner.work.publishing` asks for each
(:meth:`LiveLogs.name_of`), and of no other anything is read. A software may write as much as it likes: it is read at a bounded pace (:class:`runner.execution.cluster.tails.Tail`), of each run
the last :data:`runner.exchange.tails.MOST` characters are kept, and they are written once a second, where they changed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from runner.engines.base import Engine, MayCut
from runner.exchange import tails
from runner.exchange.readers import read_now
from runner.execution.attempt import engine_attempt
from runner.execution.cluster.tails import LEFT_OUT, Follow, Follower, Tail, may_leave
from runner.model.errors import RunnerError
from runner.records.archive import RunArchive
from runner.views.audience import Audience, log_open
from runner.views.listing import ListedRun
from runner.views.logs import Writing

MOST_FOLLOWED = 64  # runs at a time: of more that go on at once the others have no tail
PAUSES = (2.0, 30.0)  # seconds between two looks whether a software runs here: doubled up to the second
Attempt = tuple[str, int]  # id of the run, and number


def growing(runs: Iterable[ListedRun], archive: RunArchive, before: Mapping[str, int]) -> dict[Attempt, str]:
    """The attempts that go on, of runs on public data whose team may read the log once it is sealed: each with that team. One that
    grew ``before`` (by run, its number) does so until it is recorded, also when it is over: no page has its own log until then."""
    live, found = archive.live(), dict[Attempt, str]()
    for one in runs:
        team, number = one.run.submission.team, live.get(one.run.id)
        if number is None and before.get(one.run.id) == one.run.attempts + 1:
            sealed = archive.has_attempt(one.run.submission.task, one.run.id, one.run.attempts + 1)
            number = one.run.attempts + 1 if sealed else None
        may = may_leave(one.dataset) and log_open(one.run, Audience("team", team), one.dataset, one.published)
        if number is not None and may:
            found[one.run.id, number] = team
    return found


@dataclass
class _Followed:
    """An attempt: what it writes ``here``, or ``there`` at a host of a cluster, and what was written down of it under a ``name``."""

    follow: Follow
    there: Follower
    name: str = field(default_factory=tails.new_name)
    writing: Writing = field(default_factory=lambda: Writing(tails.MOST))
    place: int = 0
    asking: bool = False
    asked: bool = True  # since the last settling
    unwritten: bool = False

    def __post_init__(self) -> None:
        self.here = Tail(self.follow, PAUSES)

    def take(self, read: bool) -> bool:
        """Take what came since; whether anything did. A host is asked only while somebody reads it."""
        first, data = self.here.came(self.place)
        if first + len(data) == 0:
            if read:
                self.there.ask()
            elif self.asking:
                self.there.rest()
            self.asking = read
            if came := self.there.read():
                self.here.close()  # it runs there
            elif self.here.closed and self.there.over:  # it may begin anew, here
                self.here = Tail(self.follow, PAUSES)
            return self.writing.add(came)
        left_out = LEFT_OUT % (first - self.place) * (first > self.place)
        self.place = first + len(data)
        return self.writing.add(left_out + data)

    def close(self) -> None:
        """Follow no more."""
        self.here.close()
        self.there.close()


class LiveLogs:
    """The attempts that are followed. ``exchange`` is the folder where their files go and the front says which are read, ``notes`` where hosts are asked from, ``engine`` gives the engine
    of this machine; ``problem`` is told once what failed of one of them, or of several alike, until it goes on."""

    def __init__(
        self, exchange: Path, notes: Path, engine: Callable[[], Engine], problem: Callable[[Exception], None]
    ) -> None:
        self._published, self._inbox = exchange / "published", exchange / "inbox"
        self._notes, self._engine, self._problem = notes, engine, problem
        self.places: Mapping[str, int] = {}  # the attempts that have one, by run
        self._served: dict[str, int] = {}  # by team, when it was given its last place
        self._followed: dict[Attempt, _Followed] = {}
        self._gone: list[_Followed] = []  # which their own thread closes
        self._left: list[str] = []  # files that stay until something was published
        self._failing: dict[str, object] = {}  # by name, in what way
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="logs", daemon=True)
        tails.clear(self._published)
        self._thread.start()

    def share(self, wanted: Mapping[Attempt, str]) -> None:
        """Give places to attempts, each with its team: to each team one in turn, to that first which was given none for longest. What has a
        place keeps it while there is one for its team; what else was followed is no more, and its file stays until :meth:`settle`."""
        with self._lock:
            had, turns = self.places.items(), Counter[str]()
            order = list[tuple[int, bool, int, int, Attempt]]()
            for n, one in enumerate(sorted(wanted, key=lambda one: one not in had)):
                team = wanted[one]
                order.append((turns[team], one not in had, self._served.get(team, 0), n, one))
                turns[team] += 1
            chosen = [one for *_, one in sorted(order)[:MOST_FOLLOWED]]
            for one in chosen:
                if one not in had:
                    self._served[wanted[one]] = max(self._served.values(), default=0) + 1
            self.places = dict(chosen)
            self._drop(self._followed.keys() - set(chosen))

    def name_of(self, run_id: str) -> str | None:
        """The name under which the end of what a run writes is published from now on; None for one that has no place."""
        with self._lock:
            if (number := self.places.get(run_id)) is None:
                return None
            found = self._followed.get((run_id, number))
            if found is None:
                there = Follower(self._notes, run_id, number)
                found = _Followed(lambda cut: self._written(engine_attempt(run_id, number), cut), there)
                self._followed[run_id, number] = found
            found.asked = True
            return found.name

    def settle(self) -> None:
        """Once something was published: what was asked for since the last time is followed, and nothing else."""
        with self._lock:
            self._drop([key for key, one in self._followed.items() if not one.asked])
            for one in self._followed.values():
                one.asked = False
        self._remove()

    def forget(self) -> None:
        """Follow none of them, and remove what was written: where nothing can be published, nobody knows who may read them now."""
        with self._lock:
            self._drop([*self._followed])
        self._remove()

    def close(self) -> None:
        """Follow nothing any more, and remove what was written."""
        self._over.set()
        self._thread.join()
        self.forget()
        for one in self._gone:
            one.close()

    def _drop(self, keys: Iterable[Attempt]) -> None:
        gone = [self._followed.pop(key) for key in keys]
        self._gone += gone
        self._left += [one.name for one in gone]

    def _remove(self) -> None:
        with self._lock:
            left, self._left = self._left, []
        for name in left:
            tails.remove(self._published, name)

    def _written(self, attempt: str, may_cut: MayCut) -> Iterator[bytes]:
        """What an attempt writes on this machine; nothing while the engine does not answer."""
        with suppress(RunnerError):
            yield from self._engine().follow(attempt, may_cut)

    def _run(self) -> None:
        while not self._over.wait(tails.EVERY):
            with self._lock:
                found, gone, self._gone = list(self._followed.items()), self._gone, []
            for one in gone:
                self._guarded(one.name, one.close)
                self._failing.pop(one.name, None)
            read = read_now(self._inbox)
            for key, one in found:
                self._guarded(one.name, partial(self._write, key, one, one.name in read))

    def _guarded(self, name: str, step: Callable[[], None]) -> None:
        """Do a step of one attempt: a failure of it is told, and ends nothing else."""
        try:
            step()
        except Exception as error:  # noqa: BLE001  (the border of what is done for one attempt: the others go on)
            how = type(error), getattr(error, "errno", None)
            if how not in self._failing.values():
                self._problem(error)
            self._failing[name] = how
        else:
            self._failing.pop(name, None)

    def _write(self, key: Attempt, one: _Followed, read: bool) -> None:
        one.unwritten |= one.take(read)
        with self._lock:  # what is not followed any more has no file
            if one.unwritten and self._followed.get(key) is one:
                tails.write(self._published, one.name, tails.Tail(one.writing.first, one.writing.text))
                one.unwritten = False
