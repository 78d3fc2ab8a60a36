"""Every measure of one report, computed by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluator.argue import Bank, JudgedReport, Match, Options, Segment, score_topic
from evaluator.argue.formats import judgments as j
from evaluator.argue.formats.report import Report
from evaluator.argue.scoring.copied import Copied, copied
from evaluator.argue.scoring.explaining import explain, explanation
from evaluator.argue.scoring.topic import TopicScores
from evaluator.errors import EvaluatorError
from tests.worlds.argue_making import bank, cited, judged, uncited
from tests.worlds.argue_making import report as report_data

CAPITAL, RIVERS = "What is the capital?", "Which rivers are there?"
NUGGETS = {
    CAPITAL: ("OR vital", {"Bonn": ["d1"], "Bonn am Rhein": ["d2"], "Berlin": []}),
    RIVERS: ("AND", {"Rhine": ["d1"], "Sieg": ["d3"]}),
}


def score(report: JudgedReport, nuggets: Bank | None = None, **options: object) -> TopicScores:
    return score_topic(report, nuggets or bank(NUGGETS), Options(**options))  # type: ignore[arg-type]


def values(report: JudgedReport, nuggets: Bank | None = None, **options: object) -> dict[str, float]:
    return dict(score(report, nuggets, **options).values)


def effects(report: JudgedReport, nuggets: Bank | None = None, **options: object) -> list[list[str]]:
    sentences = score(report, nuggets, **options).sentences
    return [[f"{e.kind} {e.code}" for e in s.effects] for s in sentences]


def test_a_report_with_everything() -> None:
    report = judged(
        cited("Bonn is the capital.", ("d1", True, True, {CAPITAL: ["Bonn"]})),  # 20 characters
        cited(
            "It lies on the Rhine.", ("d1", True, True, {RIVERS: ["Rhine"]}), ("d9", False, False, {})
        ),  # 21
        uncited("It has a cathedral.", True, True),  # 19
        uncited("A cathedral it has.", True, False),  # 19
        uncited("So much for Bonn."),  # 17
    )
    assert values(report) == {
        "sentences": 5,
        "character_count": 96,
        "sentences_with_citations_or_requiring_citations": 3,
        "correctly_cited_sentences": 1,
        "sentences_missing_citation": 2,
        "first_instance_sentences_missing_citation": 1,
        "nuggets": 2,
        "nuggets_weighted": 3,
        "correct_nuggets": 1,  # one river of two is not enough
        "correct_nuggets_weighted": 2,
        "citations": 3,
        "relevant_citations": 2,
        "supporting_citations": 2,
        "citation_relevance": 2 / 3,
        "citation_support": 2 / 3,
        "sentence_support": 1 / 3,
        "nugget_coverage": 1 / 2,
        "nugget_coverage_weighted": 2 / 3,
        "f1": pytest.approx(2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2)),  # = 0.4
        "f1_weighted": pytest.approx(4 / 9),
    }
    assert effects(report) == [
        ["reward supported", "reward nugget"],
        ["penalty unsupported", "none irrelevant", "none nugget-part"],
        ["penalty missing-citation"],
        ["none said-before"],
        ["none no-citation-needed"],
    ]


def test_without_sentences_citations_or_nuggets_measures_are_zero() -> None:
    found = values(judged())
    assert {k for k, v in found.items() if v} == {"nuggets", "nuggets_weighted"} and found["nuggets"] == 2
    found = values(judged(uncited("Bonn."), uncited("Rhine.", True)))
    assert found["sentences_with_citations_or_requiring_citations"] == 1
    for measure in ("citations", "citation_support", "citation_relevance", "sentence_support", "f1"):
        assert found[measure] == 0.0
    found = values(judged(uncited("Hello."), uncited("Bye.")))
    assert found["sentences_with_citations_or_requiring_citations"] == 0 and found["sentence_support"] == 0.0
    report = judged(cited("x", ("d1", False, True, {})))
    found = values(report, bank({CAPITAL: ("OR", {"Berlin": []})}))
    assert (found["nuggets"], found["nugget_coverage"], found["f1"]) == (0, 0.0, 0.0)
    assert found["sentence_support"] == 1.0 and found["citation_support"] == 1.0


@pytest.mark.parametrize(
    ("first", "second", "correct"),
    [(["Rhine"], [], 0), (["Rhine"], ["Rhine"], 0), (["Rhine"], ["Sieg"], 1), (["Rhine", "Sieg"], [], 1)],
)
def test_and_needs_all_answers_from_any_sentences(first: list[str], second: list[str], correct: int) -> None:
    report = judged(
        cited("a", ("d1", True, True, {RIVERS: first})),
        cited("b", ("d3", True, True, {RIVERS: second} if second else {})),
    )
    assert values(report)["correct_nuggets"] == correct


def test_two_answers_of_an_or_nugget_count_once() -> None:
    report = judged(
        cited("a", ("d1", True, True, {CAPITAL: ["Bonn"]}), ("d2", True, True, {CAPITAL: ["Bonn am Rhein"]})),
        cited("b", ("d1", True, True, {CAPITAL: ["Bonn"]})),
    )
    assert values(report)["correct_nuggets"] == 1
    assert effects(report) == [["reward supported", "reward nugget", "none nugget-again"],
                               ["reward supported", "none nugget-again"]]  # fmt: skip


def test_an_answer_without_references_is_never_credited() -> None:
    report = judged(cited("Berlin.", ("d1", True, True, {CAPITAL: ["Berlin"]})))
    with pytest.raises(EvaluatorError) as caught:
        values(report)
    assert '"Berlin"' in caught.value.why
    assert values(report, incomplete="default", credit="none")["correct_nuggets"] == 0
    assert effects(report, incomplete="default") == [["reward supported", "none not-in-nuggets"]]


def test_a_document_counts_once_for_each_sentence_that_cites_it() -> None:
    once = cited("a", ("d1", True, True, {CAPITAL: ["Bonn"]}))
    twice = Segment(once.text, once.citations * 2, once.judgments)
    assert values(judged(twice)) == values(judged(once))
    found = values(judged(once, cited("b", ("d1", True, False, {}))))
    assert (found["citations"], found["supporting_citations"]) == (2, 1)


def test_an_unknown_document_supports_nothing_and_is_not_relevant() -> None:
    found = values(judged(cited("a", ("nowhere", False, False, {}), ("d1", True, True, {CAPITAL: ["Bonn"]}))))
    assert (found["citations"], found["relevant_citations"], found["supporting_citations"]) == (2, 1, 1)
    assert found["correctly_cited_sentences"] == 0 and found["correct_nuggets"] == 1


@pytest.mark.parametrize(
    ("credit", "own", "other", "correct"),
    [
        ("citation", True, True, 1), ("citation", True, False, 1), ("citation", False, True, 0),
        ("sentence", True, True, 1), ("sentence", True, False, 0), ("sentence", False, True, 0),
        ("none", False, False, 1), ("none", True, True, 1),
    ],
)  # fmt: skip
def test_credit_policies(credit: str, own: bool, other: bool, correct: int) -> None:
    report = judged(cited("a", ("d1", True, own, {CAPITAL: ["Bonn"]}), ("d3", True, other, {})))
    assert values(report, credit=credit)["correct_nuggets"] == correct


def test_an_irrelevant_document_earns_no_nugget() -> None:
    report = judged(cited("a", ("d1", False, True, {CAPITAL: ["Bonn"]})))
    assert values(report)["correct_nuggets"] == 0
    assert effects(report) == [["reward supported", "none irrelevant", "none match-irrelevant"]]


def test_a_match_that_names_no_document_takes_any_supporting_one() -> None:
    loose = j.Judgment(j.T.SENTENCE_ANSWERS_QUESTION, None, None, (Match(CAPITAL, ("Bonn",)),))
    report = judged(cited("a", ("d1", True, False, {}), ("d2", True, True, {}), more=(loose,)))
    assert values(report, incomplete="default")["correct_nuggets"] == 1
    assert values(report, incomplete="default", credit="sentence")["correct_nuggets"] == 0


def test_missing_judgments_are_refused_or_take_their_defaults() -> None:
    report = judged(Segment("a", cited("a", ("d1", True, True, {})).citations), Segment("b"))
    with pytest.raises(EvaluatorError) as caught:
        values(report)
    assert "SENTENCE_ATTESTED" in caught.value.why and "REQUIRES_CITATION" in caught.value.why
    found = values(report, incomplete="default")
    assert (found["supporting_citations"], found["first_instance_sentences_missing_citation"]) == (0, 1)


@pytest.mark.parametrize(("kind", "weight"), [("OR vital", 2.0), ("OR okay", 1.0), ("OR", 1.0)])
def test_weights(kind: str, weight: float) -> None:
    assert values(judged(), bank({CAPITAL: (kind, {"Bonn": ["d1"]})}))["nuggets_weighted"] == weight


def test_without_labels_weighted_is_plain() -> None:
    nuggets = bank({CAPITAL: ("OR", {"Bonn": ["d1"]}), RIVERS: ("OR", {"Rhine": ["d1"]})})
    found = values(judged(cited("a", ("d1", True, True, {CAPITAL: ["Bonn"]}))), nuggets)
    assert found["nugget_coverage_weighted"] == found["nugget_coverage"] == 0.5
    assert found["f1_weighted"] == found["f1"]


# --- our additions -------------------------------------------------------------------------------------------


def wrong(*answers: str) -> tuple[j.Judgment, ...]:
    return (j.wrong_answers([Match(CAPITAL, answers)] if answers else [], "test"),)


def test_strict_takes_an_or_nugget_away_for_a_kept_out_answer() -> None:
    good = cited("Bonn.", ("d1", True, True, {CAPITAL: ["Bonn"]}), more=wrong())
    assert values(judged(good), strict=True)["correct_nuggets_strict"] == 1
    report = judged(good, uncited("No, Berlin.", more=wrong("Berlin")))
    found = values(report, strict=True)
    assert found["correct_nuggets"] == 1 and found["correct_nuggets_strict"] == 0
    assert (found["nugget_coverage"], found["nugget_coverage_strict"]) == (0.5, 0.0)
    for measure in ("nugget_coverage_strict_weighted", "f1_strict", "f1_strict_weighted"):
        assert found[measure] == 0
    assert effects(report, strict=True)[1] == ["none no-citation-needed", "penalty wrong-answer"]


def test_strict_leaves_comparable_figures_alone_and_and_nuggets_too() -> None:
    report = judged(
        cited("a", ("d1", True, True, {CAPITAL: ["Bonn"], RIVERS: ["Rhine"]}), more=wrong("Berlin")),
        cited("b", ("d3", True, True, {RIVERS: ["Sieg"]}), more=wrong()),
    )
    plain, strict = values(report), values(report, strict=True)
    assert {k: strict[k] for k in plain} == plain
    assert strict["correct_nuggets_strict"] == 1  # the AND nugget
    assert not any("strict" in name for name in plain)


def test_additions_need_their_judgments() -> None:
    report = judged(cited("a", ("d1", True, True, {})))
    with pytest.raises(EvaluatorError) as caught:
        values(report, strict=True)
    assert "SENTENCE_GIVES_WRONG_ANSWER" in caught.value.why
    values(report, bank({CAPITAL: ("OR", {"Bonn": ["d1"]})}), strict=True)  # no answer is kept out
    with pytest.raises(EvaluatorError) as caught:
        values(judged(uncited("a")), negation=True)
    assert "NEGATIVE_ASSERTION" in caught.value.why


def test_negative_assertions() -> None:
    question = "Is the number known?"
    nuggets = bank({CAPITAL: ("OR", {"Bonn": ["d1"]}), question: ("OR", {"no": []})})
    confirmed = (j.negative_assertion(True, "test"), j.negative_confirmed([Match(question, ())], "test"))
    refuted = (j.negative_assertion(True, "test"), j.negative_confirmed([], "test"))
    plain = (j.negative_assertion(False, "test"),)
    report = judged(
        cited("Bonn.", ("d1", True, True, {CAPITAL: ["Bonn"]})),
        uncited("The number is not known.", True, True, more=confirmed),
        uncited("Nobody knows the name.", more=refuted),
        uncited("Bye.", more=plain),
    )
    found = values(report, nuggets, negation=True)
    assert found["negative_assertions"] == 2 and found["confirmed_negative_assertions"] == 1
    assert found["unanswerable_nuggets"] == 1 and found["confirmed_unanswerable_nuggets"] == 1
    # 1 supported + 1 confirmed of: 1 cited, 1 negative that was penalised before, 1 other negative
    assert (found["rewarded_sentences_negation"], found["scored_sentences_negation"]) == (2, 3)
    assert found["sentence_support_negation"] == 2 / 3
    assert found["nugget_coverage_negation"] == 1.0  # 2 of 2
    assert found["f1_negation"] == pytest.approx(0.8)
    comparable = values(report, nuggets)
    assert {k: found[k] for k in comparable} == comparable
    assert comparable["sentence_support"] == 0.5 and comparable["nuggets"] == 1
    assert effects(report, nuggets, negation=True)[1:] == [
        ["penalty missing-citation", "reward negation-confirmed"],
        ["none no-citation-needed", "penalty negation-unconfirmed"],
        ["none no-citation-needed"],
    ]


# --- explanations --------------------------------------------------------------------------------------------


def test_the_explanation_shows_every_effect_and_is_printable(golden: Callable[[str, str], None]) -> None:
    scores = score(judged(
        cited("Bonn\x1b[2J is it.", ("d\x071", True, True, {})),
        cited("Yes.", ("d1", True, False, {CAPITAL: ["Bonn"]})),
        cited("Really.", ("d2", True, True, {CAPITAL: ["Bonn am Rhein"]})),
    ))  # fmt: skip
    assert explain(scores).replace("\n", "").isprintable()
    golden("argue-explanation.txt", explain(scores))
    data = explanation(scores)
    assert data["compat"] == "argue-compat 1"
    assert data["nuggets"][0]["answers"][1] == {"answer": "Bonn am Rhein", "given": True}
    assert data["sentences"][1]["effects"][0]["code"] == "unsupported"


# --- copied words ----------------------------------------------------------------------------------------------

SOURCE = "The electric ferry entered service in May 2021 and carries twelve cars on every crossing."


def shares(*sentences: tuple[str, list[str]]) -> Copied:
    return copied(Report.model_validate(report_data(sentences=list(sentences))), {"d": SOURCE}.get)


OWN_WORDS = "Since 2021 a ferry without an engine takes cars across the river"
SEVEN_WORDS, FEW_WORDS = "entered service in May 2021 and carries", "Seven words are too few"


def test_a_copied_sentence_is_found_and_one_in_own_words_is_not() -> None:
    assert shares((SOURCE.upper().replace(" ", ", "), ["d"])) == Copied(15, 15)
    assert shares((OWN_WORDS, ["d"])).share == 0
    half = "As we know, " + " ".join(SOURCE.split()[:9])
    assert shares((half, ["d"])) == Copied(9, 12)
    assert shares((SEVEN_WORDS, ["d"])).copied == 0


def test_copied_words_count_in_the_document_that_is_cited_only() -> None:
    assert shares((SOURCE, [])) == Copied(0, 0)
    assert shares((SOURCE, ["elsewhere"])) == Copied(0, 15)
    assert shares((SOURCE, ["elsewhere", "d"]), (FEW_WORDS, ["d"])) == Copied(15, 20)
