"""Automatic measures of turns, computed by hand; readability; agreement, beside an oracle."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.measures.agreement import agreement, alpha, kappa
from evaluator.measures.debate import (
    NAMES,
    content_words,
    count_words,
    groundedness,
    jaccard,
    p95,
    same_text,
)
from evaluator.measures.readability import grade, official, rounded, sentences, syllables


def test_words_are_what_blanks_separate() -> None:
    assert count_words("  one two\n three—four  ") == 3
    assert count_words(" \t\n") == 0


def test_content_words() -> None:
    cases = {
        "The nurses' cars don't run at NIGHT; a bus's cities.": "nurse car run night bus city",
        "And it is not so.": "",
        "ﬁre FIRE": "fire",  # compatibility forms are the same word
        # Harman's rules: -ies, -es, -s and their exceptions.
        "skies houses toes bus glass arguments": "sky house toes bus glass argument",
    }
    for text, expected in cases.items():
        assert content_words(text) == {*expected.split()}


def test_groundedness_by_hand() -> None:
    answer = content_words("Night buses fail nurses.")  # night, bus(e), fail, nurse
    evidence = content_words("No buses run at night.")
    assert groundedness(answer, evidence) == 2 / 4
    assert groundedness(answer, frozenset()) == 0.0
    assert groundedness(frozenset(), answer) == 0.0


def test_texts_are_compared_without_white_space_and_composition() -> None:
    assert same_text("a  b\n", " a b") and same_text("caf\u00e9", "cafe\u0301")
    assert not same_text("a b", "a b.")


def test_jaccard_and_p95() -> None:
    assert jaccard({"a", "b"}, {"b", "c"}) == 1 / 3 and jaccard((), ()) == 1.0
    assert p95([3.0]) == 3.0
    assert p95([float(n) for n in range(1, 21)]) == 19.0  # 19 of 20 are 95 %
    assert p95([float(n) for n in range(21, 0, -1)]) == 20.0


def test_the_official_example_of_readability() -> None:
    # 4 words in 1 sentence with 4 syllables: 0.39 * 4 + 11.8 * 1 - 15.59 = -2.23, which the convention rounds down.
    text = "No, you are wrong."
    assert grade(text) == -2.24
    assert official(text) == pytest.approx(-0.4464, abs=5e-5)


def test_readability_by_hand() -> None:
    text = "Cars are loud. Buses are not."  # 6 words, 2 sentences, syllables 1 1 1 2 1 1 = 7
    assert sentences(text) == 2
    assert grade(text) == rounded(0.39 * 3.0 + 11.8 * 1.17 - 15.59) == -0.62
    assert grade("...") is None and official("...") == 0.0
    assert sentences("e.g. this and 3. that") == 1  # a small letter goes on with the sentence
    counts = {"Cars": 1, "are": 1, "loud": 1, "Buses": 2, "not": 1, "table": 2, "television": 4}
    counts |= {"wanted": 2, "jumped": 1, "people": 2, "xyz": 1, "hmm": 1}
    assert {word: syllables(word) for word in counts} == counts
    assert (rounded(1.005), rounded(2.675), rounded(-2.23)) == (1.0, 2.68, -2.24)


@given(st.text(max_size=200))
def test_readability_never_raises(text: str) -> None:
    grade(text)
    official(text)
    content_words(text)


def test_kappa_by_hand() -> None:
    # Two annotators, 50 items: 20 both yes, 15 both no, 5 and 10 different: p_o 0.7, p_e 0.5 * 0.6 + 0.5 * 0.4 = 0.5.
    first = [1] * 20 + [1] * 5 + [0] * 10 + [0] * 15
    second = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    found = kappa(first, second)
    assert found.value == pytest.approx(0.4) and found.observed == 0.7 and found.items == 50
    assert kappa([1, 0], [0, 1]).value == -1.0
    assert kappa([1, 1, None], [1, 1, 0]) == (None, 1.0, 2)  # one label only
    assert kappa([None], [1]) == (None, 0.0, 0)


RATINGS = st.lists(st.lists(st.sampled_from([0, 1, None]), min_size=3, max_size=3), min_size=1, max_size=12)


@settings(deadline=None)
@given(RATINGS)
def test_alpha_is_that_of_the_package(items: list[list[int | None]]) -> None:
    found = alpha(items)
    counted = [row for row in items if sum(v is not None for v in row) >= 2]
    assert found.items == len(counted)
    if len({v for row in counted for v in row if v is not None}) < 2:
        assert found.value is None
        return
    table = np.array([[np.nan if v is None else v for v in row] for row in items], dtype=float).T
    assert found.value == pytest.approx(krippendorff.alpha(table, level_of_measurement="nominal"), abs=1e-12)


@settings(deadline=None)
@given(RATINGS, st.permutations([0, 1, 2]))
def test_alpha_knows_no_order_of_annotators(items: list[list[int | None]], order: list[int]) -> None:
    assert alpha([[row[k] for k in order] for row in items]).value == alpha(items).value


def test_agreement_of_one_question() -> None:
    found = agreement(
        {"x": {"a": 1, "b": 1}, "y": {"a": 0, "b": 1}, "z": {"b": None, "c": 0}, "w": {"a": 0, "b": 0}}
    )
    assert found["doubled"] == 3 and found["labels"] == 7
    assert found["annotators"]["b"] == {"judged": 3, "yes": 2}  # type: ignore[index]
    (pair,) = found["pairs"]  # type: ignore[misc]
    # p_o 2/3; shares of yes 1/3 and 2/3: p_e 2/9 + 2/9 = 4/9; (6/9 - 4/9) / (5/9) = 0.4
    assert pair["annotators"] == ["a", "b"] and pair["kappa"] == pytest.approx(0.4)


def test_names_are_all_documented() -> None:
    from evaluator.measures import debate

    assert all(f"``{name}``" in (debate.__doc__ or "") for name in NAMES)
