"""Whether a board could be won without worth: ranked by what a model judges, while nobody knows what it gives for nothing.

A model may say yes to an echo of the question, or obey an order in an answer. Boards do not rank by a measure that
such an answer wins (:mod:`runner.views.leaderboard.trusting`), but only where evaluations say what it gets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runner.model.task import Task
from schemas.documents import show

MEASURED = "susceptibility to canaries"  # the figure of `evaluator argue canaries --reliability`
GULLIBLE = 0.5  # of the planted orders: who obeys as many can be won over


def doubts(task: Task) -> list[str]:
    """One sentence for each table that ranks by a model's word and cannot tell an answer without worth; [] where none does."""
    why = _why(task)
    if not why:
        return []
    return [
        f"table {show(table.id)} ranks by {show(table.rank_by)}, and a model judges: {why}"
        for table in task.tables.values()
        if _judged(task, table.rank_by)
    ]


def _why(task: Task) -> str:
    """What is not known, or bad, of the model that judges; empty where nothing is, or where none judges."""
    judge = task.options.get("judge")
    if not isinstance(judge, Mapping):
        return ""
    if task.kind == "debate" and judge.get("canaries") == 0:
        return "it is not asked about answers without worth (options.judge.canaries is 0), so an echo of the claim can win"
    if task.kind != "report" or judge.get("type") != "openai":
        return ""
    measured = [_measured(task, dataset.id, judge.get("reliability")) for dataset in task.datasets.values()]
    if None in measured:
        return (
            "nobody has measured whether it obeys orders in a report; try it with evaluator argue canaries … --reliability "
            "FILE, and name the file in options.judge.reliability"
        )
    most = max((share for share in measured if share is not None), default=0.0)
    return (
        f"it obeys {most:.0%} of the orders planted in reports; use another model" if most >= GULLIBLE else ""
    )


def _measured(task: Task, dataset: str, name: Any) -> float | None:
    """The share of planted orders that the judge obeys, from its file of figures in the truths; None if nobody knows."""
    if not isinstance(name, str):
        return None
    try:
        data = json.loads((task.datasets[dataset].truths / name).read_bytes())
        share = data["figures"][MEASURED]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return float(share) if type(share) in (int, float) else None


def _judged(task: Task, measure: str) -> bool:
    """Whether a model may have a say in a measure: of debates those that say so, of reports any."""
    return task.kind == "report" or task.measures[measure].measure.endswith("@llm")
