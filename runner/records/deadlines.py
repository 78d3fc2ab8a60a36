"""Dates of tasks with what events say of them: deadlines that were extended, scores that are due to be open."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from runner.model.calendar import Round, calendar
from runner.model.dates import ZonedTime, parse
from runner.model.errors import RunnerError
from runner.records.commit import COORDINATOR

if TYPE_CHECKING:
    from runner.model.clock import Clock
    from runner.model.task import Task
    from runner.records.store.connect import Store


def check_open(task: Task, team: str, received: datetime, store: Store) -> None:
    """Raise E210 when the task takes nothing from ``team`` at ``received``: not opened yet, or closed.

    A bundled demonstration shows the calendar of a task that is long over; its dates keep nobody out.
    """
    if task.demo:
        return
    dates = calendar(task)
    if dates.opens is not None and not dates.opens.began(received):
        raise RunnerError(
            "E210",
            f"{task.id} does not take submissions yet",
            why=f"It opens at {dates.opens.says()}; this was received at {in_utc(received)}.",
            fix="hand it in again then",
        )
    deadline = dates.deadline(team, granted(store, task.id))
    if deadline is not None and not deadline.admits(received):
        whose = "" if deadline == dates.closes else f" (extended for {team})"
        raise RunnerError(
            "E210",
            f"the deadline of {task.id} is over",
            why=f"It was {deadline.says()}{whose}; this was received at {in_utc(received)}.",
            fix="ask the organiser for an extension",
        )


def in_utc(received: datetime) -> str:
    """A time in UTC for people, to the second."""
    return f"{received:%Y-%m-%d %H:%M:%S} UTC"


def granted(store: Store, task_id: str) -> dict[str, ZonedTime]:
    """The extensions of deadlines that were granted by events, by team; the last one counts."""
    from runner.records.store.queries import deadlines

    return {team: parse(until) for team, until in deadlines(store, task_id).items()}


def publish_due(store: Store, tasks: Iterable[Task], clock: Clock) -> list[tuple[Task, str, ZonedTime]]:
    """Publish the scores that are due by ``publish_at``. No view looks at a clock: before this event they are closed.

    Args:
        store: The open store; the caller holds the coordinator's lock.
        tasks: The tasks whose dates count.
        clock: Says what is due. Whoever published or closed scores at their date or later is not overruled.

    Returns:
        What was published by this call: task, dataset, date.
    """
    from runner.records.store.queries import publications_in

    found = []
    for task in tasks:
        dates = calendar(task)
        if not dates.publish:
            continue
        with store.read() as connection:
            decided = publications_in(connection, task.id)
        for name, date in dates.publish.items():
            last = decided.get(name)
            since = None if last is None else datetime.fromisoformat(last.since)
            if (last is None or not last.open) and dates.scores_due(name, since, clock.now()):
                data = {"task": task.id, "dataset": name, "publish_at": date.own}
                store.commit("dataset-published", data, actor=COORDINATOR)
                found.append((task, name, date))
    return found


def ends(task: Task, round_: Round, store: Store) -> ZonedTime:
    """The last date that counts in ``round_`` for any team: from its end on it can be frozen."""
    dates, later = calendar(task), granted(store, task.id)
    teams = {*dates.extensions, *later}
    return max((dates.cutoff(round_, team, later) for team in ("", *sorted(teams))), key=lambda m: m.end)
