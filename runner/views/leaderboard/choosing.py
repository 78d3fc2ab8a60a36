"""What competes for each row of a leaderboard, what of it counts, and what is listed below and why."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from runner.model.limits import amounts
from runner.model.names import BASELINES
from runner.model.run import Run, Submission, run_id
from runner.model.task import Cell, Table, Task
from runner.records.deadlines import in_time
from runner.records.split import WHOLE, Split
from runner.records.store import queries, results
from runner.views.audience import escape, on_boards
from runner.views.leaderboard.rows import Part, Unranked
from runner.views.scores import shown_values
from runner.views.text import listed

if TYPE_CHECKING:
    from runner.records.store.connect import Store

MOST_NAMES = 6  # of cells or softwares in one sentence


@dataclass(frozen=True)
class Entry:
    """A submission with its runs on the table's cells (None where it has none)."""

    submission: Submission
    runs: tuple[Run | None, ...]

    @property
    def age(self) -> tuple[str, int]:
        """See :func:`age`."""
        return age(self.submission)


@dataclass(frozen=True)
class Group:
    """What competes for one row: the submissions of a software or team, and the run that counts in each cell."""

    key: tuple[str, str]
    entries: tuple[Entry, ...]
    chosen: tuple[Run | None, ...]
    named: tuple[
        str | None, ...
    ]  # the submission that its team named last, or that is best elsewhere, in each cell, valid or not
    unseen: frozenset[int] = frozenset()  # the cells for which runs of it wait to be approved
    unknown: tuple[
        str, ...
    ] = ()  # valid submissions that could not be the best: they have no value yet, others have one

    @property
    def complete(self) -> bool:
        """Whether a run counts in every cell of the table."""
        return None not in self.chosen

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that count, in the order of the cells."""
        return tuple(run for run in self.chosen if run is not None)

    @property
    def settled(self) -> bool:
        """Whether a run counts somewhere, and where none does nothing waits that still could."""
        gaps = [n for n, run in enumerate(self.chosen) if run is None]
        left = {run.outcome.name for entry in self.entries for n in gaps if (run := entry.runs[n])}
        return bool(self.runs) and not left & _OPEN and not self.unseen & {*gaps}

    def newer(self, entry: Entry) -> list[tuple[int, Run]]:
        """The runs of ``entry`` that do not count, in cells where nothing of its time or later counts."""
        return [
            (n, run)
            for n, (run, counts) in enumerate(zip(entry.runs, self.chosen, strict=True))
            if run is not None
            and not run.outcome.ranked
            and (counts is None or age(counts.submission) < entry.age)
        ]


@dataclass(frozen=True)
class Listed:
    """A submission to be listed below the table, with the runs that say why."""

    group: Group
    entry: Entry
    state: str
    runs: tuple[tuple[int, Run], ...] = ()
    reason: str = ""
    measure: str = ""  # the ranking measure without a value, where that is the reason


_OPEN = {"pending", "running", "held"}  # outcomes that are none yet


def age(submission: Submission) -> tuple[str, int]:
    """What submissions are sorted by, the oldest first: time of registration, and number."""
    return submission.registered, submission.seq


def groups_of(
    store: Store,
    task: Task,
    table: Table,
    running: Sequence[str],
    part: Part | None,
    split: Split = WHOLE,
    *,
    organiser: bool,
) -> tuple[list[Group], int]:
    """What competes for each row on the boards of the ``organiser`` or of everybody else, and how many submissions were withdrawn.

    The best of a row is best over the public topics, where there is a ``split``: whoever has more submissions gets no more
    chances on those that decide.
    """
    known = queries.runs(store, [task], task=task.id, running=running)
    runs = {run.id: run for run in known if on_boards(run, task, organiser=organiser)}
    unseen: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    back = {run.id for run in known} - runs.keys()
    by_key: dict[tuple[str, str], list[Entry]] = {}
    withdrawn = 0
    for s in queries.submissions(store, task=task.id):
        ids = [
            run_id(s.id, c.dataset, c.scenario)
            if part is None or part.admits(s.team, c.dataset, s.registered)
            else ""
            for c in table.cells
        ]
        if s.withdrawn is None:
            unseen[_key(table, s)] |= {n for n, id in enumerate(ids) if id in back}
        own_runs = tuple(runs.get(id) for id in ids)
        if all(run is None for run in own_runs):
            continue
        if s.withdrawn is not None:
            withdrawn += 1
            continue
        by_key.setdefault(_key(table, s), []).append(Entry(s, own_runs))
    better = _better(store, task, table, runs.values(), part, split)
    groups = []
    for key, entries in sorted(by_key.items()):
        entries.sort(key=lambda e: e.age)
        latest_first = [[e.runs[n] for e in reversed(entries)] for n in range(len(table.cells))]
        ranked = [[run for run in cell if run is not None and run.outcome.ranked] for cell in latest_first]
        counts = tuple(max(cell, key=better) if cell else None for cell in ranked)
        named = tuple(_named(table, cell, better) for cell in latest_first)
        unknown = tuple(dict.fromkeys(id for cell in ranked for id in _unknown(table, cell, better)))
        groups.append(Group(key, tuple(entries), counts, named, frozenset(unseen[key]), unknown))
    return groups, withdrawn


def _better(
    store: Store, task: Task, table: Table, runs: Iterable[Run], part: Part | None, split: Split
) -> Callable[[Run], float]:
    """What is greatest for the run that counts in a cell; of equal ones the first of a list counts."""
    if table.pick == "latest":
        return lambda _: 0.0
    if table.pick == "chosen":
        return lambda run: _chosen(store, task, run, part)
    all_ = {run.id: run for run in runs}
    sign = 1.0 if task.measures[table.rank_by.first].direction == "higher" else -1.0
    public = replace(split, parts=dict.fromkeys(split.parts, "public"))
    values = shown_values(store, task, (run for run in all_.values() if run.outcome.ranked), public)
    by = table.rank_by.first
    means = {run: sign * cell[by].value for run, cell in values.items() if by in cell}

    elsewhere = _on(table.best_on, all_.values())

    def decides(run: Run) -> str:
        if table.best_on is None:
            return run.id
        own = run_id(run.submission.id, table.best_on, run.scenario)
        return own if own in all_ else elsewhere.get(_software(run), own)

    return lambda run: means.get(decides(run), -math.inf)


def _on(dataset: str | None, runs: Iterable[Run]) -> dict[tuple[str | None, ...], str]:
    """The latest valid run on a dataset of each software with each image and in each scenario.

    A submission for another dataset alone, as where one requires the other or is open later, is known by it.
    """
    there = [run for run in runs if run.dataset == dataset and run.submission.image and run.outcome.ranked]
    return {_software(run): run.id for run in sorted(there, key=lambda run: age(run.submission))}


def _software(run: Run) -> tuple[str | None, ...]:
    s = run.submission
    return s.team, s.software, s.image, run.scenario


def _named(table: Table, cell: Iterable[Run | None], better: Callable[[Run], float]) -> str | None:
    """The submission that was named last among the runs of a cell, or that is best on another dataset; None where none is, or
    neither decides."""
    floor = 0.0 if table.pick == "chosen" else -math.inf
    decides = table.pick == "chosen" or table.best_on is not None
    named = [run for run in cell if run is not None and better(run) > floor] if decides else []
    return max(named, key=better).submission.id if named else None


def _unknown(table: Table, cell: Iterable[Run], better: Callable[[Run], float]) -> list[str]:
    """The submissions among the valid runs of a cell of which nobody knows whether they are the best, while another counts so."""
    lacks = [run.submission.id for run in cell if better(run) == -math.inf] if table.pick == "best" else []
    return lacks if any(better(run) > -math.inf for run in cell) else []


def _chosen(store: Store, task: Task, run: Run, part: Part | None) -> int:
    """The number of the last event by which its team named the submission of ``run`` in time for the dataset, and in a round
    for that; 0 without one."""
    s = run.submission
    return max(
        (
            number
            for number, at in s.chosen
            if in_time(task, run.dataset, s.team, datetime.fromisoformat(at), store)
            and (part is None or part.admits(s.team, run.dataset, at))
        ),
        default=0,
    )


def asked_limits(groups: Sequence[Group]) -> list[str]:
    """A note that says whose runs had other limits, because their submissions asked for them in the task's frame."""
    found = {
        f"{s.team}/{s.software}: {amounts(s.limits)}": None
        for s in (run.submission for group in groups for run in group.runs)
        if s.limits
    }
    return [f"Limits that were asked for: {listed(list(found), MOST_NAMES)}."] if found else []


