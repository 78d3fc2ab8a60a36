"""Reports in every form that is in use, read into one class, and written in the one form that we write.

===================  ===========================================================================================
form                 shape
===================  ===========================================================================================
current              ``metadata``, ``responses`` of ``text`` and ``citations`` (ids, or an object id -> number)
TREC RAG             ``answer`` for ``responses``, ``narrative_id`` for ``topic_id``, citations as positions (from
                     0) in ``references``
TREC RAG 2024        the same with ``run_id`` and ``topic_id`` next to ``answer``, without ``metadata``
old                  ``request_id``, ``run_id``, ``sentences``
reference reports    ``request_id`` and ``report``, a list of ``[text, [ids]]`` pairs
===================  ===========================================================================================

The citation styles may even be mixed within a report. Nothing here raises for what a participant can write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from evaluator.argue.formats.citations import (
    Citations,
    Say,
    documents_of,
    named,
    references_of,
    sentence_of,
    topic_id,
)
from evaluator.argue.formats.lines import line_of, parse, parse_lines
from evaluator.argue.models import Document, Sentence
from evaluator.codes import CODES
from evaluator.findings import Log
from evaluator.formats.lines import reporting
from evaluator.formats.mistaken import no_json_lines
from schemas.jsonl import kind_of

MAX_LINE = 32 << 20  # a report may carry its documents
MAX_BROKEN = 1_000
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
        """The report in one JSON object of any accepted form.

        Raises:
            ValueError: lists everything that is an error, with the codes of the findings.
        """
        problems: list[str] = []

        def say(code: str, message: str) -> None:
            if CODES[code].severity == "error":
                problems.append(f"{code}: {message}")

        report = parse_report(data, say)
        if problems or report is None:
            raise ValueError("; ".join(problems[:50]) or "no report")
        return report

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Report:
        """The same, from one line of a file."""
        try:
            line = parse(0, text.encode() if isinstance(text, str) else text)
        except UnicodeEncodeError:
            raise ValueError("F301: the text has half of a surrogate pair") from None
        if line.code:
            raise ValueError(f"{line.code}: {line.reason}")
        return cls.model_validate(line.value)

    def model_dump(self) -> dict[str, Any]:
        """The report as JSON data, in the one form that we write."""
        return as_json(self)


def read_reports(
    path: Path, log: Log, *, max_bytes: int | None = None, follow: bool = False
) -> Iterator[Report]:
    """The reports of a JSON Lines file, plain or gzip.

    A line with an error in its form yields what could be read of it, if it has a topic and sentences at all; the log
    is invalid then. Topics, limits and tracks are checked by :mod:`evaluator.argue.formats.checking`.

    Args:
        path: the file.
        log: takes every finding about the form.
        max_bytes: the most that is read, unpacked; None is no limit.
        follow: the file may be a link, because whoever reads it has named it.
    """
    broken = found = number = 0
    with reporting(log, max_bytes):
        if said := no_json_lines(path, follow=follow):
            log.add("F301", 1, said)
            if log.invalid:
                return
        for line in parse_lines(path, max_line=MAX_LINE, max_bytes=max_bytes, follow=follow):
            number = line.number
            if line.bom:
                log.add("F331", 1, "the file begins with a byte order mark")
            report = None
            if line.code:
                log.add(line.code, number, line.reason)
            else:
                report = parse_report(line.value, partial(_note, log, number, line.value), number)
            if report is not None:
                found += 1
                yield report
                continue
            broken += 1
            if broken >= MAX_BROKEN and not found:
                log.add("F335", number, f"none of the first {broken:,} lines is a report")
                break
        if not number:
            log.add("F001", None, "the file holds no report")
    log.lines = number


def _note(log: Log, line: int, data: Any, code: str, message: str) -> None:
    """Add a finding under the topic that the line names, as far as it names one."""
    metadata = data.get("metadata") if isinstance(data, dict) else None
    topic = topic_id(metadata, lambda *_: None) if isinstance(metadata, dict) else None
    log.add(code, line, message, None if topic is None else topic.encode())


def parse_report(data: Any, say: Say, line: int | None = None) -> Report | None:
    """The report in one JSON value, having reported to ``say`` what is wrong; None without a topic, run or sentences."""
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
    listed = metadata.get("collection_ids")
    collections = listed if isinstance(listed, list) else []
    return Report(
        topic_id=topic,
        run_id=run,
        sentences=tuple(s for s in sentences if s is not None),
        team_id=team or "",
        metadata=metadata,
        references=references,
        documents=documents_of(data, say),
        collection_ids=tuple(c for c in collections if isinstance(c, str)),
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
    cited: dict[Style, Callable[[Sentence], Any]] = {
        "list": lambda s: list(s.citations),
        "scores": lambda s: {d: s.scores[d] for d in s.citations},
        "index": lambda s: [place[d] for d in s.citations],
    }
    rows = [{"text": s.text, "citations": cited[style](s)} for s in report.sentences]
    head = {"team_id": report.team_id, "run_id": report.run_id, "topic_id": report.topic_id}
    rest = {k: v for k, v in report.metadata.items() if k not in head}
    out: dict[str, Any] = {"metadata": head | rest, key: rows, "references": references}
    if report.documents:
        out["documents"] = {
            d.id: {"id": d.id, "text": d.text, **({"title": d.title} if d.title else {})}
            for d in report.documents.values()
        }
    return out


def write_reports(
    reports: Sequence[Report], path: Path, *, style: Style = "list", key: str = "responses"
) -> None:
    """Write reports as JSON Lines, all in one citation style (``list`` if one of them lacks scores)."""
    if any(d not in s.scores for r in reports for s in r.sentences for d in s.citations):
        style = "list" if style == "scores" else style
    with path.open("wb") as file:
        for report in reports:
            file.write(line_of(as_json(report, style=style, key=key)))
