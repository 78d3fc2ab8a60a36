"""What a task is: the definition of task.yaml as frozen data. Loading is :mod:`runner.tasks.load`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from runner.model.limits import GIB, Exceptions, Limits
from runner.model.sidecars import Interaction, Service

Direction = Literal["higher", "lower"]
Workflow = Literal["batch", "upload", "interactive"]
Stated = Literal[
    "licence", "terms", "contact"
]  # what an organiser says in words, of the task or of a dataset


@dataclass(frozen=True)
class Source:
    """A file of a dataset that is not delivered with the task. ``name`` is ``inputs/…`` or ``truths/…``.

    ``path`` is where it belongs; ``size`` is in bytes. Without ``url`` somebody has to bring it. Run files are scored
    without one that is ``optional``.
    """

    name: str
    path: Path
    url: str | None = None
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class Stage:
    """Where the inputs of a dataset come from when they are made from archived runs.

    ``file`` of each run's output becomes a part of the file ``name`` of the inputs. ``runs``: ``scored`` (the latest
    scored submission of each software) or ``all`` (the latest run of each software that ended well). ``debates``:
    how many lines of each run (None: all), chosen by ``seed``.
    """

    task: str
    dataset: str
    file: str
    scenario: str = "default"
    name: str = "debates.jsonl"
    runs: Literal["scored", "all"] = "scored"
    debates: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Quota:
    """How much one team may register for a task or a dataset; ``attempts`` caps executions of one run.

    ``per_day`` (of UTC) and ``at_once`` (waiting or running) are None where there is no such bound; so many ``failures`` of
    the team's own cost nothing.
    """

    submissions: int = 50
    attempts: int = 10
    teams: Mapping[str, int] = field(default_factory=dict)  # per-team extension: total submissions
    per_day: int | None = None
    at_once: int | None = None
    failures: int = 0


@dataclass(frozen=True)
class Dataset:
    """One split of a task: inputs shown to software, truths shown only to the evaluator.

    ``scores`` says who sees mean scores before the organiser publishes: everybody, each ``team`` those of its own runs
    (leaderboards stay closed), or nobody else (per-topic scores and logs of a blinded dataset are never shown to teams or
    the public).
    """

    id: str
    visibility: Visibility
    inputs: Path
    truths: Path
    topics: str | None = None  # file in inputs that lists the topics
    corpus: str | None = None  # file in inputs that lists the documents
    scores: Literal["public", "team", "organiser"] = "organiser"
    description: str = ""
    sources: tuple[Source, ...] = ()
    views: Path | None = None  # where files whose fields are taken out are kept (RUNNER_HOME/views)
    stage: Stage | None = None  # made from runs; ``inputs`` is its latest version (RUNNER_HOME/stages)
    quota: Quota | None = None  # beside the task's
    requires: str | None = None  # a dataset on which the same image must have been scored first
    smoke: int | None = (
        None  # so many of its topics are run first, and what fails there is not run on the others
    )
    sample: int | None = None  # it is that part of a dataset (runner.tasks.files.part); None: all of it
    licence: str = ""  # these three: empty for what the task says
    terms: str = ""
    contact: str = ""
    citation: str = ""
    downloads: Mapping[Side, OpenTo] = field(
        default_factory=dict
    )  # who downloads what; nobody what is not named
    public_topics: float | None = (
        None  # the share of its topics over which scores are shown before they are published
    )


@dataclass(frozen=True)
class Rule:
    """Files (glob patterns) that are seen; ``fields`` are the keys that stay in each line (None: the whole file).

    ``datasets`` limits the rule to some datasets (None: all).
    """

    files: tuple[str, ...]
    fields: tuple[str, ...] | None = None
    datasets: tuple[str, ...] | None = None

    def takes(self, dataset: str, name: str) -> bool:
        """Whether this rule decides about the file ``name`` of ``dataset``."""
        meant = self.datasets is None or dataset in self.datasets
        return meant and any(matches(pattern, name) for pattern in self.files)


def matches(pattern: str, name: str) -> bool:
    """Whether a relative name fits a pattern: ``*`` and ``?`` within a folder, ``**`` over any folders."""
    return _fits(tuple(pattern.split("/")), tuple(name.split("/")))


def _fits(pattern: tuple[str, ...], name: tuple[str, ...]) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "**":
        return any(_fits(pattern[1:], name[i:]) for i in range(len(name) + 1))
    return bool(name) and fnmatchcase(name[0], pattern[0]) and _fits(pattern[1:], name[1:])


@dataclass(frozen=True)
class Scenario:
    """A named way of taking part, and what it may see of the inputs.

    ``files`` are glob patterns (None: all files); ``view`` are rules that can also hide fields of JSON lines.
    """

    id: str = "default"
    files: tuple[str, ...] | None = None
    view: tuple[Rule, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...] | None:
        """What may be seen, as rules; None for everything."""
        if self.view:
            return self.view
        return None if self.files is None else (Rule(self.files),)

    def whole_files(self, dataset: str) -> bool:
        """Whether no file of ``dataset`` has fields taken out, so that the files themselves can be mounted."""
        return all(
            r.fields is None or (r.datasets is not None and dataset not in r.datasets) for r in self.view
        )


@dataclass(frozen=True)
class Measure:
    """A figure of the task: ``measure`` is the kind's name for it (ir-measures strings for ``adhoc``)."""

    id: str
    measure: str
    truths: str
    direction: Direction = "higher"
    options: Mapping[str, Any] = field(default_factory=dict)
    precision: int | None = None  # decimals that are shown and ranked; None: all


