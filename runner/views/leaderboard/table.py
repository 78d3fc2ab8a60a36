"""One leaderboard: which submissions rank where, with their uncertainty, and which do not rank and why.

In each cell the latest (or, as the table's ``pick`` says, the best, or the one that its team named) submission that is scored there counts, for every
software or for every team (the table's ``unit``); a newer one that failed does not displace it and is listed below. Only who is scored on
every cell of the table ranks. Scores are compared at full precision; equal ones share a rank, and the ranks
behind are left out (1, 2, 2, 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.errors import RunnerError, no_such
from runner.model.names import MAX_DISPLAY
from runner.model.run import Run
from runner.model.task import Table, Task
from runner.records.split import Split
from runner.records.store import queries
from runner.views.audience import ORGANISER, Audience, escape, not_for, scores_open
from runner.views.leaderboard import choosing, ranks
from runner.views.leaderboard.anonymous import Names, names_for
from runner.views.leaderboard.choosing import Group, Listed
from runner.views.leaderboard.comparing import MOST_EACH, Tests, compare
from runner.views.leaderboard.judges import judge_notes, judges_of, without_unrelated_judge
from runner.views.leaderboard.ranks import measures_shown, rank_rows
from runner.views.leaderboard.rows import (
    Column,
    LeaderboardTable,
    Part,
    Row,
    coarsened,
    software_of,
)
from runner.views.leaderboard.trusting import marked, not_settled, trusted
from runner.views.redact import without_free_text
from runner.views.scores import any_split, board_split, shown_values
from runner.views.scores import notes as split_notes
from runner.views.text import listed
from schemas.measures import meaning

if TYPE_CHECKING:
    from runner.records.store.connect import Store

METHODS = ("automatic", "manual")
HOWS = ("executed", "uploaded")
_AS_DEFINED = ("cells", "rank_by", "baseline", "aggregate", "unit", "pick", "best_on")
CHOICES = {"unit": ("software", "team"), "pick": ("latest", "best", "chosen")}


def build(
    store: Store,
    task: Task,
    table_id: str | None,
    audience: Audience,
    *,
    running: Sequence[str] = (),
    part: Part | None = None,
    unit: str | None = None,
    pick: str | None = None,
    topics: str | None = None,
    against: str | None = None,
    each: bool = False,
) -> LeaderboardTable:
    """A leaderboard as an audience may see it.

    Args:
        store: Submissions, runs and scores.
        task: The task.
        table_id: One of its tables; None: the first one.
        audience: Who looks.
        running: The runs that are being executed now.
        part: A round: only what belongs to it is in the table.
        unit: What a row is, ``software`` or ``team``; None: as the table says.
        pick: What counts of it in each cell, its ``latest``, its ``best`` or the ``chosen`` submission; None: as the table says.
        topics: Over which part of split topics, see :func:`runner.views.scores.board_split`.
        against: The row that all others are tested against, see :func:`runner.views.leaderboard.comparing.row_of`; None: the baseline.
        each: Also test the rows against each of them, as long as they are not too many.

    Raises:
        RunnerError: E101 for another ``unit``, ``pick`` or ``topics``, E102 when there is no such table or row, E103 when its scores are
            not open to this audience.
    """
    table = _chosen(_table(task, table_id, part), {"unit": unit, "pick": pick})
    datasets = [c.dataset for c in table.cells]
    check_open(store, task, table.id, datasets, audience)
    split = board_split(store, task, datasets, audience, topics)
    names = names_for(store, task, audience)
    organiser = audience.kind == "organiser"
    made, _ = _build(
        store, task, table, running, part, split, names, words=organiser, against=against, each=each
    )
    return replace(made, audience=str(audience))


def _chosen(table: Table, choices: Mapping[str, str | None]) -> Table:
    """The table with another ``unit`` or ``pick``, where one is given. Raises E101 for a word that is none of them."""
    given: dict[str, Any] = {name: word for name, word in choices.items() if word is not None}
    for name, word in given.items():
        if word not in CHOICES[name]:
            known = " or ".join(CHOICES[name])
            raise RunnerError("E101", f"there is no {name} {escape(word, 40)!r}", fix=f"use {known}")
    if "pick" in given:
        given["best_on"] = None
    return replace(table, **given)


def _unsaid(listed: Listed, task: Task) -> Listed:
    """What is listed, without a reason that counts what is hidden."""
    all_open = all(task.datasets[run.dataset].visibility == "public" for _, run in listed.runs)
    return listed if all_open or not listed.reason else replace(listed, reason="not judged yet")


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
        what = f"leaderboard {table_id} of {task.id} (scores on {', '.join(closed)} are not published)"
        own = audience.kind == "team" and any(
            name in task.datasets and task.datasets[name].scores == "team" for name in closed
        )
        raise not_for(
            audience, what, *(["runner show RUN shows the scores of a run of yours"] if own else [])
        )


def frozen_tables(
    store: Store, task: Task, part: Part, topics: str | None = None, audience: Audience = ORGANISER
) -> tuple[list[LeaderboardTable], list[Run]]:
    """Every table of a round, in words that are safe for everybody, and the runs that count in any of them.

    ``topics``: over which part of topics that are split; None: over those that decide. ``audience``: with the names that it sees.
    """
    tables, used = [], dict[str, Run]()
    for table in task.tables.values():
        if any(cell.dataset in part.datasets for cell in table.cells):
            shown = _table(task, table.id, part)
            split = any_split(store, task, [cell.dataset for cell in shown.cells], topics)
            names = names_for(store, task, audience)
            made, runs = _build(store, task, shown, (), part, split, names, words=False)
            tables.append(made)
            used |= {run.id: run for run in runs}
    return tables, [used[id] for id in sorted(used)]


def _build(
    store: Store,
    task: Task,
    table: Table,
    running: Sequence[str],
    part: Part | None,
    split: Split,
    seen: Names,
    *,
    words: bool,
    against: str | None = None,
    each: bool = False,
) -> tuple[LeaderboardTable, list[Run]]:
    """A table and the runs that count in it. ``words``: it is the organiser's; reasons may hold what a participant wrote."""
    groups, withdrawn = choosing.groups_of(store, task, table, running, part, split, organiser=words)
    chosen, below, counts = choosing.choose(seen.groups(groups), partial=table.rank_by.rule != "value")
    values = shown_values(store, task, (run for g in chosen for run in g.runs), split)
    scored = [(g, [{} if run is None else values[run.id] for run in g.chosen]) for g in chosen]
    wanted = table.rank_by
    table, doubts = trusted(table, task, [(g.runs, [values[run.id] for run in g.runs]) for g in chosen])
    wants = {*table.rank_by.measures}
    unjudged = [g for g in chosen if any(not values[run.id].keys() >= wants for run in g.runs)]
    waiting = [choosing.unjudged_row(store, table, group, split) for group in unjudged]
    below += waiting if words else [_unsaid(row, task) for row in waiting]
    rows = rank_rows(table, task, [pair for pair in scored if pair[0] not in unjudged])
    if doubts and table.rank_by == wanted:
        rows = [(replace(row, rank=1), g) for row, g in rows]
    groups_of_rows = [group for _, group in rows]
    tests = Tests(store, task, table, rows, split)
    chosen_row, tested = compare(tests, against)
    compared = [replace(row, comparison=tested.comparisons.get(n)) for n, (row, _) in enumerate(rows)]
    counting = _counting(table, task, [group.runs for group in groups_of_rows], words)
    judges, labels = judges_of(counting)
    compared = marked(compared, labels, groups_of_rows, organiser=words)
    counts |= {"withdrawn": withdrawn, "ranked": len(rows), "unranked": len(below)}
    below.sort(key=lambda b: (b.entry.submission.team, b.entry.submission.software, b.entry.submission.seq))
    before = (*split_notes(split), *doubts, *_stale(compared), *not_settled(task, rows, organiser=words))
    lacking = choosing.not_chosen(table, task.measures[wanted.first].measure, groups_of_rows)
    after = (*_mixed(groups_of_rows, table), *lacking, *judge_notes(counting, judges, len(below)))
    if each and len(rows) > MOST_EACH:
        after = (*after, f"Rows are tested against each other only where there are at most {MOST_EACH}.")
    made = LeaderboardTable(
        **_defined(task, table),
        audience="public",
        columns=_columns(table, task),
        rows=tuple(compared),
        unranked=tuple(choosing.unranked(table, b, words) for b in below),
        counts=counts,
        topics=max((r.topics for r in compared), default=0),
        test=tested.test,
        against=chosen_row,
        notes=(*before, *tested.notes, *after),
        each=tuple(replace(t, notes=(*before, *t.notes, *after)) for t in (tests.each() if each else ())),
        judges=judges,
        round=part.info if part else None,
        names=_names(chosen, below),
        parts=split.parts,
    )
    return seen.table(made if words else closed(made, task)), [run for g in groups for run in g.runs]


