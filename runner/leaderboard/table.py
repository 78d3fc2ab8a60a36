"""One leaderboard: which submissions rank where, with their uncertainty, and which do not rank and why.

In each cell the latest submission that is scored there counts, for every software or for every team (the
table's ``unit``); a newer one that failed does not displace it and is listed below. Only who is scored on
every cell of the table ranks. Scores are compared at full precision; equal ones share a rank, and the ranks
behind are left out (1, 2, 2, 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from runner.audience import Audience, escape, not_for, scores_open
from runner.errors import RunnerError
from runner.leaderboard import significance
from runner.leaderboard.judges import Judge, judge_notes, judges_of
from runner.store import queries
from runner.store.queries import MeasureValue, Run, Submission
from runner.tasks import Cell, Table, Task

if TYPE_CHECKING:
    from runner.store.connect import Store

FEW_TOPICS = 25
BASELINES = "baselines"
TEST_NAME = "Fisher's randomisation test"
CORRECTION = "Holm"
METHODS = ("automatic", "manual")
HOWS = ("executed", "uploaded")
MIXED = "mixed"


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
class CellScore:
    """What counts of a row in one cell: the run, and its mean on the ranking measure (None: not computed yet)."""

    dataset: str
    scenario: str
    submission: str
    run: str
    value: float | None


@dataclass(frozen=True)
class Row:
    """A ranked software or team. Sums over the cells for time, the maximum for memory; seconds and bytes.

    ``software`` names all that count, ``submission`` is the latest of them; ``method`` and ``how`` (executed or
    uploaded) are ``mixed`` when they differ between the cells.
    """

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
    how: str = "executed"
    cells: tuple[CellScore, ...] = ()
    judge: str = ""  # the labels of who judged its runs


@dataclass(frozen=True)
class Unranked:
    """A submission that does not rank: what became of it, why, and whose fault it was.

    ``missing`` are the cells of the table on which nothing of this software or team is scored.
    """

    team: str
    software: str
    tag: str
    outcome: str
    reason: str
    blame: str
    submission: str
    runs: tuple[str, ...]
    registered: str
    method: str = "automatic"
    how: str = "executed"
    missing: tuple[Cell, ...] = ()


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
    """What belongs to a round: its datasets, and what was received in time (``admits(team, time in UTC)``)."""

    info: RoundInfo
    datasets: tuple[str, ...]
    admits: Callable[[str, str], bool]

    def takes(self, run: Run) -> bool:
        """Whether a run belongs to the round."""
        return run.dataset in self.datasets and self.admits(run.submission.team, run.submission.registered)


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
    heading: str = ""  # the table's title, where the task gives one
    description: str = ""
    aggregate: str = "mean"
    unit: str = "software"
    round: RoundInfo | None = None
    filters: Mapping[str, str] = field(default_factory=dict)
    judges: tuple[Judge, ...] = ()


@dataclass(frozen=True)
class _Entry:
    """A submission with its runs on the table's cells (None where it has none)."""

    submission: Submission
    runs: tuple[Run | None, ...]

    @property
    def age(self) -> tuple[str, int]:
        return _age(self.submission)


@dataclass(frozen=True)
class _Group:
    """What competes for one row: the submissions of a software or team, and the run that counts in each cell."""

    key: tuple[str, str]
    entries: tuple[_Entry, ...]
    chosen: tuple[Run | None, ...]

    @property
    def complete(self) -> bool:
        return None not in self.chosen

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for run in self.chosen if run is not None)

    def newer(self, entry: _Entry) -> list[tuple[int, Run]]:
        """The runs of ``entry`` that do not count, in cells where nothing of its time or later counts."""
        return [
            (n, run)
            for n, (run, counts) in enumerate(zip(entry.runs, self.chosen, strict=True))
            if run is not None
            and not run.outcome.ranked
            and (counts is None or _age(counts.submission) < entry.age)
        ]


