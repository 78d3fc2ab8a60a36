"""What there is to tell, made of nothing but what was published to a team: no notice says more, or earlier, than its pages. And that
somebody let a team in, which its page says too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from runner.exchange.published import Published, View

OPEN = ("pending", "running", "withdrawn")
HELD = "held"
ADMITTED = "admitted"


@dataclass(frozen=True)
class Notice:
    """Something to tell of a team. ``key`` says what it is about: the same is told to nobody twice."""

    key: str
    about: str
    team: str
    text: str
    path: str


def notices(published: Published, teams: Sequence[str], now: datetime, hours: float) -> Iterator[Notice]:
    """What may be told now of ``teams``; of deadlines those that are over within so many hours."""
    for team in teams:
        view = published.view(f"team:{team}")
        yield from _runs(view, team)
        for one in view.below("standing/"):
            yield from _deadlines(view.data(one), team, now, timedelta(hours=hours))


def let_in(found: Iterable[tuple[str, str, str]]) -> Iterator[Notice]:
    """The same of accounts that somebody let in: account, team, task."""
    for account, team, task in found:
        words = f"{task}: the registration of {team} was approved"
        yield Notice(f"{ADMITTED}:{account}:{task}", ADMITTED, team, words, f"/tasks/{task}")


def _runs(view: View, team: str) -> Iterator[Notice]:
    found = view.get("runs")
    for row in view.data(found) if found else ():
        run, name = str(row["run"]), str(row["outcome"]["name"])
        if name not in OPEN:
            about = "held" if name == HELD else "done"
            words = "is held: the organiser looks at it" if name == HELD else f"is done: {name}"
            yield Notice(
                f"{about}:{run}:{name}", about, team, f"{row['task']}: {run} {words}", f"/runs/{run}"
            )


def _deadlines(data: Any, team: str, now: datetime, within: timedelta) -> Iterator[Notice]:
    task, closes = data["task"], {"": data["team"]["deadline"], **data["team"]["closes"]}
    for dataset, text in closes.items():
        if not text or (dataset and text == closes[""]):
            continue
        left = datetime.fromisoformat(text) - now
        if timedelta() < left <= within:
            of = f"{task}/{dataset}" if dataset else str(task)
            words = f"{of}: the deadline of {team} is {text}"
            yield Notice(f"deadline:{of}:{team}:{text}", "deadline", team, words, f"/tasks/{task}")
