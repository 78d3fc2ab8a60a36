"""What evaluating again changed, or would change once it is accepted: values of runs, and rows of boards, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.model.run import Run
from runner.model.task import Task
from runner.records.store.connect import Store
from runner.records.store.evaluated import settle_evaluations
from runner.records.store.queries import runs as all_runs
from runner.records.store.results import values
from runner.views.audience import ORGANISER
from runner.views.leaderboard.table import build

if TYPE_CHECKING:
    from sqlalchemy import Connection


class Place(NamedTuple):
    """Where a software ranks on a table, and the figure that decides: its value of the ranking measure, or mean or median rank."""

    rank: int
    score: float


@dataclass(frozen=True)
class Picture:
    """Values by run and measure, each with what was computed; and places by task, table and software."""

    values: Mapping[tuple[str, str], tuple[float, str]] = field(default_factory=dict)
    places: Mapping[tuple[str, str, str], Place] = field(default_factory=dict)


@dataclass(frozen=True)
class Value:
    """One value of one run, before and after (None: there was or is none); ``of``: what was computed before, if another."""

    run: str
    measure: str
    old: float | None
    new: float | None
    of: str = ""

    @property
    def difference(self) -> float | None:
        """New minus old; None where one of them is missing or they are values of different things."""
        return None if self.old is None or self.new is None or self.of else self.new - self.old


@dataclass(frozen=True)
class Rank:
    """Rank and score of a software on a table, before and after; None: it did or does not rank."""

    task: str
    table: str
    software: str
    old: int | None
    new: int | None
    old_score: float | None = None
    new_score: float | None = None


def picture(store: Store, tasks: Iterable[Task], runs: Iterable[Run]) -> Picture:
    """The values of ``runs`` and the places on the whole tables of ``tasks``, as they stand."""
    found = {
        (run.id, name): (value.value, value.measure)
        for run in runs
        for name, value in values(store, run).items()
    }
    places = {
        (task.id, table.id, f"{row.team}/{row.software}"): Place(row.rank, made.deciding(row))
        for task in tasks
        for table in task.tables.values()
        if table.part_of is None
        for made in [build(store, task, table.id, ORGANISER)]
        for row in made.rows
    }
    return Picture(found, places)


def outlook(store: Store, tasks: Sequence[Task], runs: Sequence[Run]) -> Picture:
    """The same as it would be if the evaluations of ``runs`` that wait were accepted; nothing is changed."""
    waiting = [(run.id, run.outcome.attempt, run.waiting) for run in runs if run.waiting is not None]

    def counted(connection: Connection) -> None:
        settle_evaluations(connection, waiting)

    wanted = {run.id for run in runs}
    with store.supposing(counted) as supposed:
        return picture(supposed, tasks, [run for run in all_runs(supposed, tasks) if run.id in wanted])


def changed_values(before: Picture, after: Picture, runs: Iterable[str]) -> list[Value]:
    """Every value of ``runs``, before and after, in their order."""
    found = []
    for run in runs:
        names = sorted({name for id, name in {**before.values, **after.values} if id == run})
        for name in names:
            old, was = before.values.get((run, name), (None, ""))
            new, now = after.values.get((run, name), (None, was))
            found.append(Value(run, name, old, new, was if was and now and was != now else ""))
    return found


def changed_ranks(before: Picture, after: Picture) -> list[Rank]:
    """The rows whose rank or score is not what it was."""
    none = (None, None)
    found = []
    for key in sorted({*before.places, *after.places}):
        old, new = before.places.get(key, none), after.places.get(key, none)
        if old != new:
            found.append(Rank(*key, old[0], new[0], old[1], new[1]))
    return found


def as_data(found: Iterable[Value], ranks: Iterable[Rank]) -> dict[str, Any]:
    """Both for JSON; values at full precision."""
    rows = []
    for one in found:
        row = {**asdict(one), "difference": one.difference}
        row["old_measure"] = row.pop("of") or None
        rows.append(row)
    return {"values": rows, "ranks": [asdict(one) for one in ranks]}
