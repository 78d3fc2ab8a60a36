"""What a leaderboard is made of: columns, ranked rows and what is listed below them, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from runner.model.run import Run
from runner.model.task import Cell, Ranking
from runner.views.coarse import MEMORY, TIME, step
from runner.views.leaderboard.judges import Judge


@dataclass(frozen=True)
class Column:
    """A measure of the table. ``whole``: it counts something, so whole values are shown without decimals.

    ``unit`` and what it ``says``: in words of the kind's schema, empty where that does not say. ``precision``: the decimals that
    its values have and are ranked by; None: all.
    """

    id: str
    measure: str
    direction: str
    whole: bool = False
    unit: str = ""
    says: str = ""
    precision: int | None = None


@dataclass(frozen=True)
class Value:
    """A mean score; ``low`` and ``high`` bound its 95 % interval (None over several cells)."""

    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Comparison:
    """A row against the table's baseline, or the row that was chosen, on the ranking measure, over ``topics`` topics.

    ``difference`` is row minus baseline; ``p`` is uncorrected, ``p_corrected`` Holm's over all rows.
    ``mark``: † significantly better, ‡ significantly worse, empty otherwise.
    """

    difference: float
    topics: int
    p: float
    p_corrected: float
    mark: str


@dataclass(frozen=True)
class Tested:
    """All rows against one of them: the comparisons by the number of the row, the notes below the table then, the test's name (None:
    nothing was tested)."""

    comparisons: Mapping[int, Comparison]
    notes: tuple[str, ...]
    test: str | None


@dataclass(frozen=True)
class CellScore:
    """What counts of a row in one cell: the run, and its mean on the ranking measure (None: not computed yet)."""

    dataset: str
    scenario: str
    submission: str
    run: str
    value: float | None


@dataclass(frozen=True)
class Component:
    """The rank of a row on one measure in one cell; equal values share the mean of their ranks. ``missing``: nothing of it
    counts in that cell, so that it stands behind all of which something does."""

    dataset: str
    scenario: str
    measure: str
    rank: float
    missing: bool = False


@dataclass(frozen=True)
class Combined:
    """The mean or median of the ranks of a row, and these: on each ranking measure in the first cell, then in the next."""

    value: float
    ranks: tuple[Component, ...]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A ranked software or team. Sums over the cells for time, the maximum for memory; seconds and bytes.

    ``software`` names all that count, ``submission`` is the latest of them; ``method`` and ``how`` (executed or
    uploaded) are ``mixed`` when they differ between the cells; ``description`` is what the team says of the latest. ``judge``: the labels of who judged its runs. The steps stand
    in place of seconds and bytes, where these are not for this audience. ``stale``: why its scores are old, in sentences;
    empty: they are as the task asks now. ``flagged``: the organiser flagged a run of it (None for
    everybody else). ``combined``: what ranks it where ranks are combined. The order of the fields is that of JSON.
    """

    rank: int
    team: str
    software: str
    tag: str
    method: str
    how: str = "executed"
    baseline: bool
    values: dict[str, Value]
    topics: int
    covered: int | None
    comparison: Comparison | None = None
    wall_seconds: float | None
    memory_peak: int | None
    memory_source: str
    time_step: str = ""
    memory_step: str = ""
    submission: str
    runs: tuple[str, ...]
    registered: str
    description: str = ""
    paper: str = ""
    affiliation: str = ""
    cells: tuple[CellScore, ...] = ()
    judge: str = ""
    stale: tuple[str, ...] = ()
    flagged: bool | None = None
    combined: Combined | None = None


@dataclass(frozen=True, kw_only=True)
class Unranked:
    """A submission that does not rank: what became of it, why, and whose fault it was.

    ``missing`` are the cells of the table on which nothing of this software or team is scored.
    """

    team: str
    software: str
    tag: str
    method: str
    how: str
    outcome: str
    blame: str
    reason: str
    submission: str
    registered: str
    runs: tuple[str, ...]
    missing: tuple[Cell, ...]


def software_of(row: Row | Unranked) -> str:
    """The software, or only the team where a row holds several of its softwares."""
    return row.team if ", " in row.software else f"{row.team}/{row.software}"


@dataclass(frozen=True)
class RoundInfo:
    """The round a table shows: its date as announced and in UTC; when it was frozen (None: not yet)."""

    id: str
    title: str
    at: str
    at_utc: str
    frozen: str | None


@dataclass(frozen=True)
class Part:
    """What belongs to a round: its datasets, and what was received in time (``admits(team, dataset, time in UTC)``)."""

    info: RoundInfo
    datasets: tuple[str, ...]
    admits: Callable[[str, str, str], bool]

    def takes(self, run: Run) -> bool:
        """Whether a run belongs to the round."""
        s = run.submission
        return run.dataset in self.datasets and self.admits(s.team, run.dataset, s.registered)


@dataclass(frozen=True)
class LeaderboardTable:
    """A leaderboard for one audience, ready to be exported. Texts are escaped; names are checked names."""

    task: str
    title: str
    table: str
    audience: str
    cells: tuple[Cell, ...]
    rank_by: Ranking
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    unranked: tuple[Unranked, ...]
    counts: dict[str, int]
    baseline: str | None
    topics: int
    test: str | None
    against: str | None = (
        None  # the row that the others are tested against, where it was chosen; else the baseline
    )
    notes: tuple[str, ...] = ()
    heading: str = ""  # the table's title, where the task gives one
    description: str = ""
    aggregate: str = "mean"
    unit: str = "software"
    pick: str = "latest"
    best_on: str | None = None  # the dataset that says which is best
    round: RoundInfo | None = None
    filters: Mapping[str, str] = field(default_factory=dict)
    judges: tuple[Judge, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)  # display names, by TEAM and TEAM/SOFTWARE
    parts: Mapping[str, str] = field(
        default_factory=dict
    )  # over which of their topics, of datasets that are split

    each: tuple[
        Tested, ...
    ] = ()  # where it was asked for: the rows against the first row, against the second …

    def deciding(self, row: Row) -> float:
        """What decides the rank of a row: its mean on the ranking measure, or the mean or median of its ranks."""
        return row.combined.value if row.combined else row.values[self.rank_by.first].mean

    def displayed(self, row: Row | Unranked) -> str:
        """What a row is called for people, ``team: software``, as far as these have display names; empty: as they are."""
        team = self.names.get(row.team, "")
        software = "" if ", " in row.software else self.names.get(f"{row.team}/{row.software}", "")
        return ": ".join(filter(None, (team, software)))


def coarsened(table: LeaderboardTable, blinded: Iterable[str]) -> LeaderboardTable:
    """``table`` with time and memory in steps if any of its cells is on one of the ``blinded`` datasets."""
    hidden = set(blinded)
    if not any(cell.dataset in hidden for cell in table.cells):
        return table
    return replace(table, rows=tuple(_coarsened(row) for row in table.rows))


def _coarsened(row: Row) -> Row:
    if row.time_step or row.memory_step:  # it is already
        return row
    executed = row.how == "executed"
    return replace(
        row,
        wall_seconds=None,
        memory_peak=None,
        memory_source="none",
        time_step=step(row.wall_seconds, TIME) if executed else "",
        memory_step=step(row.memory_peak, MEMORY) if executed else "",
    )
