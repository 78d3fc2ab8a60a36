"""Whether a board could be won without worth: ranked by what a model judges, while nobody knows what it gives for nothing.

A model may say yes to an echo of the question, or obey an order in an answer. Boards do not rank by a measure that
such an answer wins (:mod:`runner.views.leaderboard.trusting`), but only where evaluations say what it gets.
"""

from __future__ import annotations

from runner.model.kinds import kind_spec
from runner.model.task import Task
from schemas.documents import show


def doubts(task: Task) -> list[str]:
    """One sentence for each table that ranks by a model's word and cannot tell an answer without worth; [] where none does."""
    spec = kind_spec(task.kind)
    why = "" if spec.judge_doubt is None else spec.judge_doubt(task)
    return [
        f"table {show(table.id)} ranks by {show(measure)}, and a model judges: {why}"
        for table in task.tables.values()
        for measure in table.rank_by.measures
        if why and spec.model_judges(task.measures[measure].measure)
    ]
