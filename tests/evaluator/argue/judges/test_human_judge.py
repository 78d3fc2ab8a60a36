"""People's judgments from files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from evaluator.argue.asking import Question, Unjudged
from evaluator.argue.formats import judgments as make
from evaluator.argue.formats.judgments import write_judgments
from evaluator.argue.judges.human import HumanJudge, questions_of, read_annotators
from evaluator.argue.models import Cited, JudgedReport, JudgmentType, Match, Segment
from evaluator.errors import EvaluatorError

T = JudgmentType


def judged(value: bool, answers: tuple[str, ...] = ("a",), run: str = "r") -> JudgedReport:
    first = Segment(
        "One.",
        (Cited("d", "text"),),
        (make.attested("d", value, "p"), make.answers("d", [Match("q", answers)] if answers else [], "p")),
    )
    second = Segment("Two.", (), (make.requires_citation(value, "p"), make.first_instance(value, "p")))
    return JudgedReport("1", run, (first, second))


def test_what_was_judged_is_found_wherever_it_stands() -> None:
    people = HumanJudge({"p": [judged(True)]})
    assert people.says(Question(T.SENTENCE_ATTESTED, "One.", topic="1", doc_id="d")) is True
    assert people.says(Question(T.SENTENCE_ATTESTED, "One.", topic="1", doc_id="e")) is None
    assert people.says(Question(T.SENTENCE_ATTESTED, "One.", topic="2", doc_id="d")) is None
    assert people.says(Question(T.REQUIRES_CITATION, "Two.", topic="1")) is True
    assert people.says(Question(T.FIRST_INSTANCE, "Two.", previous="One.", topic="1")) is True
    assert people.says(Question(T.FIRST_INSTANCE, "Two.", previous="", topic="1")) is None
    asked = Question(T.SENTENCE_ANSWERS_QUESTION, "One.", nugget_question="q", topic="1", doc_id="d")
    assert people.says(asked._replace(nugget_answer="a")) is True
    assert people.says(asked._replace(nugget_answer="b")) is False
    with pytest.raises(Unjudged):
        asyncio.run(people.decide(Question(T.REQUIRES_CITATION, "Three.", topic="1")))


def test_the_majority_counts_and_a_tie_counts_against_the_report() -> None:
    attested = Question(T.SENTENCE_ATTESTED, "One.", topic="1", doc_id="d")
    required = Question(T.REQUIRES_CITATION, "Two.", topic="1")
    two = HumanJudge({"p": [judged(True)], "q": [judged(False)]})
    assert (two.says(attested), two.says(required)) == (False, True)
    three = HumanJudge({"p": [judged(True)], "q": [judged(False)], "z": [judged(True)]})
    assert (three.says(attested), three.says(required)) == (True, True)
    # The same annotator again, in other runs, is no other voice.
    runs = [judged(True, run=f"r{i}") for i in range(3)]
    assert HumanJudge({"p": runs, "q": [judged(False)], "z": [judged(False)]}).says(attested) is False


def test_a_tie_about_a_wrong_answer_counts_against_the_report_too() -> None:
    def says(*matches: Match) -> JudgedReport:
        return JudgedReport("1", "r", (Segment("One.", (), (make.wrong_answers(matches, "p"),)),))

    asked = Question(T.SENTENCE_GIVES_WRONG_ANSWER, "One.", topic="1", nugget_question="q", nugget_answer="w")
    assert HumanJudge({"p": [says(Match("q", ("w",)))], "q": [says()]}).says(asked) is True
    assert HumanJudge({"p": [says()]}).says(asked) is False


def test_its_questions_are_those_it_can_answer() -> None:
    people = HumanJudge({"p": [judged(True)]})
    questions = list(questions_of(judged(True), lambda *_: [("q", "a"), ("q", "b")]))
    answers = [T.SENTENCE_ANSWERS_QUESTION] * 2
    assert [q.type for q in questions] == [
        T.SENTENCE_ATTESTED,
        *answers,
        T.REQUIRES_CITATION,
        T.FIRST_INSTANCE,
    ]
    assert [people.says(q) for q in questions] == [True, True, False, True, True]


def test_identity_changes_with_the_judgments() -> None:
    first, same, other = (HumanJudge({"p": [judged(v)]}).identity() for v in (True, True, False))
    assert first == same != other


def test_files_and_folders(tmp_path: Path) -> None:
    write_judgments([judged(True)], tmp_path / "anna.jsonl")
    write_judgments([judged(False)], tmp_path / "ben.jsonl")
    (tmp_path / "notes.txt").write_text("not judgments")
    assert read_annotators(tmp_path).annotators == ("anna.jsonl", "ben.jsonl")
    assert read_annotators(tmp_path / "anna.jsonl").annotators == ("anna.jsonl",)
    (tmp_path / "ben.jsonl").write_text(json.dumps({"request_id": "1"}) + "\n")
    (tmp_path / "empty").mkdir()
    for path, name in ((tmp_path, "ben.jsonl"), (tmp_path / "empty", "empty")):
        with pytest.raises(EvaluatorError) as caught:
            read_annotators(path)
        assert name in "".join(caught.value.lines())
