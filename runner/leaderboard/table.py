"""One leaderboard: which submissions rank where, with their uncertainty, and which do not rank and why.

For each team and software the latest submission that is scored on every cell of the table ranks; a newer one
that failed does not displace it and is listed below. Scores are compared at full precision; equal ones share
a rank, and the ranks behind are left out (1, 2, 2, 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from runner.audience import Audience, escape, not_for, scores_open
from runner.errors import RunnerError
from runner.leaderboard import significance
from runner.store import queries
from runner.store.queries import MeasureValue, Run, Submission
from runner.tasks import Cell, Table, Task

if TYPE_CHECKING:
    from runner.store.connect import Store

FEW_TOPICS = 25
BASELINES = "baselines"
TEST_NAME = "Fisher's randomisation test"
CORRECTION = "Holm"


@dataclass(frozen=True)
class Column:
    """A measure of the table."""

    id: str
    measure: str
    direction: str


@dataclass(frozen=True)
class Value:
    """A mean score; ``low`` and ``high`` bound its 95 % interval (None over several cells)."""

    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Comparison:
    """A row against the table's baseline on the ranking measure, over ``topics`` topics.

    ``difference`` is row minus baseline; ``p`` is uncorrected, ``p_corrected`` Holm's over all rows.
    ``mark``: † significantly better, ‡ significantly worse, empty otherwise.
    """

    difference: float
    topics: int
    p: float
    p_corrected: float
    mark: str


@dataclass(frozen=True)
class Row:
    """A ranked submission. Sums over the cells for time, the maximum for memory; seconds and bytes."""

    rank: int
    team: str
    software: str
    tag: str
    method: str
    baseline: bool
    values: dict[str, Value]
    topics: int
    covered: int
    wall_seconds: float | None
    memory_peak: int | None
    memory_source: str
    submission: str
    runs: tuple[str, ...]
    registered: str
    comparison: Comparison | None = None


@dataclass(frozen=True)
class Unranked:
    """A submission that does not rank: what became of it, why, and whose fault it was."""

    team: str
    software: str
    tag: str
    outcome: str
    reason: str
    blame: str
    submission: str
    runs: tuple[str, ...]
    registered: str


@dataclass(frozen=True)
class LeaderboardTable:
    """A leaderboard for one audience, ready to be exported. Texts are escaped; names are checked names."""

    task: str
    title: str
    table: str
    audience: str
    cells: tuple[Cell, ...]
    rank_by: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    unranked: tuple[Unranked, ...]
    counts: dict[str, int]
    baseline: str | None
    topics: int
    test: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Entry:
    """A submission with its runs on the table's cells (None where it has none)."""

    submission: Submission
    runs: tuple[Run | None, ...]

    @property
    def scored(self) -> bool:
        return all(r is not None and r.outcome.ranked for r in self.runs)

    @property
    def key(self) -> tuple[str, str]:
        return self.submission.team, self.submission.software


def build(
    store: Store, task: Task, table_id: str | None, audience: Audience, *, running: Sequence[str] = ()
) -> LeaderboardTable:
    """The leaderboard ``table_id`` of ``task`` (None: the first one) as ``audience`` may see it.

    Raises E102 when there is no such table, E103 when its scores are not open to this audience.
    """
    table = _table(task, table_id)
    published = queries.published(store, task.id)
    closed = [
        c.dataset for c in table.cells if not scores_open(task.datasets[c.dataset], c.dataset in published)
    ]
    if closed and audience.kind != "organiser":
        raise not_for(
            audience, f"leaderboard {table.id} of {task.id} (scores on {', '.join(closed)} are not published)"
        )
    entries = _entries(store, task, table, running)
    chosen, below, counts = _choose(entries)
    scored = [(e, _scores(store, e)) for e in chosen]
    lacking = [e for e, cells in scored if any(table.rank_by not in cell for cell in cells)]
    rows = _rank(table, task, [(e, cells) for e, cells in scored if e not in lacking])
    rows, notes, test = _compare(store, task, table, rows, {e.submission.id: e for e in chosen})
    counts["ranked"], counts["unranked"] = len(rows), len(below) + len(lacking)
    return LeaderboardTable(
        task=task.id,
        title=escape(task.title, 200),
        table=table.id,
        audience=str(audience),
        cells=table.cells,
        rank_by=table.rank_by,
        columns=tuple(
            Column(m, task.measures[m].measure, task.measures[m].direction) for m in _measures(table)
        ),
        rows=tuple(rows),
        unranked=tuple(
            _unranked(e, audience) for e in sorted(below + lacking, key=lambda e: (e.key, e.submission.seq))
        ),
        counts=counts,
        baseline=table.baseline,
        topics=max((r.topics for r in rows), default=0),
        test=test,
        notes=(*notes, *_mixed(chosen)),
    )


