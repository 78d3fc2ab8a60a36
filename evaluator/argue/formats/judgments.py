"""Judgments as JSON Lines, one report a line: read in all three spellings, written in the first.

The list of sentences is called ``segments`` (beside ``request_id``, ``run_id``, ``collection_ids``), or ``judgments`` or
``sentence_judgments`` (beside the whole ``report``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import schemas
from evaluator.argue.formats.citations import topic_id
from evaluator.argue.formats.lines import Collector, Keys, parse_lines
from evaluator.argue.formats.requests import refused
from evaluator.argue.formats.writing import line_of
from evaluator.argue.models import (
    MATCHING,
    Cited,
    Importance,
    JudgedReport,
    Judgment,
    JudgmentType,
    Match,
    Segment,
)
from evaluator.findings import show
from evaluator.formats.files import Damaged, TooLarge, Unreadable
from schemas import Problem
from schemas.files import atomic_file
from schemas.jsonl import kind_of

T = JudgmentType
MAX_LINE = 256 << 20  # the full texts of all cited documents are in it
SPELLINGS = ("segments", "judgments", "sentence_judgments")
# type -> the name of its yes or no; older files may call it otherwise, so any single boolean is read
FIELDS: Mapping[JudgmentType, str] = {
    T.CITED_DOCUMENT_RELEVANCE: "is_relevant",
    T.SENTENCE_ATTESTED: "is_attested",
    T.REQUIRES_CITATION: "requires_citation",
    T.FIRST_INSTANCE: "is_first_instance",
    T.NEGATIVE_ASSERTION: "is_negative",
}
_KEYS = frozenset({"judgment_type_id", "response", "evaluator", "provenance"})
_NO_PROVENANCE = {"doc_id": None, "sentence": None, "run_id": None, "sent_id": None}


# --- making them ---------------------------------------------------------------------------------------------


def relevance(doc_id: str, value: bool, evaluator: str = "null") -> Judgment:
    """Whether a cited document is relevant; a look-up unless an evaluator is named."""
    return Judgment(T.CITED_DOCUMENT_RELEVANCE, value, doc_id, evaluator=evaluator)


def attested(doc_id: str, value: bool, evaluator: str) -> Judgment:
    """Whether a cited document supports the sentence."""
    return Judgment(T.SENTENCE_ATTESTED, value, doc_id, evaluator=evaluator)


def answers(doc_id: str, matches: Iterable[Match], evaluator: str) -> Judgment:
    """Which nuggets the sentence answers, by one cited document."""
    return Judgment(T.SENTENCE_ANSWERS_QUESTION, None, doc_id, tuple(matches), evaluator)


def requires_citation(value: bool, evaluator: str) -> Judgment:
    """Whether a sentence without citations needs one."""
    return Judgment(T.REQUIRES_CITATION, value, evaluator=evaluator)


def first_instance(value: bool, evaluator: str) -> Judgment:
    """Whether a sentence says this for the first time in its report."""
    return Judgment(T.FIRST_INSTANCE, value, evaluator=evaluator)


def negative_assertion(value: bool, evaluator: str) -> Judgment:
    """Whether a sentence says that something is not known."""
    return Judgment(T.NEGATIVE_ASSERTION, value, evaluator=evaluator)


def negative_confirmed(matches: Iterable[Match], evaluator: str) -> Judgment:
    """Which unanswerable questions confirm a negative assertion (ours; their matches have no answers)."""
    return Judgment(T.NEGATIVE_ASSERTION_CONFIRMED, None, None, tuple(matches), evaluator)


def wrong_answers(matches: Iterable[Match], evaluator: str) -> Judgment:
    """Which answers that were kept out of the nuggets a sentence gives (ours, for the strict variant)."""
    return Judgment(T.SENTENCE_GIVES_WRONG_ANSWER, None, None, tuple(matches), evaluator)


# --- writing -------------------------------------------------------------------------------------------------


def as_json(judged: JudgedReport) -> dict[str, Any]:
    """One line of a judgments file: the first spelling, keys in the documented order; ``judge``, ours, comes last."""
    out: dict[str, Any] = {
        "request_id": judged.request_id,
        "run_id": judged.run_id,
        "collection_ids": list(judged.collection_ids),
        "segments": [_segment_json(s) for s in judged.segments],
    }
    return out | {"judge": dict(judged.judge)} if judged.judge else out


def _segment_json(segment: Segment) -> dict[str, Any]:
    return {
        "segment_type": segment.segment_type,
        "text": segment.text,
        "citations": [{"doc_id": c.doc_id, "text": c.text} for c in segment.citations],
        "judgments": [_judgment_json(j) for j in segment.judgments],
    }


def _judgment_json(judgment: Judgment) -> dict[str, Any]:
    response: dict[str, Any] = {"judgment_type_id": judgment.type.value}
    if judgment.type is T.CITED_DOCUMENT_RELEVANCE:
        response["doc_id"] = judgment.doc_id
    if judgment.type in MATCHING:
        response["matched_nuggets"] = [
            {"question_text": m.question, "matched_answer": list(m.answers), "importance": m.importance}
            for m in judgment.matches
        ]
    else:
        response[FIELDS[judgment.type]] = judgment.value
    return {
        "judgment_type_id": judgment.type.value,
        "response": response,
        "evaluator": judgment.evaluator,
        "provenance": {**_NO_PROVENANCE, "doc_id": judgment.doc_id},
        **judgment.extra,
    }


def write_judgments(judged: Iterable[JudgedReport], path: Path) -> None:
    """Write a judgments file; it appears only when it is complete."""
    with atomic_file(path, mode=0o644) as file:
        for one in judged:
            file.write(line_of(as_json(one)))


# --- reading -------------------------------------------------------------------------------------------------


def load_judgments(path: Path) -> list[JudgedReport]:
    """The judged reports of a file. Raises :class:`evaluator.errors.EvaluatorError` that lists every problem."""
    found, problems = read_judgments(path)
    if not found and not problems:
        problems = [Problem(schemas.show(path.name, 200), "holds no judgments")]
    if problems:
        raise refused(f"the judgments {path.name} cannot be used", [str(p) for p in problems])
    return found


def read_judgments(path: Path) -> tuple[list[JudgedReport], list[Problem]]:
    """The judged reports of a file, and every problem with its line."""
    found: list[JudgedReport] = []
    problems: list[Problem] = []
    first: dict[tuple[str, str], int] = {}
    for one in iter_judgments(path, problems):
        key = one.run_id, one.request_id
        if key in first:
            where = f"{schemas.show(path.name, 200)}:{one.line}"
            what = f"the report of run {show(one.run_id)} on {show(one.request_id)} is there already, in line {first[key]:,}"
            problems.append(Problem(where, what, "keep one of them", line=one.line))
            continue
        first[key] = one.line or 0
        found.append(one)
    return found, problems


def iter_judgments(path: Path, problems: list[Problem]) -> Iterator[JudgedReport]:
    """The judged reports one by one; a line with problems yields nothing."""
    name = schemas.show(path.name, 200)
    try:
        for line in parse_lines(path, max_line=MAX_LINE, follow=True):
            if line.code:
                problems.append(Problem(f"{name}:{line.number}", line.reason, line=line.number))
                continue
            one, found = judged_of(line.value, path.name, line.number)
            problems += found
            if one is not None:
                yield one
    except (Unreadable, Damaged, TooLarge) as error:
        problems.append(
            Problem(name, f"cannot be read: {error}", "check the file's name and its permissions")
        )


def judged_of(
    data: Any, name: str = "input", line: int | None = None
) -> tuple[JudgedReport | None, list[Problem]]:
    """The judged report in one object of any spelling, and every problem; None if there is one."""
    reader = _Reader(name, line)
    found = reader.report(data)
    return (None if reader.problems else found), reader.problems


class _Reader(Collector):
    """Reads one line and collects what is wrong with it."""

    def report(self, data: Any) -> JudgedReport | None:
        if not isinstance(data, dict):
            self.say((), f"there is {kind_of(data)}, not an object")
            return None
        key = next((k for k in SPELLINGS if k in data), None)
        rows = data.get(key) if key else None
        if key is None or not isinstance(rows, list):
            self.say((key,) if key else (), f"there is no list {' or '.join(SPELLINGS)}")
            return None
        head = self._head(data)
        if head is None:
            return None
        segments = [self._segment((key, i), row) for i, row in enumerate(rows)]
        judge = data.get("judge")
        collections = head[2]
        return JudgedReport(
            head[0],
            head[1],
            tuple(s for s in segments if s is not None),
            tuple(c for c in collections if isinstance(c, str)) if isinstance(collections, list) else (),
            judge if isinstance(judge, dict) else {},
            self.line,
        )

    def _head(self, data: Mapping[str, Any]) -> tuple[str, str, Any] | None:
        """Topic, run and collections, from the line itself or from the metadata of its report."""
        report = data.get("report")
        metadata = report.get("metadata") if isinstance(report, dict) else None
        source = data
        if "request_id" not in data and isinstance(report, dict):
            source = metadata if isinstance(metadata, dict) else report  # a report of the old form has none
        before = len(self.problems)
        topic = topic_id(source, lambda _, message: self.say((), message))
        run = source.get("run_id")
        if not isinstance(run, str) or not run.strip() or not run.isprintable():
            self.say(("run_id",), "run_id is missing or no name")
        if topic is None or len(self.problems) > before:
            return None
        return topic, str(run), source.get("collection_ids")

    def _segment(self, at: Keys, data: Any) -> Segment | None:
        if not isinstance(data, dict) or not isinstance(data.get("text"), str):
            self.say(
                at, "the sentence has no text" if isinstance(data, dict) else f"there is {kind_of(data)}"
            )
            return None
        cited, rows = data.get("citations", []), data.get("judgments", [])
        if not isinstance(cited, list | dict):
            self.say((*at, "citations"), f"citations is {kind_of(cited)}, not a list")
            cited = []
        if not isinstance(rows, list):
            self.say((*at, "judgments"), f"judgments is {kind_of(rows)}, not a list")
            rows = []
        citations = [self._cited((*at, "citations", i), c) for i, c in enumerate(cited)]
        judgments = [self._judgment((*at, "judgments", i), j) for i, j in enumerate(rows)]
        kind = data.get("segment_type")
        return Segment(
            data["text"],
            tuple(c for c in citations if c is not None),
            tuple(j for j in judgments if j is not None),
            kind if isinstance(kind, str) else "sentence",
        )

    def _cited(self, at: Keys, data: Any) -> Cited | None:
        name = data.get("doc_id") if isinstance(data, dict) else data
        text = data.get("text") if isinstance(data, dict) else ""
        if not isinstance(name, str) or not name:
            self.say(at, "the citation has no doc_id")
            return None
        return Cited(name, text if isinstance(text, str) else "")

    def _judgment(self, at: Keys, data: Any) -> Judgment | None:
        if not isinstance(data, dict) or not isinstance(data.get("response"), dict):
            self.say(
                at, "the judgment has no response" if isinstance(data, dict) else f"there is {kind_of(data)}"
            )
            return None
        response = data["response"]
        named = data.get("judgment_type_id", response.get("judgment_type_id"))
        if not isinstance(named, str) or named not in T.__members__:
            self.say((*at, "judgment_type_id"), f"there is no judgment type {show(str(named))}", ", ".join(T))
            return None
        kind = T(named)
        provenance = data.get("provenance")
        doc_id = provenance.get("doc_id") if isinstance(provenance, dict) else None
        doc_id = response.get("doc_id") if doc_id is None else doc_id
        if doc_id is not None and not isinstance(doc_id, str):
            self.say((*at, "provenance", "doc_id"), f"doc_id is {kind_of(doc_id)}, not text")
            return None
        evaluator = data.get("evaluator")
        evaluator = evaluator if isinstance(evaluator, str) else "null"
        extra = {k: v for k, v in data.items() if k not in _KEYS}
        if kind in MATCHING:
            matches = self._matches((*at, "response", "matched_nuggets"), response.get("matched_nuggets"))
            return None if matches is None else Judgment(kind, None, doc_id, matches, evaluator, extra)
        value = self._boolean((*at, "response"), kind, response)
        return None if value is None else Judgment(kind, value, doc_id, (), evaluator, extra)

    def _boolean(self, at: Keys, kind: JudgmentType, response: Mapping[str, Any]) -> bool | None:
        value = response.get(FIELDS[kind])
        if isinstance(value, bool):
            return value
        others = [v for v in response.values() if isinstance(v, bool)]
        if len(others) == 1:
            return others[0]
        self.say(at, f"the response of {kind} has no {FIELDS[kind]} that is true or false")
        return None

    def _matches(self, at: Keys, data: Any) -> tuple[Match, ...] | None:
        if not isinstance(data, list):
            self.say(at, f"matched_nuggets is {kind_of(data)}, not a list")
            return None
        found: list[Match] = []
        for i, row in enumerate(data):
            question = row.get("question_text") if isinstance(row, dict) else None
            given = row.get("matched_answer") if isinstance(row, dict) else None
            listed = [given] if isinstance(given, str) else ([] if given is None else given)
            if not isinstance(question, str) or not (
                isinstance(listed, list) and all(isinstance(a, str) for a in listed)
            ):
                self.say((*at, i), "a match needs question_text and a list matched_answer")
                return None
            found.append(Match(question, tuple(listed), _importance(row.get("importance"))))
        return tuple(found)


def _importance(value: Any) -> Importance | None:
    return value if value in ("vital", "okay") else None
