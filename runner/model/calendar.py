"""The dates of a task: when it opens and closes, its rounds, and who has longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.dates import DateError, ZonedTime, parse
from runner.model.errors import RunnerError, no_such
from runner.model.mapping import from_mapping, rows
from runner.model.problems import Problems

if TYPE_CHECKING:
    from runner.model.task import Task


Pointer = tuple[str | int, ...]


@dataclass(frozen=True)
class Round:
    """An official evaluation: what was received by ``at`` counts, on ``datasets``."""

    id: str
    title: str
    at: ZonedTime
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class Calendar:
    """The dates of a task. ``extensions`` are those of task.yaml; later ones are events. ``publish``: by dataset."""

    opens: ZonedTime | None = None
    closes: ZonedTime | None = None
    rounds: Mapping[str, Round] = field(default_factory=dict)
    extensions: Mapping[str, ZonedTime] = field(default_factory=dict)
    rule: str = "latest-per-software"
    publish: Mapping[str, ZonedTime] = field(default_factory=dict)

    def scores_due(self, dataset: str, decided: datetime | None, now: datetime) -> bool:
        """Whether the date from which the scores on ``dataset`` are to be open has come, and nobody decided since then.

        ``decided`` is when they were published or closed last; who does so at that date or later goes before the date.
        """
        date = self.publish.get(dataset)
        return date is not None and date.began(now) and (decided is None or decided < date.at)

    def deadline(self, team: str, granted: Mapping[str, ZonedTime] | None = None) -> ZonedTime | None:
        """Until when ``team`` may hand in: never earlier than the closing date; ``granted`` by events comes first."""
        if self.closes is None:
            return None
        own = (granted or {}).get(team) or self.extensions.get(team)
        return self.closes if own is None else max(self.closes, own, key=lambda moment: moment.end)

    def cutoff(self, round_: Round, team: str, granted: Mapping[str, ZonedTime] | None = None) -> ZonedTime:
        """Until when what counts in ``round_`` may be received from ``team``.

        An extension moves the rounds at the closing date or later; earlier ones are the same for everybody.
        """
        own = self.deadline(team, granted)
        if self.closes is None or own is None or round_.at.end < self.closes.end:
            return round_.at
        return max(round_.at, own, key=lambda moment: moment.end)


def calendar(task: Task) -> Calendar:
    """The calendar of a task that was loaded. Raises E401 when a date in it is none."""
    data = task.definition
    everything = tuple(task.datasets)
    try:
        rounds = [
            from_mapping(Round, {"title": row["id"], "datasets": everything, **row}, at=parse(row["at"]))
            for row in data.get("rounds", ())
        ]
        return Calendar(
            **{key: parse(data[key]) for key in ("opens", "closes") if key in data},
            rounds={round_.id: round_ for round_ in rounds},
            extensions={team: parse(text) for team, text in data.get("extensions", {}).items()},
            rule=data.get("round_rule", Calendar.rule),
            publish={
                row["id"]: parse(row["publish_at"]) for row in data.get("datasets", ()) if "publish_at" in row
            },
        )
    except DateError as error:
        raise RunnerError(
            "E401", f"a date of the task {task.id} cannot be read", why=error.what, fix=error.fix
        ) from error


def check_dates(data: Mapping[str, Any], problems: Problems) -> None:
    """Note what is wrong with the dates of a definition, as :func:`schemas.usable` gives it."""
    texts: dict[Pointer, str] = {(key,): data[key] for key in ("opens", "closes") if key in data}
    texts |= {("rounds", i, "at"): row["at"] for i, row in rows(data, "rounds") if "at" in row}
    texts |= {
        ("datasets", i, "publish_at"): row["publish_at"]
        for i, row in rows(data, "datasets")
        if "publish_at" in row
    }
    texts |= {("extensions", team): text for team, text in data.get("extensions", {}).items()}
    found: dict[Pointer, ZonedTime] = {}
    for pointer, text in texts.items():
        try:
            found[pointer] = parse(text)
        except DateError as error:
            problems.add(pointer, f'"{schemas.show(text, 60)}": {error.what}', error.fix)
    opens, closes = found.get(("opens",)), found.get(("closes",))
    if opens is not None and closes is not None and opens.at >= closes.end:
        problems.add(("closes",), "the task closes before it opens", "exchange the dates")
    for pointer, moment in found.items():
        if pointer[0] == "extensions" and closes is None:
            if "closes" not in problems.doc.data:
                problems.add(pointer, "there is no closing date to extend", "add closes:")
        elif pointer[0] == "extensions" and closes is not None and moment.end < closes.end:
            problems.add(pointer, "the extension ends before the closing date", "write a later date")
        elif pointer[0] == "rounds" and opens is not None and moment.end <= opens.at:
            problems.add(pointer, "the round is over before the task opens", "write a later date")


def later(task: Task, text: str) -> ZonedTime:
    """The date to which a deadline of ``task`` may be extended. Raises E101 when it is none or not later."""
    try:
        moment = parse(text)
    except DateError as error:
        raise RunnerError("E101", f"{schemas.show(text, 60)}: {error.what}", fix=error.fix) from error
    closes = calendar(task).closes
    if closes is None:
        what, why = f"{task.id} has no deadline", "Its task.yaml has no closes."
        raise RunnerError("E101", what, why=why, fix="add it first")
    if moment.end <= closes.end:
        why = f"{task.id} closes at {closes.says()}."
        raise RunnerError("E101", "that is no extension", why=why, fix="name a later date")
    return moment


def get_round(task: Task, name: str) -> Round:
    """The round ``name`` of ``task``. Raises E102."""
    rounds = calendar(task).rounds
    if name not in rounds:
        why = f"Its rounds are: {', '.join(rounds) or 'none'}."
        raise no_such("round", name, rounds, of=task.id, why=why, fix="runner round list lists them")
    return rounds[name]