def _table(task: Task, table_id: str | None) -> Table:
    if table_id is None and task.tables:
        return next(iter(task.tables.values()))
    if table_id is None or table_id not in task.tables:
        known = ", ".join(task.tables) or "none"
        raise RunnerError(
            "E102",
            f"{task.id} has no table {escape(table_id or 'any', 60)!r}",
            why=f"Its tables are: {known}.",
            fix="name one",
        )
    return task.tables[table_id]


def _measures(table: Table) -> tuple[str, ...]:
    """The ranking measure first, then the others in the task's order."""
    return tuple(dict.fromkeys((table.rank_by, *table.measures)))


def _entries(store: Store, task: Task, table: Table, running: Sequence[str]) -> list[_Entry]:
    runs = {r.id: r for r in queries.runs(store, [task], task=task.id, running=running)}
    entries = []
    for submission in queries.submissions(store, task=task.id):
        mine = tuple(runs.get(queries.run_id(submission.id, c.dataset, c.scenario)) for c in table.cells)
        if any(run is not None for run in mine):
            entries.append(_Entry(submission, mine))
    return entries


def _choose(entries: list[_Entry]) -> tuple[list[_Entry], list[_Entry], dict[str, int]]:
    """Which entries rank, which are listed below, and how many of the rest there are."""
    counts = {"ranked": 0, "unranked": 0, "superseded": 0, "withdrawn": 0, "pending": 0, "cancelled": 0}
    by_key: dict[tuple[str, str], list[_Entry]] = {}
    for entry in entries:
        if entry.submission.withdrawn is not None:
            counts["withdrawn"] += 1
        else:
            by_key.setdefault(entry.key, []).append(entry)
    ranked, below = [], []
    for _, group in sorted(by_key.items()):
        group.sort(key=lambda e: e.submission.seq)
        best = next((e for e in reversed(group) if e.scored), None)
        newer = group if best is None else [e for e in group if e.submission.seq > best.submission.seq]
        counts["superseded"] += len(group) - len(newer) - (best is not None)
        if best is not None:
            ranked.append(best)
        listed = [e for e in newer if _state(e) not in ("pending", "running", "cancelled")]
        if listed:
            below.append(listed[-1])
            counts["superseded"] += len(listed) - 1
        for entry in newer:
            state = _state(entry)
            if state in ("pending", "running"):
                counts["pending"] += 1
            elif state == "cancelled":
                counts["cancelled"] += 1
    return ranked, below, counts


# What one cell's outcome makes of the whole submission: the first of these that occurs.
_WORST = ("failed", "invalid", "held", "cancelled", "running", "pending")


def _state(entry: _Entry) -> str:
    """What became of a submission over all cells; ``incomplete`` when it takes no part in one of them."""
    names = {r.outcome.name for r in entry.runs if r is not None}
    worst = next((name for name in _WORST if name in names), None)
    return worst or ("incomplete" if None in entry.runs else "scored")


def _unranked(entry: _Entry, audience: Audience) -> Unranked:
    state = _state(entry)
    s = entry.submission
    run = next((r for r in entry.runs if r is not None and r.outcome.name == state), None)
    if state == "scored":
        state, blame = "held", "platform"
        reason = "It was evaluated before the ranking measure was added: runner reevaluate scores it."
    elif run is None:
        reason, blame = "It takes no part in one of this table's scenarios.", "participant"
    else:
        reason, blame = run.outcome.says, run.outcome.blame
        # An invalid run's reason is the number of errors, which is said already.
        if audience.kind == "organiser" and run.outcome.reason and state != "invalid":
            reason = f"{reason} ({run.outcome.reason})"
    return Unranked(
        s.team,
        s.software,
        escape(s.tag, 40),
        state,
        escape(reason, 300),
        blame,
        s.id,
        tuple(r.id for r in entry.runs if r is not None),
        s.registered,
    )


def _scores(store: Store, entry: _Entry) -> list[dict[str, MeasureValue]]:
    return [queries.measures(store, run) for run in entry.runs if run is not None]


def _rank(table: Table, task: Task, scored: list[tuple[_Entry, list[dict[str, MeasureValue]]]]) -> list[Row]:
    rows = [_row(table, entry, cells) for entry, cells in scored]
    sign = -1.0 if task.measures[table.rank_by].direction == "higher" else 1.0
    rows.sort(key=lambda r: (sign * r.values[table.rank_by].mean, r.team, r.software))
    ranked: list[Row] = []
    for place, row in enumerate(rows, start=1):
        same = ranked and ranked[-1].values[table.rank_by].mean == row.values[table.rank_by].mean
        ranked.append(replace(row, rank=ranked[-1].rank if same else place))
    return ranked