@dataclass(frozen=True)
class Cell:
    """One dataset in one scenario."""

    dataset: str
    scenario: str = "default"


@dataclass(frozen=True)
class Ranking:
    """What decides the ranks of a table: the value on one measure, or, by ``rule``, the mean or median of the ranks that a row
    has on each of several ``measures`` in each cell (:mod:`runner.views.leaderboard.ranks`).

    ``first``: the measure that stands first, that is tested, and that decides what is best where only one can.
    """

    measures: tuple[str, ...]
    rule: Literal["value", "mean_rank", "median_rank"] = "value"

    @classmethod
    def read(cls, written: str | Mapping[str, Sequence[str]]) -> Ranking:
        """The ranking that ``rank_by`` of a task.yaml or of an exported leaderboard says, checked against its schema before."""
        if isinstance(written, str):
            return cls((written,))
        ((rule, measures),) = written.items()
        return cls(tuple(measures), rule)  # type: ignore[arg-type]

    @property
    def written(self) -> str | dict[str, list[str]]:
        """What :meth:`read` reads."""
        return self.measures[0] if self.rule == "value" else {self.rule: list(self.measures)}

    @property
    def first(self) -> str:
        """The id of the first measure."""
        return self.measures[0]

    @property
    def figure(self) -> str:
        """What the deciding figure is called, ``mean rank`` or ``median rank``; empty where the value of a measure decides."""
        return "" if self.rule == "value" else self.rule.replace("_", " ")

    def says(self, names: Mapping[str, str]) -> str:
        """The ranking in words: ``nDCG@10``, or ``mean rank on nDCG@10 and AP``; ``names`` are the measures' by their ids."""
        *others, last = (names[id] for id in self.measures)
        on = f"{', '.join(others)} and {last}" if others else last
        return on if self.rule == "value" else f"{self.figure} on {on}"


@dataclass(frozen=True)
class Table:
    """A ranking: which cells, what decides the ranks, aggregated over cells by ``aggregate``."""

    id: str
    cells: tuple[Cell, ...]
    rank_by: Ranking
    measures: tuple[str, ...]
    aggregate: str = "mean"  # one of runner.tasks.tables.AGGREGATES
    baseline: str | None = None  # team/software that others are tested against
    title: str = ""
    description: str = ""
    unit: Literal["software", "team"] = "software"  # what a row is
    pick: Literal["latest", "best", "chosen"] = "latest"  # which valid submission counts in each cell
    best_on: str | None = None  # with ``best``: the dataset that decides in every cell; None: the cell's own
    part_of: str | None = None  # made for one cell of that table


@dataclass(frozen=True)
class Model:
    """A read-only folder mounted where the software expects it, pinned by the digest of its content."""

    path: Path
    target: str
    digest: str


ASKS = {
    "description": "optional",
    "paper": "off",
    "affiliation": "off",
}  # of a submission: optional, required or off