@dataclass(frozen=True)
class _Listed:
    """A submission to be listed below the table, with the runs that say why."""

    group: _Group
    entry: _Entry
    state: str
    runs: tuple[tuple[int, Run], ...] = ()
    reason: str = ""


def _age(submission: Submission) -> tuple[str, int]:
    return submission.registered, submission.seq


def build(
    store: Store,
    task: Task,
    table_id: str | None,
    audience: Audience,
    *,
    running: Sequence[str] = (),
    part: Part | None = None,
) -> LeaderboardTable:
    """The leaderboard ``table_id`` of ``task`` (None: the first one) as ``audience`` may see it.

    With ``part`` it holds only what belongs to that round. Raises E102 when there is no such table, E103 when
    its scores are not open to this audience.
    """
    table = _table(task, table_id, part)
    check_open(store, task, table.id, [c.dataset for c in table.cells], audience)
    made, _ = _build(store, task, table, running, part, words=audience.kind == "organiser")
    return replace(made, audience=str(audience))


def check_open(store: Store, task: Task, table_id: str, datasets: Sequence[str], audience: Audience) -> None:
    """Raise E103 when ``audience`` may not see mean scores on all of ``datasets``."""
    if audience.kind == "organiser":
        return
    published = queries.published(store, task.id)
    closed = [
        name
        for name in dict.fromkeys(datasets)
        if name not in task.datasets or not scores_open(task.datasets[name], name in published)
    ]
    if closed:
        raise not_for(
            audience, f"leaderboard {table_id} of {task.id} (scores on {', '.join(closed)} are not published)"
        )


def frozen_tables(store: Store, task: Task, part: Part) -> tuple[list[LeaderboardTable], list[Run]]:
    """Every table of a round, in words that are safe for everybody, and the runs that count in any of them."""
    tables, used = [], dict[str, Run]()
    for table in task.tables.values():
        if any(cell.dataset in part.datasets for cell in table.cells):
            made, runs = _build(store, task, _table(task, table.id, part), (), part, words=False)
            tables.append(made)
            used |= {run.id: run for run in runs}
    return tables, [used[id] for id in sorted(used)]


def _build(
    store: Store, task: Task, table: Table, running: Sequence[str], part: Part | None, *, words: bool
) -> tuple[LeaderboardTable, list[Run]]:
    """A table and the runs that count in it. ``words``: reasons may hold what a participant wrote."""
    groups, withdrawn = _groups(store, task, table, running, part)
    chosen, below, counts = _choose(groups)
    counts["withdrawn"] = withdrawn
    scored = [(g, [queries.measures(store, run) for run in g.runs]) for g in chosen]
    lacking = [g for g, cells in scored if any(table.rank_by not in cell for cell in cells)]
    below += [_lacks(store, table, g) for g in lacking]
    ranked = [(g, cells) for g, cells in scored if g not in lacking]
    rows = _rank(table, task, [(_row(table, g, cells), g) for g, cells in ranked])
    compared, notes, test = _compare(store, task, table, rows)
    counting = [group.runs for _, group in rows]
    judges, labels = judges_of(counting)
    compared = [replace(row, judge=label) for row, label in zip(compared, labels, strict=True)]
    counts["ranked"], counts["unranked"] = len(rows), len(below)
    below.sort(key=lambda b: (b.entry.submission.team, b.entry.submission.software, b.entry.submission.seq))
    made = LeaderboardTable(
        task=task.id,
        title=escape(task.title, 200),
        table=table.id,
        audience="public",
        cells=table.cells,
        rank_by=table.rank_by,
        columns=tuple(
            Column(m, task.measures[m].measure, task.measures[m].direction) for m in _measures(table)
        ),
        rows=tuple(compared),
        unranked=tuple(_unranked(table, b, words) for b in below),
        counts=counts,
        baseline=table.baseline,
        topics=max((r.topics for r in compared), default=0),
        test=test,
        notes=(*notes, *_mixed([g for _, g in rows]), *judge_notes(counting, judges)),
        judges=judges,
        heading=escape(table.title, 100),
        description=escape(table.description, 500),
        aggregate=table.aggregate,
        unit=table.unit,
        round=part.info if part else None,
    )
    return made, [run for g in groups for run in g.runs]


