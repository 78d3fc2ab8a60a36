"""How far a board can be trusted: not ranked by a judge for whom an answer without worth would come first, and not final
before softwares gave the same again, where the task asks for that.

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


def not_final(task: Task, rows: Sequence[tuple[Row, Group]]) -> list[str]:
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
