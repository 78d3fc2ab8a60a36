from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecars.search.analysis import keyword, tokens
from sidecars.search.text import TextIndex
from tests.worlds.search_arguments import argument, bm25, kept_length


def test_three_documents_computed_by_hand(asking: Callable[..., Any]) -> None:
    """N = 3, average length (2 + 3 + 4) / 3 = 3, b = 0.75, k1 = 1.2.

    cats: df 2, idf = ln(1 + 1.5 / 2.5) = ln 1.6 = 0.4700036. dogs: df 1, idf = ln(1 + 2.5 / 1.5) = 0.9808293.
    """
    texts = ["cats purr", "cats chase cats", "dogs chase every ball"]
    ask = asking([argument(f"1.{i}", text) for i, text in enumerate(texts)], vectors=False)
    hits = ask.search({"query": {"match": {"text": "cats"}}, "_source": False})["hits"]["hits"]
    # 1.1: tf 2, length 3: 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 3)) = 4.4 / 3.2 = 1.375
    # 1.0: tf 1, length 2: 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 3)) = 2.2 / 1.9 = 1.1578947
    assert [hit["_id"] for hit in hits] == ["1.1", "1.0"]
    assert [hit["_score"] for hit in hits] == pytest.approx(
        [0.4700036 * 1.375, 0.4700036 * 1.1578947], rel=1e-6
    )
    # 1.2: tf 1, length 4: 2.2 / (1 + 1.2 * (0.25 + 1)) = 2.2 / 2.5 = 0.88
    answer = ask.search({"query": {"match": {"text": "dogs"}}})["hits"]
    assert answer["max_score"] == answer["hits"][0]["_score"] == pytest.approx(0.9808293 * 0.88, rel=1e-6)


def test_a_repeated_word_in_a_query_counts_twice_and_scores_of_words_are_added(
    asking: Callable[..., Any],
) -> None:
    ask = asking([argument("1.0", "cats purr"), argument("1.1", "dogs bark")], vectors=False)

    def score(query: str) -> float:
        return float(ask.search({"query": {"match": {"text": query}}})["hits"]["hits"][0]["_score"])

    assert score("cats cats") == pytest.approx(2 * score("cats"), rel=1e-6)
    assert score("cats purr") == pytest.approx(2 * score("cats"), rel=1e-6)


def test_the_length_is_kept_in_one_byte() -> None:
    lengths = {1: 1, 23: 23, 24: 24, 39: 39, 40: 40, 41: 40, 42: 42, 57: 56, 73: 72, 96: 96}
    assert {n: kept_length(n) for n in lengths} == lengths


def test_equal_scores_come_in_the_order_of_the_index(asking: Callable[..., Any]) -> None:
    arguments = [
        argument(f"1.{i}", "rare words here" if i % 3 else "rare words here, really") for i in range(60)
    ]
    ask = asking(arguments, vectors=False)
    expected = [f"1.{i}" for i in range(60) if i % 3] + [f"1.{i}" for i in range(60) if not i % 3]
    assert ask.ids({"match": {"text": "rare words"}}, size=60) == expected
    pages = [
        ask.ids({"match": {"text": "rare words"}}, size=7, **{"from": start}) for start in range(0, 60, 7)
    ]
    assert [name for page in pages for name in page] == expected


WORDS = st.sampled_from(["ban", "cars", "in", "the", "of", "cities", "trams", "don't", "1,000"])


@settings(max_examples=60, deadline=None)
@given(
    documents=st.lists(st.lists(WORDS, min_size=1, max_size=70), min_size=1, max_size=12),
    query=st.lists(WORDS, min_size=1, max_size=8),
    every=st.booleans(),
)
def test_the_same_scores_and_order_as_the_formula(
    documents: list[list[str]], query: list[str], every: bool
) -> None:
    from tantivy import Occur, Query

    index = TextIndex.build(
        ({"id": str(i), "text": " ".join(words)} for i, words in enumerate(documents)), ["id", "text"]
    )
    occur = Occur.Must if every else Occur.Should
    wanted = Query.boolean_query([(occur, index.word("text", word)) for word in tokens(" ".join(query))])
    found, total = index.search(wanted, 100)
    expected = bm25(documents, query)
    matching = {
        i for i, words in enumerate(documents) if (all if every else any)(word in words for word in query)
    }
    assert {place for place, _ in found} == matching
    assert total == len(matching)
    for place, score in found:
        assert math.isclose(score, expected[place], rel_tol=1e-5)
    assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Cars, cars & CARS!", ["cars", "cars", "cars"]),
        ("I don't know", ["i", "don't", "know"]),
        ("‘quoted’ words", ["quoted", "words"]),
        ("the U.S. and u.s", ["the", "u.s", "and", "u.s"]),
        ("id 10104.845 of 1,000", ["id", "10104.845", "of", "1,000"]),
        ("end.Start of state-of-the-art", ["end.start", "of", "state", "of", "the", "art"]),
        ("snake_case stays", ["snake_case", "stays"]),
        ("Zu\u0308rich", ["zürich"]),
        ("ÄRGER", ["ärger"]),
        ("--- ... ?!", []),
        ("", []),
        ("\ud800 lone half", ["lone", "half"]),
        ("x" * 600, ["x" * 255, "x" * 255, "x" * 90]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert tokens(text) == words


@given(st.text(max_size=400))
def test_words_can_be_written_one_after_another(text: str) -> None:
    found = tokens(text)
    assert " ".join(found).split() == found
    assert all(0 < len(word) <= 255 for word in found)
    "".join(found).encode("utf-8")


def test_keywords_are_values_that_are_not_too_long() -> None:
    assert keyword("Two Words") == "Two Words"
    assert keyword("x" * 256) == "x" * 256
    assert keyword("x" * 257) is None
    assert keyword("a\ud800") == "a?"
