"""Tasks as their organisers define them: ``tasks/<task>/task.yaml`` and the files it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from runner.engines.base import Limits

Visibility = Literal["public", "blinded"]
Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Dataset:
    """One split of a task: inputs shown to software, truths shown only to the evaluator.

    ``scores`` says who sees mean scores on the leaderboard before the organiser publishes
    (per-topic scores and logs of a blinded dataset are never shown to teams or the public).
    """

    id: str
    visibility: Visibility
    inputs: Path
    truths: Path
    topics: str | None = None  # file in inputs that lists the topics
    corpus: str | None = None  # file in inputs that lists the documents
    scores: Literal["public", "organiser"] = "organiser"
    description: str = ""


@dataclass(frozen=True)
class Scenario:
    """A named way of taking part; ``files`` (glob patterns, None = all) are the inputs that it may see."""

    id: str = "default"
    files: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Measure:
    """A figure of the task: ``measure`` is the kind's name for it (ir-measures strings for ``adhoc``)."""

    id: str
    measure: str
    truths: str
    direction: Direction = "higher"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One dataset in one scenario."""

    dataset: str
    scenario: str = "default"


@dataclass(frozen=True)
class Table:
    """A ranking: which cells, ranked by which measure, aggregated over cells by ``aggregate``."""

    id: str
    cells: tuple[Cell, ...]
    rank_by: str
    measures: tuple[str, ...]
    aggregate: Literal["mean"] = "mean"
    baseline: str | None = None  # team/software that others are tested against


@dataclass(frozen=True)
class Quota:
    """How much one team may register for this task; ``attempts`` caps executions of one run."""

    submissions: int = 50
    attempts: int = 10
    teams: Mapping[str, int] = field(default_factory=dict)  # per-team extension: total submissions


@dataclass(frozen=True)
class Model:
    """A read-only folder mounted where the software expects it, pinned by the digest of its content."""

    path: Path
    target: str
    digest: str


@dataclass(frozen=True)
class Task:
    """A shared task, loaded and checked. ``definition`` is the parsed task.yaml; ``digest`` its SHA-256."""

    id: str
    title: str
    kind: str
    workflow: Literal["batch", "upload", "interactive"]
    folder: Path
    datasets: Mapping[str, Dataset]
    scenarios: Mapping[str, Scenario]
    measures: Mapping[str, Measure]
    tables: Mapping[str, Table]
    limits: Limits
    evaluator_limits: Limits
    output: str = "run.txt"
    quota: Quota = Quota()
    evaluator_image: str | None = None  # None: the platform's own
    score_precision: Literal["float32", "double"] = "float32"
    options: Mapping[str, Any] = field(default_factory=dict)  # checked by schemas/kinds/<kind>.schema.json
    severities: Mapping[str, str] = field(default_factory=dict)  # finding code -> error|defect|warning|ignore
    exceptions: Mapping[str, Any] = field(default_factory=dict)  # granted: "team/software" -> writable, root
    models: tuple[Model, ...] = ()
    demo: bool = False
    description: str = ""
    digest: str = ""
    definition: Mapping[str, Any] = field(default_factory=dict)

    def public_dataset(self) -> Dataset | None:
        """The first public dataset: where softwares are checked before they are registered."""
        return next((d for d in self.datasets.values() if d.visibility == "public"), None)
