"""The offline judge: what it sees in texts, and that its published accuracy is what comes out."""

from __future__ import annotations

import asyncio
import json
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.argue.asking import Question, Verdict
from evaluator.argue.judges import tuning
from evaluator.argue.judges.embedding import Embedder, embedder
from evaluator.argue.judges.features import NAMES, embedded, features, requires
from evaluator.argue.judges.lexical import RULES, LexicalJudge, reliability, rules
from evaluator.argue.judges.wording import OPPOSITES, digits, direction, sentences, stem, turned, wording
from evaluator.argue.models import JudgmentType

T = JudgmentType
DOCUMENT = (
    "Title: The ferry.\n\nContent: The electric ferry entered service in May 2021. It has twelve cabins. "
    "The fare increased by 20 per cent. Noise was lower than expected."
)


def says(kind: JudgmentType, sentence: str, **more: str) -> bool:
    return asyncio.run(LexicalJudge().decide(Question(kind, sentence, **more))).value


# --- the published figures ---------------------------------------------------------------------------------------


def test_published_weights_and_figures_are_what_comes_out() -> None:
    assert tuning.text_of(tuning.tune()) == RULES.read_text("utf-8")


def test_check_says_whether_the_file_is_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "tune", lambda: {"a": 1})
    monkeypatch.setattr(tuning, "RESULT", tmp_path / "lexical.json")
    assert tuning.main([]) == tuning.main(["--check"]) == 0
    monkeypatch.setattr(tuning, "tune", lambda: {"a": 2})
    assert tuning.main(["--check"]) == 1
    assert json.loads((tmp_path / "lexical.json").read_text()) == {"a": 1}


def test_at_least_two_hundred_labelled_pairs_half_of_them_unseen() -> None:
    pairs = tuning.read_pairs()
    assert len(pairs) >= 200
    assert len({p.id for p in pairs}) == len(pairs)
    by_half = {half: [p for p in pairs if p.half == half] for half in ("tune", "measure")}
    assert sum(map(len, by_half.values())) == len(pairs)
    for kind in {p.question.type for p in pairs}:
        tune, measure = (sum(p.question.type is kind for p in by_half[h]) for h in ("tune", "measure"))
        assert 0.4 < measure / (tune + measure) < 0.6
    # No text is in both halves: neither a document nor a question.
    for field in ("document", "nugget_question", "sentence"):
        tune, measure = ({getattr(p.question, field) for p in by_half[h]} - {""} for h in ("tune", "measure"))
        assert not tune & measure
    for half in by_half.values():
        assert 0.4 < sum(p.label for p in half) / len(half) < 0.6


def test_the_judge_says_what_the_figures_claim() -> None:
    judge = LexicalJudge()
    right = [
        judge.says(p.question) == p.label
        for p in tuning.read_pairs()
        if p.half == "measure" and p.question.type is T.SENTENCE_ATTESTED
    ]
    assert round(sum(right) / len(right), 4) == rules()["types"]["SENTENCE_ATTESTED"]["measured"]["accuracy"]


def test_its_accuracy_stands_beside_what_it_says() -> None:
    facts = LexicalJudge().facts()
    figures = facts["reliability"]
    assert figures == reliability()
    assert figures["labelled pairs"] == sum(p.half == "measure" for p in tuning.read_pairs()) >= 200
    for kind, row in rules()["types"].items():
        if "measured" in row:
            assert figures[f"accuracy {kind.lower().replace('_', ' ')}"] == row["measured"]["accuracy"]
            low, high = row["measured"]["interval"]
            assert low < row["measured"]["accuracy"] < high
    assert facts["model"] and facts["prompts"].startswith("sha256:")


def test_figures_by_hand() -> None:
    found = tuning.figures([(True, True), (True, False), (False, False), (False, False), (False, True)])
    assert (found["pairs"], found["accuracy"], found["precision"], found["recall"]) == (5, 0.6, 0.5, 0.5)
    # Chance: (2 * 2 + 3 * 3) / 25.
    assert found["kappa"] == round((0.6 - 13 / 25) / (1 - 13 / 25), 4)
    # Wilson's interval of 3 in 5, from tables.
    assert found["interval"] == [pytest.approx(0.2307, abs=1e-3), pytest.approx(0.8824, abs=1e-3)]


def test_fitting_stays_near_what_is_expected_and_ends() -> None:
    expected = tuning.EXPECTED[T.REQUIRES_CITATION]
    constant, weights = tuning.fit([[0.0] * 3] * 4, [True, True, False, False], expected)
    assert weights == list(expected[1])
    assert abs(constant) < 0.1
    # Perfectly separable, and far from what is expected: no step leads out of the numbers.
    rows = [[50.0, 0.0, 0.0]] * 9 + [[-50.0, 0.0, 0.0]] * 9
    _, weights = tuning.fit(rows, [True] * 9 + [False] * 9, expected)
    assert all(abs(w) < 100 for w in weights)


def test_broken_pairs_are_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": "a"}\n')
    with pytest.raises(tuning.EvaluatorError) as caught:
        tuning.read_pairs(path)
    assert "p.jsonl:1" in "".join(caught.value.lines())


