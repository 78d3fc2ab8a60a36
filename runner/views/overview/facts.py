"""What a task is to those who take part, as data: limits, quota, dates, inputs, output, measures and tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

import schemas
from runner.exchange.handing_in import Takes
from runner.model.calendar import Calendar, Registering, calendar
from runner.model.kinds import OutputFile, kind_spec
from runner.model.task import Stated
from runner.views.overview.inputs import InputFile, first_id, input_files
from schemas.measures import meaning

if TYPE_CHECKING:
    from runner.model.dates import ZonedTime
    from runner.model.limits import Limits
    from runner.model.quota import QuotaUse
    from runner.model.run import Run
    from runner.model.task import Dataset, Quota, Task
    from runner.records.store.connect import Store

STATED: tuple[Stated, ...] = get_args(Stated)


@dataclass(frozen=True)
class Standing:
    """What one team has left: how its quotas are used (that of the task has no name), and until when it may hand in (None: always)."""

    team: str
    quotas: Mapping[str, QuotaUse]
    deadline: ZonedTime | None
    closes: Mapping[str, ZonedTime | None] = field(default_factory=dict)  # by dataset
    limits: Limits | None = None  # what its runs may use; None: as the task says
    paused: Mapping[str, str] = field(default_factory=dict)  # reasons by dataset; of the whole task: no name

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "team": self.team,
            **self.quotas[""].as_dict(),
            "datasets": {name: one.as_dict() for name, one in self.quotas.items() if name},
            "deadline": _date(self.deadline),
            "closes": {name: _date(moment) for name, moment in self.closes.items()},
            "paused": dict(self.paused),
        }


@dataclass(frozen=True)
class Figure:
    """A measure of the task with its unit and meaning; both are empty where the kind does not say."""

    id: str
    measure: str
    truths: str
    direction: str
    unit: str
    says: str


@dataclass(frozen=True)
class Overview:
    """A task for those who take part. ``inputs`` are those of the public dataset ``like`` (empty: none is here)."""

    task: Task
    dates: Calendar
    like: str
    inputs: tuple[InputFile, ...]
    outputs: tuple[OutputFile, ...]
    measures: tuple[Figure, ...]
    standing: Standing | None = None
    published: Collection[str] = ()  # datasets whose scores are published

    @property
    def output(self) -> OutputFile:
        """The task's output file: the first, where there are several."""
        return self.outputs[0]

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``; dates in UTC, sizes in bytes, times in seconds."""
        task, dates = self.task, self.dates
        limits = (self.standing and self.standing.limits) or task.limits
        return {
            **{name: getattr(task, name) for name in ("id", "title", "description", "kind", "demo")},
            **{name: getattr(task, name) for name in STATED},
            **{name: getattr(task, name) for name in ("review", "verify_before", "log_excerpts")},
            "anonymous_until": task.anonymous_until or None,
            "workflows": list(task.workflows),
            "asks": dict(task.asks),
            "takes": list(Takes.of(task).takes),
            "limits": {**asdict(limits), "image": task.image_limit},
            "frame": dict(task.frame),
            "interaction": None if task.interaction is None else asdict(task.interaction),
            "quota": {**_quota(task.quota), "attempts": task.quota.attempts},
            "team": None if self.standing is None else self.standing.as_dict(),
            "dates": {
                **{name: _date(getattr(dates, name)) for name in ("opens", "closes", "announced")},
                "registration": _registering(dates.registration),
                "rounds": [
                    {"id": r.id, "title": r.title, "at": _date(r.at), "datasets": list(r.datasets)}
                    for r in dates.rounds.values()
                ],
            },
            "datasets": [
                {
                    name: getattr(one, name)
                    for name in ("id", "visibility", "scores", "description", "citation")
                }
                | {"downloads": dict(one.downloads)}
                | {"publish_at": _date(dates.publish.get(one.id))}
                | {"quota": None if one.quota is None else _quota(one.quota), **_phase(dates, one.id)}
                | {"requires": one.requires, "smoke": one.smoke, "public_topics": one.public_topics}
                | {str(name): task.stated(name).get(one.id, "") for name in STATED}
                for one in task.datasets.values()
            ],
            "scenarios": list(task.scenarios),
            "inputs": {"like": self.like, "files": [asdict(one) for one in self.inputs]},
            "output": asdict(self.output),
            "outputs": [asdict(one) for one in self.outputs],
            "measures": [
                asdict(one) | {"precision": task.measures[one.id].precision} for one in self.measures
            ],
            "tables": [
                {
                    "id": table.id,
                    "title": table.title,
                    "cells": [asdict(cell) for cell in table.cells],
                    "rank_by": table.rank_by.written,
                    "pick": table.pick,
                    **({"best_on": table.best_on} if table.best_on else {}),
                    "measures": list(table.measures),
                }
                for table in task.tables.values()
            ],
        }


def overview(task: Task, standing: Standing | None = None, published: Collection[str] = ()) -> Overview:
    """What those who take part have to know of ``task``. Raises E401 when a date of it is none.

    Of blinded datasets it says what task.yaml says of them, and nothing of their files.
    """
    public = task.public_dataset()
    talks = set(task.workflows) == {"interactive"}  # a server is asked, and sees no files
    files = () if public is None or talks else tuple(input_files(task, public))
    return Overview(
        task,
        calendar(task),
        public.id if public is not None and files else "",
        files,
        tuple(_outputs(task, public)),
        tuple(
            Figure(m.id, m.measure, m.truths, m.direction, *meaning(task.kind, m.measure))
            for m in task.measures.values()
        ),
        standing,
        published,
    )


def standing(store: Store, task: Task, team: str, runs: Collection[Run] | None = None) -> Standing:
    """What a team has left of quota and time; ``runs`` are its runs in the task, where they were read before."""
    from runner.records.deadlines import closing, granted
    from runner.records.store.charges import quotas
    from runner.records.store.queries import pauses, team_limits

    own = {name: closing(task, name, team, store) for name in task.datasets}
    return Standing(
        team,
        quotas(store, task, team, runs=runs),
        calendar(task).deadline(team, granted(store, task.id)),
        own,
        replace(task.limits, **team_limits(store).get((task.id, team), {})),
        {dataset: why for (of, dataset), why in pauses(store).items() if of == task.id},
    )


def _outputs(task: Task, public: Dataset | None) -> Sequence[OutputFile]:
    """The task's output files; with ids of the public data in the example where there are any."""
    if (of_kind := kind_spec(task.kind).outputs) is not None:
        return of_kind(task)
    said: Mapping[str, str] = {}
    if task.kind in schemas.kinds():
        said = schemas.schema(f"kinds/{task.kind}").get("x-output", {})
    example = said.get("example", "")
    topic = first_id(public, public.topics) if public else ""
    document = first_id(public, public.corpus) if public else ""
    example = example.replace("{topic}", topic or "1").replace("{document}", document or "doc-1")
    return [OutputFile(task.output, said.get("says", ""), example)]


def _phase(dates: Calendar, dataset: str) -> dict[str, Any]:
    opens, closes = dates.opening(dataset), dates.closing(dataset, "")
    return {"opens": _date(opens), "closes": _date(closes), "grace": dates.grace(dataset)}


def _registering(of: Registering | None) -> dict[str, Any] | None:
    if of is None:
        return None
    dates = {name: _date(getattr(of, name)) for name in ("opens", "closes")}
    return {
        **dates,
        "approve": of.approve,
        "asks": dict(of.asks),
        "terms_version": of.terms_version,
        "per_day": of.per_day,
    }


def _quota(quota: Quota) -> dict[str, Any]:
    return {name: getattr(quota, name) for name in ("submissions", "per_day", "at_once", "failures")}


def _date(moment: ZonedTime | None) -> str | None:
    return None if moment is None else moment.at.strftime("%Y-%m-%dT%H:%M:%SZ")
