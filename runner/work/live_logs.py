"""What softwares write while they run: its end is published, second by second, to whoever may read the log of the run.

Which runs these are decides :mod:`runner.work.publishing`, and it asks for each (:meth:`LiveLogs.name_of`); of no other anything is
read. A software may write as much as it likes: it is read at a bounded pace (:class:`runner.execution.cluster.tails.Tail`), of each run
the last :data:`runner.exchange.tails.MOST` characters are kept, and they are written once a second, where they changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from runner.engines.base import Engine
from runner.exchange import tails
from runner.execution.attempt import engine_attempt
from runner.execution.cluster.tails import LEFT_OUT, Follower, Tail
from runner.model.errors import RunnerError
from runner.views.logs import Writing

MOST_FOLLOWED = 64  # runs at a time: of more that go on at once the others have no tail
AGAIN = 2.0  # seconds between two looks at whether a software runs on this machine


@dataclass
class _Followed:
    """An attempt: what it writes ``here``, or ``there`` at a host of a cluster, and what was written down of it under a ``name``."""

    here: Tail
    there: Follower
    name: str = field(default_factory=tails.new_name)
    writing: Writing = field(default_factory=lambda: Writing(tails.MOST))
    place: int = 0
    asked: bool = True  # since the last settling

    def take(self) -> bool:
        """Take what came since; whether anything did."""
        first, data = self.here.came(self.place)
        if first + len(data) == 0:
            self.there.ask()
            return self.writing.add(self.there.read())
        left_out = LEFT_OUT % (first - self.place) * (first > self.place)
        self.place = first + len(data)
        return self.writing.add(left_out + data)

    def close(self) -> None:
        """Follow no more."""
        self.here.close()
        self.there.close()


class LiveLogs:
    """The attempts that are followed. ``published`` is where their files go, ``notes`` where hosts are asked from, ``engine`` gives the engine
    of this machine; ``problem`` is told once what could not be written, until it can."""

    def __init__(
        self, published: Path, notes: Path, engine: Callable[[], Engine], problem: Callable[[OSError], None]
    ) -> None:
        self._published, self._notes, self._engine, self._problem = published, notes, engine, problem
        self._followed: dict[tuple[str, int], _Followed] = {}
        self._lock, self._over = threading.Lock(), threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="logs", daemon=True)
        tails.clear(published)
        self._thread.start()

    def name_of(self, run_id: str, number: int) -> str | None:
        """The name under which the end of what an attempt writes is published from now on; None where too many are followed."""
        with self._lock:
            found = self._followed.get((run_id, number))
            if found is None:
                if len(self._followed) >= MOST_FOLLOWED:
                    return None
                here = Tail(lambda: self._written(engine_attempt(run_id, number)), AGAIN)
                found = _Followed(here, Follower(self._notes, run_id, number))
                self._followed[run_id, number] = found
            found.asked = True
            return found.name

    def settle(self) -> None:
        """Once something was published: what was asked for since the last time is followed, and nothing else."""
        with self._lock:
            gone = [self._followed.pop(key) for key, one in list(self._followed.items()) if not one.asked]
            for one in self._followed.values():
                one.asked = False
        self._forget(gone)

    def close(self) -> None:
        """Follow nothing any more, and remove what was written."""
        self._over.set()
        self._thread.join()
        self._forget(list(self._followed.values()))

    def _forget(self, gone: list[_Followed]) -> None:
        for one in gone:
            one.close()
            tails.remove(self._published, one.name)

    def _written(self, attempt: str) -> Iterator[bytes]:
        """What an attempt writes on this machine; nothing while the engine does not answer."""
        with suppress(RunnerError):
            yield from self._engine().follow(attempt)

    def _run(self) -> None:
        while not self._over.wait(tails.EVERY):
            with self._lock:
                found = list(self._followed.items())
            for key, one in found:
                self._write(key, one)

    def _write(self, key: tuple[str, int], one: _Followed) -> None:
        changed = one.take()
        with self._lock:  # what is not followed any more has no file
            if not changed or key not in self._followed:
                return
            try:
                tails.write(self._published, one.name, tails.Tail(one.writing.first, one.writing.text))
                self._failed = False
            except OSError as error:
                if not self._failed:
                    self._problem(error)
                self._failed = True
