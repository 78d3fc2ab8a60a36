"""The dates of a task: when it and its datasets open and close, its rounds, and who has longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.dates import DateError, ZonedTime, parse
from runner.model.errors import RunnerError, no_such
from runner.model.limits import parse_duration
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
class Phase:
    """When a dataset takes submissions, where that is not as for the whole task. ``grace``: so many seconds after the closing
    date what is late is still taken."""

    opens: ZonedTime | None = None
    closes: ZonedTime | None = None
    grace: float = 0.0


REGISTRATION_ASKS = {
    "contact": "required",
    "members": "optional",
    "affiliation": "optional",
    "purpose": "optional",
}


@dataclass(frozen=True)
class Registering:
    """How teams register for a task by the web: when, who lets them in (``organiser``, ``at-once``), what they accept (a text file
    of the task; empty: nothing), and what is asked of them."""

    opens: ZonedTime | None = None
    closes: ZonedTime | None = None
    approve: str = "organiser"
    terms_file: str = ""
    terms_version: str = ""
    asks: Mapping[str, str] = field(default_factory=lambda: dict(REGISTRATION_ASKS))
    per_day: int = 100  # teams that are let in at once within 24 hours

    def is_open(self, now: datetime) -> bool:
        """Whether teams register now."""
        return (self.opens is None or self.opens.began(now)) and (
            self.closes is None or self.closes.admits(now)
        )

    def says(self) -> list[str]:
        """When and how, in words."""
        let_in = (
            "the organiser lets teams in"
            if self.approve == "organiser"
            else f"teams are in at once, at most {self.per_day} in 24 hours"
        )
        dates = (("from", self.opens), ("until", self.closes))
        when = "; ".join(f"{word} {at.says()}" for word, at in dates if at is not None)
        terms = [f"terms are accepted there: version {self.terms_version}"] if self.terms_file else []
        return [f"on the task's page of the server{f', {when}' if when else ''}; {let_in}", *terms]


@dataclass(frozen=True)
class Calendar:
    """The dates of a task. ``extensions`` are those of task.yaml; later ones are events. ``publish`` and ``phases``: by dataset."""

    opens: ZonedTime | None = None
    closes: ZonedTime | None = None
    rounds: Mapping[str, Round] = field(default_factory=dict)
    extensions: Mapping[str, ZonedTime] = field(default_factory=dict)
    rule: str = "latest-per-software"
    publish: Mapping[str, ZonedTime] = field(default_factory=dict)
    phases: Mapping[str, Phase] = field(default_factory=dict)
    names: ZonedTime | None = None  # until then names are made up
    registration: Registering | None = None  # None: only the organiser makes accounts
    announced: ZonedTime | None = None  # from when the web shows the task, where it has such a date

    def scores_due(self, dataset: str, decided: datetime | None, now: datetime) -> bool:
        """Whether the date from which the scores on ``dataset`` are to be open has come, and nobody decided since then.

        ``decided`` is when they were published or closed last; who does so at that date or later goes before the date.
        """
        date = self.publish.get(dataset)
        return date is not None and date.began(now) and (decided is None or decided < date.at)

    def opening(self, dataset: str) -> ZonedTime | None:
        """From when a dataset takes submissions: its own date, else the task's."""
        own = self.phases.get(dataset, Phase()).opens
        return self.opens if own is None else own

    def closing(
        self,
        dataset: str,
        team: str,
        granted: Mapping[str, ZonedTime] | None = None,
        own_granted: Mapping[str, ZonedTime] | None = None,
    ) -> ZonedTime | None:
        """Until when ``team`` may hand in for a dataset: by its own date, else as for the task.

        ``granted`` are extensions for the task, which do not move a dataset with a date of its own; ``own_granted`` those for
        the dataset.
        """
        closes = self.phases.get(dataset, Phase()).closes or self.deadline(team, granted)
        own = (own_granted or {}).get(team)
        return closes if closes is None or own is None else max(closes, own, key=lambda moment: moment.end)

    def admits(self, dataset: str, closes: ZonedTime | None, now: datetime) -> bool:
        """Whether what is received ``now`` keeps the closing date of a dataset, or comes within its grace."""
        return closes is None or closes.admits(now - timedelta(seconds=self.grace(dataset)))

    def grace(self, dataset: str) -> float:
        """Seconds after its closing date in which a dataset still takes what is late."""
        return self.phases.get(dataset, Phase()).grace

    def deadline(self, team: str, granted: Mapping[str, ZonedTime] | None = None) -> ZonedTime | None:
        """Until when ``team`` may hand in: never earlier than the closing date; ``granted`` by events comes first."""
        if self.closes is None:
            return None
        own = (granted or {}).get(team) or self.extensions.get(team)
        return self.closes if own is None else max(self.closes, own, key=lambda moment: moment.end)

    def cutoff(
        self,
        round_: Round,
        dataset: str,
        team: str,
        granted: Mapping[str, ZonedTime] | None = None,
        own_granted: Mapping[str, ZonedTime] | None = None,
    ) -> ZonedTime:
        """Until when what counts in ``round_`` on a dataset may be received from ``team``; extensions are as for :meth:`closing`.

        An extension moves the rounds at the closing date of the dataset or later, and so does the grace: what was taken then
        counts there. Earlier rounds are the same for everybody.
        """
        closes, own = self.closing(dataset, ""), self.closing(dataset, team, granted, own_granted)
        if closes is None or own is None or round_.at.end < closes.end:
            return round_.at
        late = replace(own, at=own.at + timedelta(seconds=self.grace(dataset)))
        return max(round_.at, late, key=lambda moment: moment.end)


