"""The files of a first task of cited reports, on synthetic documents and nuggets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.kinds.skeletons import jsonl, pages, task_yaml

_SAYS = "Write a report whose sentences cite the documents that support them. A new task on synthetic data."
_DATASET = """\
    topics: requests.jsonl
    corpus: documents.jsonl.gz
"""
_MIDDLE = """\
output: reports.jsonl
# The offline judge needs no key; for a model instead: docs/how-to/judge-reports.md
options:
  judge: {type: lexical}
  collection: documents.jsonl.gz
  requests: requests.jsonl
  nuggets: nuggets

measures:
  - {id: f1, measure: f1@macro, truths: nuggets}
  - {id: nugget_coverage, measure: nugget_coverage@macro, truths: nuggets}
  - {id: sentence_support, measure: sentence_support@macro, truths: nuggets}
"""
_DATA = """\
Put requests and documents into `datasets/<dataset>/inputs`, and a file of nuggets for each request into
   `datasets/<dataset>/truths/nuggets`."""

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
    made = {
        "task.yaml": task_yaml(task_id, "report", says=_SAYS, dataset=_DATASET, middle=_MIDDLE, rank_by="f1"),
        **pages(task_id, things="documents, requests and nuggets", data=_DATA, baseline="report-extractive"),
    }
    documents = [
        {"id": f"{subject}-{n}", "title": f"The {subject}", "text": text}
        for subject, facts in _FACTS.items()
        for n, (_, _, text) in enumerate(facts, 1)
    ]
    for dataset, subjects in (("dev", ("bridge", "ferry")), ("test", ("tower", "tunnel"))):
        folder = f"datasets/{dataset}"
        made[f"{folder}/inputs/documents.jsonl.gz"] = jsonl(documents)
        made[f"{folder}/inputs/requests.jsonl"] = jsonl([_request(task_id, subject) for subject in subjects])
        for subject in subjects:
            made[f"{folder}/truths/nuggets/nuggets_{subject}.v3.json"] = jsonl([_nuggets(subject)])
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
