"""The files of a first task of records, on synthetic measurements: a label and a number for each."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

_TASK = """\
# What every key means: docs/reference/task.md. Check this file with: runner task check {id}
schema_version: 1
id: {id}
title: {id} (change this title)
description: Say of every animal which species it is and what it weighs. A new task on synthetic data.
kind: records
workflow: batch
uploads: true
# Truths of blinded datasets may lie in this tree only while this is true. For a real task remove the line, and move
# datasets/test/truths to $RUNNER_TRUTHS/{id}/test.
demo: true

datasets:
  - id: dev
    visibility: public
    description: For development; teams see everything.
    topics: penguins.jsonl
  - id: test
    visibility: blinded
    description: For the ranking; teams see verdicts and mean scores.
    topics: penguins.jsonl
    scores: public

output: answers.csv
options:
  outputs:
    - {{path: answers.csv, schema: answer.schema.json, example: answers.example.csv}}

measures:
  - {{id: f1, measure: "F1(species, average=macro)", truths: penguins.jsonl}}
  - {{id: accuracy, measure: Accuracy(species), truths: penguins.jsonl}}
  - {{id: mae, measure: "MAE(body_mass_g, range=[2000, 7000])", truths: penguins.jsonl, direction: lower}}

# Software that proves the task: write `baseline: team/software` into a table (README.md).
tables:
  - id: main
    cells: [{{dataset: test}}]
    rank_by: f1
  - id: dev
    cells: [{{dataset: dev}}]
    rank_by: f1

limits: {{memory: 256MiB, cpus: 1, wall_clock: 1min}}
quota: {{submissions: 20}}
# Before it opens, too: licence, terms, contact, opens, closes (docs/reference/task.md).
"""

_README = """\
# {id}

The data of this folder are **synthetic**: the animals were made by a program, only so that the task works at once. Scores on them mean
nothing. Replace them by your own.

1. `runner task check {id}` checks the definition and the files.
2. Put your records into `datasets/<dataset>/inputs/` and what is right into `datasets/<dataset>/truths/`, with the same ids. Say in
   `answer.schema.json` what an output looks like, and change `answers.example.csv`.
3. A baseline: copy `submissions/baselines/penguins-nearest`, and change its `task` to `{id}`.
4. Before teams take part, remove `demo: true` and move hidden truths out of this tree (`task.yaml` says how).
5. `runner task check {id} --ready` lists what is left before it opens: licence, terms, contact, dates and more, each with what to do.
"""

_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["id", "species", "body_mass_g"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string"},
        "species": {"enum": ["Adelie", "Chinstrap", "Gentoo"]},
        "body_mass_g": {"type": "number", "minimum": 0, "maximum": 20000},
    },
}
_EXAMPLE = "id,species,body_mass_g\ndev-1,Adelie,3700\ndev-2,Gentoo,5076.5\n"
# Bill length, bill depth and flipper length (mm), and body mass (g).
_TYPICAL = {
    "Adelie": (39, 18, 190, 3700),
    "Chinstrap": (49, 18, 196, 3700),
    "Gentoo": (47, 15, 217, 5100),
}
_MEASURED = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm")


def files(task_id: str) -> Mapping[str, str]:
    """The files of a toy task of records; the same for the same name, on every machine."""
    draw = random.Random(f"skeleton of {task_id}")  # noqa: S311
    made = {
        "task.yaml": _TASK.format(id=task_id),
        "README.md": _README.format(id=task_id),
        "answer.schema.json": json.dumps(_SCHEMA, indent=2) + "\n",
        "answers.example.csv": _EXAMPLE,
    }
    for dataset in ("dev", "test"):
        seen, right = [], []
        for number, species in enumerate([*_TYPICAL] * 4, 1):
            values = [round(v * draw.uniform(0.97, 1.03), 1) for v in _TYPICAL[species]]
            one = f"{dataset}-{number}"
            seen.append({"id": one, **dict(zip(_MEASURED, values[:3], strict=True))})
            right.append({"id": one, "species": species, "body_mass_g": round(values[3])})
        made[f"datasets/{dataset}/inputs/penguins.jsonl"] = _jsonl(seen)
        made[f"datasets/{dataset}/truths/penguins.jsonl"] = _jsonl(right)
    return made


def _jsonl(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