def _row(table: Table, entry: _Entry, cells: list[dict[str, MeasureValue]]) -> Row:
    runs = [r for r in entry.runs if r is not None]
    s = entry.submission
    values = {}
    for measure in _measures(table):
        if all(
            measure in cell for cell in cells
        ):  # a measure added to the task later is missing until re-evaluated
            only = cells[0][measure] if len(cells) == 1 else None
            mean = math.fsum(cell[measure].value for cell in cells) / len(cells)
            values[measure] = Value(mean, only.low if only else None, only.high if only else None)
    walls = [r.wall_seconds for r in runs if r.wall_seconds is not None]
    peaks = [r.memory_peak for r in runs if r.memory_peak is not None]
    by = table.rank_by
    return Row(
        rank=0,
        team=s.team,
        software=s.software,
        tag=escape(s.tag, 40),
        method=s.method,
        baseline=s.team == BASELINES or f"{s.team}/{s.software}" == table.baseline,
        values=values,
        topics=sum(cell[by].topics for cell in cells),
        covered=sum(cell[by].covered for cell in cells),
        wall_seconds=math.fsum(walls) if len(walls) == len(runs) else None,
        memory_peak=max(peaks) if len(peaks) == len(runs) else None,
        memory_source="sampled" if any(r.memory_source == "sampled" for r in runs) else runs[0].memory_source,
        submission=s.id,
        runs=tuple(r.id for r in runs),
        registered=s.registered,
    )


def _compare(
    store: Store, task: Task, table: Table, rows: list[Row], entries: dict[str, _Entry]
) -> tuple[list[Row], list[str], str | None]:
    """Test every row against the baseline on the ranking measure. Returns rows, notes and the test's name."""
    if table.baseline is None:
        return rows, [], None
    base = next((r for r in rows if f"{r.team}/{r.software}" == table.baseline), None)
    if base is None:
        return rows, [f"No significance test: the baseline {table.baseline} is not ranked."], None
    scores = {r.submission: _topic_scores(store, table, entries[r.submission]) for r in rows}
    against = scores[base.submission]
    others = [r for r in rows if r is not base]
    notes: list[str] = []
    shared = {r.submission: sorted(set(scores[r.submission]) & set(against)) for r in others}
    pairs = [[scores[r.submission][key] - against[key] for key in shared[r.submission]] for r in others]
    if any(len(keys) != len(against) for keys in shared.values()):
        notes.append("Some rows were compared with the baseline on the shared topics only.")
    p_values = significance.randomisation(pairs)
    corrected = significance.holm(p_values)
    higher = task.measures[table.rank_by].direction == "higher"
    found = {
        r.submission: _comparison(pair, p, pc, higher)
        for r, pair, p, pc in zip(others, pairs, p_values, corrected, strict=True)
    }
    topics = len(against)
    if topics < FEW_TOPICS:
        notes.append(f"Only {topics} topics: differences this few topics can show are large ones.")
    return [replace(r, comparison=found.get(r.submission)) for r in rows], notes, TEST_NAME


def _comparison(pair: list[float], p: float, corrected: float, higher: bool) -> Comparison:
    difference = math.fsum(pair) / len(pair) if pair else 0.0
    mark = ""
    if corrected <= significance.ALPHA and difference != 0:
        mark = "†" if (difference > 0) == higher else "‡"
    return Comparison(difference, len(pair), p, corrected, mark)


def _topic_scores(store: Store, table: Table, entry: _Entry) -> dict[tuple[int, str], float]:
    scores: dict[tuple[int, str], float] = {}
    for n, run in enumerate(entry.runs):
        if run is not None:
            for topic, value in queries.topic_scores(store, run, table.rank_by).items():
                scores[n, topic] = value
    return scores


def _mixed(entries: list[_Entry]) -> list[str]:
    """Rows that were evaluated with different truths or evaluators cannot be compared: say so."""
    notes = []
    per_cell = list(zip(*(e.runs for e in entries), strict=True))
    for what, of in (("truths", "truths_digest"), ("evaluator images", "evaluator_image")):
        if any(len({getattr(r, of) for r in cell if r is not None}) > 1 for cell in per_cell):
            notes.append(
                f"Rows were evaluated with different {what}: runner reevaluate makes them comparable."
            )
    return notes
