"""Judgments files: three spellings in, one out, and whether they suffice."""

from __future__ import annotations

import functools
import json
import operator
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import schemas
from evaluator.argue import (
    JudgedReport,
    Judgment,
    JudgmentType,
    Match,
    load_judgments,
    read_judgments,
    validate_judgments,
)
from evaluator.argue.formats import judgments as j
from evaluator.argue.formats.judgments import judged_of, write_judgments
from evaluator.errors import EvaluatorError
from tests.worlds.argue_making import bank, cited, judged, lines, uncited

Q = "What is the capital?"
BANK = bank({Q: ("OR", {"Bonn": ["d1"], "Berlin": []}), "Is it known?": ("OR", {"no": []})})
REPORT = JudgedReport(
    "t1", "r",
    (
        cited("Bonn.", ("d1", True, True, {Q: ["Bonn"]}), ("d2", False, False, {}), more=(j.wrong_answers([], "m"),)),
        uncited("It is nice.", True, False),
        uncited("Nobody knows.", more=(j.negative_assertion(True, "m"), j.negative_confirmed([Match("Is it known?", ())], "m"))),
    ),
    ("neuclir/1/ru",),
)  # fmt: skip


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_judgments([REPORT], tmp_path / "x.judgments.jsonl")
    (again,) = load_judgments(tmp_path / "x.judgments.jsonl")
    for name in ("request_id", "run_id", "segments", "collection_ids"):
        assert getattr(again, name) == getattr(REPORT, name)
    assert schemas.validate(REPORT.model_dump(), "argue-judgments") == []
    assert [p.name for p in tmp_path.iterdir()] == ["x.judgments.jsonl"]


def test_the_keys_are_in_the_documented_order() -> None:
    data = REPORT.model_dump()
    assert list(data) == ["request_id", "run_id", "collection_ids", "segments"]
    segment = data["segments"][0]
    assert list(segment) == ["segment_type", "text", "citations", "judgments"]
    assert segment["citations"][0] == {"doc_id": "d1", "text": "text"}
    nowhere = {"sentence": None, "run_id": None, "sent_id": None}
    assert segment["judgments"][:3] == [
        {"judgment_type_id": "CITED_DOCUMENT_RELEVANCE",
         "response": {"judgment_type_id": "CITED_DOCUMENT_RELEVANCE", "doc_id": "d1", "is_relevant": True},
         "evaluator": "null", "provenance": {"doc_id": "d1", **nowhere}},
        {"judgment_type_id": "SENTENCE_ANSWERS_QUESTION",
         "response": {"judgment_type_id": "SENTENCE_ANSWERS_QUESTION", "matched_nuggets": [
             {"question_text": Q, "matched_answer": ["Bonn"], "importance": None}]},
         "evaluator": "test", "provenance": {"doc_id": "d1", **nowhere}},
        {"judgment_type_id": "SENTENCE_ATTESTED",
         "response": {"judgment_type_id": "SENTENCE_ATTESTED", "is_attested": True},
         "evaluator": "test", "provenance": {"doc_id": "d1", **nowhere}},
    ]  # fmt: skip
    assert data["segments"][1]["judgments"][0]["provenance"] == {"doc_id": None, **nowhere}


def test_three_spellings() -> None:
    data = REPORT.model_dump()
    head = {"metadata": {"team_id": "t", "topic_id": "t1", "run_id": "r", "collection_ids": ["neuclir/1/ru"]},
            "responses": [], "references": []}  # fmt: skip
    for other in (
        {"report": head, "judgments": data["segments"]},
        {"report": head, "sentence_judgments": data["segments"]},
        {"report": {"request_id": "t1", "run_id": "r", "collection_ids": ["neuclir/1/ru"], "sentences": []},
         "judgments": data["segments"]},
        {"request_id": "t1", "run_id": "r", "collection_ids": ["neuclir/1/ru"], "segments": data["segments"]},
    ):  # fmt: skip
        found, problems = judged_of(other)
        assert problems == [] and found == REPORT


def test_extras_and_facts_about_the_judge_are_kept() -> None:
    data = JudgedReport("t", "r", (uncited("a", True),), judge={"model": "m"}).model_dump()
    assert list(data)[-1] == "judge"
    data["segments"][0]["judgments"][0]["defaulted"] = True
    found, _ = judged_of(data)
    assert found is not None and found.judge == {"model": "m"}
    assert found.segments[0].judgments[0].extra == {"defaulted": True}


@pytest.mark.parametrize("key", ["requires_citation", "is_required", "value", "judgment"])
def test_any_single_boolean_is_read(key: str) -> None:
    data = judged(uncited("a", True)).model_dump()
    response = data["segments"][0]["judgments"][0]["response"]
    del response["requires_citation"]
    response[key] = False
    found, problems = judged_of(data)
    assert problems == [] and found is not None
    assert found.segments[0].judgments[0].value is False