def filtered(
    table: LeaderboardTable, *, method: str | None = None, how: str | None = None
) -> LeaderboardTable:
    """The rows of one method (automatic, manual) or way of taking part (executed, uploaded), ranked among
    themselves; tests stay those of the whole table. Raises E101 for other words."""
    for word, known in ((method, METHODS), (how, HOWS)):
        if word is not None and word not in known:
            raise RunnerError(
                "E101", f"there is nothing to filter by {escape(word, 40)!r}", fix=f"use {' or '.join(known)}"
            )
    filters = {name: word for name, word in (("method", method), ("how", how)) if word is not None}
    if not filters:
        return table
    rows = [r for r in table.rows if all(getattr(r, name) == word for name, word in filters.items())]
    below = [u for u in table.unranked if all(getattr(u, name) == word for name, word in filters.items())]
    notes = table.notes
    if table.test is not None and rows:
        notes = (*notes, "Tests and their correction are those of the table without the filter.")
    return replace(
        table,
        rows=tuple(_shared_ranks(rows, table.rank_by)),
        unranked=tuple(below),
        counts={**table.counts, "ranked": len(rows), "unranked": len(below)},
        topics=max((r.topics for r in rows), default=0),
        notes=notes,
        filters=filters,
        judges=tuple(j for j in table.judges if any(j.label in r.judge.split(", ") for r in rows)),
    )


def _lacks(store: Store, table: Table, group: _Group) -> _Listed:
    """A group that is scored everywhere but has no value on the ranking measure: not judged yet, or from before."""
    newest = max(group.entries, key=lambda e: e.age)
    for n, run in enumerate(group.chosen):
        reason = queries.pending_measures(store, run).get(table.rank_by) if run is not None else None
        if run is not None and reason is not None:
            return _Listed(group, newest, "unjudged", ((n, run),), reason)
    return _Listed(group, newest, "scored")


def _table(task: Task, table_id: str | None, part: Part | None = None) -> Table:
    """The table of that name (None: the first), with the cells of the round only."""
    tables = {
        table.id: replace(
            table, cells=tuple(c for c in table.cells if part is None or c.dataset in part.datasets)
        )
        for table in task.tables.values()
    }
    tables = {name: table for name, table in tables.items() if table.cells}
    if table_id is None and tables:
        return next(iter(tables.values()))
    if table_id is None or table_id not in tables:
        known = ", ".join(tables) or "none"
        raise RunnerError(
            "E102",
            f"{task.id} has no table {escape(table_id or 'any', 60)!r}"
            + (f" in {part.info.id}" if part else ""),
            why=f"Its tables are: {known}.",
            fix="name one",
        )
    return tables[table_id]


def _measures(table: Table) -> tuple[str, ...]:
    """The ranking measure first, then the others in the task's order."""
    return tuple(dict.fromkeys((table.rank_by, *table.measures)))


def _groups(
    store: Store, task: Task, table: Table, running: Sequence[str], part: Part | None
) -> tuple[list[_Group], int]:
    """What competes for each row, and how many submissions were withdrawn."""
    runs = {r.id: r for r in queries.runs(store, [task], task=task.id, running=running)}
    by_key: dict[tuple[str, str], list[_Entry]] = {}
    withdrawn = 0
    for s in queries.submissions(store, task=task.id):
        if part is not None and not part.admits(s.team, s.registered):
            continue
        mine = tuple(runs.get(queries.run_id(s.id, c.dataset, c.scenario)) for c in table.cells)
        if all(run is None for run in mine):
            continue
        if s.withdrawn is not None:
            withdrawn += 1
            continue
        by_key.setdefault(_key(table, s), []).append(_Entry(s, mine))
    groups = []
    for key, entries in sorted(by_key.items()):
        entries.sort(key=lambda e: e.age)
        chosen = [
            next((e.runs[n] for e in reversed(entries) if _counts(e.runs[n])), None)
            for n in range(len(table.cells))
        ]
        groups.append(_Group(key, tuple(entries), tuple(chosen)))
    return groups, withdrawn


