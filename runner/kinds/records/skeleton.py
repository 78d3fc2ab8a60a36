"""The files of a first task of records, on synthetic data: one of several examples (:mod:`runner.kinds.records.examples`)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from runner.kinds.records.examples import EXAMPLES, Example
from runner.kinds.skeletons import jsonl, pages, task_yaml

_MIDDLE = """\
output: {output}
options:
  outputs:
    - {{path: {output}, schema: {stem}.schema.json, example: {stem}.example{ending}}}
  truths: {{schema: truth.schema.json}}

measures:
{measures}"""
_DATA = """\
Put your records into `datasets/<dataset>/inputs/` and what is right into `datasets/<dataset>/truths/`, with the same ids. Say in
   `{stem}.schema.json` what an output looks like, in `truth.schema.json` what a truth does, and change `{stem}.example{ending}`."""


def files(task_id: str, example: Example) -> Mapping[str, str]:
    """The files of a toy task as in ``example``; the same for the same name, on every machine."""
    stem, ending = example.output.split(".")
    words = {
        "output": example.output,
        "stem": stem,
        "ending": f".{ending}",
        "measures": "".join(f"  - {{{one}, truths: {example.file}}}\n" for one in example.measures),
    }
    made = {
        "task.yaml": task_yaml(
            task_id,
            "records",
            says=f"{example.says} A new task on synthetic data.",
            dataset=f"    topics: {example.file}\n",
            middle=_MIDDLE.format(**words),
            rank_by=example.rank_by,
            memory="256MiB",
            time="1min",
        ),
        **pages(task_id, things=example.things, data=_DATA.format(**words), baseline=example.baseline),
        f"{stem}.schema.json": _schema(example.answer),
        "truth.schema.json": _schema(example.truth),
        f"{stem}.example.{ending}": example.lines,
    }
    for dataset in ("dev", "test"):
        draw = random.Random(f"skeleton of {task_id}: {dataset}")  # noqa: S311
        rows = [({"id": f"{dataset}-{n}"}, *row) for n, row in enumerate(example.rows(draw), 1)]
        made[f"datasets/{dataset}/inputs/{example.file}"] = jsonl([one | seen for one, seen, _ in rows])
        made[f"datasets/{dataset}/truths/{example.file}"] = jsonl([one | right for one, _, right in rows])
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


SKELETONS: Mapping[str, Callable[[str], Mapping[str, str]]] = {
    name: partial(files, example=example) for name, example in EXAMPLES.items()
}
