"""The files of a first task of diverse retrieval, on synthetic arguments."""

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
description: Rank arguments by relevance, from authors as different as they are. A new task on synthetic data.
kind: diversity
workflow: batch
uploads: true
# Inputs and truths of blinded datasets may lie in this tree only while this is true. For a real task remove the line,
# set RUNNER_PRIVATE to a folder outside the project, and call: runner task hide {id}
demo: true
shared: [corpus.jsonl]

datasets:
  - id: dev
    visibility: public
    description: For development; teams see everything.
  - id: test
    visibility: blinded
    description: For the ranking; teams see verdicts and mean scores.
    scores: public

# The authors' profiles are not shown (fields); who shall show them adds a scenario.
scenarios:
  - id: baseline
    view:
      - {{files: corpus.jsonl, fields: [argument_id, argument, topic, stance]}}
      - {{files: "baseline-queries/*.jsonl"}}

output: predictions.jsonl
options:
  split: {{dev: dev, test: test}}
  scenarios:
    baseline: {{queries: baseline, twins: false}}
score_precision: double

measures:
  - {{id: ndcg, measure: "nDCG@4,8", truths: corpus.jsonl}}
  - {{id: alpha_ndcg, measure: "alpha-nDCG@4,8", truths: corpus.jsonl}}
  - {{id: rkl, measure: "rKL@4,8", truths: corpus.jsonl, direction: lower}}

# Software that proves the task: write `baseline: team/software` into a table (README.md).
tables:
  - id: main
    cells: [{{dataset: test, scenario: baseline}}]
    rank_by: ndcg
  - id: dev
    cells: [{{dataset: dev, scenario: baseline}}]
    rank_by: ndcg

limits: {{memory: 512MiB, cpus: 1, wall_clock: 2min}}
quota: {{submissions: 20}}
# Before it opens, too: licence, terms, contact, opens, closes, and other rules: docs/how-to/rules.md
"""

_README = """\
# {id}

The data of this folder are **synthetic**: arguments, authors and queries were made by a program, only so that the task works at once.
Scores on them mean nothing. Replace them by your own.

1. `runner task check {id}` checks the definition and the files.
2. Put your data, in the layout of Perspective Argument Retrieval 2024, into `datasets/<dataset>/inputs` (without
   relevance) and `datasets/<dataset>/truths`.
3. A baseline: copy `submissions/baselines/perspective-bm25` of Proctor's own repository, change its `task` to
   `{id}` and its scenarios to `[baseline]`, and name it in the tables of `task.yaml`: `baseline: baselines/perspective-bm25`. Then `runner task check {id} --run` proves the task.
4. Before teams take part, remove `demo: true`, and move what is hidden out of this tree: `runner task hide {id}`.
5. `runner task check {id} --ready` lists what is left before it opens: licence, terms, contact, dates and more, each with what to do.
"""

_SUBJECTS = ("trams", "libraries", "gardens", "markets")
_PROFILES: Mapping[str, Sequence[str]] = {
    "gender": ("Männlich", "Weiblich"),
    "age": ("18-34", "35-49", "50-64", "65+"),
    "residence": ("Stadt", "Land"),
    "civil_status": ("Ledig", "Verheiratet/in eingetragener Partnerschaft"),
    "denomination": ("Nicht bekannt", "Konfessionslos"),
    "education": ("Universität", "Berufslehre"),
    "political_spectrum": ("Links und Liberal", "Rechts und Liberal"),
}
_ISSUES = ("Offene Aussenpolitik", "Ausgebauter Umweltschutz", "Liberale Gesellschaft")


def files(task_id: str) -> Mapping[str, str]:
    """The files of a toy task of arguments; the same for the same name, on every machine."""
    draw = random.Random(f"skeleton of {task_id}")  # noqa: S311
    corpus = [_argument(2019000 + n, _SUBJECTS[n % len(_SUBJECTS)], draw) for n in range(48)]
    made = {"task.yaml": _TASK.format(id=task_id), "README.md": _README.format(id=task_id)}
    for dataset, offset in (("dev", 0), ("test", 1)):
        folder, queries = f"datasets/{dataset}", []
        for number, subject in enumerate(_SUBJECTS[offset::2]):
            relevant = [one["argument_id"] for one in corpus if subject in one["argument"]]
            text = f"Should the city pay for more {subject}?"
            queries.append({"query_id": number, "text": text, "relevant_candidates": relevant})
        shown = [{key: query[key] for key in ("query_id", "text")} for query in queries]
        for side, rows in (("inputs", shown), ("truths", queries)):
            made[f"{folder}/{side}/corpus.jsonl"] = _jsonl(corpus)
            made[f"{folder}/{side}/baseline-queries/queries_{dataset}.jsonl"] = _jsonl(rows)
    return made


def _argument(number: int, subject: str, draw: random.Random) -> dict[str, Any]:
    profile = {name: draw.choice(values) for name, values in _PROFILES.items()}
    issues = [issue for issue in _ISSUES if draw.random() < 0.5]
    return {
        "argument_id": number,
        "argument": f"More {subject} are worth their price, says reason {number}.",
        "topic": "City",
        "stance": draw.choice(("FAVOR", "AGAINST")),
        "demographic_profile": {**profile, "important_political_issues": issues},
    }


def _jsonl(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