def _counts(run: Run | None) -> bool:
    return run is not None and run.outcome.ranked


def _key(table: Table, s: Submission) -> tuple[str, str]:
    """Whose row a submission competes for: its software's, or its team's. Baselines are softwares always."""
    alone = table.unit != "team" or s.team == BASELINES or f"{s.team}/{s.software}" == table.baseline
    return s.team, s.software if alone else ""


def _choose(groups: list[_Group]) -> tuple[list[_Group], list[_Listed], dict[str, int]]:
    """Which groups rank, what is listed below, and how many of the rest there are."""
    counts = {"ranked": 0, "unranked": 0, "superseded": 0, "withdrawn": 0, "pending": 0, "cancelled": 0}
    ranked, below = [], []
    for group in groups:
        used = {run.submission.id for run in group.runs} if group.complete else set()
        listed: list[_Listed] = []
        shown, waits = 0, False
        for entry in group.entries:
            newer = group.newer(entry)
            state = _state(newer)
            if state in ("failed", "invalid", "held"):
                listed.append(_Listed(group, entry, state, tuple(newer)))
            elif state is not None:
                counts["cancelled" if state == "cancelled" else "pending"] += 1
                waits = waits or state != "cancelled"
                shown += entry.submission.id not in used
        if listed:
            below.append(listed[-1])
        elif not group.complete and not waits:
            lone = _Listed(group, group.entries[-1], "incomplete")
            if _state(group.newer(lone.entry)) != "cancelled":
                below.append(lone)
                listed.append(lone)
        if group.complete:
            ranked.append(group)
        shown += len(used) + (bool(listed) and listed[-1].entry.submission.id not in used)
        counts["superseded"] += max(0, len(group.entries) - shown)
    return ranked, below, counts


# What single runs make of a whole submission: the first of these that occurs.
_WORST = ("failed", "invalid", "held", "cancelled", "running", "pending")


def _state(runs: Sequence[tuple[int, Run]]) -> str | None:
    """What became of a submission in the cells where it does not count; None when there are none."""
    names = {run.outcome.name for _, run in runs}
    return next((name for name in _WORST if name in names), None)


def cell_name(cell: Cell) -> str:
    """A cell for people: the dataset, and the scenario unless it is the default one."""
    return cell.dataset if cell.scenario == "default" else f"{cell.dataset}/{cell.scenario}"


def _named(cells: Sequence[Cell]) -> str:
    """Cells for people, a long list cut."""
    names = [cell_name(c) for c in cells]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _unranked(table: Table, listed: _Listed, words: bool) -> Unranked:
    group, s, state = listed.group, listed.entry.submission, listed.state
    missing = tuple(c for c, run in zip(table.cells, group.chosen, strict=True) if run is None)
    several = len(table.cells) > 1
    if state == "scored":
        state, blame = "held", "platform"
        reason = "It was evaluated before the ranking measure was added: runner reevaluate scores it."
    elif state == "unjudged":
        n, _ = listed.runs[0]
        blame, reason = "none", f"No value on {table.rank_by}: {listed.reason.rstrip('.')}."
        if several:
            reason = f"{cell_name(table.cells[n])}: {reason}"
    elif state == "incomplete":
        blame = "none"
        reason = f"Nothing scored on {_named(missing)}; ranked in the tables of its other cells."
    else:
        n, run = next((n, r) for n, r in listed.runs if r.outcome.name == state)
        reason, blame = run.outcome.says, run.outcome.blame
        # An invalid run's reason is the number of errors, which is said already.
        if words and run.outcome.reason and state != "invalid":
            reason = f"{reason} ({run.outcome.reason})"
        if several:
            reason = f"{cell_name(table.cells[n])}: {reason}"
        counts = group.chosen[n]
        if counts is not None:
            reason += f" It does not displace {counts.submission.id}, which counts."
        if several and missing:
            reason += f" Nothing scored on {_named(missing)}."
    return Unranked(
        s.team,
        s.software,
        escape(s.tag, 40),
        state,
        escape(reason, 500),
        blame,
        s.id,
        tuple(r.id for r in listed.entry.runs if r is not None),
        s.registered,
        s.method,
        s.how,
        missing,
    )