def not_chosen(table: Table, measure: str, groups: Sequence[Group]) -> list[str]:
    """Notes where something else counts than what was named or is best on another dataset, because that has no valid run there;
    and where a submission could not be the best because it has no value on ``measure`` yet."""
    names = [
        named
        for group in groups
        for named, run in zip(group.named, group.chosen, strict=True)
        if named is not None and (run is None or run.submission.id != named)
    ]
    notes, unknown = [], list(dict.fromkeys(id for group in groups for id in group.unknown))
    if names:
        of = listed(list(dict.fromkeys(map(str, names))), MOST_NAMES)
        what, then = (
            (f"Best on {table.best_on} ({of}), but without a", "the next best counts there.")
            if table.best_on
            else (
                f"What a team named ({of}) has no",
                "what was named before it counts there, else the latest valid one.",
            )
        )
        notes.append(f"{what} valid run in some cell; {then}")
    if unknown:
        on = f" on {table.best_on}" if table.best_on else ""
        notes.append(
            f"Without a value of {measure}{on}, and so not counted as the best of a row: {listed(unknown, MOST_NAMES)}."
        )
    return notes


def _key(table: Table, s: Submission) -> tuple[str, str]:
    """Whose row a submission competes for: its software's, or its team's. Baselines are softwares always."""
    alone = table.unit != "team" or s.team == BASELINES or f"{s.team}/{s.software}" == table.baseline
    return s.team, s.software if alone else ""


