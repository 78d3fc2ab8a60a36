"""Judgments for tests of trust, in a few words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluator.argue.formats import judgments as make
from evaluator.argue.formats.judgments import write_judgments
from evaluator.argue.models import Cited, JudgedReport, Judgment, Match, Segment

SAMPLES = Path(__file__).parents[2] / "evaluator" / "argue" / "samples" / "assets"
NUGGETS = SAMPLES / "sample-inputs" / "sample_nuggets_388.v3.json"
REPORT = SAMPLES / "sample-inputs" / "sample_report.jsonl"
LOOKUP = SAMPLES / "sample-inputs" / "sample-docs-lookup"


def cited(
    text: str, doc: str, attested: bool, found: dict[str, list[str]] | None = None, by: str = "x"
) -> Segment:
    """A sentence with one citation; ``found`` are matched answers by question."""
    judgments: list[Judgment] = [make.relevance(doc, True)]
    if found is not None:
        judgments.append(make.answers(doc, [Match(q, tuple(a)) for q, a in found.items()], by))
    judgments.append(make.attested(doc, attested, by))
    return Segment(text, (Cited(doc, "text"),), tuple(judgments))


def uncited(text: str, requires: bool, first: bool | None = None, by: str = "x") -> Segment:
    """A sentence without citations."""
    judgments = [make.requires_citation(requires, by)]
    if first is not None:
        judgments.append(make.first_instance(first, by))
    return Segment(text, (), tuple(judgments))


def report(
    *segments: Segment, run: str = "r", topic: str = "388", judge: dict[str, Any] | None = None
) -> JudgedReport:
    """A judged report."""
    return JudgedReport(topic, run, segments, judge=judge or {})


def written(path: Path, *reports: JudgedReport) -> Path:
    """The reports as a judgments file."""
    write_judgments(reports, path)
    return path