def _rank(table: Table, task: Task, rows: list[tuple[Row, _Group]]) -> list[tuple[Row, _Group]]:
    sign = -1.0 if task.measures[table.rank_by].direction == "higher" else 1.0
    rows = sorted(rows, key=lambda r: (sign * r[0].values[table.rank_by].mean, r[0].team, r[0].software))
    ranks = _shared_ranks([row for row, _ in rows], table.rank_by)
    return [(row, group) for row, (_, group) in zip(ranks, rows, strict=True)]


def _shared_ranks(rows: list[Row], by: str) -> list[Row]:
    """Sorted rows with their ranks: equal means share one, and the ranks behind are left out."""
    ranked: list[Row] = []
    for place, row in enumerate(rows, start=1):
        same = ranked and ranked[-1].values[by].mean == row.values[by].mean
        ranked.append(replace(row, rank=ranked[-1].rank if same else place))
    return ranked


def aggregated(rule: str, cells: Sequence[Cell], values: Sequence[float]) -> float:
    """The mean of ``values``, one a cell, by one of :data:`runner.leaderboard.specs.AGGREGATES`."""
    if rule == "mean":
        return _mean(values)
    parts: dict[str, list[float]] = {}
    for cell, value in zip(cells, values, strict=True):
        part = cell.dataset if rule == "scenarios-then-datasets" else cell.scenario
        parts.setdefault(part, []).append(value)
    return _mean([_mean(part) for part in parts.values()])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _row(table: Table, group: _Group, cells: list[dict[str, MeasureValue]]) -> Row:
    runs = group.runs
    by_age = sorted({run.submission.id: run.submission for run in runs}.values(), key=_age)
    s = by_age[-1]
    values = {}
    for measure in _measures(table):
        # A measure that was added to the task later is missing until the run is evaluated again.
        if all(measure in cell for cell in cells):
            only = cells[0][measure] if len(cells) == 1 else None
            mean = aggregated(table.aggregate, table.cells, [cell[measure].value for cell in cells])
            values[measure] = Value(mean, only.low if only else None, only.high if only else None)
    walls = [r.wall_seconds for r in runs if r.wall_seconds is not None]
    peaks = [r.memory_peak for r in runs if r.memory_peak is not None]
    by = table.rank_by
    return Row(
        rank=0,
        team=s.team,
        software=", ".join(dict.fromkeys(x.software for x in sorted(by_age, key=lambda x: x.software))),
        tag=escape(s.tag, 40) if len({x.tag for x in by_age}) == 1 else "",
        method=_common([x.method for x in by_age]),
        baseline=s.team == BASELINES or f"{s.team}/{s.software}" == table.baseline,
        values=values,
        topics=sum(cell[by].topics for cell in cells if by in cell),
        covered=sum(cell[by].covered for cell in cells if by in cell),
        wall_seconds=math.fsum(walls) if len(walls) == len(runs) else None,
        memory_peak=max(peaks) if len(peaks) == len(runs) else None,
        memory_source="sampled" if any(r.memory_source == "sampled" for r in runs) else runs[0].memory_source,
        submission=s.id,
        runs=tuple(r.id for r in runs),
        registered=s.registered,
        how=_common([x.how for x in by_age]),
        cells=tuple(
            CellScore(r.dataset, r.scenario, r.submission.id, r.id, cell[by].value if by in cell else None)
            for r, cell in zip(runs, cells, strict=True)
        ),
    )


