"""What may be handed in for a task, as far as what is published says it: the same for the front, which refuses at once, and for work."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import schemas
from runner.model.errors import Problem, RunnerError
from runner.model.names import ABOUT, SAID, check_name, text_problem, unasked

if TYPE_CHECKING:
    from runner.model.task import Task

Form = Literal["run files", "software"]
Phase = Literal["soon", "open", "over"]
NOT_FILLED_IN = "the form was not filled in as it should be"


@dataclass(frozen=True)
class Takes:
    """What hand-ins for a task have to fit: ``takes`` and ``asks`` as of the task, and the ids of its datasets and scenarios."""

    task: str
    takes: Collection[str]
    datasets: Sequence[str]
    scenarios: Sequence[str]
    asks: Mapping[str, str]

    @classmethod
    def of(cls, task: Task) -> Takes:
        """Of a task."""
        takes = ["software"] * task.takes_software + ["run files"] * task.takes_uploads
        return cls(task.id, takes, list(task.datasets), list(task.scenarios), task.asks)

    @classmethod
    def published(cls, data: Mapping[str, Any]) -> Takes:
        """Of a task as it is published (schemas/overview.schema.json)."""
        datasets = [one["id"] for one in data["datasets"]]
        return cls(data["id"], data["takes"], datasets, data["scenarios"], data["asks"])

    def check(self, given: Form) -> None:
        """Raise E207 where the task does not take what is ``given``."""
        if given not in self.takes:
            wanted = " or ".join(self.takes)
            why = "What may be handed in is decided by the task, however it is sent."
            what = f"the task {self.task} takes {wanted}, not {given}"
            raise RunnerError("E207", what, why=why, fix=f"hand in {wanted}")

    def run_file_problems(self, data: Mapping[str, Any]) -> Iterator[Problem]:
        """What the fields of a run file (schemas/inbox-run-file.schema.json) say and the task does not have, or asks for."""
        for noun, known in (("dataset", self.datasets), ("scenario", self.scenarios)):
            listed = f"one of {schemas.show(', '.join(known), 200)}"
            if (name := data.get(noun)) and name not in known:
                near = schemas.closest(name, known).strip()
                yield Problem(
                    "", f'the task has no {noun} "{schemas.show(name)}"', near or listed, code="E207"
                )
            elif not name and len(known) > 1 and not (noun == "scenario" and "default" in known):
                yield Problem("", f'the field "{noun}" is missing', listed, code="E207")
        for _, what, fix in unasked(data, self.task, self.asks):
            yield Problem("", what, fix, code="E207")


def check_fields(
    kind: Literal["run-file", "software"], data: Mapping[str, Any], more: Iterable[Problem] = ()
) -> None:
    """Raise E201 with ``more`` and everything that is wrong with the fields of a hand-in, each with what it may be; the code of
    the problems, where all have one (E207 for what the task does not have, E208 for a name)."""
    found = [*field_problems(kind, data), *more]
    if found:
        codes = {one.code for one in found}
        code = codes.pop() if len(codes) == 1 else ""
        raise RunnerError(code or "E201", NOT_FILLED_IN, fix="correct what is listed", problems=found)


def field_problems(kind: Literal["run-file", "software"], data: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the fields of a hand-in by themselves (schemas/inbox-KIND.schema.json)."""
    of = schemas.schema(f"inbox-{kind}")
    fields = of["properties"]
    for name in of["required"]:
        if not data.get(name):
            yield Problem("", f'the field "{name}" is missing', fields[name]["description"])
    for one in schemas.validate(dict(data), f"inbox-{kind}"):
        name = one.pointer.removeprefix("/").partition("/")[0]
        if name and data.get(name) != "":
            yield Problem("", one.what, one.fix or fields[name]["description"])
    if software := data.get("software"):
        try:
            check_name("software", str(software))
        except RunnerError as error:
            yield Problem("", f"software: {error.what}", error.fix, code="E208")
    for key in ABOUT:
        if wrong := text_problem(key, str(data[key])) if data.get(key) else "":
            yield Problem("", f"{key} {wrong}", SAID[key])


def submission_phase(
    data: Mapping[str, Any], closes: Mapping[str, str | None] | None, now: datetime
) -> Phase:
    """Return the phase of a task: open while one of its datasets accepts submissions.

    Args:
        data: The task as it is published (schemas/overview.schema.json).
        closes: The closing dates of a team by dataset, with its extensions; None for other visitors.
        now: The time.
    """
    if data["demo"]:
        return "open"  # dates of demonstrations are not enforced
    phases = {
        _dataset_phase(one["opens"], (closes or {}).get(one["id"], one["closes"]), one["grace"], now)
        for one in data["datasets"]
    }
    return next((phase for phase in ("open", "soon") if phase in phases), "over")  # type: ignore[return-value]


def _dataset_phase(opens: str | None, closes: str | None, grace: float, now: datetime) -> Phase:
    if opens is not None and now < datetime.fromisoformat(opens):
        return "soon"
    # A closing date is the last minute in which submissions are accepted.
    over = closes is not None and now >= datetime.fromisoformat(closes) + timedelta(seconds=60 + grace)
    return "over" if over else "open"
