"""What is asked about a sentence, what is not, in which order the answers stand, and what a judge's silence counts as."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from evaluator.argue.asking import Question
from evaluator.argue.formats.judgments import validate_judgments
from evaluator.argue.judging import FLOW, Flow, Judging, fingerprint, questions_at_most
from evaluator.argue.models import DEFAULTS, JudgedReport
from evaluator.argue.scoring.topic import score_topic
from evaluator.errors import EvaluatorError
from evaluator.judges.chat import JudgeError
from tests.worlds.judging_play import BANK, DOCUMENTS, Recording, T, bank, judge, report

CITED = ("The bridge was opened in 1901.", ["d1"])
DENIAL = ("It is not known who built it.", [])
ANSWERS = ("1901", "the start of the century")


def test_a_cited_sentence_is_asked_about_the_answers_of_its_document_and_its_support() -> None:
    recording = Recording()
    made = judge(recording, CITED)
    asked = [(q.type, q.nugget_question, q.nugget_answer, q.document) for q in recording.asked]
    assert sorted(asked) == [
        *((T.SENTENCE_ANSWERS_QUESTION, "When?", answer, DOCUMENTS["d1"]) for answer in ANSWERS),
        (T.SENTENCE_ATTESTED, "", "", DOCUMENTS["d1"]),
    ]
    # Relevance was looked up, and the order is that of the files.
    assert [(j.type, j.evaluator) for j in made.segments[0].judgments] == [
        (T.CITED_DOCUMENT_RELEVANCE, "null"),
        (T.SENTENCE_ANSWERS_QUESTION, "recording"),
        (T.SENTENCE_ATTESTED, "recording"),
    ]
    [match] = made.segments[0].judgments[1].matches
    assert (match.question, match.answers) == ("When?", ANSWERS)
    assert made.segments[0].citations[0].text == DOCUMENTS["d1"]


def test_each_citation_is_judged_for_itself_in_the_reports_order() -> None:
    made = judge(Recording(backwards=True), ("Opened in 1901 for two million.", ["d2", "d1", "d9"]))
    judgments = made.segments[0].judgments
    assert [j.doc_id for j in judgments] == ["d2"] * 3 + ["d1"] * 3 + ["d9"] * 3
    assert [j.value for j in judgments if j.type is T.CITED_DOCUMENT_RELEVANCE] == [True, True, False]
    by_document = {j.doc_id: [(m.question, *m.answers) for m in j.matches] for j in judgments if j.matches}
    assert by_document == {
        "d2": [("When?", ANSWERS[1]), ("How much?", "two million")],
        "d1": [("When?", *ANSWERS)],
    }


def test_an_irrelevant_document_is_asked_about_support_only() -> None:
    recording = Recording()
    made = judge(recording, ("Bees make honey.", ["d9"]))
    assert recording.types() == [T.SENTENCE_ATTESTED]
    relevance, answers, _ = made.segments[0].judgments
    assert (relevance.value, answers.matches, answers.evaluator) == (False, (), "null")


def test_answers_are_asked_whether_or_not_the_document_supports_the_sentence() -> None:
    recording = Recording(lambda q: q.type is not T.SENTENCE_ATTESTED)
    made = judge(recording, CITED)
    assert made.segments[0].judgments[1].matches and not made.segments[0].judgments[2].value
    assert len(recording.asked) == 3
    assert score_topic(made, BANK).values["correct_nuggets"] == 0  # no credit without support


def test_a_document_that_nobody_has_supports_nothing_and_is_not_asked_about() -> None:
    recording = Recording()
    made = judge(recording, ("Ghosts.", ["nowhere"]))
    assert recording.asked == []
    assert [j.value for j in made.segments[0].judgments if j.value is not None] == [False, False]
    assert made.segments[0].citations[0].text == ""
    everything = judge(recording, ("Ghosts.", ["nowhere"]), flow=Flow(everything=True))
    assert T.CITED_DOCUMENT_RELEVANCE not in recording.types()
    assert everything.segments[0].judgments[0].value is False


def test_a_sentence_without_citation_is_asked_whether_it_needs_one() -> None:
    for answer, last in (
        (False, (T.REQUIRES_CITATION, False, "recording")),
        (True, (T.FIRST_INSTANCE, True, "null")),
    ):
        recording = Recording(answer)
        made = judge(recording, ("Here is a report.", []))
        assert recording.types() == [T.REQUIRES_CITATION]
        judgment = made.segments[0].judgments[-1]
        assert (judgment.type, judgment.value, judgment.evaluator) == last
        assert len(made.segments[0].judgments) == 1 + answer


def test_a_later_one_is_asked_with_all_sentences_before_it() -> None:
    recording = Recording(lambda q: q.type is not T.FIRST_INSTANCE)
    made = judge(recording, CITED, ("A second.", []), ("A third.", []))
    firsts = {q.sentence: q.previous for q in recording.asked if q.type is T.FIRST_INSTANCE}
    assert firsts == {"A second.": CITED[0], "A third.": f"{CITED[0]}\nA second."}
    assert [s.judgments[-1].value for s in made.segments[1:]] == [False, False]


def test_denials_are_asked_about_only_with_the_option() -> None:
    recording = Recording()
    judge(recording, CITED, DENIAL)
    assert (
        T.NEGATIVE_ASSERTION not in recording.types() and T.CITED_DOCUMENT_RELEVANCE not in recording.types()
    )
    assert not any(q.document for q in recording.asked if q.sentence == DENIAL[0])
    recording = Recording()
    made = judge(recording, DENIAL, flow=Flow(negation=True))
    denials = [T.NEGATIVE_ASSERTION, T.NEGATIVE_ASSERTION_CONFIRMED]
    assert sorted(recording.types()) == [*denials, T.REQUIRES_CITATION]
    [confirmed] = [q for q in recording.asked if q.type is T.NEGATIVE_ASSERTION_CONFIRMED]
    assert confirmed.nugget_question == "Who?"  # the question whose answers were filtered out
    assert [j.type for j in made.segments[0].judgments][:2] == denials
    plain = Recording(False)
    judge(plain, DENIAL, flow=Flow(negation=True))
    assert T.NEGATIVE_ASSERTION_CONFIRMED not in plain.types()
    values = [
        score_topic(judge(Recording(), CITED, DENIAL, flow=Flow(negation=n)), BANK).values
        for n in (False, True)
    ]
    assert values[0] == values[1]  # comparable figures do not change


def test_wrong_answers_are_asked_about_only_with_the_option() -> None:
    recording = Recording()
    judge(recording, CITED, flow=Flow(strict=True))
    wrong = [q.nugget_answer for q in recording.asked if q.type is T.SENTENCE_GIVES_WRONG_ANSWER]
    assert wrong == ["1910"]


def test_everything_asks_about_relevance_and_about_all_pairs() -> None:
    recording = Recording()
    made = judge(recording, ("Bees make honey.", ["d9"]), flow=Flow(everything=True))
    answers = [T.SENTENCE_ANSWERS_QUESTION] * 3
    assert sorted(recording.types()) == [T.CITED_DOCUMENT_RELEVANCE, *answers, T.SENTENCE_ATTESTED]
    assert made.segments[0].judgments[0].value is True
    assert made.segments[0].judgments[0].evaluator == "recording"
    assert score_topic(made, BANK).values["nugget_coverage"] == 1.0


def test_nuggets_without_any_documents_are_judged_as_if_everything_was_asked() -> None:
    v3 = bank({"When?": ("OR", {"1901": []})})
    # The old form has no documents, which v3 would filter out.
    nuggets = tuple(replace(n, answers=n.wrong, wrong=()) for n in v3.unanswerable)
    recording = Recording()
    judge(recording, CITED, nuggets=replace(v3, linked=False, nuggets=nuggets))
    kinds = [T.CITED_DOCUMENT_RELEVANCE, T.SENTENCE_ANSWERS_QUESTION, T.SENTENCE_ATTESTED]
    assert sorted(recording.types()) == kinds


def test_the_order_of_the_answers_changes_nothing() -> None:
    sentences = [CITED, ("Bees.", ["d9", "d1", "d2"]), ("Uncited.", []), ("Again.", ["d2"])]
    judges = (Recording(width=1), Recording(width=50, backwards=True), Recording(width=3, backwards=True))
    assert len({str(judge(one, *sentences).model_dump()) for one in judges}) == 1


def test_as_many_questions_are_open_as_the_judge_wants() -> None:
    narrow, wide = Recording(width=1, backwards=True), Recording(width=30, backwards=True)
    sentences = [(f"Sentence {i}.", ["d1", "d2"]) for i in range(8)]
    judge(narrow, *sentences)
    judge(wide, *sentences)
    assert narrow.most <= 2 < wide.most  # one more waits at the door, so that none is idle


def test_replies_that_cannot_be_read_are_counted_and_noted() -> None:
    kinds = [T.SENTENCE_ANSWERS_QUESTION, T.REQUIRES_CITATION]
    judging = Judging(Recording(lambda q: DEFAULTS[q.type], unreadable=kinds))
    made = asyncio.run(judging.report(report(CITED, ("Uncited.", [])), BANK, DOCUMENTS.get))
    assert dict(judging.counts.defaults) == {T.SENTENCE_ANSWERS_QUESTION: 2, T.REQUIRES_CITATION: 1}
    assert judging.counts.total == 5
    assert made.segments[0].judgments[1].extra["defaulted"] == 2
    assert "defaulted" not in made.segments[0].judgments[2].extra
    uncited = made.segments[1].judgments[0]
    assert uncited.value is True and uncited.extra["defaulted"] == 1


def test_no_more_is_asked_after_an_error_that_will_not_go_away() -> None:
    class Refusing(Recording):
        async def decide(self, question: Question):  # type: ignore[no-untyped-def]
            await super().decide(question)
            raise JudgeError("the key is wrong", transient=False)

    refusing = Refusing(width=1)
    wanted = [(report(*[(f"{i}.", ["d1"])] * 5), BANK, DOCUMENTS.get) for i in range(6)]
    results = asyncio.run(Judging(refusing).reports(wanted))
    assert [type(r) for r in results] == [JudgeError] * 6
    assert len(refusing.asked) <= 4


def test_one_report_that_cannot_be_judged_does_not_stop_the_others() -> None:
    class Sometimes(Recording):
        async def decide(self, question: Question):  # type: ignore[no-untyped-def]
            if question.sentence == "Bad.":
                raise JudgeError("the endpoint is down", transient=True)
            return await super().decide(question)

    wanted = [(report((text, ["d1"])), BANK, DOCUMENTS.get) for text in ("Good.", "Bad.", "Fine.")]
    results = asyncio.run(Judging(Sometimes()).reports(wanted))
    assert [isinstance(r, JudgedReport) for r in results] == [True, False, True]
    assert isinstance(results[1], EvaluatorError)


@pytest.mark.parametrize("flow", [Flow(), Flow(True), Flow(False, True, True), Flow(True, True, True)])
def test_no_more_is_asked_than_was_announced_and_everything_is_valid(flow: Flow) -> None:
    recording = Recording()
    sentences = [CITED, ("Both.", ["d1", "d2"]), ("Bees.", ["d9"]), ("None.", []), ("Not known.", [])]
    made = judge(recording, *sentences, flow=flow)
    assert len(recording.asked) <= questions_at_most(report(*sentences), BANK, flow)
    assert validate_judgments(made, BANK, name="x") == []


def test_a_fingerprint_changes_with_everything_that_judgments_depend_on() -> None:
    class Other(Recording):
        def identity(self):  # type: ignore[no-untyped-def]
            return {"model": "other"}

    base = (report(CITED, ("None.", [])), BANK, DOCUMENTS.get, Recording(), Flow())
    changes = [
        (0, report(("Other.", ["d1"]), ("None.", []))),
        (0, report((CITED[0], ["d2"]), ("None.", []))),
        (1, bank({"When?": ("OR", {"1901": ["d1"]})})),
        (2, {"d1": "changed"}.get),
        (3, Other()),
        (4, Flow(everything=True)),
        (4, Flow(strict=True)),
    ]
    changed = [fingerprint(*base[:i], other, *base[i + 1 :]) for i, other in changes]
    assert len({fingerprint(*base), *changed}) == 1 + len(changed)
    assert fingerprint(*base[:3], Recording(width=1), Flow()) == fingerprint(*base)
    assert judge(Recording(), CITED).judge["flow"] == FLOW
