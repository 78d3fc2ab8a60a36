"""A report as a value, from one JSON value of any form, and in the one form that we write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from evaluator.argue.formats.citations import (
    Citations,
    Say,
    documents_of,
    named,
    references_of,
    sentence_of,
    texts_of,
    topic_id,
)
from evaluator.argue.formats.lines import parse
from evaluator.argue.models import Document, Sentence
from evaluator.codes import CODES
from schemas.jsonl import kind_of

MAX_SENTENCES = 5_000
KEYS = ("responses", "answer", "sentences", "report")
REFERENCE_RUN = "reference"  # the run id of reference reports, which have none

Style = Literal["list", "scores", "index"]


@dataclass(frozen=True, slots=True)
class Report:
    """One report on one topic. ``metadata`` is everything that stood there; ``line`` counts from 1.

    ``references`` is None where the file had none; ``documents`` are those that the report itself carries;
    ``style`` says how citations were written (``list``, ``scores``, ``index``, ``mixed`` or ``none``).
    """

    topic_id: str
    run_id: str
    sentences: tuple[Sentence, ...]
    team_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    references: tuple[str, ...] | None = None
    documents: Mapping[str, Document] = field(default_factory=dict)
    collection_ids: tuple[str, ...] = ()
    style: str = "list"
    key: str = "responses"  # under which the sentences stood
    line: int | None = None

    @property
    def cited(self) -> tuple[str, ...]:
        """Every cited document once, in the order of first mention."""
        return tuple(dict.fromkeys(d for s in self.sentences for d in s.citations))

    @classmethod
    def model_validate(cls, data: Any) -> Report:
        """The report in one object of any accepted form. Raises :class:`ValueError` that lists every problem."""
        return report_of(data)

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Report:
        """The same, from one line of a file."""
        return report_from_json(text)

    def model_dump(self) -> dict[str, Any]:
        """The report in the one form that we write."""
        return as_json(self)


def report_of(data: Any) -> Report:
    """The report in one object. Raises :class:`ValueError` that lists everything that is an error."""
    problems: list[str] = []

    def say(code: str, message: str) -> None:
        if CODES[code].severity == "error":
            problems.append(f"{code}: {message}")

    report = parse_report(data, say)
    if problems or report is None:
        raise ValueError("; ".join(problems[:50]) or "no report")
    return report


def report_from_json(text: str | bytes) -> Report:
    """The report in one line. Raises :class:`ValueError`."""
    try:
        raw = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        raise ValueError("F301: the text has half of a surrogate pair") from None
    line = parse(0, raw)
    if line.code:
        raise ValueError(f"{line.code}: {line.reason}")
    return report_of(line.value)


def parse_report(data: Any, say: Say, line: int | None = None) -> Report | None:
    """The report in one JSON value, having told ``say`` what is wrong; None without a topic, run or sentences."""
    if not isinstance(data, dict):
        say("F302", f"there is {kind_of(data)}")
        return None
    metadata = data.get("metadata")
    key = _key(data, say)
    # The last is how runs of TREC RAG 2024 are written.
    old = "metadata" not in data and (
        key in ("sentences", "report") or (key == "answer" and "topic_id" in data)
    )
    if old:
        metadata = {k: v for k, v in data.items() if k not in (*KEYS, "references", "documents", "questions")}
        if "topic_id" not in metadata:
            metadata["topic_id"] = metadata.pop("request_id", None)
        if key == "report":
            metadata.setdefault("run_id", REFERENCE_RUN)
    elif not isinstance(metadata, dict):
        say("F303", "there is no metadata" if metadata is None else f"metadata is {kind_of(metadata)}")
        metadata = None
    topic = run = team = None
    if metadata is not None:
        topic = topic_id(metadata, say)
        run = named(metadata, "run_id", say)
        team = "" if old and "team_id" not in metadata else named(metadata, "team_id", say)
    references = references_of(data, say)
    rows = data.get(key) if key else None
    if key and not isinstance(rows, list):
        say("F305", f"{key} is {kind_of(rows)}, not a list")
        rows = None
    if rows is None or topic is None or run is None or metadata is None:
        return None
    if len(rows) > MAX_SENTENCES:
        say("F333", f"the report has {len(rows):,} sentences; at most {MAX_SENTENCES:,} are read")
        rows = rows[:MAX_SENTENCES]
    reader = Citations(references, say)
    sentences = [sentence_of(row, i, key == "report", reader, say) for i, row in enumerate(rows, 1)]
    collections = metadata.get("collection_ids")
    return Report(
        topic_id=topic,
        run_id=run,
        sentences=tuple(s for s in sentences if s is not None),
        team_id=team or "",
        metadata=metadata,
        references=references,
        documents=documents_of(data, say),
        collection_ids=texts_of(collections),
        style="mixed" if len(reader.styles) > 1 else next(iter(reader.styles), "none"),
        key=key or KEYS[0],
        line=line,
    )


def _key(data: Mapping[str, Any], say: Say) -> str | None:
    there = [key for key in KEYS if key in data]
    if len(there) > 1:
        say("F305", f"there are both {there[0]} and {there[1]}")
    elif not there:
        say("F305", "there are no responses")
    return there[0] if len(there) == 1 else None


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
