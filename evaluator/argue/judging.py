"""The flow of ARGUE: which questions are asked about a report, in which order, and what becomes of the answers.

A sentence with citations, for each cited document: is it relevant (looked up, unless everything is asked), which nugget answers
does the sentence give (one question for each pair of question and answer that the document attests), does it support the
sentence. A sentence without: does it require a citation; if so, does it say this for the first time. Two additions of our own
are off by default: answers that were kept out of the nuggets (``strict``), and statements that something is not known
(``negation``).

Everything that can be asked at once is; the result is in the order of the report, whoever answers first.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import schemas
from evaluator.argue.asking import Judge, Question, Unjudged, Verdict
from evaluator.argue.formats import judgments as make
from evaluator.argue.formats.report import Report
from evaluator.argue.models import (
    COMPAT,
    Answer,
    Bank,
    Cited,
    JudgedReport,
    Judgment,
    JudgmentType,
    Match,
    Nugget,
    Segment,
    Sentence,
)
from evaluator.errors import EvaluatorError
from evaluator.judges.unread import EXAMPLES, unread_replies

T = JudgmentType
FLOW = "argue-flow 1"  # changes whenever other questions are asked
REPORTS_AT_ONCE = 8
MOST_FAILED = 0.5  # of all questions: beyond, the endpoint or its parameters are wrong, not a few texts
MAX_READ = 10_000_000  # characters of one report in all questions about it: many times a long one
Text = Callable[[str], str | None]  # the text of a document as a judge sees it, None for one that nobody has
R = TypeVar("R")
_NO_ANSWER = Answer("")  # of a question that is asked without one


@dataclass(frozen=True)
class Flow:
    """What is asked. ``everything``: a judge decides relevance, and every nugget is asked about for every citation.

    ``strict`` and ``negation`` ask what those groups of measures need.
    """

    everything: bool = False
    strict: bool = False
    negation: bool = False


@dataclass
class Counts:
    """What has happened so far by type: questions, replies that could not be read, and questions that were refused."""

    asked: Counter[str] = field(default_factory=Counter)
    defaults: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)  # the first replies that could not be read

    @property
    def total(self) -> int:
        """All questions."""
        return sum(self.asked.values())

    @property
    def failure(self) -> str | None:
        """The reason why these judgments must not count: most questions were refused, or most replies unreadable; else None."""
        refused, unread = self.refused.total(), self.defaults.total()
        if refused > MOST_FAILED * self.total:
            return f"the judge's endpoint refused {refused:,} of {self.total:,} questions"
        if unread > MOST_FAILED * (self.total - refused):
            return unread_replies(unread, self.total - refused, self.examples)
        return None


class Judging:
    """Judges reports with one judge and one flow. ``on_answer`` is called after every answer."""

    def __init__(
        self, judge: Judge, flow: Flow | None = None, *, on_answer: Callable[[], None] | None = None
    ) -> None:
        self.judge = judge
        self.flow = flow or Flow()
        self.counts = Counts()
        self._on_answer = on_answer
        self._slots = asyncio.Semaphore(max(1, judge.width) * 2)
        self._given_up: BaseException | None = None

    async def reports(
        self, wanted: Iterable[tuple[Report, Bank, Text]]
    ) -> list[JudgedReport | EvaluatorError]:
        """The judged reports in the order of ``wanted``; in place of each that could not be judged, why.

        After an error that asking again cannot correct, nothing more is asked.
        """
        slots = asyncio.Semaphore(REPORTS_AT_ONCE)

        async def one(report: Report, bank: Bank, text: Text) -> JudgedReport:
            async with slots:
                return await self.report(report, bank, text)

        results = await asyncio.gather(*(one(*each) for each in wanted), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, EvaluatorError):
                raise result
        return results  # type: ignore[return-value]  # others were raised

    async def report(self, report: Report, bank: Bank, text: Text) -> JudgedReport:
        """One judged report. Raises what the judge raises; nothing is half judged."""
        texts = {doc_id: text(doc_id) for doc_id in report.cited}
        before = [s.text for s in report.sentences]
        segments = await _all(
            self._segment(report, bank, sentence, before[:i], texts)
            for i, sentence in enumerate(report.sentences)
        )
        judge = {"name": self.judge.name, "flow": FLOW, "compat": COMPAT, **self.judge.identity()}
        judge["fingerprint"] = fingerprint(report, bank, texts.get, self.judge, self.flow)
        return JudgedReport(
            report.topic_id, report.run_id, tuple(segments), report.collection_ids, judge, report.line
        )

    async def _segment(
        self,
        report: Report,
        bank: Bank,
        sentence: Sentence,
        before: Sequence[str],
        texts: dict[str, str | None],
    ) -> Segment:
        base = Question(T.SENTENCE_ATTESTED, sentence.text, topic=report.topic_id)
        parts: list[Coroutine[Any, Any, list[Judgment]]] = [
            self._citation(base._replace(doc_id=doc_id), bank, texts[doc_id]) for doc_id in sentence.citations
        ]
        if not sentence.citations:
            parts.append(self._uncited(base, bank, before))
        if self.flow.strict:
            parts.append(self._wrong(base, bank))
        found = await _all(parts)
        cited = tuple(Cited(doc_id, texts[doc_id] or "") for doc_id in sentence.citations)
        return Segment(sentence.text, cited, tuple(j for some in found for j in some))

    async def _citation(self, base: Question, bank: Bank, text: str | None) -> list[Judgment]:
        """Relevance, answers, attestation: the order of the files."""
        asked = self.flow.everything or not bank.linked
        base = base._replace(document=text or "")
        pairs = list(bank.candidates(base.doc_id, everything=asked))
        relevant, matched, supports = await asyncio.gather(
            self._relevance(base, bank, asked, text),
            self._matches(T.SENTENCE_ANSWERS_QUESTION, base, pairs),
            self._attested(base, text),
        )
        matches, unreadable = matched
        return [
            relevant,
            _noted(make.answers(base.doc_id, matches, self.judge.name if pairs else "null"), unreadable),
            supports,
        ]

    async def _relevance(self, base: Question, bank: Bank, asked: bool, text: str | None) -> Judgment:
        if not asked:
            return make.relevance(base.doc_id, bank.relevant(base.doc_id))
        if text is None:  # nobody can read it
            return make.relevance(base.doc_id, False)
        return await self._yes_no(T.CITED_DOCUMENT_RELEVANCE, base, base.doc_id)

    async def _attested(self, base: Question, text: str | None) -> Judgment:
        if text is None:
            return make.attested(base.doc_id, False, "null")
        return await self._yes_no(T.SENTENCE_ATTESTED, base, base.doc_id)

    async def _matches(
        self, kind: JudgmentType, base: Question, pairs: Sequence[tuple[Nugget, Answer]]
    ) -> tuple[list[Match], int]:
        """The pairs that the sentence gives, one match a question, and how many replies could not be read."""
        said = await _all(
            self._ask(base._replace(type=kind, nugget_question=n.question, nugget_answer=a.text))
            for n, a in pairs
        )
        given: dict[str, tuple[Nugget, list[str]]] = {}
        for (nugget, answer), verdict in zip(pairs, said, strict=True):
            if verdict.value:
                given.setdefault(nugget.question, (nugget, []))[1].append(answer.text)
        matches = [Match(q, tuple(texts), nugget.importance) for q, (nugget, texts) in given.items()]
        return matches, sum(not v.readable for v in said)

    async def _uncited(self, base: Question, bank: Bank, before: Sequence[str]) -> list[Judgment]:
        name = self.judge.name
        found: list[Judgment] = []
        if self.flow.negation:
            negative = await self._yes_no(T.NEGATIVE_ASSERTION, base)
            found.append(negative)
            if negative.value and bank.unanswerable:
                pairs = [(n, _NO_ANSWER) for n in bank.unanswerable]
                matches, unreadable = await self._matches(T.NEGATIVE_ASSERTION_CONFIRMED, base, pairs)
                confirmed = [replace(m, answers=()) for m in matches]
                found.append(_noted(make.negative_confirmed(confirmed, name), unreadable))
        required = await self._yes_no(T.REQUIRES_CITATION, base)
        found.append(required)
        if required.value and not before:
            found.append(make.first_instance(True, "null"))
        elif required.value:
            found.append(await self._yes_no(T.FIRST_INSTANCE, base._replace(previous="\n".join(before))))
        return found

    async def _yes_no(self, kind: JudgmentType, base: Question, doc_id: str | None = None) -> Judgment:
        """The judgment of a type that one question decides."""
        said = await self._ask(base._replace(type=kind))
        return _noted(Judgment(kind, said.value, doc_id, evaluator=self.judge.name), not said.readable)

    async def _wrong(self, base: Question, bank: Bank) -> list[Judgment]:
        pairs = list(bank.wrong_answers())
        if not pairs:
            return []
        matches, unreadable = await self._matches(T.SENTENCE_GIVES_WRONG_ANSWER, base, pairs)
        return [_noted(make.wrong_answers(matches, self.judge.name), unreadable)]

    async def _ask(self, question: Question) -> Verdict:
        async with self._slots:
            if self._given_up is not None:
                raise self._given_up
            try:
                said = await self.judge.decide(question)
            except EvaluatorError as error:
                passes = getattr(error, "transient", False) and not getattr(error, "lasting", False)
                if not isinstance(error, Unjudged) and not passes:
                    self._given_up = error
                raise
        self.counts.asked[question.type] += 1
        if said.refused:
            self.counts.refused[question.type] += 1
        elif not said.readable:
            self.counts.defaults[question.type] += 1
            if len(self.counts.examples) < EXAMPLES:
                self.counts.examples.append(said.reply)
        if self._on_answer is not None:
            self._on_answer()
        return said


def _noted(judgment: Judgment, unreadable: int) -> Judgment:
    """The judgment with the number of replies that could not be read, where there are some."""
    extra = {**judgment.extra, "defaulted": int(unreadable)} if unreadable else judgment.extra
    return replace(judgment, extra=extra)


async def _all(asked: Iterable[Awaitable[R]]) -> list[R]:
    """The results of all in their order. If some fail, the first error, once all have ended."""
    results = await asyncio.gather(*asked, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]


def questions_at_most(report: Report, bank: Bank, flow: Flow) -> int:
    """How many questions a report can cost, computed without asking."""
    everything = flow.everything or not bank.linked
    pairs = sum(len(n.answers) for n in bank.nuggets)
    wrong = sum(1 for _ in bank.wrong_answers()) if flow.strict else 0
    total = 0
    for sentence in report.sentences:
        total += wrong
        for doc_id in sentence.citations:
            total += 2 + pairs if everything else 1 + len(bank.by_document.get(doc_id, ()))
        if not sentence.citations:
            total += 2 + ((1 + len(bank.unanswerable)) if flow.negation else 0)
    return total


def characters_at_most(report: Report, bank: Bank, flow: Flow) -> int:
    """How many characters of a report the questions about it hold in all; those of documents do not count.

    A sentence without citations may be compared with all before it, so a report that is ten times as long takes a
    hundred times as much.
    """
    total = before = 0
    for sentence in report.sentences:
        total += len(sentence.text) * questions_at_most(replace(report, sentences=(sentence,)), bank, flow)
        total += 0 if sentence.citations else before
        before += len(sentence.text) + 1
    return total


def fingerprint(report: Report, bank: Bank, text: Text, judge: Judge, flow: Flow) -> str:
    """The SHA-256 of everything that judgments of a report depend on: equal ones need not be made again."""
    return schemas.digest(
        {
            "flow": [FLOW, flow.everything, flow.strict, flow.negation],
            "judge": [judge.name, dict(judge.identity())],
            "topic": report.topic_id,
            "sentences": [[s.text, list(s.citations)] for s in report.sentences],
            "documents": {d: text(d) for d in report.cited},
            "nuggets": [_nugget(n) for n in bank.nuggets],
            "unanswerable": [n.question for n in bank.unanswerable] if flow.negation else [],
            "linked": bank.linked,
        }
    )


def _nugget(nugget: Nugget) -> list[Any]:
    answers = [[a.text, sorted(a.documents)] for a in nugget.answers]
    return [nugget.question, nugget.aggregator, nugget.importance, answers, [a.text for a in nugget.wrong]]
