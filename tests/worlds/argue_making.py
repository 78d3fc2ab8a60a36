"""Making reports, nuggets and judgments for tests, in a few words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evaluator.argue import Bank, Cited, JudgedReport, Judgment, Match, Segment
from evaluator.argue.formats import judgments as j
from evaluator.argue.formats.nuggets import bank_of
from evaluator.findings import Log

DATA = Path(__file__).parents[1] / "evaluator" / "argue" / "data"


def bank(questions: dict[str, Any], topic: str = "t1") -> Bank:
    """``{question: (kind, {answer: [documents]})}``; kind is e.g. ``OR``, ``AND vital``."""
    made = {}
    for question, (kind, answers) in questions.items():
        aggregator, _, importance = kind.partition(" ")
        made[question] = {
            "question": question,
            "aggregator_type": aggregator,
            "importance": importance or None,
            "answers": {a: {"answer": a, "references": docs} for a, docs in answers.items()},
        }
    found, problems = bank_of({"query_id": topic, "nugget_bank": made})
    assert found is not None, list(map(str, problems))
    return found


def cited(
    text: str, *citations: tuple[str, bool, bool, dict[str, list[str]]], more: tuple[Judgment, ...] = ()
) -> Segment:
    """A sentence with (document, relevant, attested, matches) for each citation."""
    judgments: list[Judgment] = []
    for doc, relevant, attested, matches in citations:
        judgments.append(j.relevance(doc, relevant))
        judgments.append(j.answers(doc, [Match(q, tuple(a)) for q, a in matches.items()], "test"))
        judgments.append(j.attested(doc, attested, "test"))
    return Segment(text, tuple(Cited(c[0], "text") for c in citations), (*judgments, *more))


def uncited(
    text: str, requires: bool = False, first: bool = True, more: tuple[Judgment, ...] = ()
) -> Segment:
    """A sentence without citations."""
    judgments = [j.requires_citation(requires, "test")]
    if requires:
        judgments.append(j.first_instance(first, "test"))
    return Segment(text, (), (*judgments, *more))


def judged(*segments: Segment, topic: str = "t1", run: str = "r") -> JudgedReport:
    return JudgedReport(topic, run, segments)


def report(topic: str = "t1", sentences: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    """A report as JSON data; a sentence is (text, citations)."""
    rows = [{"text": t, "citations": c} for t, c in (sentences or [("One.", ["d1"])])]
    return {
        "metadata": {"team_id": "team", "run_id": "run", "topic_id": topic},
        "responses": rows,
        "references": sorted({d for r in rows for d in r["citations"] if isinstance(d, str)}),
        **more,
    }


def lines(path: Path, *rows: Any) -> Path:
    """Write JSON Lines; text is written as it is."""
    path.write_text(
        "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), encoding="utf-8"
    )
    return path


def said(log: Log) -> list[str]:
    """Code, line and message of every finding."""
    return [f"{f.code}:{f.line}: {f.message}" for f in log.sorted()]
