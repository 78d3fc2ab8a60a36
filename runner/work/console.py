"""What the organiser's console shows: what waits, what needs somebody, and what people did.

It goes through the front, which may be taken over. So it has of runs what their own teams see, and of the event log what
people did: no score, no log, no name or text of a software or a person, no file of the machine, and no time of a run. The
rest is for the terminal, and each entry says which command shows it.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.model.comparing import by_number
from runner.views.audience import on_boards
from runner.views.history import told
from runner.work.handlers.organise import may_rerun
from runner.work.proposals import decided, waiting

if TYPE_CHECKING:
    from runner.model.config import Person
    from runner.model.run import Run
    from runner.model.task import Task
    from runner.records.events import Event
    from runner.views.listing import ListedRun

GIB = 2**30
MOST = 1000  # rows of a list; how many there are stands beside it
MOST_EVENTS = 500  # the newest
# What people did; what the platform did by itself would say when hidden runs ended.
SHOWN = (
    *("submission-registered", "submission-withdrawn", "submission-chosen"),
    *("quota-extended", "deadline-extended", "limits-extended", "dataset-paused", "dataset-resumed"),
    *("dataset-published", "dataset-unpublished", "names-opened", "run-released", "run-closed", "run-cancelled"),
    "run-restarted",
    *("round-frozen", "run-reviewed", "run-commented", "log-excerpt-released", "evaluations-accepted"),
    "evaluations-discarded",
    *("proposal-decided", "account-added", "token-replaced", "token-added", "link-made"),
    *("account-closed", "account-reopened", "account-erased"),
)  # fmt: skip
# Facts of them that go through the front; others are free text, or say what is inside a run.
FACTS = (
    *(
        "submission",
        "submissions",
        "team",
        "task",
        "dataset",
        "software",
        "run",
        "state",
        "to",
        "round",
        "count",
    ),
    *("until", "publish_at", "wall_clock", "memory", "bytes", "first", "last", "stream"),
    *("account", "role", "token", "proposal", "approved"),
)


def console(
    rows: Sequence[Mapping[str, Any]],
    listed: Iterable[ListedRun],
    tasks: Mapping[str, Task],
    teams: Sequence[str],
    events: Iterable[Event],
    home: Path,
    opened: Mapping[str, Collection[str]],
    registrations: Mapping[str, Any],
    closed: Sequence[str] = (),
) -> dict[str, Any]:
    """The console as data.

    Args:
        rows: The runs of all teams, each as its team may see it and nothing opened to that alone.
        listed: The same runs.
        tasks: By their ids.
        teams: That have an open account.
        events: The event log.
        home: A folder on the disk that work fills.
        opened: By task the datasets whose scores are published.
        registrations: That wait, and how many teams came in at once.
        closed: Teams whose account was closed.
    """
    queue = [row for row in rows if row["outcome"]["name"] in ("pending", "running")]
    held = [row for row in rows if row["outcome"]["name"] == "held"]
    known, listed = list(events), list(listed)
    runs = {one.run.id: one.run for one in listed}
    reviews = list(_reviews(listed, tasks))
    free, size = _disk(home)
    return {
        "queue": {
            "waiting": sum(row["outcome"]["name"] == "pending" for row in queue),
            "running": sum(row["outcome"]["name"] == "running" for row in queue),
            "runs": [_named(row) for row in queue[:MOST]],
        },
        "held": {"count": len(held), "runs": [_held(row, runs[row["run"]], tasks) for row in held[:MOST]]},
        "review": {"count": len(reviews), "runs": reviews[:MOST]},
        "proposals": [
            {
                "number": one.number,
                "time": one.time,
                "says": one.says,
                "look": f"runner requests show {one.number}",
            }
            for one in waiting(known)
        ],
        "decided": decided(known),
        "closed": [
            {"task": task.id, "dataset": one.id}
            for task in tasks.values()
            for one in task.datasets.values()
            if one.visibility != "public" and one.id not in opened.get(task.id, ())
        ],
        "teams": [*_teams(rows, teams, closed)],
        "registrations": dict(registrations),
        "disk": {"free_gib": free, "of_gib": size},
        "events": list(_events(known, tasks))[-MOST_EVENTS:][::-1],
    }


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    named = {key: row[key] for key in ("run", "submission", "task", "team", "how")}
    return {**named, "outcome": row["outcome"]["name"]}


def _teams(
    rows: Sequence[Mapping[str, Any]], teams: Sequence[str], closed: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Return the teams with an account or with runs, and how many runs of each have which outcome."""
    of = {
        "queue": ("pending", "running"),
        "held": ("held",),
        "scored": ("scored",),
        "failed": ("failed", "invalid"),
    }
    for team in sorted({*teams, *closed, *(row["team"] for row in rows)}, key=by_number):
        count = Counter(row["outcome"]["name"] for row in rows if row["team"] == team)
        counts = {words: sum(count[one] for one in names) for words, names in of.items()}
        account = "closed" if team in closed else "open" if team in teams else "none"
        yield {"team": team, "runs": count.total(), **counts, "account": account}


def _held(row: Mapping[str, Any], run: Run, tasks: Mapping[str, Task]) -> dict[str, Any]:
    """A held run: what is told of it to its team, what the organiser does next, in words of ours, and whether the web may have it executed
    again."""
    more: dict[str, Any] = {key: row["outcome"][key] for key in ("verdict", "says")}
    more["next"] = run.outcome.next_for(organiser=True, log=False)
    more["again"] = row["how"] == "executed" and may_rerun(run, tasks.get(row["task"]))
    return {**_named(row), **more, "look": f"runner show {row['run']}"}


def _reviews(listed: Iterable[ListedRun], tasks: Mapping[str, Task]) -> Iterable[dict[str, Any]]:
    """Runs that wait for a review, and those that are flagged."""
    for one in listed:
        run, task = one.run, tasks.get(one.run.submission.task)
        flagged = run.review is not None and run.review.state == "flagged"
        waits = task is not None and run.outcome.ranked and not on_boards(run, task, organiser=False)
        if flagged or waits:
            state = "flagged" if flagged else "waits"
            of = run.submission
            named = {"run": run.id, "submission": of.id, "task": of.task, "team": of.team, "how": of.how}
            yield {**named, "state": state, "look": f"runner review {run.id} --approve"}


def _events(events: Iterable[Event], tasks: Mapping[str, Task]) -> Iterable[dict[str, Any]]:
    """What people did, without what they wrote; of tasks that are shown."""
    shown = [one for one in events if one.type in SHOWN]
    plain = [
        replace(one, data={k: v for k, v in one.data.items() if k in FACTS}, person=_account(one))
        for one in shown
    ]
    for one in told(plain):
        if one.task and one.task not in tasks:
            continue
        about = {"task": one.task, "team": one.team}
        said = {"seq": one.event.seq, "time": one.event.time, "who": one.who, "says": one.says}
        said["action"] = one.event.type
        yield {**said, **{key: value for key, value in about.items() if value}}


def _account(event: Event) -> Person | None:
    """Whose account did it on the web: an opaque id, and never the name of a person at the terminal."""
    return event.person if event.person is not None and event.person.named_by == "account" else None


def _disk(home: Path) -> tuple[int, int]:
    """GiB that are free on a disk, and that it has; in steps of a tenth of it, so that it moves with nothing small."""
    usage = shutil.disk_usage(home)
    step = max(1, usage.total // GIB // 10)
    return usage.free // GIB // step * step, usage.total // GIB