@dataclass(frozen=True)
class Task:
    """A shared task, loaded and checked. ``definition`` is the parsed task.yaml; ``digest`` its SHA-256."""

    id: str
    title: str
    kind: str
    workflow: Workflow  # the first of ``workflows``
    folder: Path
    datasets: Mapping[str, Dataset]
    scenarios: Mapping[str, Scenario]
    measures: Mapping[str, Measure]
    tables: Mapping[str, Table]
    limits: Limits
    evaluator_limits: Limits
    frame: Mapping[str, float] = field(default_factory=dict)  # the most that a submission may ask for
    image_limit: int = (
        16 * GIB
    )  # bytes of a software's image: what a registration takes, not what a run may use
    output: str = "run.txt"
    quota: Quota = Quota()
    evaluator_image: str | None = None  # None: the platform's own
    score_precision: Literal["float32", "double"] = "float32"
    verify_before: Literal["final", "none"] = (
        "none"  # final: a row is only once its software gave the same again
    )
    log_excerpts: int = 4096  # bytes of logs that a team can be given of its runs on a blinded dataset
    review: Literal["required", "optional"] = (
        "optional"  # required: nobody else sees a row before it is approved
    )
    options: Mapping[str, Any] = field(default_factory=dict)  # checked by schemas/kinds/<kind>.schema.json
    severities: Mapping[str, str] = field(default_factory=dict)  # finding code -> error|defect|warning|ignore
    exceptions: Mapping[str, Exceptions] = field(default_factory=dict)  # granted, by "team/software"
    models: tuple[Model, ...] = ()
    demo: bool = False
    uploads: bool = False  # run files are taken beside software
    shared: tuple[str, ...] = ()  # patterns of truths that participants get as well
    description: str = ""
    licence: str = ""  # of the data; in words
    terms: str = ""  # under which teams take part: an address, or in words
    contact: str = ""  # whom they ask: an e-mail address, or that of a page
    digest: str = ""
    definition: Mapping[str, Any] = field(default_factory=dict)
    workflows: tuple[Workflow, ...] = ()  # those that a submission can choose from
    interaction: Interaction | None = None  # of the workflow interactive
    services: Mapping[str, Service] = field(default_factory=dict)
    asks: Mapping[str, str] = field(default_factory=lambda: dict(ASKS))
    evaluator_gateway: bool = False  # whether the evaluator may ask models
    budget_hours: float | None = None  # of processor time, for all runs; a warning, never a limit

    def __post_init__(self) -> None:
        if not self.workflows:
            object.__setattr__(self, "workflows", (self.workflow,))

    @property
    def takes_uploads(self) -> bool:
        """Whether run files are taken."""
        return self.uploads or self.workflow == "upload"

    @property
    def takes_software(self) -> bool:
        """Whether software is taken."""
        return self.workflow != "upload"

    @property
    def evaluation_gateway(self) -> Service | None:
        """The gateway of its evaluations, when the evaluator may ask models."""
        return self.services.get("gateway") if self.evaluator_gateway else None

    @property
    def needs_sidecars(self) -> bool:
        """Whether containers of the platform's own stand beside its software or evaluator."""
        return "interactive" in self.workflows or self.evaluation_gateway is not None

    def decimals(self, measures: Iterable[str]) -> dict[str, int]:
        """With how many decimals these measures are shown, by name, where the task says it. What it no longer measures has as many as
        it says of all."""
        others: int | None = self.definition.get("precision")
        found = {
            name: self.measures[name].precision if name in self.measures else others for name in measures
        }
        return {name: places for name, places in found.items() if places is not None}

    @property
    def anonymous_until(self) -> str:
        """Until when boards have made-up names of teams, in words; empty where they never do."""
        until = str(self.definition.get("anonymous", {}).get("until", ""))
        return "the scores are published" if until == "published" else until

    def stated(self, name: Stated) -> dict[str, str]:
        """What holds for each dataset that comes with the task, by its id: its own, or else the task's; empty for neither."""
        own: str = getattr(self, name)
        return {d.id: getattr(d, name) or own for d in self.datasets.values() if d.stage is None}

    def default_scenario(self) -> Scenario:
        """The scenario called ``default``, or else the first."""
        return self.scenarios.get("default") or next(iter(self.scenarios.values()))

    def truths_apart(self, measure: str) -> str:
        """`` by FILE``, its truths, of a measure that the task has by other truths, too; else empty."""
        mine = self.measures.get(measure)
        same = [one for one in self.measures.values() if mine and one.measure == mine.measure]
        return f" by {mine.truths}" if mine and {one.truths for one in same} > {mine.truths} else ""

    def public_dataset(self) -> Dataset | None:
        """The first public dataset that comes with the task: where softwares are checked before they are registered."""
        return next((d for d in self.datasets.values() if d.visibility == "public" and d.stage is None), None)


Visibility = Literal["public", "blinded"]
Side = Literal["inputs", "truths"]
OpenTo = Literal["everybody", "teams"]
