"""What evaluating again changed: values of runs, and ranks on boards, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from runner.model.run import Run
from runner.model.task import Task
from runner.records.store.connect import Store
from runner.records.store.results import values
from runner.views.audience import ORGANISER
from runner.views.leaderboard.table import build


@dataclass(frozen=True)
class Picture:
    """Values by run and measure, each with what was computed; and ranks by task, table and software."""

    values: Mapping[tuple[str, str], tuple[float, str]] = field(default_factory=dict)
    ranks: Mapping[tuple[str, str, str], int] = field(default_factory=dict)


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
    """The rank of a software on a table, before and after; None: it did or does not rank."""

    task: str
    table: str
    software: str
    old: int | None
    new: int | None


def picture(store: Store, tasks: Iterable[Task], runs: Iterable[Run]) -> Picture:
    """The values of ``runs`` and the ranks on the whole tables of ``tasks``, as they stand."""
    found = {
        (run.id, name): (value.value, value.measure)
        for run in runs
        for name, value in values(store, run).items()
    }
    ranks = {
        (task.id, table.id, f"{row.team}/{row.software}"): row.rank
        for task in tasks
        for table in task.tables.values()
        if table.part_of is None
        for row in build(store, task, table.id, ORGANISER).rows
    }
    return Picture(found, ranks)


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
    """The ranks that are not what they were."""
    return [
        Rank(*key, before.ranks.get(key), after.ranks.get(key))
        for key in sorted({*before.ranks, *after.ranks})
        if before.ranks.get(key) != after.ranks.get(key)
    ]


def as_data(found: Iterable[Value], ranks: Iterable[Rank]) -> dict[str, Any]:
    """Both for JSON; values at full precision."""
    rows = []
    for one in found:
        row = {**asdict(one), "difference": one.difference}
        row["old_measure"] = row.pop("of") or None
        rows.append(row)
    return {"values": rows, "ranks": [asdict(one) for one in ranks]}
