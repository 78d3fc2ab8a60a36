"""What the first tasks of all kinds have in common: the frame of their task.yaml and of their README, and how rows are written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

_TASK = """\
# What every key means: docs/reference/task.md. Check this file with: runner task check {id}
schema_version: 1
id: "{id}"
title: "{id}"
description: {says}
kind: {kind}
{workflow}# Inputs and truths of blinded datasets may lie in this tree only while this is true. For a real task remove the line,
# set RUNNER_PRIVATE to a folder outside the project, and call: runner task hide {id}
demo: true
{before}
datasets:
  - id: dev
    visibility: public
    description: {dev}
{of_dev}  - id: test
    visibility: blinded
    description: For the ranking; teams see verdicts and mean scores.
{of_test}    scores: public

{middle}
# Software that proves the task: write `baseline: team/software` into a table (TODO.md).
tables:
  - id: main
    cells: [{{dataset: test{scenario}}}]
    rank_by: {rank_by}
  - id: dev
    cells: [{{dataset: dev{scenario}}}]
    rank_by: {rank_by}

limits: {{memory: {memory}, cpus: 1, wall_clock: {time}}}
quota: {{submissions: 20}}
# Before it opens, too: licence, terms, contact, opens, closes, and other rules: docs/how-to/rules.md
"""

# The web shows README.md to everybody; comments in it stay hidden.
_README = """\
# {id}

<!-- Describe the task here: its page on the web shows this file. TODO.md lists the steps before the task opens. -->

The data of this task are synthetic: a program made the {things}. Scores on them mean nothing.
"""
_TODO = """\
# Before {id} opens

The data of this folder are **synthetic**: a program made the {things}, only so that the task works at once. Replace them by your own.

1. `runner task check {id}` checks the definition and the files.
2. {data}
3. A baseline: copy `submissions/baselines/{baseline}` of Proctor's own repository{more}, change its `task` to
   `{id}`{scenarios}, and name it in the tables of `task.yaml`: `baseline: baselines/{baseline}`. Then `runner task check {id} --run` proves the task.
4. Before teams take part, remove `demo: true`, and move what is hidden out of this tree: `runner task hide {id}`.
5. `runner task check {id} --ready` lists what is left before it opens: licence, terms, contact, dates and more, each with what to do.
6. Give the task its title in `task.yaml` and describe it in `README.md`. The web shows the task once `announced` in `task.yaml` is a date that
   has come, or removed.
"""


def task_yaml(
    task_id: str,
    kind: str,
    *,
    says: str,
    middle: str,
    rank_by: str,
    dataset: str = "",
    before: str = "",
    workflow: str = "workflow: batch\nuploads: true\n",
    dev: str = "For development; teams see everything.",
    scenario: str = "",
    memory: str = "512MiB",
    time: str = "2min",
) -> str:
    """The definition of a first task with a public dataset ``dev`` and a blinded one ``test``; texts are whole lines of YAML.

    Args:
        task_id: Its name.
        kind: The kind's name.
        says: Its description.
        middle: What stands between datasets and tables: output, options, measures.
        rank_by: The measure that tables rank by.
        dataset: Lines of each dataset, such as its topics; ``{id}`` is its name.
        before: Lines before the datasets.
        workflow: Lines behind the kind.
        dev: The description of the public dataset.
        scenario: What the cells of tables say beside their dataset.
        memory: The limit of memory.
        time: The limit of wall clock.
    """
    return _TASK.format(
        id=task_id, kind=kind, says=says, middle=middle, rank_by=rank_by, before=before, workflow=workflow,
        dev=dev, scenario=scenario, memory=memory, time=time,
        of_dev=dataset.format(id="dev"), of_test=dataset.format(id="test"),
    )  # fmt: skip


def pages(
    task_id: str, *, things: str, data: str, baseline: str, more: str = "", scenarios: str = ""
) -> dict[str, str]:
    """Return the public README of a first task, and the list of what to do with it, by file name.

    Args:
        task_id: Its name.
        things: What a program made, such as ``documents and topics``.
        data: Where own data go.
        baseline: The baseline of ours that proves it when it is copied.
        more: What has to be copied with it.
        scenarios: What else has to be changed in it.
    """
    words = {"id": task_id, "things": things, "data": data, "baseline": baseline}
    todo = _TODO.format(**words, more=more, scenarios=scenarios)
    return {"README.md": _README.format(**words), "TODO.md": todo}


def jsonl(rows: Iterable[Any]) -> str:
    """Rows as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