def test_an_old_line_may_have_plain_citations_and_no_provenance() -> None:
    row = {"request_id": 5, "run_id": "r", "segments": [{"text": "a", "citations": ["d1"], "judgments": [
        {"judgment_type_id": "CITED_DOCUMENT_RELEVANCE", "response": {"doc_id": "d1", "is_relevant": True}},
        {"response": {"judgment_type_id": "SENTENCE_ANSWERS_QUESTION", "matched_nuggets": [
            {"question_text": Q, "matched_answer": "Bonn"}]}, "evaluator": "x", "provenance": {"doc_id": "d1"}}]}]}  # fmt: skip
    found, problems = judged_of(row)
    assert problems == [] and found is not None and found.request_id == "5"
    assert found.segments[0].judgments[0].doc_id == "d1"
    assert found.segments[0].judgments[1].matches == (Match(Q, ("Bonn",)),)


@pytest.mark.parametrize(
    ("path", "value", "pointer"),
    [
        ("segments", None, "/segments"),
        ("request_id", None, ""),
        ("run_id", 3, "/run_id"),
        ("segments/0", "x", "/segments/0"),
        ("segments/0/text", 1, "/segments/0"),
        ("segments/0/citations", "x", "/segments/0/citations"),
        ("segments/0/citations/0", {}, "/segments/0/citations/0"),
        ("segments/0/judgments", {}, "/segments/0/judgments"),
        ("segments/0/judgments/0/response", None, "/segments/0/judgments/0"),
        (
            "segments/0/judgments/0/judgment_type_id",
            "HAS_CITATIONS",
            "/segments/0/judgments/0/judgment_type_id",
        ),
        ("segments/0/judgments/0/response/is_relevant", "yes", "/segments/0/judgments/0/response"),
        ("segments/0/judgments/0/provenance/doc_id", 3, "/segments/0/judgments/0/provenance/doc_id"),
        (
            "segments/0/judgments/1/response/matched_nuggets",
            None,
            "/segments/0/judgments/1/response/matched_nuggets",
        ),
        (
            "segments/0/judgments/1/response/matched_nuggets/0",
            "x",
            "/segments/0/judgments/1/response/matched_nuggets/0",
        ),
    ],
)
def test_problem_names_its_line_and_pointer(path: str, value: Any, pointer: str, tmp_path: Path) -> None:
    data = json.loads(json.dumps(REPORT.model_dump()))
    *keys, last = [int(key) if key.isdigit() else key for key in path.split("/")]
    functools.reduce(operator.getitem, keys, data)[last] = value
    file = lines(tmp_path / "j.jsonl", JudgedReport("t0", "r", ()).model_dump(), data)
    found, problems = read_judgments(file)
    assert [r.request_id for r in found] == ["t0"]
    assert ("j.jsonl:2", pointer) in [(p.where, p.pointer) for p in problems]


def test_two_judged_reports_of_a_topic(tmp_path: Path) -> None:
    path = lines(tmp_path / "j.jsonl", REPORT.model_dump(), REPORT.model_dump(), "{")
    with pytest.raises(EvaluatorError) as caught:
        load_judgments(path)
    assert re.findall(r"j\.jsonl:(\d)", caught.value.why) == ["2", "3"]
    assert '"r"' in caught.value.why and '"t1"' in caught.value.why
    with pytest.raises(EvaluatorError):
        load_judgments(lines(tmp_path / "none.jsonl"))


# --- validation ----------------------------------------------------------------------------------------------


def test_complete_judgments_are_valid() -> None:
    assert validate_judgments(REPORT, BANK) == []


NEEDED = (j.T.CITED_DOCUMENT_RELEVANCE, j.T.SENTENCE_ATTESTED, j.T.REQUIRES_CITATION, j.T.FIRST_INSTANCE)


@pytest.mark.parametrize(
    ("i", "n"), [(i, n) for i, s in enumerate(REPORT.segments) for n in range(len(s.judgments))]
)
def test_every_judgment_that_scoring_needs_is_missed(i: int, n: int) -> None:
    segments = list(REPORT.segments)
    judgments = list(segments[i].judgments)
    removed = judgments.pop(n)
    segments[i] = replace(segments[i], judgments=tuple(judgments))
    needed = removed.type in NEEDED
    problems = validate_judgments(JudgedReport("t1", "r", tuple(segments)), BANK)
    assert bool(problems) == needed
    assert not needed or str(removed.type) in str(problems[0])


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        (cited("a", ("d1", True, True, {"No question?": ["x"]})), '"No question?"'),
        (cited("a", ("d1", True, True, {Q: ["Berlin"]})), '"Berlin"'),
        (cited("a", ("d1", True, True, {Q: []})), Q),
        (cited("a", ("d1", True, True, {}), more=(j.attested("d1", True, "m"),)), 'ATTESTED about "d1"'),
        (cited("a", ("d1", True, True, {}), more=(j.attested("d7", True, "m"),)), '"d7"'),
        (cited("a", ("d1", True, True, {}), more=(j.wrong_answers([Match(Q, ("Bonn",))], "m"),)), '"Bonn"'),
        (uncited("a", more=(j.negative_confirmed([Match(Q, ())], "m"),)), Q),
    ],
)  # fmt: skip
def test_validation_says_what_is_wrong(segment: Any, expected: str) -> None:
    problems = validate_judgments(judged(segment), BANK)
    assert len(problems) == 1 and expected in str(problems[0]), list(map(str, problems))


def test_a_judgment_has_a_value_or_matches() -> None:
    with pytest.raises(ValueError):
        Judgment(JudgmentType.SENTENCE_ATTESTED)
    with pytest.raises(ValueError):
        Judgment(JudgmentType.SENTENCE_ANSWERS_QUESTION, True)