def choose(groups: list[Group], *, partial: bool = False) -> tuple[list[Group], list[Listed], dict[str, int]]:
    """Which groups rank, what is listed below, and how many of the rest there are.

    ``partial``: a group ranks without a run in some cell, too, once nothing of it waits there.
    """
    counts = {"ranked": 0, "unranked": 0, "superseded": 0, "withdrawn": 0, "pending": 0, "cancelled": 0}
    ranked, below = [], []
    for group in groups:
        ranks = group.complete or (partial and group.settled)
        used = {run.submission.id for run in group.runs} if ranks else set()
        listed: list[Listed] = []
        shown, waits = 0, False
        for entry in group.entries:
            newer = group.newer(entry)
            state = _state(newer)
            if state in ("failed", "invalid", "held"):
                listed.append(Listed(group, entry, state, tuple(newer)))
            elif state is not None:
                counts["cancelled" if state == "cancelled" else "pending"] += 1
                waits = waits or state != "cancelled"
                shown += entry.submission.id not in used
        if listed:
            below.append(listed[-1])
        elif not ranks and not waits:
            lone = Listed(group, group.entries[-1], "incomplete")
            if _state(group.newer(lone.entry)) != "cancelled":
                below.append(lone)
                listed.append(lone)
        if ranks:
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


def _cells(cells: Sequence[Cell]) -> str:
    """Cells for people, a long list cut."""
    return listed([cell_name(cell) for cell in cells], MOST_NAMES)


def unjudged_row(store: Store, table: Table, group: Group, split: Split = WHOLE) -> Listed:
    """A group whose scored runs have no value on a ranking measure: not judged yet, or from before."""
    newest = max(group.entries, key=lambda e: e.age)
    counting = [(n, run, m) for n, run in enumerate(group.chosen) if run for m in table.rank_by.measures]
    for n, run, measure in counting:
        if measure in run.changed:
            why = next((line for line in run.stale if line.startswith(f"{measure} ")), "")
            return Listed(group, newest, "scored", ((n, run),), why)
    for n, run, measure in counting:
        if (reason := results.pending_measures(store, run).get(measure)) is not None:
            return Listed(group, newest, "unjudged", ((n, run),), reason, measure)
        if run.dataset in split.partial:
            return Listed(group, newest, "unjudged", ((n, run),), "no topic of this part has one", measure)
    return Listed(group, newest, "scored")


def unranked(table: Table, listed: Listed, words: bool) -> Unranked:
    """A submission as it is listed below the table; ``words``: the reason may hold what a participant wrote."""
    group, s, state = listed.group, listed.entry.submission, listed.state
    missing = tuple(c for c, run in zip(table.cells, group.chosen, strict=True) if run is None)
    several = len(table.cells) > 1
    if state == "scored":
        state, blame = "held", "platform"
        reason = f"{listed.reason or 'It was evaluated before the ranking measure was added.'} runner reevaluate scores it."
    elif state == "unjudged":
        n, _ = listed.runs[0]
        blame, reason = "none", f"No value on {listed.measure}: {listed.reason.rstrip('.')}."
        if several:
            reason = f"{cell_name(table.cells[n])}: {reason}"
    elif state == "incomplete":
        blame = "none"
        reason = f"Nothing scored on {_cells(missing)}; ranked in the tables of its other cells."
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
            ranks = table.rank_by.figure and group.settled
            reason += f" Nothing scored on {_cells(missing)}{': it ranks behind all others there' if ranks else ''}."
    return Unranked(
        **{name: getattr(s, name) for name in ("team", "software", "method", "how", "registered")},
        tag=escape(s.tag, 40),
        outcome=state,
        reason=escape(reason, 500),
        blame=blame,
        submission=s.id,
        runs=tuple(r.id for r in listed.entry.runs if r is not None),
        missing=missing,
    )
