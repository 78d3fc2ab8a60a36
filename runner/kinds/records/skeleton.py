"""The files of a first task of records, on synthetic data: one of several examples (:mod:`runner.kinds.records.examples`)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from runner.kinds.records.examples import EXAMPLES, Example

_TASK = """\
# What every key means: docs/reference/task.md. Check this file with: runner task check {id}
schema_version: 1
id: "{id}"
title: {id} (change this title)
description: {says} A new task on synthetic data.
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
    topics: {file}
  - id: test
    visibility: blinded
    description: For the ranking; teams see verdicts and mean scores.
    topics: {file}
    scores: public

output: {output}
options:
  outputs:
    - {{path: {output}, schema: {stem}.schema.json, example: {stem}.example{ending}}}
  truths: {{schema: truth.schema.json}}

measures:
{measures}
# Software that proves the task: write `baseline: team/software` into a table (README.md).
tables:
  - id: main
    cells: [{{dataset: test}}]
    rank_by: {rank_by}
  - id: dev
    cells: [{{dataset: dev}}]
    rank_by: {rank_by}

limits: {{memory: 256MiB, cpus: 1, wall_clock: 1min}}
quota: {{submissions: 20}}
# Before it opens, too: licence, terms, contact, opens, closes (docs/reference/task.md).
"""

_README = """\
# {id}

The data of this folder are **synthetic**: a program made the {things}, only so that the task works at once. Scores on them mean
nothing. Replace them by your own.

1. `runner task check {id}` checks the definition and the files.
2. Put your records into `datasets/<dataset>/inputs/` and what is right into `datasets/<dataset>/truths/`, with the same ids. Say in
   `{stem}.schema.json` what an output looks like, in `truth.schema.json` what a truth does, and change `{stem}.example{ending}`.
3. A baseline: copy `submissions/baselines/{baseline}`, and change its `task` to `{id}`.
4. Before teams take part, remove `demo: true` and move hidden truths out of this tree (`task.yaml` says how).
5. `runner task check {id} --ready` lists what is left before it opens: licence, terms, contact, dates and more, each with what to do.
"""


def files(task_id: str, example: Example) -> Mapping[str, str]:
    """The files of a toy task as in ``example``; the same for the same name, on every machine."""
    stem, ending = example.output.split(".")
    words = {
        **example._asdict(),
        "id": task_id,
        "stem": stem,
        "ending": f".{ending}",
        "measures": "".join(f"  - {{{one}, truths: {example.file}}}\n" for one in example.measures),
    }
    made = {
        "task.yaml": _TASK.format(**words),
        "README.md": _README.format(**words),
        f"{stem}.schema.json": _schema(example.answer),
        "truth.schema.json": _schema(example.truth),
        f"{stem}.example.{ending}": example.lines,
    }
    for dataset in ("dev", "test"):
        draw = random.Random(f"skeleton of {task_id}: {dataset}")  # noqa: S311
        rows = [({"id": f"{dataset}-{n}"}, *row) for n, row in enumerate(example.rows(draw), 1)]
        made[f"datasets/{dataset}/inputs/{example.file}"] = _jsonl([one | seen for one, seen, _ in rows])
        made[f"datasets/{dataset}/truths/{example.file}"] = _jsonl([one | right for one, _, right in rows])
    return made


def _schema(properties: Mapping[str, Any]) -> str:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["id", *properties],
        "additionalProperties": False,
        "properties": {"id": {"type": "string"}, **properties},
    }
    return json.dumps(schema, indent=2) + "\n"


def _jsonl(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


SKELETONS: Mapping[str, Callable[[str], Mapping[str, str]]] = {
    name: partial(files, example=example) for name, example in EXAMPLES.items()
}
