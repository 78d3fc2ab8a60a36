from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.search.analysis import keyword, tokens


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
