"""Reports in the one form that we write, and JSON lines as such."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from evaluator.argue.models import Document, Report

Style = Literal["list", "scores", "index"]


def as_json(report: Report, *, style: Style = "list", key: str = "responses") -> dict[str, Any]:
    """The report as we write it: one citation style, ``references`` always there.

    ``list`` are ids, ``index`` positions in ``references``; ``scores`` are objects, and need a score for every
    citation, else ``list`` is written. The style ``index`` has every cited document among its references.
    """
    if style == "scores" and any(d not in s.scores for s in report.sentences for d in s.citations):
        style = "list"
    references = list(report.references if report.references is not None else report.cited)
    if style == "index":
        references = list(dict.fromkeys([*references, *report.cited]))
    place = {name: i for i, name in reversed(list(enumerate(references)))}
    rows: list[dict[str, Any]] = []
    for s in report.sentences:
        cited: Any = list(s.citations)
        if style == "scores":
            cited = {d: s.scores[d] for d in s.citations}
        elif style == "index":
            cited = [place[d] for d in s.citations]
        rows.append({"text": s.text, "citations": cited})
    head = {"team_id": report.team_id, "run_id": report.run_id, "topic_id": report.topic_id}
    rest = {k: v for k, v in report.metadata.items() if k not in head}
    out: dict[str, Any] = {"metadata": head | rest, key: rows, "references": references}
    if report.documents:
        out["documents"] = {d.id: carried(d) for d in report.documents.values()}
    return out


def carried(document: Document) -> dict[str, str]:
    """A document as reports carry it for TREC AutoJudge."""
    out = {"id": document.id, "text": document.text}
    return out | {"title": document.title} if document.title else out


def write_reports(
    reports: Sequence[Report], path: Path, *, style: Style = "list", key: str = "responses"
) -> None:
    """Write reports as JSON Lines, all in one citation style (``list`` if one of them lacks scores)."""
    if style == "scores" and any(
        d not in s.scores for r in reports for s in r.sentences for d in s.citations
    ):
        style = "list"
    with path.open("wb") as file:
        for report in reports:
            file.write(line_of(as_json(report, style=style, key=key)))


def line_of(data: Any) -> bytes:
    """One JSON line: keys in their order, UTF-8. Raises ValueError for what JSON cannot hold."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"