def _defined(task: Task, table: Table) -> dict[str, Any]:
    """What of a board is as the task defines it."""
    return {
        **{name: getattr(table, name) for name in _AS_DEFINED},
        "task": task.id,
        "table": table.id,
        "title": escape(task.title, 200),
        "heading": escape(table.title, 200),
        "description": escape(table.description, 500),
    }


def _columns(table: Table, task: Task) -> tuple[Column, ...]:
    """The measures of a table, the ranking one first."""
    whole = _counts(task.kind)
    return tuple(
        Column(
            m.id,
            m.measure,
            m.direction,
            m.measure in whole,
            unit,
            says + task.truths_apart(m.id),
            precision=m.precision,
        )
        for m in (task.measures[name] for name in measures_shown(table))
        for unit, says in (meaning(task.kind, m.measure),)
    )


def _names(chosen: Iterable[Group], below: Iterable[Listed]) -> dict[str, str]:
    """The display names of teams and softwares, in the order of their names."""
    found = [run.submission for g in chosen for run in g.runs] + [b.entry.submission for b in below]
    pairs = {
        name: escape(text, MAX_DISPLAY)
        for s in found
        for name, text in ((s.team, s.team_display_name), (f"{s.team}/{s.software}", s.display_name))
        if text
    }
    return dict(sorted(pairs.items()))


