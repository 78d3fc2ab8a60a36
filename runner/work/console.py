"""What the organiser's console shows: what waits, what needs somebody, and what people did.

It goes through the front, which may be taken over. So it has of runs what their own teams see, and of the event log what
people did: no score, no log, no name or text of a software or a person, no file of the machine, and no time of a run. The
rest is for the terminal, and each entry says which command shows it.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.views.audience import on_boards
from runner.views.history import told
from runner.work.proposals import waiting

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.records.events import Event
    from runner.views.listing import ListedRun

GIB = 2**30
MOST = 50  # rows of a list; how many there are stands beside it
# What people did; what the platform did by itself would say when hidden runs ended.
SHOWN = (
    *("submission-registered", "submission-withdrawn", "submission-chosen"),
    *("quota-extended", "deadline-extended", "limits-extended", "dataset-paused", "dataset-resumed"),
    *("dataset-published", "dataset-unpublished", "names-opened", "run-released", "run-closed", "run-cancelled"),
    *("round-frozen", "run-reviewed", "run-commented", "log-excerpt-released", "evaluations-accepted"),
    *("proposal-decided", "account-added", "token-replaced", "token-added", "link-made"),
    *("account-closed", "account-erased"),
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
    """
    queue = [row for row in rows if row["outcome"]["name"] in ("pending", "running")]
    held = [row for row in rows if row["outcome"]["name"] == "held"]
    known = list(events)
    reviews = list(_reviews(listed, tasks))
    runs = Counter(row["team"] for row in rows)
    free, of = _disk(home)
    return {
        "queue": {
            "waiting": sum(row["outcome"]["name"] == "pending" for row in queue),
            "running": sum(row["outcome"]["name"] == "running" for row in queue),
            "runs": [_named(row) for row in queue[:MOST]],
        },
        "held": {"count": len(held), "runs": [_held(row) for row in held[:MOST]]},
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
        "closed": [
            {"task": task.id, "dataset": one.id}
            for task in tasks.values()
            for one in task.datasets.values()
            if one.visibility != "public" and one.id not in opened.get(task.id, ())
        ],
        "teams": [{"team": team, "runs": runs[team]} for team in teams],
        "disk": {"free_gib": free, "of_gib": of},
        "events": list(_events(known, tasks))[-MOST:][::-1],
    }


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: row[key] for key in ("run", "task", "team")}, "outcome": row["outcome"]["name"]}


def _held(row: Mapping[str, Any]) -> dict[str, Any]:
    outcome = row["outcome"]
    more = {key: outcome[key] for key in ("verdict", "says", "next")}
    return {**_named(row), **more, "look": f"runner show {row['run']}"}


def _reviews(listed: Iterable[ListedRun], tasks: Mapping[str, Task]) -> Iterable[dict[str, Any]]:
    """Runs that wait for a review, and those that are flagged."""
    for one in listed:
        run, task = one.run, tasks.get(one.run.submission.task)
        flagged = run.review is not None and run.review.state == "flagged"
        waits = task is not None and run.outcome.ranked and not on_boards(run, task, organiser=False)
        if flagged or waits:
            state = "flagged" if flagged else "waits"
            named = {"run": run.id, "task": run.submission.task, "team": run.submission.team}
            yield {**named, "state": state, "look": f"runner review {run.id} --approve"}


def _events(events: Iterable[Event], tasks: Mapping[str, Task]) -> Iterable[dict[str, Any]]:
    """What people did, without what they wrote; of tasks that are shown."""
    shown = [one for one in events if one.type in SHOWN]
    plain = [
        replace(one, data={k: v for k, v in one.data.items() if k in FACTS}, person=None) for one in shown
    ]
    for one in told(plain):
        if one.task and one.task not in tasks:
            continue
        yield {"seq": one.event.seq, "time": one.event.time, "who": one.who, "says": one.says}


def _disk(home: Path) -> tuple[int, int]:
    """GiB that are free on a disk, and that it has; in steps of a tenth of it, so that it moves with nothing small."""
    usage = shutil.disk_usage(home)
    step = max(1, usage.total // GIB // 10)
    return usage.free // GIB // step * step, usage.total // GIB
