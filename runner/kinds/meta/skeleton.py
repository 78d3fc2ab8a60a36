"""The files of a first task of judging debates, on synthetic debates and labels."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

_TASK = """\
# What every key means: docs/reference/task.md. Check this file with: runner task check {id}
schema_version: 1
id: "{id}"
title: {id} (change this title)
description: Say of every answer of a debate whether it keeps the four maxims. A new task on synthetic data.
kind: meta
workflow: batch
uploads: true
# Inputs and truths of blinded datasets may lie in this tree only while this is true. For a real task remove the line,
# set RUNNER_PRIVATE to a folder outside the project, and call: runner task hide {id}
demo: true

datasets:
  - id: dev
    visibility: public
    description: For development; teams see everything.
    topics: debates.jsonl
  - id: test
    visibility: blinded
    description: For the ranking; teams see verdicts and mean scores.
    topics: debates.jsonl
    scores: public

output: evaluations.jsonl
options: {{form: judgments}}

measures:
  - {{id: score, measure: score, truths: labels.jsonl}}
  - {{id: balanced_accuracy, measure: balanced-accuracy, truths: labels.jsonl}}
  - {{id: kappa, measure: kappa, truths: labels.jsonl}}

# Software that proves the task: write `baseline: team/software` into a table (README.md).
tables:
  - id: main
    cells: [{{dataset: test}}]
    rank_by: score
  - id: dev
    cells: [{{dataset: dev}}]
    rank_by: score

limits: {{memory: 512MiB, cpus: 1, wall_clock: 2min}}
quota: {{submissions: 20}}
# Before it opens, too: licence, terms, contact, opens, closes, and other rules: docs/how-to/rules.md
"""

_README = """\
# {id}

The data of this folder are **synthetic**: debates and labels were made by a program, only so that the task works at once. Scores on
them mean nothing. Replace them by your own.

1. `runner task check {id}` checks the definition and the files.
2. Put your debates into `datasets/<dataset>/inputs/debates.jsonl` and people's labels into `datasets/<dataset>/truths/labels.jsonl`: a
   line for each debate, in the same order.
3. A baseline: copy `submissions/baselines/rad-judge-heuristic-batch` of Proctor's own repository (with `rad-judge-heuristic` and `rad-judge-1`, of which it takes files), change its `task` to
   `{id}`, and name it in the tables of `task.yaml`: `baseline: baselines/rad-judge-heuristic-batch`. Then `runner task check {id} --run` proves the task.
4. Before teams take part, remove `demo: true`, and move what is hidden out of this tree: `runner task hide {id}`.
5. `runner task check {id} --ready` lists what is left before it opens: licence, terms, contact, dates and more, each with what to do.
"""

_SUBJECTS = ("tram", "library", "garden", "market", "museum", "harbour")
_CRITERIA = ("quantity", "quality", "relation", "manner")
_AWAY = "Well, it depends; perhaps, maybe, and quite possibly nobody could honestly say anything about this at all"


def files(task_id: str) -> Mapping[str, str]:
    """The files of a toy task of judging; the same for the same name, on every machine."""
    draw = random.Random(f"skeleton of {task_id}")  # noqa: S311
    made = {"task.yaml": _TASK.format(id=task_id), "README.md": _README.format(id=task_id)}
    for dataset, offset in (("dev", 0), ("test", 1)):
        debates, labels = [], []
        for subject in _SUBJECTS[offset::2]:
            good = [True, False, draw.random() < 0.5]
            debates.append(_debate(subject, good))
            labels.append([dict.fromkeys(_CRITERIA, int(one)) for one in good])
        folder = f"datasets/{dataset}"
        made[f"{folder}/inputs/debates.jsonl"] = _jsonl(debates)
        made[f"{folder}/truths/labels.jsonl"] = _jsonl(labels)
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


def _jsonl(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
