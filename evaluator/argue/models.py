"""What report judging is about: sentences, nuggets, documents and judgments, as values that never change.

Every other module of this package reads files into these, computes with these, or writes these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

COMPAT = "argue-compat 1"  # the definition of the measures; written into every output
Aggregator = Literal["OR", "AND"]
Importance = Literal["vital", "okay"]
WEIGHTS: Mapping[Importance | None, float] = MappingProxyType({"vital": 2.0, "okay": 1.0, None: 1.0})


# --- documents -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a collection. ``title`` is empty where there is none."""

    id: str
    text: str
    title: str = ""

    @property
    def judged_text(self) -> str:
        """What a judge is shown: title and text with their labels, or the text alone without a title."""
        return f"Title: {self.title}\n\nContent: {self.text}" if self.title else self.text


# --- reports -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a report. ``citations`` are distinct document ids in the order of their first mention.

    ``scores`` holds the numbers that came with the citations; they never influence a measure.
    """

    text: str
    citations: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A topic that reports answer. ``limit`` counts characters, ``word_limit`` words; None is no limit."""

    id: str
    title: str = ""
    background: str = ""
    problem_statement: str = ""
    limit: int | None = None
    word_limit: int | None = None
    collection_ids: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


# --- nuggets -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reference:
    """A document that attests an answer. ``extra`` holds further keys, kept for writing."""

    doc_id: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, verbatim (also its blanks), and the documents that attest it."""

    text: str
    references: tuple[Reference, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def documents(self) -> frozenset[str]:
        """The ids of the documents that attest it."""
        return frozenset(r.doc_id for r in self.references)


@dataclass(frozen=True, slots=True)
class Nugget:
    """A question with its answers. ``answers`` count; ``wrong`` were kept out because no document attests them."""

    question: str
    answers: tuple[Answer, ...]
    aggregator: Aggregator = "OR"
    importance: Importance | None = None
    wrong: tuple[Answer, ...] = ()
    question_id: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def weight(self) -> float:
        """2.0 for a vital nugget, else 1.0."""
        return WEIGHTS[self.importance]

    def satisfied_by(self, answers: Collection[str]) -> bool:
        """Whether these answers make it correct: any of its own for OR, all of its own for AND."""
        own = {a.text for a in self.answers}
        return bool(own) and (
            own.issubset(answers) if self.aggregator == "AND" else not own.isdisjoint(answers)
        )


@dataclass(frozen=True)
class Bank:
    """The nuggets of one topic after the load filter.

    ``unanswerable`` are the questions that lost all their answers in the filter. ``linked`` is False for old files
    whose answers have no documents at all: nothing is filtered there, and relevance cannot be looked up. ``notes``
    say what was changed while reading (merged questions and the like).
    """

    topic_id: str
    nuggets: tuple[Nugget, ...]
    unanswerable: tuple[Nugget, ...] = ()
    linked: bool = True
    header: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: str = ""

    @cached_property
    def by_question(self) -> Mapping[str, Nugget]:
        """The nuggets that count, by their question."""
        return {n.question: n for n in self.nuggets}

    @cached_property
    def by_document(self) -> Mapping[str, tuple[tuple[Nugget, Answer], ...]]:
        """For every relevant document the (nugget, answer) pairs that it attests, in the order of the bank."""
        found: dict[str, list[tuple[Nugget, Answer]]] = {}
        for nugget in self.nuggets:
            for answer in nugget.answers:
                for doc_id in dict.fromkeys(r.doc_id for r in answer.references):
                    found.setdefault(doc_id, []).append((nugget, answer))
        return {doc_id: tuple(pairs) for doc_id, pairs in found.items()}

    @property
    def documents(self) -> frozenset[str]:
        """The relevant documents: those that attest an answer of a nugget that counts."""
        return frozenset(self.by_document)

    def relevant(self, doc_id: str) -> bool:
        """Whether a document is relevant by look-up. Always False for a bank that is not linked: ask a judge."""
        return doc_id in self.by_document

    def candidates(self, doc_id: str, *, everything: bool = False) -> Iterator[tuple[Nugget, Answer]]:
        """The (nugget, answer) pairs that a sentence citing ``doc_id`` is asked about, in the order of the bank.

        Those whose references hold the document; all of them with ``everything``, or if the bank is not linked.
        """
        if everything or not self.linked:
            return ((n, a) for n in self.nuggets for a in n.answers)
        return iter(self.by_document.get(doc_id, ()))

    def wrong_answers(self) -> Iterator[tuple[Nugget, Answer]]:
        """The pairs that the strict variant asks about: answers kept out of OR nuggets that count."""
        for nugget in self.nuggets:
            if nugget.aggregator == "OR":
                for answer in nugget.wrong:
                    yield nugget, answer


# --- judgments -----------------------------------------------------------------------------------------------


class JudgmentType(StrEnum):
    """What is asked about a sentence. The last two are ours, and only there when their options are on."""

    CITED_DOCUMENT_RELEVANCE = "CITED_DOCUMENT_RELEVANCE"
    SENTENCE_ANSWERS_QUESTION = "SENTENCE_ANSWERS_QUESTION"
    SENTENCE_ATTESTED = "SENTENCE_ATTESTED"
    REQUIRES_CITATION = "REQUIRES_CITATION"
    FIRST_INSTANCE = "FIRST_INSTANCE"
    NEGATIVE_ASSERTION = "NEGATIVE_ASSERTION"
    NEGATIVE_ASSERTION_CONFIRMED = "NEGATIVE_ASSERTION_CONFIRMED"
    SENTENCE_GIVES_WRONG_ANSWER = "SENTENCE_GIVES_WRONG_ANSWER"


T = JudgmentType
BY_DOCUMENT = frozenset({T.CITED_DOCUMENT_RELEVANCE, T.SENTENCE_ANSWERS_QUESTION, T.SENTENCE_ATTESTED})
MATCHING = frozenset(
    {T.SENTENCE_ANSWERS_QUESTION, T.NEGATIVE_ASSERTION_CONFIRMED, T.SENTENCE_GIVES_WRONG_ANSWER}
)
# type -> the name of its yes or no; older files may call it otherwise, so any single boolean is read
FIELDS: Mapping[JudgmentType, str] = MappingProxyType(
    {
        T.CITED_DOCUMENT_RELEVANCE: "is_relevant",
        T.SENTENCE_ATTESTED: "is_attested",
        T.REQUIRES_CITATION: "requires_citation",
        T.FIRST_INSTANCE: "is_first_instance",
        T.NEGATIVE_ASSERTION: "is_negative",
    }
)
# What counts where a reply cannot be read, or a judgment is missing and that is allowed (Auto-ARGUE's README).
DEFAULTS: Mapping[JudgmentType, bool] = MappingProxyType(
    {kind: kind in (T.REQUIRES_CITATION, T.FIRST_INSTANCE) for kind in T}
)


@dataclass(frozen=True, slots=True)
class Match:
    """A nugget question and those of its answers that the sentence gives."""

    question: str
    answers: tuple[str, ...]
    importance: Importance | None = None


@dataclass(frozen=True, slots=True)
class Judgment:
    """One judgment on one sentence.

    ``value`` is the yes or no, None for the types that match nuggets; those have ``matches`` (empty is "none").
    ``evaluator`` names who decided; ``"null"`` is a look-up. ``extra`` is written next to the documented keys.
    """

    type: JudgmentType
    value: bool | None = None
    doc_id: str | None = None
    matches: tuple[Match, ...] = ()
    evaluator: str = "null"
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.value is None) != (self.type in MATCHING):
            raise ValueError(
                f"{self.type} has {'matches, no value' if self.value is not None else 'a value'}"
            )

    def model_dump(self) -> dict[str, Any]:
        """JSON data, as it stands in a judgments file."""
        response: dict[str, Any] = {"judgment_type_id": self.type.value}
        if self.type is T.CITED_DOCUMENT_RELEVANCE:
            response["doc_id"] = self.doc_id
        if self.type in MATCHING:
            response["matched_nuggets"] = [
                {"question_text": m.question, "matched_answer": list(m.answers), "importance": m.importance}
                for m in self.matches
            ]
        else:
            response[FIELDS[self.type]] = self.value
        provenance = {"doc_id": self.doc_id, "sentence": None, "run_id": None, "sent_id": None}
        head = {"judgment_type_id": self.type.value, "response": response, "evaluator": self.evaluator}
        return {**head, "provenance": provenance, **self.extra}


@dataclass(frozen=True, slots=True)
class Cited:
    """A citation as it was judged: ``text`` is what the judge saw, empty for a document that nobody has."""

    doc_id: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """A judged sentence: its text, the citations and the judgments about it."""

    text: str
    citations: tuple[Cited, ...] = ()
    judgments: tuple[Judgment, ...] = ()
    segment_type: str = "sentence"

    def of(self, kind: JudgmentType, doc_id: str | None = None) -> Judgment | None:
        """The first judgment of a type, about a document where that is given."""
        for judgment in self.judgments:
            if judgment.type is kind and (doc_id is None or judgment.doc_id == doc_id):
                return judgment
        return None

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """The cited documents, each once."""
        return tuple(dict.fromkeys(c.doc_id for c in self.citations))


@dataclass(frozen=True, slots=True)
class JudgedReport:
    """A report with its judgments: one line of a judgments file. ``judge`` holds facts about who judged, ours."""

    request_id: str
    run_id: str
    segments: tuple[Segment, ...]
    collection_ids: tuple[str, ...] = ()
    judge: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None

    def model_dump(self) -> dict[str, Any]:
        """One line of a judgments file as JSON data, keys in the documented order; ``judge``, ours, comes last."""
        out: dict[str, Any] = {
            "request_id": self.request_id,
            "run_id": self.run_id,
            "collection_ids": list(self.collection_ids),
            "segments": [
                {
                    "segment_type": s.segment_type,
                    "text": s.text,
                    "citations": [{"doc_id": c.doc_id, "text": c.text} for c in s.citations],
                    "judgments": [j.model_dump() for j in s.judgments],
                }
                for s in self.segments
            ],
        }
        return out | {"judge": dict(self.judge)} if self.judge else out
