"""The files of a first task of cited reports, on synthetic documents and nuggets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_TASK = """\
# What every key means: docs/reference/task.md. Check this file with: runner task check {id}
schema_version: 1
id: "{id}"
title: {id} (change this title)
description: Write a report whose sentences cite the documents that support them. A new task on synthetic data.
kind: report
workflow: batch
uploads: true
# Inputs and truths of blinded datasets may lie in this tree only while this is true. For a real task remove the line,
# set RUNNER_PRIVATE to a folder outside the project, and call: runner task hide {id}
demo: true

datasets:
  - id: dev
    visibility: public
    description: For development; teams see everything.
    topics: requests.jsonl
    corpus: documents.jsonl.gz
  - id: test
    visibility: blinded
    description: For the ranking; teams see verdicts and mean scores.
    topics: requests.jsonl
    corpus: documents.jsonl.gz
    scores: public

output: reports.jsonl
# The offline judge needs no key; for a model instead: docs/how-to/judge-reports.md
options:
  judge: {{type: lexical}}
  collection: documents.jsonl.gz
  requests: requests.jsonl
  nuggets: nuggets

measures:
  - {{id: f1, measure: f1@macro, truths: nuggets}}
  - {{id: nugget_coverage, measure: nugget_coverage@macro, truths: nuggets}}
  - {{id: sentence_support, measure: sentence_support@macro, truths: nuggets}}

# Software that proves the task: write `baseline: team/software` into a table (README.md).
tables:
  - id: main
    cells: [{{dataset: test}}]
    rank_by: f1
  - id: dev
    cells: [{{dataset: dev}}]
    rank_by: f1

limits: {{memory: 512MiB, cpus: 1, wall_clock: 2min}}
quota: {{submissions: 20}}
# Before it opens, too: licence, terms, contact, opens, closes, and other rules: docs/how-to/rules.md
"""

_README = """\
# {id}

The data of this folder are **synthetic**: documents, requests and nuggets were made by a program, only so that the task works at once.
Scores on them mean nothing. Replace them by your own.

1. `runner task check {id}` checks the definition and the files.
2. Put requests and documents into `datasets/<dataset>/inputs`, and a file of nuggets for each request into
   `datasets/<dataset>/truths/nuggets`.
3. A baseline: copy `submissions/baselines/report-extractive` of Proctor's own repository, change its `task` to
   `{id}`, and name it in the tables of `task.yaml`: `baseline: baselines/report-extractive`. Then `runner task check {id} --run` proves the task.
4. Before teams take part, remove `demo: true`, and move what is hidden out of this tree: `runner task hide {id}`.
5. `runner task check {id} --ready` lists what is left before it opens: licence, terms, contact, dates and more, each with what to do.
"""

# subject -> (what is asked, the answer, the sentence of a document that says it)
_FACTS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "bridge": (
        ("When was the bridge opened?", "1901", "The granite bridge over the river was opened in 1901."),
        ("How many arches has the bridge?", "twelve arches", "The granite bridge has twelve arches."),
    ),
    "ferry": (
        ("How long does the ferry take?", "nine minutes", "The electric ferry crosses the fjord in nine minutes."),
        ("How large is the crew of the ferry?", "four", "The electric ferry has a crew of four."),
    ),
    "tower": (
        ("How high is the tower?", "ninety metres", "The brick tower of the harbour is ninety metres high."),
        ("Who built the tower?", "the guild of masons", "The brick tower was built by the guild of masons."),
    ),
    "tunnel": (
        ("How long is the tunnel?", "six kilometres", "The railway tunnel below the pass is six kilometres long."),
        ("What did the tunnel cost?", "two million crowns", "The railway tunnel cost two million crowns."),
    ),
}  # fmt: skip


def files(task_id: str) -> Mapping[str, str]:
    """The files of a toy task of reports; the same on every machine."""
    made = {"task.yaml": _TASK.format(id=task_id), "README.md": _README.format(id=task_id)}
    documents = [
        {"id": f"{subject}-{n}", "title": f"The {subject}", "text": text}
        for subject, facts in _FACTS.items()
        for n, (_, _, text) in enumerate(facts, 1)
    ]
    for dataset, subjects in (("dev", ("bridge", "ferry")), ("test", ("tower", "tunnel"))):
        folder = f"datasets/{dataset}"
        made[f"{folder}/inputs/documents.jsonl.gz"] = _jsonl(documents)
        made[f"{folder}/inputs/requests.jsonl"] = _jsonl([_request(task_id, subject) for subject in subjects])
        for subject in subjects:
            made[f"{folder}/truths/nuggets/nuggets_{subject}.v3.json"] = _jsonl([_nuggets(subject)])
    return made


def _request(task_id: str, subject: str) -> dict[str, Any]:
    return {
        "request_id": subject,
        "collection_ids": [task_id],
        "title": f"The {subject}",
        "background": f"I write a guide for visitors of the {subject}.",
        "problem_statement": " ".join(question for question, _, _ in _FACTS[subject]),
        "limit": 500,
    }


def _nuggets(subject: str) -> dict[str, Any]:
    bank = {
        question: {
            "question": question,
            "aggregator_type": "OR",
            "importance": "vital",
            "answers": {answer: {"answer": answer, "references": [{"doc_id": f"{subject}-{n}"}]}},
        }
        for n, (question, answer, _) in enumerate(_FACTS[subject], 1)
    }
    return {"query_id": subject, "format_version": "v3", "nugget_bank": bank}


def _jsonl(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
