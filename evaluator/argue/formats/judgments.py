"""Judgments as JSON Lines, one report a line: read in all three spellings, written in the first.

The list of sentences is called ``segments`` (next to ``request_id``, ``run_id``, ``collection_ids``), or ``judgments`` or
``sentence_judgments`` (next to the whole ``report``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import schemas
from evaluator.argue.formats.citations import topic_id
from evaluator.argue.formats.lines import Collector, Keys, Lines, line_of, name_of, refused
from evaluator.argue.models import (
    BY_DOCUMENT,
    FIELDS,
    MATCHING,
    Bank,
    Cited,
    JudgedReport,
    Judgment,
    JudgmentType,
    Match,
    Segment,
)
from evaluator.findings import show
from schemas import Problem
from schemas.files import atomic_file
from schemas.jsonl import kind_of

T = JudgmentType
MAX_LINE = 256 << 20  # the full texts of all cited documents are in it
SPELLINGS = ("segments", "judgments", "sentence_judgments")
_KEYS = frozenset({"judgment_type_id", "response", "evaluator", "provenance"})


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


# --- reading and writing ---------------------------------------------------------------------------------------


def write_judgments(judged: Iterable[JudgedReport], path: Path) -> None:
    """Write a judgments file; it appears only when it is complete."""
    with atomic_file(path, mode=0o644) as file:
        for report in judged:
            file.write(line_of(report.model_dump()))


def load_judgments(path: Path) -> list[JudgedReport]:
    """The judged reports of a file.

    Args:
        path: JSON Lines, plain or gzip, in any of the three spellings.

    Raises:
        EvaluatorError: the file cannot be used; lists every problem.
    """
    found, problems = read_judgments(path)
    if not found and not problems:
        problems = [Problem(schemas.show(path.name, 200), "holds no judgments")]
    if problems:
        raise refused(f"the judgments {path.name} cannot be used", problems)
    return found


def read_judgments(path: Path) -> tuple[list[JudgedReport], list[Problem]]:
    """The judged reports of a file, and every problem with its line; a line with problems yields no report."""
    found: list[JudgedReport] = []
    first: dict[tuple[str, str], int | None] = {}
    reader = _Reader(path.name)
    for value in reader.values(path, MAX_LINE):
        before = len(reader.problems)
        judged = reader.report(value)
        if judged is None or len(reader.problems) > before:
            continue
        key = judged.run_id, judged.request_id
        if key in first:
            what = (
                f"the report of run {show(key[0])} on {show(key[1])} is there already, in line {first[key]:,}"
            )
            reader.add(what, "keep one of them")
            continue
        first[key] = judged.line
        found.append(judged)
    return found, reader.problems


def judged_of(
    data: Any, name: str = "input", line: int | None = None
) -> tuple[JudgedReport | None, list[Problem]]:
    """The judged report in one object of any spelling, and every problem; None if there is one."""
    reader = _Reader(name, line)
    found = reader.report(data)
    return (None if reader.problems else found), reader.problems


class _Reader(Lines):
    """Reads judged reports and collects what is wrong with them."""

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
        topic, run, collections = head
        segments = [self._segment((key, i), row) for i, row in enumerate(rows)]
        judge = data.get("judge")
        return JudgedReport(
            topic,
            run,
            tuple(s for s in segments if s is not None),
            tuple(c for c in collections if isinstance(c, str)) if isinstance(collections, list) else (),
            judge if isinstance(judge, dict) else {},
            self.line,
        )

    def _head(self, data: Mapping[str, Any]) -> tuple[str, str, Any] | None:
        """Topic, run and collections, from the line itself or from the metadata of its report."""
        report = data.get("report")
        source = data
        if "request_id" not in data and isinstance(report, dict):
            metadata = report.get("metadata")
            source = metadata if isinstance(metadata, dict) else report  # a report of the old form has none
        before = len(self.problems)
        topic = topic_id(source, lambda _, message: self.say((), message))
        run = source.get("run_id")
        if not isinstance(run, str) or name_of(run) is None:
            self.say(("run_id",), "run_id is missing or no name")
        if topic is None or len(self.problems) > before:
            return None
        return topic, str(run), source.get("collection_ids")

    def _segment(self, at: Keys, data: Any) -> Segment | None:
        if not self._has(at, data, "text", str, "sentence"):
            return None
        cited, rows = data.get("citations", []), data.get("judgments", [])
        if not isinstance(cited, dict) and not self.is_list((*at, "citations"), cited, "citations"):
            cited = []
        if not self.is_list((*at, "judgments"), rows, "judgments"):
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

    def _has(self, at: Keys, data: Any, key: str, kind: type, what: str) -> bool:
        """Whether ``data`` is an object with a value of that type; notes a problem if it is not."""
        found = isinstance(data, dict) and isinstance(data.get(key), kind)
        if not found:
            self.say(
                at, f"the {what} has no {key}" if isinstance(data, dict) else f"there is {kind_of(data)}"
            )
        return found

    def _cited(self, at: Keys, data: Any) -> Cited | None:
        name, text = (data.get("doc_id"), data.get("text")) if isinstance(data, dict) else (data, "")
        if not isinstance(name, str) or not name:
            self.say(at, "the citation has no doc_id")
            return None
        return Cited(name, text if isinstance(text, str) else "")

    def _judgment(self, at: Keys, data: Any) -> Judgment | None:
        if not self._has(at, data, "response", dict, "judgment"):
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
        if not isinstance(doc_id, str | None):
            self.say((*at, "provenance", "doc_id"), f"doc_id is {kind_of(doc_id)}, not text")
            return None
        at = (*at, "response")
        value = None if kind in MATCHING else self._boolean(at, kind, response)
        matches = self._matches((*at, "matched_nuggets"), response) if kind in MATCHING else ()
        if matches is None or (value is None and kind not in MATCHING):
            return None
        evaluator = data.get("evaluator")
        evaluator = evaluator if isinstance(evaluator, str) else "null"
        extra = {k: v for k, v in data.items() if k not in _KEYS}
        return Judgment(kind, value, doc_id, matches, evaluator, extra)

    def _boolean(self, at: Keys, kind: JudgmentType, response: Mapping[str, Any]) -> bool | None:
        value = response.get(FIELDS[kind])
        values = [value] if isinstance(value, bool) else [v for v in response.values() if isinstance(v, bool)]
        if len(values) == 1:
            return values[0]
        self.say(at, f"the response of {kind} has no {FIELDS[kind]} that is true or false")
        return None

    def _matches(self, at: Keys, response: Mapping[str, Any]) -> tuple[Match, ...] | None:
        rows = response.get("matched_nuggets")
        if not self.is_list(at, rows, "matched_nuggets"):
            return None
        found: list[Match] = []
        for i, row in enumerate(rows or ()):
            question, given = (
                (row.get(k) for k in ("question_text", "matched_answer"))
                if isinstance(row, dict)
                else (None, None)
            )
            answers = [given] if isinstance(given, str) else ([] if given is None else given)
            texts = isinstance(answers, list) and all(isinstance(a, str) for a in answers)
            if not isinstance(question, str) or not texts:
                self.say((*at, i), "a match needs question_text and a list matched_answer")
                return None
            importance = row.get("importance")
            known = importance if importance in ("vital", "okay") else None
            found.append(Match(question, tuple(answers), known))
        return tuple(found)


# --- checking --------------------------------------------------------------------------------------------------


def validate_judgments(
    judged: JudgedReport, bank: Bank | None = None, *, name: str = "judgments"
) -> list[Problem]:
    """What judgments lack for scoring, and what they name that the bank does not have; [] if they are complete.

    Args:
        judged: the report with its judgments.
        bank: the nuggets of its topic; without them matches are not checked.
        name: what the problems call the file.

    Every citation has one judgment of relevance and one of attestation, every sentence without citations one of
    whether it requires one (and then one of first instance); judgments are about cited documents; matched questions
    and answers are in the bank. What an irrelevant document answers may be left out.
    """
    reader = Collector(name, judged.line)
    for i, segment in enumerate(judged.segments):
        _check_segment(reader, ("segments", i), segment, bank)
    return reader.problems


def _check_segment(reader: Collector, at: Keys, segment: Segment, bank: Bank | None) -> None:
    counts: dict[tuple[JudgmentType, str | None], int] = {}
    for j, judgment in enumerate(segment.judgments):
        key = judgment.type, judgment.doc_id if judgment.type in BY_DOCUMENT else None
        counts[key] = counts.get(key, 0) + 1
        place = (*at, "judgments", j)
        if judgment.type in BY_DOCUMENT and judgment.doc_id not in segment.doc_ids:
            about = show(str(judgment.doc_id))
            reader.say(place, f"{judgment.type} is about {about}, which the sentence does not cite")
        _check_matches(reader, place, judgment, bank)
    for (kind, doc_id), count in counts.items():
        if count > 1:
            about = f" about {show(doc_id)}" if doc_id is not None else ""
            reader.say(at, f"there are {count} judgments {kind}{about}, one is allowed")
    for doc_id in segment.doc_ids:
        for kind in (T.CITED_DOCUMENT_RELEVANCE, T.SENTENCE_ATTESTED):
            if (kind, doc_id) not in counts:
                reader.say(at, f"the citation of {show(doc_id)} has no judgment {kind}")
    if not segment.citations:
        _check_uncited(reader, at, segment)


def _check_uncited(reader: Collector, at: Keys, segment: Segment) -> None:
    required = segment.of(T.REQUIRES_CITATION)
    if required is None:
        reader.say(at, f"the sentence has no citation and no judgment {T.REQUIRES_CITATION}")
    elif required.value and segment.of(T.FIRST_INSTANCE) is None:
        reader.say(at, f"the sentence requires a citation and has no judgment {T.FIRST_INSTANCE}")


def _check_matches(reader: Collector, at: Keys, judgment: Judgment, bank: Bank | None) -> None:
    if bank is None or not judgment.matches:
        return
    unanswerable = {n.question for n in bank.unanswerable}
    for match in judgment.matches:
        if judgment.type is T.NEGATIVE_ASSERTION_CONFIRMED:
            if match.question not in unanswerable:
                reader.say(at, f"{show(match.question)} is no unanswerable question of the nuggets")
            continue
        nugget = bank.by_question.get(match.question)
        if nugget is None:
            reader.say(at, f"the nuggets have no question {show(match.question)}")
            continue
        if not match.answers:
            reader.say(at, f"the match of {show(match.question)} has no answer")
        wrong = judgment.type is T.SENTENCE_GIVES_WRONG_ANSWER
        known = {a.text for a in (nugget.wrong if wrong else nugget.answers)}
        for answer in match.answers:
            if answer not in known:
                kind = "kept-out answer" if wrong else "answer"
                reader.say(at, f"the question {show(match.question)} has no {kind} {show(answer)}")