_DATES = ("opens", "closes")


def _phase(row: Mapping[str, Any]) -> Phase:
    dates = {key: parse(row[key]) for key in _DATES if key in row}
    return Phase(**dates, grace=parse_duration(row["grace"]) if "grace" in row else 0.0)


def _registering(row: Mapping[str, Any]) -> Registering:
    dates = {key: parse(row[key]) for key in _DATES if key in row}
    terms, asks = row.get("terms", {}), {**REGISTRATION_ASKS, **row.get("asks", {})}
    approve = row.get("approve", Registering.approve)
    return Registering(
        **dates,
        approve=approve,
        terms_file=terms.get("file", ""),
        terms_version=terms.get("version", ""),
        asks=asks,
        per_day=row.get("per_day", Registering.per_day),
    )


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
            **{key: parse(data[key]) for key in _DATES if key in data},
            rounds={round_.id: round_ for round_ in rounds},
            extensions={team: parse(text) for team, text in data.get("extensions", {}).items()},
            rule=data.get("round_rule", Calendar.rule),
            names=parse(data["anonymous"]["until"]) if _has_names_date(data) else None,
            announced=parse(data["announced"]) if _has_announced_date(data) else None,
            publish={
                row["id"]: parse(row["publish_at"]) for row in data.get("datasets", ()) if "publish_at" in row
            },
            registration=_registering(data["registration"]) if "registration" in data else None,
            phases={
                row["id"]: _phase(row) for row in data.get("datasets", ()) if {*_DATES, "grace"} & {*row}
            },
        )
    except DateError as error:
        raise RunnerError(
            "E401", f"a date of the task {task.id} cannot be read", why=error.what, fix=error.fix
        ) from error


def _has_names_date(data: Mapping[str, Any]) -> bool:
    """Whether names are made up until a date, not until scores are published."""
    until: str = data.get("anonymous", {}).get("until", "published")
    return until != "published"


def _has_announced_date(data: Mapping[str, Any]) -> bool:
    said: str = data.get("announced", "never")
    return said != "never"


def is_announced(task: Task, now: datetime) -> bool:
    """Whether the web shows a task: by its own word, else once one of its datasets takes submissions. Raises E401."""
    dates = calendar(task)
    if "announced" in task.definition:
        return dates.announced is not None and dates.announced.began(now)
    first = [dates.opening(name) for name in task.datasets]
    return task.demo or any(date is None or date.began(now) for date in first)


def announced(tasks: Mapping[str, Task], now: datetime) -> dict[str, Task]:
    """Those of the tasks that the web shows. Raises E401."""
    return {name: task for name, task in tasks.items() if is_announced(task, now)}


