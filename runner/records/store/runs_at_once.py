"""What is asked of the store before and after steps of runs, of many runs at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import bindparam, select

from runner.model.run import Run
from runner.model.task import Task
from runner.records.store import tables as t
from runner.records.store.connect import Store
from runner.records.store.queries import no_run, runs_in


def may_be_called_off(store: Store, runs: Sequence[Run]) -> set[str]:
    """The ids of those runs that were ever cancelled, or whose submission is withdrawn now: a quick look before :func:`find_runs`."""
    if not runs:
        return set()
    with store.read() as connection:
        cancelled = {row[0] for row in connection.execute(_CANCELLED, {"ids": [run.id for run in runs]})}
        ids = {run.submission.id for run in runs}
        standing = {row[0] for row in connection.execute(_STANDING, {"ids": [*ids]})}
    return {run.id for run in runs if run.id in cancelled or run.submission.id not in standing}


def find_runs(store: Store, ids: Collection[str], tasks: Iterable[Task]) -> dict[str, Run]:
    """Runs by their ids, as they stand now. Raises E102 where one is not there."""
    if not ids:
        return {}
    with store.read() as connection:
        found = {run.id: run for run in runs_in(connection, tasks, ids=ids)}
    for id in ids:
        if id not in found:
            raise no_run(id)
    return found


_CANCELLED = select(t.runs.c.id).where(
    t.runs.c.cancelled_seq.is_not(None), t.runs.c.id.in_(bindparam("ids", expanding=True))
)
_STANDING = select(t.submissions.c.id).where(
    t.submissions.c.withdrawn.is_(None), t.submissions.c.id.in_(bindparam("ids", expanding=True))
)