# --- what it says ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "right"),
    [
        ("The electric ferry entered service in May 2021.", True),
        ("The electric ferry entered service in May 2019.", False),
        ("The fare increased by 20 per cent.", True),
        ("The fare decreased by 20 per cent.", False),
        ("Fishing is forbidden in the northern lakes.", False),
    ],
)
def test_plain_cases_of_support(sentence: str, right: bool) -> None:
    assert says(T.SENTENCE_ATTESTED, sentence, document=DOCUMENT) is right


@pytest.mark.parametrize(
    ("sentence", "needed"),
    [
        ("The fare increased by 20 per cent in 2021.", True),
        ("This report is about an electric ferry.", False),
        ("How loud is the ferry?", False),
    ],
)
def test_claims_need_citations_and_talk_about_the_report_does_not(sentence: str, needed: bool) -> None:
    assert says(T.REQUIRES_CITATION, sentence) is needed


@pytest.mark.parametrize(
    "tail", ["Thank you very much.", "Is it not?", "This report ends here.", "We now turn to noise."]
)
def test_politeness_behind_a_claim_does_not_excuse_it(tail: str) -> None:
    claim = "The fare increased by 20 per cent."
    assert requires(f"{claim} {tail}")[:2] == (0.0, 0.0)
    assert says(T.REQUIRES_CITATION, f"{claim} {tail}")


def test_a_bare_yes_in_a_sentence_proves_nothing() -> None:
    asked = {"nugget_question": "Is the ferry electric?", "nugget_answer": "yes"}
    plain = features(Question(T.SENTENCE_ANSWERS_QUESTION, "Boats are old.", **asked), None)
    loud = features(Question(T.SENTENCE_ANSWERS_QUESTION, "Boats are old. YES YES.", **asked), None)
    assert loud[0] <= plain[0]


def test_it_does_not_depend_on_what_else_was_asked_or_where() -> None:
    question = Question(T.SENTENCE_ATTESTED, "The ferry has twelve cabins.", DOCUMENT)
    judge = LexicalJudge()
    for pair in tuning.read_pairs()[:20]:
        judge.says(pair.question)
    assert judge.says(question) == LexicalJudge().says(question)
    assert judge.says(question._replace(topic="1", doc_id="2")) == judge.says(question)
    judge.forget()
    assert judge.says(question) == LexicalJudge().says(question)


@pytest.mark.slow
def test_questions_that_are_open_at_a_time_are_answered_as_each_alone() -> None:
    asked = [pair.question for pair in tuning.read_pairs()[:30]]
    texts = [*dict.fromkeys(text for one in asked for text in embedded(one))]

    async def ask(judge: LexicalJudge) -> list[Verdict]:
        return await asyncio.gather(*map(judge.decide, asked))

    embedder.cache_clear()
    alone = [LexicalJudge().says(one) for one in asked]
    embedder.cache_clear()
    assert [said.value for said in asyncio.run(ask(LexicalJudge()))] == alone
    many, single = Embedder(), Embedder()
    assert many.vectors(texts).tobytes() == b"".join(single.vectors([text]).tobytes() for text in texts)


@given(st.sampled_from(list(NAMES)), st.text(max_size=200), st.text(max_size=300))
def test_any_text_gives_bounded_numbers(kind: JudgmentType, sentence: str, other: str) -> None:
    found = features(Question(kind, sentence, other, other, other, other[:50]), None)
    assert len(found) == len(NAMES[kind])
    assert all(-1.0 <= value <= 2.0 for value in found)


# --- wording -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,200 ships", {"1200"}),
        ("Mach 2.01", {"2.01"}),
        ("a Mach number of 2. 01 .", {"2.01"}),
        ("In 1990. 30 people came.", {"1990", "30"}),
        ("directive no. 5524", {"5524"}),
        (".5 and 0.5", {"0.5"}),
        ("none", set()),
    ],
)
def test_numbers(text: str, numbers: set[str]) -> None:
    assert digits(text) == numbers


@pytest.mark.parametrize(
    ("text", "denials"), [("directive no. 5524", 0), ("There is no directive.", 1), ("It isn't so", 1)]
)
def test_a_number_sign_denies_nothing(text: str, denials: int) -> None:
    assert wording(text).denials == denials


def test_opposites_are_found_in_every_form() -> None:
    assert all(stem(root) for root in OPPOSITES)
    pairs = "increased decreasing, stabilizing destabilized, stable unstable, rises falls"
    for one, other in map(str.split, pairs.split(",")):
        assert turned(wording(f"It was {one}"), wording(f"It was {other}")) == 1, (one, other)
        assert turned(wording(f"It was {one}"), wording(f"It was {one}")) == 0
    for root, others in OPPOSITES.items():
        assert all(root in OPPOSITES[o] for o in others)


@pytest.mark.parametrize(
    ("sentence", "sign"),
    [
        ("Pressure was higher.", 1),
        ("Pressure fell.", -1),
        ("More pressure, less noise.", 0),
        ("Pressure was measured.", 0),
    ],
)
def test_direction(sentence: str, sign: int) -> None:
    assert direction(sentence) == sign


@given(st.text(alphabet=string.printable, max_size=300))
def test_sentences_lose_no_word(text: str) -> None:
    assert "".join(" ".join(sentences(text)).split()) == "".join(text.split())