def _counting(
    table: Table, task: Task, groups: Sequence[tuple[Run, ...]], words: bool
) -> list[tuple[Run, ...]]:
    """The runs behind each row as their judges are named: without what a participant wrote unless ``words``, and without a
    judge who gave no value of this table."""
    measures = set(measures_shown(table))

    def one(run: Run) -> Run:
        shown = run if words else without_free_text(run, task.datasets[run.dataset])
        return without_unrelated_judge(shown, measures)

    return [tuple(one(run) for run in runs) for runs in groups]


def closed(table: LeaderboardTable, task: Task) -> LeaderboardTable:
    """``table`` as it is for everybody but the organiser: on hidden data with steps in place of figures."""
    datasets = {cell.dataset for cell in table.cells}
    open_ = {name for name, dataset in task.datasets.items() if dataset.visibility == "public"}
    return coarsened(table, datasets - open_)


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
    ranked = ranks.ranked(rows, table.rank_by, table.columns[0].direction)
    if _nobody_ranks(table):
        ranked = [replace(row, rank=1) for row in ranked]
    return replace(
        table,
        rows=tuple(ranked),
        unranked=tuple(below),
        counts={**table.counts, "ranked": len(rows), "unranked": len(below)},
        topics=max((r.topics for r in rows), default=0),
        notes=notes,
        filters=filters,
        judges=tuple(j for j in table.judges if any(j.label in r.judge.split(", ") for r in rows)),
    )


def _nobody_ranks(table: LeaderboardTable) -> bool:
    """Whether all rows share the first rank although their figures differ: what could rank them cannot be trusted."""
    return all(row.rank == 1 for row in table.rows) and len({table.deciding(row) for row in table.rows}) > 1


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
        of = task.id if part is None else f"the round {part.info.id} of {task.id}"
        raise no_such("table", table_id or "any", tables, of=of, fix="name one")
    return tables[table_id]


def _counts(kind: str) -> frozenset[str]:
    """The measures of a kind that count something."""
    if kind not in schemas.kinds():
        return frozenset()
    return frozenset(schemas.schema(f"kinds/{kind}").get("x-counts", ()))


def _stale(rows: Sequence[Row]) -> list[str]:
    """Which rows are marked as stale, and why: one line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        for reason in row.stale:
            by_reason.setdefault(reason, []).append(software_of(row))
    return [
        f"Stale: {listed(names, choosing.MOST_NAMES)}. {reason} runner reevaluate corrects it."
        for reason, names in by_reason.items()
    ]


def _mixed(groups: list[Group], table: Table) -> list[str]:
    """What makes rows hard to compare: other truths or evaluators, and cells of different submissions."""
    notes = []
    per_cell = [[run for run in cell if run] for cell in zip(*(g.chosen for g in groups), strict=True)]
    for what, of in (("truths", "truths_digest"), ("evaluator images", "evaluator_image")):
        if any(len({getattr(r, of) for r in cell}) > 1 for cell in per_cell):
            notes.append(
                f"Rows were evaluated with different {what}: runner reevaluate makes them comparable."
            )
    unknown = sum(any(r.pins is None for r in g.runs) for g in groups)
    if unknown:
        notes.append(
            f"{unknown} of {len(groups)} rows were evaluated before evaluations kept what they were asked: a definition changed "
            "since then would not be noticed. runner reevaluate pins them."
        )
    if any(len({r.submission.id for r in g.runs}) > 1 for g in groups):
        notes.append(
            f"Some rows combine several submissions: in each cell the {table.pick} valid one counts."
        )
    return notes + choosing.asked_limits(groups)
