"""Dates of tasks with what events say of them: when datasets take submissions, pauses, scores that are due to be open."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from runner.model.calendar import Round, calendar
from runner.model.dates import ZonedTime, parse
from runner.model.errors import RunnerError
from runner.model.names import BASELINES
from runner.records.events import COORDINATOR
from runner.records.split import KEY_BYTES

if TYPE_CHECKING:
    from runner.model.clock import Clock
    from runner.model.task import Task
    from runner.records.store.connect import Store


def check_open(
    task: Task, team: str, received: datetime, store: Store, datasets: Sequence[str], *, named: bool
) -> tuple[str, ...]:
    """Those of ``datasets`` that take something from ``team`` at ``received``.

    A bundled demonstration shows the calendar of a task that is long over; its dates keep nobody out.

    Args:
        named: whether the team named the datasets: then all must be open, otherwise those that are not are left out.

    Raises:
        RunnerError: E210, when none is open, or one that was named is not: paused, not opened yet, or closed.
    """
    refused = {name: _closed(task, name, team, received, store) for name in datasets}
    taken = tuple(name for name, error in refused.items() if error is None)
    for error in refused.values():
        if error is not None and (named or not taken):
            raise error
    return taken


def _closed(task: Task, dataset: str, team: str, received: datetime, store: Store) -> RunnerError | None:
    """Why a dataset takes nothing from ``team`` at ``received``; None when it does."""
    from runner.records.store.queries import pauses

    paused = pauses(store)
    for place, of in (((task.id, ""), task.id), ((task.id, dataset), f"{task.id}/{dataset}")):
        if place in paused:
            why = f"The organiser says: {paused[place]}" if paused[place] else ""
            return RunnerError("E210", f"{of} is paused", why=why, fix="hand it in again once it is resumed")
    if task.demo:
        return None
    dates = calendar(task)
    of = f"{task.id}/{dataset}" if dataset in dates.phases else task.id
    others = "" if dataset not in dates.phases else ", or name other datasets in submission.yaml"
    opens = dates.opening(dataset)
    # What the organiser brings along proves the task before it opens.
    if opens is not None and team != BASELINES and not opens.began(received):
        return RunnerError(
            "E210",
            f"{of} does not take submissions yet",
            why=f"It opens at {opens.says()}; this was received at {in_utc(received)}.",
            fix=f"hand it in again then{others}",
        )
    deadline = closing(task, dataset, team, store)
    if deadline is not None and not in_time(task, dataset, team, received, store):
        whose = "" if deadline == dates.closing(dataset, "") else f" (extended for {team})"
        return RunnerError(
            "E210",
            f"the deadline of {of} is over",
            why=f"It was {deadline.says()}{whose}; this was received at {in_utc(received)}.",
            fix=f"ask the organiser for an extension{others}",
        )
    return None


def in_time(task: Task, dataset: str, team: str, received: datetime, store: Store) -> bool:
    """Whether ``received`` keeps the deadline of ``team`` for a dataset, with grace. Those of demonstrations are always kept."""
    deadline = closing(task, dataset, team, store)
    return task.demo or deadline is None or calendar(task).admits(dataset, deadline, received)


def closing(task: Task, dataset: str, team: str, store: Store) -> ZonedTime | None:
    """Until when ``team`` may hand in for a dataset, without grace; None where there is no end."""
    dates = calendar(task)
    return dates.closing(dataset, team, granted(store, task.id), granted(store, task.id, dataset))


def in_utc(received: datetime) -> str:
    """A time in UTC for people, to the second."""
    return f"{received:%Y-%m-%d %H:%M:%S} UTC"


def granted(store: Store, task_id: str, dataset: str = "") -> dict[str, ZonedTime]:
    """The extensions of deadlines that were granted by events for the task or a dataset, by team; the last one counts."""
    from runner.records.store.queries import deadlines

    return {team: parse(until) for team, until in deadlines(store, task_id, dataset).items()}


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


def open_names_due(store: Store, tasks: Iterable[Task], clock: Clock) -> list[tuple[Task, ZonedTime]]:
    """Show the names that are due to be shown, as :func:`publish_due` does scores; returns what was done by this call."""
    from runner.records.store.decisions import names_opened

    found = []
    for task in tasks:
        date = calendar(task).names
        if date is not None and date.began(clock.now()) and not names_opened(store, task.id):
            store.commit("names-opened", {"task": task.id, "until": date.own}, actor=COORDINATOR)
            found.append((task, date))
    return found


def draw_keys(store: Store, tasks: Iterable[Task]) -> list[Task]:
    """Draw the key of each task that needs one and has none; returns these. The caller holds the coordinator's lock.

    Only the event log and the store that is made from it hold a key: it is no part of the archive, of truths or of exports.
    """
    from runner.records.store.queries import key_in

    found = []
    for task in tasks:
        split = any(one.public_topics is not None for one in task.datasets.values())
        if split or "anonymous" in task.definition:
            with store.read() as connection:
                known = key_in(connection, task.id)
            if not known:
                data = {"task": task.id, "key": secrets.token_hex(KEY_BYTES)}
                store.commit("key-drawn", data, actor=COORDINATOR)
                found.append(task)
    return found


def ends(task: Task, round_: Round, store: Store) -> ZonedTime:
    """The last date that counts in ``round_`` for any team: from its end on it can be frozen."""
    dates, later = calendar(task), granted(store, task.id)
    own = {name: granted(store, task.id, name) for name in round_.datasets}
    found = [
        dates.cutoff(round_, name, team, later, own[name])
        for name in round_.datasets
        for team in ("", *sorted({*dates.extensions, *later, *own[name]}))
    ]
    return max(found, key=lambda moment: moment.end, default=round_.at)
