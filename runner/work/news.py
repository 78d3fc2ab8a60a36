"""When it is told what became of runs on hidden data: at even times, so that the moment says next to nothing.

A software that read hidden inputs chooses how long it runs. Whoever sees when its run begins or ends reads a message
from that, as long as the clock is fine. So what is published of such runs is how things stood at the last of some even
times (:data:`EVERY`); that includes quotas, boards, and how many runs wait. What people decide (publish, review, withdraw)
and what is handed in is published at once, and so are runs on public data and run files: no software read anything there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, text

from runner.model.clock import Clock
from runner.model.config import News
from runner.model.run import run_id
from runner.model.task import Task
from runner.records.archive import RunArchive
from runner.records.store.connect import Store
from runner.records.store.database import of
from runner.records.store.queries import submissions

EVERY: Mapping[News, float] = {
    "ten-minutes": 600.0,
    "minute": 60.0,
    "hour": 3600.0,
    "at-once": 0.0,
}  # seconds


@dataclass
class Told:
    """What is told between two even times: everything up to the event ``_seq`` of runs on hidden data, and which then ran."""

    clock: Clock
    every: News
    _time: int | None = None
    _seq: int = 0
    _live: Mapping[str, int] = field(default_factory=dict)

    def time(self) -> int:
        """The number of the last even time: when it is another one, there may be news."""
        seconds = EVERY[self.every]
        return int(self.clock.now().timestamp() // seconds) if seconds else 0

    @contextmanager
    def store(self, store: Store, tasks: Mapping[str, Task]) -> Iterator[Store]:
        """The store as it is told, for questions only."""
        if not EVERY[self.every]:
            yield store
            return
        live = store.archive.live()
        now = self.time()
        if self._time is None or now > self._time:
            self._time, self._seq, self._live = now, store.head().seq, live
        elif (
            now < self._time
        ):  # the clock was set back: the next even time is the next one by it, and not this moment
            self._time = now
        closed = set(_hidden(store, tasks))
        with store.supposing(lambda connection: _hide(connection, self._seq, closed), alone=False) as told:
            kept = {run: number for run, number in live.items() if run not in closed}
            told.archive = _Archive(
                store.archive, kept | {r: n for r, n in self._live.items() if r in closed}
            )
            yield told


class _Archive(RunArchive):
    """The archive, with what ran at the last even time."""

    def __init__(self, of: RunArchive, live: Mapping[str, int]) -> None:
        super().__init__(of.root)
        self._live = dict(live)

    def live(self) -> dict[str, int]:
        return self._live


def _hidden(store: Store, tasks: Mapping[str, Task]) -> Iterator[str]:
    """The runs of softwares on hidden data. A demonstration hides nothing."""
    for one in submissions(store):
        task = tasks.get(one.task)
        if task is not None and not task.demo and one.how != "uploaded":
            for cell in one.cells_of(task):
                if task.datasets[cell.dataset].visibility == "blinded":
                    yield run_id(one.id, cell.dataset, cell.scenario)


def _hide(connection: Connection, seq: int, runs: Iterable[str]) -> None:
    """Lay views over the tables, in this transaction alone, without what came of these runs after the event ``seq``."""
    main = of(connection).schema(connection)
    connection.execute(text("CREATE TEMPORARY TABLE untold (id TEXT PRIMARY KEY)"))
    for run in runs:
        connection.execute(text("INSERT INTO untold VALUES (:run)"), {"run": run})
    for table in ("attempts", "evaluations"):
        connection.execute(
            text(
                f"CREATE TEMPORARY VIEW {table} AS SELECT * FROM {main}.{table} "  # noqa: S608
                f"WHERE seq <= {int(seq)} OR run NOT IN (SELECT id FROM untold)"
            )
        )