def _common(words: Sequence[str]) -> str:
    return words[0] if len(set(words)) == 1 else MIXED


def _compare(
    store: Store, task: Task, table: Table, ranked: list[tuple[Row, _Group]]
) -> tuple[list[Row], list[str], str | None]:
    """Test every row against the baseline on the ranking measure. Returns rows, notes and the test's name."""
    rows = [row for row, _ in ranked]
    if table.baseline is None:
        return rows, [], None
    base = next((n for n, r in enumerate(rows) if f"{r.team}/{r.software}" == table.baseline), None)
    if base is None:
        return rows, [f"No significance test: the baseline {table.baseline} is not ranked."], None
    scores = [_topic_scores(store, table, group) for _, group in ranked]
    against = scores[base]
    if not against:
        # A figure over all answers at once, such as an F1, has no paired differences to test.
        return rows, [f"No significance test: {table.rank_by} has no values by topic."], None
    shared = {n: sorted(set(scores[n]) & set(against)) for n in range(len(rows)) if n != base}
    notes = [
        f"No significance test of {rows[n].team}/{rows[n].software}: it shares no topic with the baseline."
        for n, keys in shared.items()
        if not keys
    ]
    others = [n for n, keys in shared.items() if keys]
    shared = {n: shared[n] for n in others}
    pairs = [[scores[n][key] - against[key] for key in shared[n]] for n in others]
    if any(len(keys) != len(against) for keys in shared.values()):
        notes.append("Some rows were compared with the baseline on the shared topics only.")
    p_values = significance.randomisation(pairs)
    corrected = significance.holm(p_values)
    higher = task.measures[table.rank_by].direction == "higher"
    found = {
        n: _comparison(pair, p, pc, higher)
        for n, pair, p, pc in zip(others, pairs, p_values, corrected, strict=True)
    }
    topics = len(against)
    if topics < FEW_TOPICS:
        notes.append(f"Only {topics} topics: differences this few topics can show are large ones.")
    return [replace(r, comparison=found.get(n)) for n, r in enumerate(rows)], notes, TEST_NAME


def _comparison(pair: list[float], p: float, corrected: float, higher: bool) -> Comparison:
    difference = math.fsum(pair) / len(pair) if pair else 0.0
    mark = ""
    if corrected <= significance.ALPHA and difference != 0:
        mark = "†" if (difference > 0) == higher else "‡"
    return Comparison(difference, len(pair), p, corrected, mark)


def _topic_scores(store: Store, table: Table, group: _Group) -> dict[tuple[str, str], float]:
    """Dataset and topic → mean score over the table's scenarios.

    A topic that is answered in several scenarios is one topic: counted twice it would make differences look
    more certain than they are.
    """
    scores: dict[tuple[str, str], list[float]] = {}
    for run in group.runs:
        for topic, value in queries.topic_scores(store, run, table.rank_by).items():
            scores.setdefault((run.dataset, topic), []).append(value)
    return {key: math.fsum(values) / len(values) for key, values in scores.items()}


def _mixed(groups: list[_Group]) -> list[str]:
    """What makes rows hard to compare: other truths or evaluators, and cells of different submissions."""
    notes = []
    per_cell = list(zip(*(g.runs for g in groups), strict=True))
    for what, of in (("truths", "truths_digest"), ("evaluator images", "evaluator_image")):
        if any(len({getattr(r, of) for r in cell}) > 1 for cell in per_cell):
            notes.append(
                f"Rows were evaluated with different {what}: runner reevaluate makes them comparable."
            )
    if any(len({r.submission.id for r in g.runs}) > 1 for g in groups):
        notes.append("Some rows combine several submissions: in each cell the latest valid one counts.")
    return notes
