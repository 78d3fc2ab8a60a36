"""Publish the end of the output of running software to everybody who may read the log of the run.

:func:`growing` selects the runs, by the rules for sealed logs. :mod:`runner.work.publishing` asks for the name of each
(:meth:`LiveLogs.name_of`); nothing else is read. The clerk writes what is new every few seconds (:meth:`LiveLogs.write`): of each run the last
:data:`runner.exchange.tails.MOST` characters, read at a bounded pace (:class:`runner.execution.cluster.tails.Tail`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from runner.engines.base import Engine, MayCut
from runner.exchange import tails
from runner.execution.attempt import engine_attempt
from runner.execution.cluster.tails import LEFT_OUT, Follow, Follower, Tail, may_leave
from runner.model.errors import RunnerError
from runner.records.archive import RunArchive
from runner.views.audience import Audience, log_open
from runner.views.listing import ListedRun
from runner.views.logs import Writing

MOST_FOLLOWED = 64  # runs at a time; further runs have no tail
WRITE_SECONDS = 2.0  # between two versions of a file, at least
PAUSES = (2.0, 30.0)  # seconds between two looks whether a software runs here: doubled up to the second
Attempt = tuple[str, int]  # id of the run, and number


def growing(
    runs: Iterable[ListedRun], archive: RunArchive, before: Collection[Attempt]
) -> dict[Attempt, str]:
    """Return the running attempts, with their teams, of runs on public data whose team may read the log once it is sealed. An attempt that was
    followed ``before`` stays until it is recorded, also when it is over: no page has its own log until then."""
    live, attempts = archive.live(), dict[Attempt, str]()
    for one in runs:
        team, number = one.run.submission.team, live.get(one.run.id)
        if number is None and (one.run.id, one.run.attempts + 1) in before:
            sealed = archive.has_attempt(one.run.submission.task, one.run.id, one.run.attempts + 1)
            number = one.run.attempts + 1 if sealed else None
        may = may_leave(one.dataset) and log_open(one.run, Audience("team", team), one.dataset, one.published)
        if number is not None and may:
            attempts[one.run.id, number] = team
    return attempts


@dataclass
class _Followed:
    """A followed attempt: its output ``here`` or ``there`` at a host of a cluster, and what was read of it so far."""

    follow: Follow
    there: Follower
    name: str = field(default_factory=tails.new_name)
    writing: Writing = field(default_factory=lambda: Writing(tails.MOST))
    place: int = 0
    unwritten: bool = False

    def __post_init__(self) -> None:
        self.here = Tail(self.follow, PAUSES)

    def read(self) -> bool:
        """Read the new output; return True if there is any."""
        first, data = self.here.came(self.place)
        if first + len(data) == 0:
            self.there.ask()
            if came := self.there.read():
                self.here.close()  # it runs there
            elif self.here.closed and self.there.over:  # it may begin anew, here
                self.here = Tail(self.follow, PAUSES)
            return self.writing.add(came)
        left_out = LEFT_OUT % (first - self.place) * (first > self.place)
        self.place = first + len(data)
        return self.writing.add(left_out + data)

    def close(self) -> None:
        """Stop following."""
        self.here.close()
        self.there.close()


class LiveLogs:
    """The followed attempts; for one thread. ``published`` is the folder of their files, ``notes`` the folder where hosts are asked, ``engine``
    returns the engine of this machine. ``problem`` is told an error once, until every log can be written again."""

    def __init__(
        self, published: Path, notes: Path, engine: Callable[[], Engine], problem: Callable[[Exception], None]
    ) -> None:
        self._published, self._notes, self._engine, self._problem = published, notes, engine, problem
        self._followed: dict[Attempt, _Followed] = {}
        self._dropped: list[_Followed] = []  # their files stay until the next publishing
        self._written, self._is_failing = 0.0, False
        tails.keep(published, ())

    @property
    def attempts(self) -> Collection[Attempt]:
        """The followed attempts."""
        return self._followed.keys()

    def share(self, wanted: Mapping[Attempt, str]) -> None:
        """Follow these attempts, each given with its team, as far as there is room: one of each team in turn, those that are followed first.
        The others are followed no more; their files stay until :meth:`settle`."""
        turns, order = Counter[str](), list[tuple[int, int, Attempt]]()
        for n, attempt in enumerate(sorted(wanted, key=lambda one: one not in self._followed)):
            order.append((turns[wanted[attempt]], n, attempt))
            turns[wanted[attempt]] += 1
        chosen = {attempt for *_, attempt in sorted(order)[:MOST_FOLLOWED]}
        self._drop(self._followed.keys() - chosen)
        for attempt in chosen - self._followed.keys():
            self._followed[attempt] = self._follow(*attempt)

    def name_of(self, run_id: str) -> str | None:
        """Return the name of the file with the end of a run's output; None for a run that is not followed."""
        return next((one.name for (run, _), one in self._followed.items() if run == run_id), None)

    def settle(self) -> None:
        """Remove the files of attempts that are followed no more, after something was published."""
        for one in self._dropped:
            tails.remove(self._published, one.name)
        self._dropped.clear()

    def forget(self) -> None:
        """Follow nothing, and remove the files: while nothing can be published, nobody knows who may read them."""
        self._drop([*self._followed])
        self.settle()

    close = forget

    def write(self) -> None:
        """Write what is new of each log, unless that was done just now. One log that fails does not stop the others."""
        if time.monotonic() < self._written + WRITE_SECONDS:
            return
        self._written, errors = time.monotonic(), []
        for one in self._followed.values():
            try:
                one.unwritten |= one.read()
                if one.unwritten:
                    tails.write(self._published, one.name, tails.Tail(one.writing.first, one.writing.text))
                    one.unwritten = False
            except Exception as error:  # noqa: BLE001  (the border of what is done for one attempt: the others go on)
                errors.append(error)
        if errors and not self._is_failing:
            self._problem(errors[0])
        self._is_failing = bool(errors)

    def _follow(self, run_id: str, number: int) -> _Followed:
        there = Follower(self._notes, run_id, number)
        return _Followed(lambda cut: self._output(engine_attempt(run_id, number), cut), there)

    def _drop(self, attempts: Collection[Attempt]) -> None:
        for attempt in attempts:
            one = self._followed.pop(attempt)
            self._dropped.append(one)
            with suppress(Exception):  # an engine that is gone
                one.close()

    def _output(self, attempt: str, may_cut: MayCut) -> Iterator[bytes]:
        """Return the output of an attempt on this machine; nothing while the engine does not answer."""
        with suppress(RunnerError):
            yield from self._engine().follow(attempt, may_cut)
