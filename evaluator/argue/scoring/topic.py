"""The measures of one report on one topic, from stored judgments and nuggets alone, with the reason for everything.

A cited sentence: a citation of an irrelevant document earns no nugget; one that does not support the sentence is a
penalty; one that is both relevant and supporting is asked for nuggets, each of which is rewarded once. A sentence without
citations is penalised if it requires one and says so for the first time. Penalties enlarge denominators, they are never
subtracted. The measures themselves, and their sources, are in :mod:`evaluator.argue.scoring.measures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from evaluator.argue.formats.judgments import validate_judgments
from evaluator.argue.formats.lines import refused
from evaluator.argue.formats.requests import character_count
from evaluator.argue.models import DEFAULTS, Bank, JudgedReport, JudgmentType, Nugget, Segment
from evaluator.argue.scoring.measures import LENGTH, Options, with_shares

T = JudgmentType


class Effect(NamedTuple):
    """What one judgment, or one rule, did to the scores. ``kind`` is ``reward``, ``penalty`` or ``none``."""

    kind: Literal["reward", "penalty", "none"]
    code: str
    doc_id: str | None = None
    question: str | None = None
    answers: tuple[str, ...] = ()


class SentenceScore(NamedTuple):
    """A sentence and everything that it was rewarded or penalised for. ``number`` counts from 1."""

    number: int
    text: str
    citations: tuple[str, ...]
    effects: tuple[Effect, ...]


class NuggetScore(NamedTuple):
    """A nugget: whether it is correct, its credited answers, and the numbers of the sentences that gave them."""

    nugget: Nugget
    correct: bool
    answers: tuple[str, ...]
    sentences: tuple[int, ...]
    wrong: tuple[str, ...]  # kept-out answers that the report gives


@dataclass(frozen=True)
class TopicScores:
    """One report's measures. ``values`` has the counts, the character count, the shares and F1s, by name."""

    topic: str
    values: Mapping[str, float]
    sentences: tuple[SentenceScore, ...] = ()
    nuggets: tuple[NuggetScore, ...] = ()
    answered: bool = True


def score_topic(judged: JudgedReport, bank: Bank, options: Options | None = None) -> TopicScores:
    """The measures of one judged report.

    Args:
        judged: the report with its judgments.
        bank: the nuggets of its topic.
        options: how judgments become scores; the default options without.

    Raises:
        EvaluatorError: judgments are missing or wrong, and ``incomplete`` is ``refuse``.
    """
    options = options or Options()
    if options.incomplete == "refuse":
        _refuse_incomplete(judged, bank, options)
    report = _Report(bank, options)
    sentences = tuple(report.sentence(i, s) for i, s in enumerate(judged.segments, 1))
    nuggets = tuple(report.nugget(n) for n in bank.nuggets)
    report.counts[LENGTH] = character_count([s.text for s in judged.segments])
    return TopicScores(bank.topic_id, with_shares(report.total(nuggets), options), sentences, nuggets)


def no_report(bank: Bank, options: Options | None = None) -> TopicScores:
    """The measures of a topic that has no report: nothing but its nuggets."""
    options = options or Options()
    counts = _Report(bank, options).total(())
    return TopicScores(bank.topic_id, with_shares(counts, options), answered=False)


def _refuse_incomplete(judged: JudgedReport, bank: Bank, options: Options) -> None:
    name = f"run {judged.run_id}, topic {judged.request_id}"
    problems = [str(p) for p in validate_judgments(judged, bank, name=name)]
    problems += lacking(judged, bank, options)
    if problems:
        raise refused(
            "the judgments of a report are not complete",
            problems,
            "judge the report again, or score with defaults for what is missing",
        )


def lacking(judged: JudgedReport, bank: Bank, options: Options) -> list[str]:
    """What the measures of our own that are on (``strict``, ``negation``) need, and these judgments do not have."""
    problems = []
    wrong_asked = options.strict and next(bank.wrong_answers(), None) is not None
    for i, segment in enumerate(judged.segments, 1):
        none = f"sentence {i} has no judgment"
        if wrong_asked and segment.of(T.SENTENCE_GIVES_WRONG_ANSWER) is None:
            problems.append(f"{none} {T.SENTENCE_GIVES_WRONG_ANSWER}, which strict scores need")
        if options.negation and not segment.citations:
            negative = segment.of(T.NEGATIVE_ASSERTION)
            if negative is None:
                problems.append(f"{none} {T.NEGATIVE_ASSERTION}, which negation scores need")
            elif negative.value and bank.unanswerable and segment.of(T.NEGATIVE_ASSERTION_CONFIRMED) is None:
                problems.append(f"{none} {T.NEGATIVE_ASSERTION_CONFIRMED}")
    return problems


