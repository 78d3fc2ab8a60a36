"""How far a board can be trusted: not ranked by a judge for whom an answer without worth would come first, not final
before softwares gave the same again, where the task asks for that, and what the organiser's review said.

Evaluations say what their judge gives for an echo of the question and for an order to the judge (``canaries`` in
``result.json``). A measure on which one of them reaches the best of the board says nothing about the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runner.model.run import MeasureValue, Run
from runner.model.task import Table, Task
from runner.views.audience import escape
from runner.views.leaderboard.choosing import MOST_NAMES, Group
from runner.views.leaderboard.rows import Row, software_of
from runner.views.text import listed

Scored = Sequence[tuple[Sequence[Run], Sequence[dict[str, MeasureValue]]]]


def trusted(table: Table, task: Task, scored: Scored) -> tuple[Table, tuple[str, ...]]:
    """The table, ranked by what no answer without worth can win, and a note when that is another measure than the task's.

    Of several ranking measures those are left out that can be won; else it is the first measure of the table that cannot.
    ``scored`` are the runs of each row and their values, cell by cell. When every measure that all rows have can be won,
    the table stays as it is and the note says that nobody is ranked.
    """
    lost = {name: got for name in table.rank_by.measures if (got := _won(name, task, scored)) is not None}
    if not lost:
        return table, ()
    note = " ".join(
        f"Not ranked by {name}: an answer without worth (an echo of the question, or an order to the judge) gets "
        f"{got:.4f} from its judge, as much as the best row."
        for name, got in lost.items()
    )
    if left := tuple(name for name in table.rank_by.measures if name not in lost):
        return replace(table, rank_by=replace(table.rank_by, measures=left)), (note,)
    for measure in table.measures:
        everywhere = all(measure in cell for _, cells in scored for cell in cells)
        if measure not in lost and everywhere and _won(measure, task, scored) is None:
            instead = replace(table.rank_by, measures=(measure,))
            return replace(table, rank_by=instead), (f"{note} Ranked by {escape(measure, 80)} instead.",)
    return table, (f"{note} Nobody is ranked: no other measure of the table can be trusted more.",)


def _not_final(task: Task, rows: Sequence[tuple[Row, Group]]) -> list[str]:
    """A note that names the rows whose softwares were not executed again with the same scores; none where the task does not
    ask for it. Run files were handed in, so there is nothing to execute."""
    if task.verify_before != "final":
        return []
    names = [
        software_of(row)
        for row, group in rows
        if any(run.submission.how == "executed" and not run.verified for run in group.runs)
    ]
    why = "Their softwares have not given the same scores again yet: runner verify RUN executes one."
    return [f"Not final: {listed(names, MOST_NAMES)}. {why}"] if names else []


def marked(
    rows: Sequence[Row], judges: Sequence[str], groups: Sequence[Group], *, organiser: bool
) -> list[Row]:
    """The rows with the labels of their judges; for the organiser marked where a run that counts in them was flagged."""
    flags = [organiser and any(_state(run) == "flagged" for run in group.runs) for group in groups]
    return [
        replace(row, judge=judge, flagged=flag or None)
        for row, judge, flag in zip(rows, judges, flags, strict=True)
    ]


def not_settled(task: Task, rows: Sequence[tuple[Row, Group]], *, organiser: bool) -> list[str]:
    """Notes on rows that are not final, and on the review."""
    return [*_not_final(task, rows), *_reviewed(task, rows, organiser=organiser)]


def _reviewed(task: Task, rows: Sequence[tuple[Row, Group]], *, organiser: bool) -> list[str]:
    """Notes on the review: to the organiser which rows nobody else sees and why rows are flagged, to others that there is one."""
    required = task.review == "required"
    if not organiser:
        return ["Only rows that the organiser has approved are shown."] if required else []
    closed = [software_of(row) for row, g in rows if any(_state(run) != "approved" for run in g.runs)]
    why = "Nobody else sees them before runner review RUN --approve."
    flags = {
        f"{software_of(row)} ({escape(run.review.reason, 200)})": None
        for row, group in rows
        for run in group.runs
        if run.review is not None and run.review.state == "flagged"
    }
    found = [f"Not approved: {listed(closed, MOST_NAMES)}. {why}"] if required and closed else []
    return found + ([f"Flagged: {listed(list(flags), MOST_NAMES)}."] if flags else [])


def _state(run: Run) -> str:
    return run.review.state if run.review else ""


def _won(measure: str, task: Task, scored: Scored) -> float | None:
    """What an answer without worth gets on a measure, when that is at least the best value of a run; else None."""
    given = [
        float(value)
        for runs, _ in scored
        for run in runs
        if (value := ((run.judge or {}).get("canaries") or {}).get(measure)) is not None
    ]
    values = [cell[measure].value for _, cells in scored for cell in cells if measure in cell]
    if not given or not values:
        return None
    higher = task.measures[measure].direction == "higher"
    worthless, best = (max(given), max(values)) if higher else (min(given), min(values))
    return worthless if (worthless >= best if higher else worthless <= best) else None
