"""The files of a first task of debating, with a simulated user, on synthetic claims and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from runner.kinds.skeletons import jsonl, pages, task_yaml

_SAYS = "Answer a simulated user with at most 60 words that rest on arguments of a collection. A new task on synthetic data."
_BEFORE = """
# The software is a server; a driver talks to it (docs/how-to/interactive-task.md).
interaction:
  mode: debate
  ready: 60s
  answer: {time: 30s, bytes: 256KiB}
  turns: 3
  word_limit: 60

services:
  search: {data: services/arguments}
  user: {model: base-user, data: services/arguments}
"""
_MIDDLE = """\
output: simulations.jsonl
options: {turns: 3, word_limit: 60}

# What people and models judge is added later: docs/how-to/annotate-debates.md, docs/how-to/language-models.md
measures:
  - {id: provenance, measure: provenance, truths: labels/labels.jsonl}
  - {id: answered, measure: answered, truths: labels/labels.jsonl}
  - {id: groundedness, measure: groundedness, truths: labels/labels.jsonl}
"""
_DEV = "For development; the software hears each claim when its debate begins."
_DATA = """\
Put your arguments into `services/arguments/arguments.jsonl` (`id`, `text`, and what each `attacks`), and the claims into
   `datasets/<dataset>/inputs/claims.jsonl`. People's labels come later, into `datasets/<dataset>/truths/labels`."""

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
        "task.yaml": task_yaml(
            task_id,
            "debate",
            says=_SAYS,
            workflow="workflow: interactive\n",
            before=_BEFORE,
            dev=_DEV,
            dataset="    topics: claims.jsonl\n",
            middle=_MIDDLE,
            rank_by="provenance",
            time="5min",
        ),
        **pages(task_id, things="claims and arguments", data=_DATA, baseline="rad-elastic-python"),
        "services/arguments/arguments.jsonl": jsonl([row for claim in claims for row in _arguments(claim)]),
    }
    for dataset, some in (("dev", claims[:2]), ("test", claims[2:])):
        rows = [{"id": f"{dataset}-{n}", "claim": claim} for n, claim in enumerate(some, 1)]
        made[f"datasets/{dataset}/inputs/claims.jsonl"] = jsonl(rows)
        made[f"datasets/{dataset}/truths/labels/labels.jsonl"] = ""
    return made


def _arguments(claim: str) -> list[dict[str, Any]]:
    """Each thing that is said, as an argument that attacks the one before."""
    number = list(_SAID).index(claim) + 1
    return [
        {"id": f"{number}.{n}", "topic": claim, "attacks": attacked, "text": text}
        for n, (attacked, text) in enumerate(pairwise((claim, *_SAID[claim])), 1)
    ]
