"""Whether judgments suffice for scoring, and fit to the nuggets."""

from __future__ import annotations

from evaluator.argue.formats.lines import Collector, Keys
from evaluator.argue.models import BY_DOCUMENT, Bank, JudgedReport, Judgment, JudgmentType, Segment
from evaluator.findings import show
from schemas import Problem

T = JudgmentType


def validate_judgments(
    judged: JudgedReport, bank: Bank | None = None, *, name: str = "judgments"
) -> list[Problem]:
    """Whether the judgments suffice for scoring, and name nothing that the bank lacks; every problem.

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
            reader.say(
                place,
                f"{judgment.type} is about {show(str(judgment.doc_id))}, which the sentence does not cite",
            )
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
        asked = segment.of(T.REQUIRES_CITATION)
        if asked is None:
            reader.say(at, f"the sentence has no citation and no judgment {T.REQUIRES_CITATION}")
        elif asked.value and segment.of(T.FIRST_INSTANCE) is None:
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
