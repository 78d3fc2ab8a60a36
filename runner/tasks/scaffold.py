"""``runner task new``: a small task that works at once, to be changed into a real one."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.tasks import compose
from runner.tasks.check import NAME
from runner.tasks.files import check_task
from runner.tasks.load import load_task_file

_THEMES = {
    "tides": "moon tide coast ebb harbour level gauge",
    "bread": "flour yeast dough oven crust loaf knead",
    "bees": "hive queen pollen swarm honey comb drone",
    "glass": "sand furnace melt blow lens kiln pane",
    "trams": "rail line stop wire depot fare track",
    "maps": "scale contour legend north survey grid sheet",
    "clocks": "spring gear dial hour pendulum wheel chime",
    "paper": "pulp fibre mill press sheet rag watermark",
}

_TASK = """\
# What every key means: docs/reference/task.md. Check this file with: runner task check {id}
schema_version: 1
id: {id}
title: {id} (change this title)
description: A new task on synthetic data.
kind: adhoc
# Truths of blinded datasets may lie in this tree only while this is true. For a real task remove the line, move
# datasets/test/truths to $RUNNER_TRUTHS/{id}/test, and remove the truths key of "test".
demo: true

datasets:
  - id: dev
    visibility: public
    description: For development; teams see everything.
    inputs: datasets/dev/inputs
    truths: datasets/dev/truths
    topics: queries.jsonl
    corpus: documents.jsonl.gz
  - id: test
    visibility: blinded
    description: For the ranking; teams see verdicts and mean scores.
    inputs: datasets/test/inputs
    truths: datasets/test/truths
    topics: queries.jsonl
    corpus: documents.jsonl.gz
    scores: public

measures:
  - {{id: ndcg_10, measure: nDCG@10, truths: qrels.txt}}
  - {{id: ap, measure: AP, truths: qrels.txt}}

tables:
  - id: main
    cells: [{{dataset: test}}]
    rank_by: ndcg_10
  - id: dev
    cells: [{{dataset: dev}}]
    rank_by: ndcg_10

limits: {{memory: 512MiB, cpus: 1, wall_clock: 2min}}
quota: {{submissions: 20}}
"""

_README = """\
# {id}

The data of this folder are **synthetic**: documents, topics and judgments were made by a program from a few
word lists, only so that the task works at once. Scores on them mean nothing. Replace them by your own.

1. `runner task check {id}` checks the definition and the files.
2. Put your inputs into `datasets/<dataset>/inputs` and your judgments into `datasets/<dataset>/truths`.
3. Edit `task.yaml`; every key is explained in `docs/reference/task.md`.
4. `python -m runner.tasks.compose {id}` writes `compose.yaml` anew after you changed limits or datasets.
5. Before teams take part, remove `demo: true` and move hidden truths out of this tree (`task.yaml` says how).
6. State here where your data come from and under which licence.
"""


def new_task(config: Config, task_id: str, kind: str = "adhoc") -> Path:
    """Write a working skeleton to ``tasks/<task_id>`` and return that folder.

    The folder appears as a whole or not at all. Raises E208 for what is not a name, and E101 for a kind without
    a skeleton or when the folder exists already.
    """
    if not NAME.fullmatch(task_id):
        raise RunnerError(
            "E208",
            f'"{schemas.show(task_id)}" is not a name for a task',
            fix="use lower-case letters, digits and hyphens, at most 40",
        )
    if kind not in SKELETONS:
        known = ", ".join(SKELETONS)
        raise RunnerError(
            "E101",
            f'there is no skeleton for the kind "{schemas.show(kind)}"',
            why=f"There is one for: {known}.",
            fix="choose one of these, or copy the folder of a task of that kind",
        )
    target = config.tasks / task_id
    if os.path.lexists(target):
        raise RunnerError(
            "E101", f"tasks/{task_id} exists already", fix="choose another name, or remove that folder first"
        )
    config.tasks.mkdir(parents=True, exist_ok=True)  # a new project's first task
    with tempfile.TemporaryDirectory(dir=config.tasks, prefix=".new-") as staging:
        folder = Path(staging) / task_id
        for name, text in SKELETONS[kind](task_id).items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            data = text.encode()
            file.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
        task = load_task_file(config, folder)
        check_task(task, config)
        compose.write(task)
        try:
            folder.rename(target)
        except OSError:  # somebody else was faster
            shutil.rmtree(folder)
            raise RunnerError("E101", f"tasks/{task_id} exists already", fix="choose another name") from None
    return target


def _adhoc(task_id: str) -> Mapping[str, str]:
    """The files of a toy retrieval task; the same for the same name, on every machine."""
    draw = random.Random(f"skeleton of {task_id}")  # noqa: S311
    documents, themes = [], {}
    for number in range(1, 49):
        theme = sorted(_THEMES)[number % len(_THEMES)]
        words = draw.choices(_THEMES[theme].split(), k=12) + draw.choices(
            " ".join(_THEMES.values()).split(), k=12
        )
        draw.shuffle(words)
        name = f"d{number:03d}"
        documents.append({"docno": name, "text": " ".join(words), "original_document": {"synthetic": True}})
        themes[name] = theme
    files = {"task.yaml": _TASK.format(id=task_id), "README.md": _README.format(id=task_id)}
    for dataset, offset in (("dev", 0), ("test", 1)):
        queries, qrels = [], []
        for number, theme in enumerate(sorted(_THEMES)[offset::2], 1):
            topic = f"{number * 2 - 1 + offset}"
            text = " ".join(draw.sample(_THEMES[theme].split(), 3))
            queries.append({"qid": topic, "query": text, "original_query": {"synthetic": True}})
            qrels += [
                f"{topic} 0 {doc} {int(of == theme)}\n"
                for doc, of in themes.items()
                if of == theme or draw.random() < 0.1
            ]
        folder = f"datasets/{dataset}"
        files[f"{folder}/inputs/documents.jsonl.gz"] = _jsonl(documents)
        files[f"{folder}/inputs/queries.jsonl"] = _jsonl(queries)
        files[f"{folder}/inputs/metadata.json"] = (
            json.dumps({"ir_datasets_id": f"{task_id}-{dataset}", "synthetic": True}) + "\n"
        )
        files[f"{folder}/truths/qrels.txt"] = "".join(qrels)
    return files


def _jsonl(rows: Sequence[Mapping[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


SKELETONS: Mapping[str, Callable[[str], Mapping[str, str]]] = {"adhoc": _adhoc}
