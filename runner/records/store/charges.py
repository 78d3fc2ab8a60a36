"""What is used up: the quotas of teams, and the processor time of a task."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import ColumnElement, case, func, select

from runner.model.clock import SystemClock
from runner.model.quota import Charge, QuotaUse, use
from runner.model.run import Run
from runner.model.task import Task
from runner.records.files import MAX_SECONDS
from runner.records.store import tables as t
from runner.records.store.connect import Store
from runner.records.store.queries import runs_in


def spent(store: Store, task: str) -> float:
    """Seconds of processor time of all attempts of a task; of the clock where processor time could not be measured. More than an attempt
    can have used counts nothing: hosts could say so once, and it has no sum."""
    c = t.attempts.c
    used = func.coalesce(_possible(c.cpu_seconds), _possible(c.wall_seconds), 0.0)
    query = select(func.sum(used + func.coalesce(_possible(c.first_seconds), 0.0)))
    with store.read() as connection:
        joined = query.join_from(t.attempts, t.runs, t.runs.c.id == c.run).where(t.runs.c.task == task)
        return float(connection.execute(joined).scalar() or 0.0)


def _possible(seconds: ColumnElement[float | None]) -> ColumnElement[float | None]:
    """Seconds that an attempt can have used; NULL for others."""
    return case((seconds <= MAX_SECONDS, seconds))


def quota(store: Store, task: Task, team: str, now: datetime | None = None) -> QuotaUse:
    """How much of its quota for the whole of a task a team has used; as :func:`quotas`."""
    return quotas(store, task, team, now)[""]


def quotas(
    store: Store, task: Task, team: str, now: datetime | None = None, runs: Collection[Run] | None = None
) -> dict[str, QuotaUse]:
    """How much of its quotas a team has used ``now`` (None: at this moment): of the task (no name), and by dataset.

    ``runs`` are those of the team in the task, where they were read before.
    Runs that ended on the platform's side (held), and cancelled ones, cost nothing; nor does a submission that was withdrawn
    uncharged. Submissions given by events count for the task and for each of its datasets.
    """
    now, c = now or SystemClock().now(), t.extensions.c
    with store.read() as connection:
        found = runs_in(connection, [task], task=task.id, team=team) if runs is None else runs
        extra = select(c.submissions).where(c.task == task.id, c.team == team)
        more = sum(connection.execute(extra).scalars())
    rules = {"": task.quota} | {d.id: d.quota for d in task.datasets.values() if d.quota is not None}
    return {
        name: use(rule, team, more, _charges(r for r in found if name in ("", r.dataset)), now)
        for name, rule in rules.items()
    }


def _charges(runs: Iterable[Run]) -> list[Charge]:
    """The submissions of runs as a quota sees them, in their order."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.submission.id, []).append(run)
    return [
        Charge(
            datetime.fromisoformat(group[0].submission.registered),
            any(r.outcome.costs_quota and not r.outcome.own_failure for r in group),
            any(r.outcome.costs_quota and r.outcome.own_failure and not r.outcome.first_cases for r in group),
            any(r.outcome.costs_quota and r.outcome.first_cases for r in group),
            any(r.outcome.name in ("pending", "running") for r in group),
        )
        for group in groups.values()
    ]
