"""The files of a first task of judging debates, on synthetic debates and labels."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from runner.kinds.skeletons import jsonl, pages, task_yaml

_SAYS = "Say of every answer of a debate whether it keeps the four maxims. A new task on synthetic data."
_MIDDLE = """\
output: evaluations.jsonl
options: {form: judgments}

measures:
  - {id: score, measure: score, truths: labels.jsonl}
  - {id: balanced_accuracy, measure: balanced-accuracy, truths: labels.jsonl}
  - {id: kappa, measure: kappa, truths: labels.jsonl}
"""
_DATA = """\
Put your debates into `datasets/<dataset>/inputs/debates.jsonl` and people's labels into `datasets/<dataset>/truths/labels.jsonl`: a
   line for each debate, in the same order."""

_SUBJECTS = ("tram", "library", "garden", "market", "museum", "harbour")
_CRITERIA = ("quantity", "quality", "relation", "manner")
_AWAY = "Well, it depends; perhaps, maybe, and quite possibly nobody could honestly say anything about this at all"


def files(task_id: str) -> Mapping[str, str]:
    """The files of a toy task of judging; the same for the same name, on every machine."""
    draw = random.Random(f"skeleton of {task_id}")  # noqa: S311
    made = {
        "task.yaml": task_yaml(
            task_id,
            "meta",
            says=_SAYS,
            middle=_MIDDLE,
            rank_by="score",
            dataset="    topics: debates.jsonl\n",
        ),
        **pages(
            task_id,
            things="debates and labels",
            data=_DATA,
            baseline="rad-judge-heuristic-batch",
            more=" (with `rad-judge-heuristic` and `rad-judge-1`, of which it takes files)",
        ),
    }
    for dataset, offset in (("dev", 0), ("test", 1)):
        debates, labels = [], []
        for subject in _SUBJECTS[offset::2]:
            good = [True, False, draw.random() < 0.5]
            debates.append(_debate(subject, good))
            labels.append([dict.fromkeys(_CRITERIA, int(one)) for one in good])
        folder = f"datasets/{dataset}"
        made[f"{folder}/inputs/debates.jsonl"] = jsonl(debates)
        made[f"{folder}/truths/labels.jsonl"] = jsonl(labels)
    return made


def _debate(subject: str, good: Sequence[bool]) -> dict[str, Any]:
    """A debate in which an answer either uses its one argument, or evades."""
    turns = []
    for number, one in enumerate(good, 1):
        text = f"A city with a {subject} number {number} saves its people time and money every day."
        answer = text if one else f"{_AWAY} ({number})."
        response = {"content": answer, "arguments": [{"id": f"{subject}-{number}", "text": text}]}
        says = f"I think that a city needs no {subject}, for reason {number}."
        turns.append({"utterance": says, "systemResponse": {"utterance": answer, "response": response}})
    return {"simulation": {"userTurns": turns}}