def check_dates(data: Mapping[str, Any], problems: Problems) -> None:
    """Note what is wrong with the dates of a definition, as :func:`schemas.usable` gives it."""
    texts: dict[Pointer, str] = {(key,): data[key] for key in _DATES if key in data}
    datasets = rows(data, "datasets")
    texts |= {("datasets", i, key): row[key] for i, row in datasets for key in _DATES if key in row}
    texts |= {("rounds", i, "at"): row["at"] for i, row in rows(data, "rounds") if "at" in row}
    texts |= {
        ("datasets", i, "publish_at"): row["publish_at"]
        for i, row in rows(data, "datasets")
        if "publish_at" in row
    }
    own = data.get("registration", {})
    texts |= {("registration", key): own[key] for key in _DATES if key in own}
    texts |= {("extensions", team): text for team, text in data.get("extensions", {}).items()}
    texts |= {("anonymous", "until"): data["anonymous"]["until"]} if _has_names_date(data) else {}
    texts |= {("announced",): data["announced"]} if _has_announced_date(data) else {}
    found: dict[Pointer, ZonedTime] = {}
    for pointer, text in texts.items():
        try:
            found[pointer] = parse(text)
        except DateError as error:
            problems.add(pointer, f'"{schemas.show(text, 60)}": {error.what}', error.fix)
    opens, closes = found.get(("opens",)), found.get(("closes",))
    _check_phases(data, found, problems)
    first, last = (found.get(("registration", key)) for key in _DATES)
    if first is not None and last is not None and first.at >= last.end:
        problems.add(("registration", "closes"), "registration closes before it opens", "exchange the dates")
    for pointer, moment in found.items():
        if pointer[0] == "extensions" and closes is None:
            if "closes" not in problems.doc.data:
                problems.add(pointer, "there is no closing date to extend", "add closes:")
        elif pointer[0] == "extensions" and closes is not None and moment.end < closes.end:
            problems.add(pointer, "the extension ends before the closing date", "write a later date")
        elif pointer[0] == "rounds" and opens is not None and moment.end <= opens.at:
            problems.add(pointer, "the round is over before the task opens", "write a later date")


def _check_phases(data: Mapping[str, Any], found: Mapping[Pointer, ZonedTime], problems: Problems) -> None:
    """Note what closes before it opens, of the task and of its datasets, and a grace without a date."""
    datasets = [(("datasets", i), row) for i, row in rows(data, "datasets")]
    scopes: list[tuple[Pointer, str]] = [((), "the task"), *((at, "the dataset") for at, _ in datasets)]
    for at, what in scopes:
        first, last = (found.get((*at, key), found.get((key,))) for key in _DATES)
        written = [(*at, key) for key in reversed(_DATES) if (*at, key) in found]
        if written and first is not None and last is not None and first.at >= last.end:
            problems.add(written[0], f"{what} closes before it opens", "exchange the dates")
    for at, row in datasets:
        if "grace" in row and "closes" not in row:
            problems.add((*at, "grace"), "there is no closing date to be late for", "add closes:")


def later(task: Task, text: str, dataset: str = "") -> ZonedTime:
    """The date to which a deadline of ``task``, or of a ``dataset`` of it, may be extended. Raises E101 when it is none or not
    later."""
    try:
        moment = parse(text)
    except DateError as error:
        raise RunnerError("E101", f"{schemas.show(text, 60)}: {error.what}", fix=error.fix) from error
    closes, of = calendar(task).closing(dataset, ""), f"{task.id}/{dataset}" if dataset else task.id
    if closes is None:
        what, why = f"{of} has no deadline", "Its task.yaml has no closes."
        raise RunnerError("E101", what, why=why, fix="add it first")
    if moment.end <= closes.end:
        why = f"{of} closes at {closes.says()}."
        raise RunnerError("E101", "that is no extension", why=why, fix="name a later date")
    return moment


def get_round(task: Task, name: str) -> Round:
    """The round ``name`` of ``task``. Raises E102."""
    rounds = calendar(task).rounds
    if name not in rounds:
        why = f"Its rounds are: {', '.join(rounds) or 'none'}."
        raise no_such("round", name, rounds, of=task.id, why=why, fix="runner round list lists them")
    return rounds[name]
