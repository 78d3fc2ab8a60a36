"""The files of a first task of debating, with a simulated user, on synthetic claims and arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

_TASK = """\
# What every key means: docs/reference/task.md. Check this file with: runner task check {id}
schema_version: 1
id: "{id}"
title: {id} (change this title)
description: Answer a simulated user with at most 60 words that rest on arguments of a collection. A new task on synthetic data.
kind: debate
workflow: interactive
# Inputs and truths of blinded datasets may lie in this tree only while this is true. For a real task remove the line,
# set RUNNER_PRIVATE to a folder outside the project, and call: runner task hide {id}
demo: true

# The software is a server; a driver talks to it (docs/how-to/interactive-task.md).
interaction:
  mode: debate
  ready: 60s
  answer: {{time: 30s, bytes: 256KiB}}
  turns: 3
  word_limit: 60

services:
  search: {{data: services/arguments}}
  user: {{model: base-user, data: services/arguments}}

datasets:
  - id: dev
    visibility: public
    description: For development; the software hears each claim when its debate begins.
    topics: claims.jsonl
  - id: test
    visibility: blinded
    description: For the ranking; teams see verdicts and mean scores.
    topics: claims.jsonl
    scores: public

output: simulations.jsonl
options: {{turns: 3, word_limit: 60}}

# What people and models judge is added later: docs/how-to/annotate-debates.md, docs/how-to/language-models.md
measures:
  - {{id: provenance, measure: provenance, truths: labels/labels.jsonl}}
  - {{id: answered, measure: answered, truths: labels/labels.jsonl}}
  - {{id: groundedness, measure: groundedness, truths: labels/labels.jsonl}}

# Software that proves the task: write `baseline: team/software` into a table (README.md).
tables:
  - id: main
    cells: [{{dataset: test}}]
    rank_by: provenance
  - id: dev
    cells: [{{dataset: dev}}]
    rank_by: provenance

limits: {{memory: 512MiB, cpus: 1, wall_clock: 5min}}
quota: {{submissions: 20}}
# Before it opens, too: licence, terms, contact, opens, closes, and other rules: docs/how-to/rules.md
"""

_README = """\
# {id}

The data of this folder are **synthetic**: claims and arguments were made by a program, only so that the task works at once. Scores on
them mean nothing. Replace them by your own.

1. `runner task check {id}` checks the definition and the files.
2. Put your arguments into `services/arguments/arguments.jsonl` (`id`, `text`, and what each `attacks`), and the claims into
   `datasets/<dataset>/inputs/claims.jsonl`. People's labels come later, into `datasets/<dataset>/truths/labels`.
3. A baseline: copy `submissions/baselines/rad-elastic-python` of Proctor's own repository, change its `task` to
   `{id}`, and name it in the tables of `task.yaml`: `baseline: baselines/rad-elastic-python`. Then `runner task check {id} --run` proves the task.
4. Before teams take part, remove `demo: true`, and move what is hidden out of this tree: `runner task hide {id}`.
5. `runner task check {id} --ready` lists what is left before it opens: licence, terms, contact, dates and more, each with what to do.
"""

# claim -> what is said against it, what is said against that, and so on
_SAID: Mapping[str, Sequence[str]] = {
    "A town needs a bridge over its river.": (
        "A bridge over the river costs a town more than a ferry does in fifty years.",
        "A ferry stops at night and in every storm, so that a town cannot count on it.",
        "Storms close the bridge of a town as often as they stop its ferry.",
        "Walls on both sides keep the wind of storms from those who cross a bridge.",
    ),
    "A school should have a garden.": (
        "The garden of a school stands empty in summer, when most of it grows.",
        "Neighbours who look after the garden in summer meet the school as friends.",
        "Neighbours want a garden for themselves, and quarrel with the school about it.",
        "Those who dig together quarrel less, and a garden has room for all.",
    ),
    "A library should open on Sundays.": (
        "A library that opens on Sundays takes the only free day from those who work there.",
        "Students gladly work in a library on Sundays, and need the wages.",
        "Students have examinations, and a library cannot rest on their Sundays.",
        "A few students each, in turns, keep a library open without harm to any examination.",
    ),
    "A market belongs into the middle of a town.": (
        "The market fills the middle of a town with lorries before sunrise.",
        "Lorries come once a day, and visitors of a market on foot come all day long.",
        "Visitors on foot buy little, so that a market without lorries and cars dies.",
        "Markets where people walk sell more than those where they park.",
    ),
}


def files(task_id: str) -> Mapping[str, str]:
    """The files of a toy task of debating; the same on every machine."""
    claims = list(_SAID)
    made = {
        "task.yaml": _TASK.format(id=task_id),
        "README.md": _README.format(id=task_id),
        "services/arguments/arguments.jsonl": _jsonl([row for claim in claims for row in _arguments(claim)]),
    }
    for dataset, some in (("dev", claims[:2]), ("test", claims[2:])):
        rows = [{"id": f"{dataset}-{n}", "claim": claim} for n, claim in enumerate(some, 1)]
        made[f"datasets/{dataset}/inputs/claims.jsonl"] = _jsonl(rows)
        made[f"datasets/{dataset}/truths/labels/labels.jsonl"] = ""
    return made


def _arguments(claim: str) -> list[dict[str, Any]]:
    """Each thing that is said, as an argument that attacks the one before."""
    number = list(_SAID).index(claim) + 1
    return [
        {"id": f"{number}.{n}", "topic": claim, "attacks": attacked, "text": text}
        for n, (attacked, text) in enumerate(pairwise((claim, *_SAID[claim])), 1)
    ]


def _jsonl(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
