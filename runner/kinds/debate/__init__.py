"""Debates: retrieval-augmented debating, sub-task 1."""

from __future__ import annotations

from runner.kinds.debate.importer import import_release
from runner.kinds.debate.presenter import read
from runner.kinds.debate.skeleton import files
from runner.model.kinds import KindSpec
from runner.model.task import Task


def judge_doubt(task: Task) -> str:
    """Why an echo of the claim could win; empty where the model is asked about answers without worth, or none judges."""
    judge = task.options.get("judge")
    if not isinstance(judge, dict) or judge.get("canaries") != 0:
        return ""
    return "it is not asked about answers without worth (options.judge.canaries is 0), so an echo of the claim can win"


SPEC = KindSpec(
    presenter=read,
    importer=import_release,
    skeleton=files,
    annotation="runs",
    judge_doubt=judge_doubt,
    model_judges=lambda measure: measure.endswith("@llm"),
)
