"""Reports whose order is known, about two requests of our own: nobody can make the best report on a task's requests.

The offline judge judges them, whoever judges in the task. What a task says of lengths, tracks and names of files is left out, since
it is about its own data; its measures, its severities and how judgments become scores are the task's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.argue.scoring.measures import ARGUE, COPIED, NEGATION, STRICT, parse_measure
from evaluator.kinds.base import Broken, Fixture, Order, Proof
from evaluator.kinds.options import checked_options
from evaluator.request import Request

# Of what a task says, what is about scoring.
KEPT = (
    "credit",
    "penalize_missing_topics",
    "always_check_all_nuggets",
    "strict",
    "negative_assertions",
    "interval",
)
# Counts that are higher for a better report.
COUNTED = ("correctly_cited_sentences", "correct_nuggets", "correct_nuggets_weighted", "supporting_citations",
           "correct_nuggets_strict", "correct_nuggets_strict_weighted")  # fmt: skip
ORDERED = frozenset((*ARGUE.ratios, *STRICT.ratios, *NEGATION.ratios, *COUNTED)) - {COPIED}


class _Fact(NamedTuple):
    """A question, its answer, the document that says it, and a sentence of a report that does so, too."""

    question: str
    answer: str
    text: str
    says: str


FACTS: Mapping[str, Sequence[_Fact]] = {
    "bridge": (
        _Fact("When was the bridge opened?", "1901",
              "The granite bridge over the river was opened in 1901.", "The granite bridge was opened in 1901."),
        _Fact("How many arches has the bridge?", "twelve arches",
              "The granite bridge has twelve arches.", "The bridge of granite has twelve arches."),
    ),
    "tower": (
        _Fact("How high is the tower?", "ninety metres",
              "The brick tower of the harbour is ninety metres high.", "The brick tower is ninety metres high."),
        _Fact("Who built the tower?", "the guild of masons",
              "The brick tower was built by the guild of masons.", "The tower was built by the guild of masons."),
    ),
}  # fmt: skip
# What no document says, and a document that has nothing to do with any request.
_WRONG = "Penguins swim in the cold sea around the island."
_ELSEWHERE = {
    "id": "lighthouse",
    "title": "The lighthouse",
    "text": "A lighthouse stands on the northern cape.",
}
Sentences = Sequence[tuple[str, str]]  # each with the document that it cites


def proof(inputs: Path, truths: Path, request: Request) -> Proof:
    """Reports about the fixture, and broken ones; see :class:`Proof`. ``inputs`` and ``truths`` are not looked at."""
    told = checked_options("report", request.options)
    options = {key: told[key] for key in KEPT if key in told}
    options |= {"requests": "requests.jsonl", "collection": "documents.jsonl", "nuggets": "nuggets.jsonl"}
    measures = [m for m in request.measures if parse_measure(m.measure).name in ORDERED]
    asked = request._replace(
        options={**options, "judge": {"type": "lexical"}}, measures=tuple(measures), absent=(), public=True
    )
    good = _run(lambda name: [(f.says, f"{name}-{n}") for n, f in enumerate(FACTS[name], 1)])
    worse = _run(lambda name: [(FACTS[name][0].says, f"{name}-1"), (_WRONG, "lighthouse")])
    outputs = {"good": good, "worse": worse, "empty": _run(lambda _: [])}
    orders = [Order([m.id for m in measures], outputs, {})] if measures else []
    return Proof(orders, _all_broken(request), Fixture(_files(), asked))


def _files() -> dict[str, bytes]:
    return {
        "inputs/requests.jsonl": b"".join(
            _line({"request_id": name, "title": name, "problem_statement": " ".join(f.question for f in facts)})
            for name, facts in FACTS.items()
        ),
        "inputs/documents.jsonl": b"".join(
            _line({"id": f"{name}-{n}", "title": name, "text": fact.text})
            for name, facts in FACTS.items()
            for n, fact in enumerate(facts, 1)
        ) + _line(_ELSEWHERE),
        "truths/nuggets.jsonl": b"".join(_line(_bank(name, facts)) for name, facts in FACTS.items()),
    }  # fmt: skip


def _bank(name: str, facts: Sequence[_Fact]) -> dict[str, Any]:
    bank = {
        fact.question: {
            "question": fact.question,
            "aggregator_type": "OR",
            "importance": "vital",
            "answers": {fact.answer: {"answer": fact.answer, "references": [{"doc_id": f"{name}-{n}"}]}},
        }
        for n, fact in enumerate(facts, 1)
    }
    return {"query_id": name, "format_version": "v3", "nugget_bank": bank}


def _report(name: str, sentences: Sentences) -> dict[str, Any]:
    return {
        "metadata": {"team_id": "proof", "run_id": "proof", "topic_id": name},
        "responses": [{"text": text, "citations": [doc]} for text, doc in sentences],
        "references": list(dict.fromkeys(doc for _, doc in sentences)),
    }


def _run(sentences: Callable[[str], Sentences]) -> bytes:
    return b"".join(_line(_report(name, sentences(name))) for name in FACTS)


def _line(data: Any) -> bytes:
    return json.dumps(data).encode() + b"\n"


def _all_broken(request: Request) -> list[Broken]:
    first, second = FACTS
    rest = _line(_report(second, [(FACTS[second][0].says, f"{second}-1")]))
    report = _report(first, [(FACTS[first][0].says, f"{first}-1")])

    def sentence(**changes: Any) -> bytes:
        return _line({**report, "responses": [{**report["responses"][0], **changes}]}) + rest

    made = {
        "F301": b"{\n" + rest,
        "F302": b"[]\n" + rest,
        "F303": _line({**report, "metadata": {}}) + rest,
        "F305": _line({"metadata": report["metadata"]}) + rest,
        "F306": sentence(text=None),
        "F307": sentence(citations=1),
        "F308": sentence(citations=[7]),
        "F310": _line(report) * 2 + rest,
        "F311": _line({**report, "metadata": {**report["metadata"], "topic_id": "nobody"}}) + rest,
        "F312": rest,
        "F313": sentence(citations=["nobody"]),
    }
    return [Broken(code, data) for code, data in made.items() if request.severities.get(code) != "ignore"]