@dataclass
class _Report:
    """Adds up one report."""

    bank: Bank
    options: Options
    counts: dict[str, float] = field(default_factory=dict)
    given: dict[str, dict[str, int]] = field(default_factory=dict)  # question -> credited answer -> sentence
    where: dict[str, list[int]] = field(default_factory=dict)  # question -> sentences with credited answers
    wrong: dict[str, list[str]] = field(default_factory=dict)  # question -> kept-out answers that were given
    confirmed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.counts = {name: 0.0 for group in self.options.groups for name in group.counts} | {LENGTH: 0.0}

    def add(self, name: str, amount: float = 1) -> None:
        self.counts[name] += amount

    def sentence(self, number: int, segment: Segment) -> SentenceScore:
        self.add("sentences")
        effects: list[Effect] = []
        if segment.citations:
            self._cited(number, segment, effects)
        else:
            self._uncited(segment, effects)
            self._matches(number, segment, {}, {}, effects)
        if self.options.strict:
            self._wrong(segment, effects)
        return SentenceScore(number, segment.text, segment.doc_ids, tuple(effects))

    def _cited(self, number: int, segment: Segment, effects: list[Effect]) -> None:
        documents = segment.doc_ids
        relevant = {d: _value(segment, T.CITED_DOCUMENT_RELEVANCE, d) for d in documents}
        supports = {d: _value(segment, T.SENTENCE_ATTESTED, d) for d in documents}
        self.add("citations", len(documents))
        self.add("relevant_citations", sum(relevant.values()))
        self.add("supporting_citations", sum(supports.values()))
        self.add("sentences_with_citations_or_requiring_citations")
        if all(supports.values()):
            self.add("correctly_cited_sentences")
            effects.append(Effect("reward", "supported"))
        for doc_id in documents:
            if not supports[doc_id]:
                effects.append(Effect("penalty", "unsupported", doc_id))
            if not relevant[doc_id]:
                effects.append(Effect("none", "irrelevant", doc_id))
        self._matches(number, segment, relevant, supports, effects)

    def _uncited(self, segment: Segment, effects: list[Effect]) -> None:
        required = _value(segment, T.REQUIRES_CITATION)
        first = required and _value(segment, T.FIRST_INSTANCE)
        self.add("sentences_missing_citation", required)
        self.add("first_instance_sentences_missing_citation", first)
        self.add("sentences_with_citations_or_requiring_citations", first)
        if first:
            effects.append(Effect("penalty", "missing-citation"))
        else:
            effects.append(Effect("none", "said-before" if required else "no-citation-needed"))
        if self.options.negation and _value(segment, T.NEGATIVE_ASSERTION):
            self._negative(segment, first, effects)

    def _negative(self, segment: Segment, penalised: bool, effects: list[Effect]) -> None:
        """Diamonds E and F, instead of what the sentence was otherwise: for the measures of negation only."""
        unanswerable = {n.question for n in self.bank.unanswerable}
        judgment = segment.of(T.NEGATIVE_ASSERTION_CONFIRMED)
        named = [m.question for m in judgment.matches] if judgment else []
        found = [q for q in dict.fromkeys(named) if q in unanswerable]
        self.add("negative_assertions")
        self.add("confirmed_negative_assertions", bool(found))
        self.add("rewarded_sentences_negation", bool(found))
        self.add("scored_sentences_negation", 1 - penalised)
        self.confirmed.update(found)
        if found:
            effects.append(Effect("reward", "negation-confirmed", question=found[0]))
        else:
            effects.append(Effect("penalty", "negation-unconfirmed"))

    def _matches(
        self,
        number: int,
        segment: Segment,
        relevant: Mapping[str, bool],
        supports: Mapping[str, bool],
        effects: list[Effect],
    ) -> None:
        matched = False
        for judgment in segment.judgments:
            if judgment.type is not T.SENTENCE_ANSWERS_QUESTION:
                continue
            doc_id = judgment.doc_id
            for match in judgment.matches:
                matched = True
                nugget = self.bank.by_question.get(match.question)
                own = {a.text for a in nugget.answers} if nugget else set()
                known = tuple(a for a in dict.fromkeys(match.answers) if a in own)
                if nugget is None or not known:
                    effects.append(Effect("none", "not-in-nuggets", doc_id, match.question, match.answers))
                elif reason := self._refusal(doc_id, relevant, supports):
                    effects.append(Effect("none", reason, doc_id, match.question, known))
                else:
                    effects.append(self._credit(number, nugget, known, doc_id))
        if segment.citations and not matched:
            effects.append(Effect("none", "no-nugget"))

    def _refusal(self, doc_id: str | None, relevant: Mapping[str, bool], supports: Mapping[str, bool]) -> str:
        """Why a match earns nothing; empty if it does."""
        if self.options.credit == "none":
            return ""
        if not (relevant.get(doc_id, False) if doc_id is not None else any(relevant.values())):
            return "match-irrelevant"
        if self.options.credit == "sentence":
            return "" if all(supports.values()) else "match-unsupported"
        supported = supports.get(doc_id, False) if doc_id is not None else any(supports.values())
        return "" if supported else "match-unsupported"

    def _credit(self, number: int, nugget: Nugget, answers: tuple[str, ...], doc_id: str | None) -> Effect:
        pool = self.given.setdefault(nugget.question, {})
        was = nugget.satisfied_by(pool)
        new = [a for a in answers if a not in pool]
        pool.update(dict.fromkeys(new, number))
        sentences = self.where.setdefault(nugget.question, [])
        if number not in sentences:
            sentences.append(number)
        if was or not new:
            return Effect("none", "nugget-again", doc_id, nugget.question, answers)
        if nugget.satisfied_by(pool):
            return Effect("reward", "nugget", doc_id, nugget.question, answers)
        return Effect("none", "nugget-part", doc_id, nugget.question, answers)

    def _wrong(self, segment: Segment, effects: list[Effect]) -> None:
        judgment = segment.of(T.SENTENCE_GIVES_WRONG_ANSWER)
        for match in judgment.matches if judgment else ():
            nugget = self.bank.by_question.get(match.question)
            kept_out = {a.text for a in nugget.wrong} if nugget and nugget.aggregator == "OR" else set()
            given = tuple(a for a in dict.fromkeys(match.answers) if a in kept_out)
            if given:
                pool = self.wrong.setdefault(match.question, [])
                pool += [a for a in given if a not in pool]
                effects.append(Effect("penalty", "wrong-answer", None, match.question, given))

    def nugget(self, nugget: Nugget) -> NuggetScore:
        pool = self.given.get(nugget.question, {})
        wrong = tuple(self.wrong.get(nugget.question, ()))
        sentences = tuple(self.where.get(nugget.question, ()))
        return NuggetScore(nugget, nugget.satisfied_by(pool), tuple(pool), sentences, wrong)

    def total(self, nuggets: tuple[NuggetScore, ...]) -> Mapping[str, float]:
        """All counts, those of nuggets and those that follow from others included."""
        counts = self.counts
        for nugget in self.bank.nuggets:
            self.add("nuggets")
            self.add("nuggets_weighted", nugget.weight)
        for score in nuggets:
            if score.correct:
                self.add("correct_nuggets")
                self.add("correct_nuggets_weighted", score.nugget.weight)
            if score.correct and not score.wrong and self.options.strict:
                self.add("correct_nuggets_strict")
                self.add("correct_nuggets_strict_weighted", score.nugget.weight)
        if self.options.negation:
            self.add("unanswerable_nuggets", len(self.bank.unanswerable))
            self.add("confirmed_unanswerable_nuggets", len(self.confirmed))
            self.add("rewarded_sentences_negation", counts["correctly_cited_sentences"])
            self.add("scored_sentences_negation", counts["sentences_with_citations_or_requiring_citations"])
            self.add("correct_nuggets_negation", counts["correct_nuggets"] + len(self.confirmed))
            self.add("nuggets_negation", counts["nuggets"] + len(self.bank.unanswerable))
        return counts


def _value(segment: Segment, kind: JudgmentType, doc_id: str | None = None) -> bool:
    judgment = segment.of(kind, doc_id)
    return DEFAULTS[kind] if judgment is None or judgment.value is None else judgment.value
