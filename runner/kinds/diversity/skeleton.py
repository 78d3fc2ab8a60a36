"""The files of a first task of diverse retrieval, on synthetic arguments."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from runner.kinds.skeletons import jsonl, pages, task_yaml

_SAYS = "Rank arguments by relevance, from authors as different as they are. A new task on synthetic data."
_MIDDLE = """\
# The authors' profiles are not shown (fields); who shall show them adds a scenario.
scenarios:
  - id: baseline
    view:
      - {files: corpus.jsonl, fields: [argument_id, argument, topic, stance]}
      - {files: "baseline-queries/*.jsonl"}

output: predictions.jsonl
options:
  split: {dev: dev, test: test}
  scenarios:
    baseline: {queries: baseline, twins: false}
score_precision: double

measures:
  - {id: ndcg, measure: "nDCG@4,8", truths: corpus.jsonl}
  - {id: alpha_ndcg, measure: "alpha-nDCG@4,8", truths: corpus.jsonl}
  - {id: rkl, measure: "rKL@4,8", truths: corpus.jsonl, direction: lower}
"""
_DATA = """\
Put your data, in the layout of Perspective Argument Retrieval 2024, into `datasets/<dataset>/inputs` (without
   relevance) and `datasets/<dataset>/truths`."""

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
    made = {
        "task.yaml": task_yaml(
            task_id,
            "diversity",
            says=_SAYS,
            before="shared: [corpus.jsonl]\n",
            middle=_MIDDLE,
            rank_by="ndcg",
            scenario=", scenario: baseline",
        ),
        **pages(
            task_id,
            things="arguments, authors and queries",
            data=_DATA,
            baseline="perspective-bm25",
            scenarios=" and its scenarios to `[baseline]`",
        ),
    }
    for dataset, offset in (("dev", 0), ("test", 1)):
        folder, queries = f"datasets/{dataset}", []
        for number, subject in enumerate(_SUBJECTS[offset::2]):
            relevant = [one["argument_id"] for one in corpus if subject in one["argument"]]
            text = f"Should the city pay for more {subject}?"
            queries.append({"query_id": number, "text": text, "relevant_candidates": relevant})
        shown = [{key: query[key] for key in ("query_id", "text")} for query in queries]
        for side, rows in (("inputs", shown), ("truths", queries)):
            made[f"{folder}/{side}/corpus.jsonl"] = jsonl(corpus)
            made[f"{folder}/{side}/baseline-queries/queries_{dataset}.jsonl"] = jsonl(rows)
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
