"""Submissions and runs as the store knows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

from runner.model.errors import RunnerError, no_such
from runner.model.names import id_part
from runner.model.outcome import Outcome
from runner.model.pins import Pins
from runner.model.task import Cell, Task
from schemas import show
from schemas.details import Detail


@dataclass(frozen=True)
class Submission:
    """A registered submission."""

    id: str
    task: str
    team: str
    software: str
    scenarios: tuple[str, ...]
    tag: str
    description: str
    method: str
    image: str | None
    registered: str
    seq: int
    workflow: str = "batch"
    cells: tuple[Cell, ...] | None = None  # what it is for; None: every cell of the task
    withdrawn: str | None = None
    withdrawn_reason: str = ""
    uncharged: bool = False  # withdrawn, and its place in the quota given back though it had run
    chosen: tuple[
        tuple[int, str], ...
    ] = ()  # the events (number, time) by which its team named it as the one that counts
    # Where its files come from: remote (or None), commit and dirty, as whoever packed it says; None: not known.
    source: Mapping[str, Any] | None = None
    display_name: str = ""  # of the software; empty: none
    team_display_name: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)  # what it asks for in the task's frame
    paper: str = ""  # its address
    affiliation: str = ""
    texts_cleared: bool = False  # what the team wrote is not shown any more

    @property
    def how(self) -> str:
        """Whether its runs are made here (``executed``) or were handed in (``uploaded``)."""
        return "uploaded" if self.workflow == "upload" else "executed"

    def cells_of(self, task: Task) -> list[Cell]:
        """The cells of ``task`` in which it has runs.

        Software runs in the cells that count, as far as it wants to; a run file is for its cell in any case.
        """
        if self.cells is None:
            return [cell for cell in cells(task) if cell.scenario in self.scenarios]
        if self.workflow != "upload":
            return [cell for cell in cells(task) if cell in self.cells]
        return [c for c in self.cells if c.dataset in task.datasets and c.scenario in task.scenarios]


@dataclass(frozen=True)
class Review:
    """What the organiser decided about an attempt last; the ``reason`` of a flag is for organisers, or for its team, ``to`` whom
    it is open, too."""

    state: Literal["approved", "flagged"]
    reason: str = ""
    to: Literal["organiser", "team"] = "organiser"


@dataclass(frozen=True)
class Run:
    """A run with its outcome, and the resources of the attempt that decided. Seconds and bytes."""

    id: str
    submission: Submission
    dataset: str
    scenario: str
    outcome: Outcome
    attempts: int = 0
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    first_seconds: float | None = None  # on the first cases, beside these
    memory_peak: int | None = None
    memory_source: str = "none"
    lock_digest: str | None = None
    started: str | None = None
    first_started: str | None = (
        None  # of all attempts the first: when it starts is the organiser's choice alone
    )
    finished: str | None = None
    truths_digest: str = ""
    evaluator_image: str = ""
    judge: Mapping[str, Any] | None = None  # who judged, as in result.json
    notes: tuple[Detail, ...] = ()  # what a reader has to know with the scores
    ours: bool = True  # evaluated by the platform's own evaluator
    released: bool = False  # the organiser has opened the deciding attempt to its team
    verified: bool = False  # executed again, the deciding attempt was the same the last time
    review: Review | None = None  # of the deciding attempt
    pins: Pins | None = None  # by which definitions it was evaluated; None: not known
    stale: tuple[str, ...] = ()  # why its scores are old, in sentences for everybody
    changed: frozenset[str] = (
        frozenset()
    )  # measures whose values mean something else than the task's of that id
    waiting: int | None = None  # a later evaluation of the deciding attempt, to be accepted by the organiser

    @property
    def cell(self) -> Cell:
        """Its dataset in its scenario."""
        return Cell(self.dataset, self.scenario)


@dataclass(frozen=True)
class MeasureValue:
    """One aggregate: mean over ``topics`` judged topics, of which ``covered`` (None: not known) had a result; 95 % interval.

    ``measure`` is what was computed, by the kind's name for it; empty when that is not known.
    """

    value: float
    topics: int
    covered: int | None
    low: float | None = None
    high: float | None = None
    measure: str = ""

    def rounded(self, decimals: int | None) -> MeasureValue:
        """The same with so many decimals; None: with all."""
        low, high = rounded(self.low, decimals), rounded(self.high, decimals)
        return replace(self, value=rounded(self.value, decimals), low=low, high=high)


@overload
def rounded(value: float, decimals: int | None) -> float: ...
@overload
def rounded(value: None, decimals: int | None) -> None: ...
def rounded(value: float | None, decimals: int | None) -> float | None:
    """``value`` with so many decimals (None: with all); 0 is never negative then."""
    return value if value is None or decimals is None else round(value, decimals) + 0.0


@dataclass(frozen=True)
class FindingCount:
    """How often one finding code occurred."""

    code: str
    severity: str
    count: int
    title: str


def submission_id(team: str, software: str, digest: str) -> str:
    """The id of a submission: the names of team and software as parts of ids, and the beginning of its ``digest``.

    It is fit to name a folder, also where case does not count, and of two submissions in one store only one can have it: names
    that give the same parts look alike, and such are refused.
    """
    return f"{id_part(team)}.{id_part(software)}.{digest[:8]}"


MOST_MATCHES = 10


@dataclass(frozen=True)
class Selection:
    """Which runs a command is about; None means any."""

    task: str | None = None
    team: str | None = None
    dataset: str | None = None
    submission: str | None = None
    run: str | None = None

    def takes(self, run: Run) -> bool:
        """Whether ``run`` is meant."""
        pairs = (
            (self.task, run.submission.task),
            (self.team, run.submission.team),
            (self.dataset, run.dataset),
            (self.submission, run.submission.id),
            (self.run, run.id),
        )
        return all(wanted is None or wanted == actual for wanted, actual in pairs)


def run_named(ids: Collection[str], text: str, noun: str = "run") -> str:
    """The one of ``ids`` that is ``text`` or begins with it; ``#n`` stays.

    Raises E102 when none does (``noun`` is what there is none of), or several do: then they are listed.
    """
    start, mark, attempt = text.partition("#")
    start = start.lower()  # as ids are
    found = [start] if start in ids else [id for id in ids if start and id.startswith(start)]
    if len(found) == 1:
        return f"{found[0]}{mark}{attempt}"
    if not found:
        raise no_such(noun, text, fix="runner runs lists them", limit=200)
    matches = ", ".join(found[:MOST_MATCHES])
    more = f" and {len(found) - MOST_MATCHES:,} more" if len(found) > MOST_MATCHES else ""
    raise RunnerError(
        "E102",
        f"{show(start, 200)} is the beginning of {len(found):,} {noun}s",
        why=f"They are {matches}{more}.",
        fix="write more of the id",
    )


def run_id(submission: str, dataset: str, scenario: str = "default") -> str:
    """The id of the run of a submission on one cell."""
    return f"{submission}.{dataset}" + ("" if scenario == "default" else f".{scenario}")


def cells(task: Task) -> tuple[Cell, ...]:
    """The cells that count: those of the task's tables, in their order; without tables every dataset."""
    named = [cell for table in task.tables.values() for cell in table.cells]
    if not named:
        named = [
            Cell(dataset, scenario)
            for dataset in task.datasets
            for scenario in task.scenarios or ("default",)
        ]
    return tuple(dict.fromkeys(named))
