"""Counting words by what a reader sees."""

from __future__ import annotations

import unicodedata

import pytest

from schemas.words import blank, count_words, longest_word, words

BLANK = ["\u2800", "\u3164", "\u115f", "\u1160", "\uffa0", "\u200b", "\U0001d159", "\x00", "\x1f", "\x85"]
SPACES = [" ", "\t", "\n", "\u00a0", "\u1680", "\u2003", "\u2028", "\u202f", "\u205f", "\u3000"]
UNSEEN = [
    "\u00ad", "\u034f", "\u061c", "\u180b", "\u180e", "\u200c", "\u200d", "\u200e", "\u202e", "\u2060", "\u2062", "\u206f",
    "\ufe00", "\ufe0f", "\ufeff", "\ufff9", "\U000e0020", "\U000e0100",
]  # fmt: skip


@pytest.mark.parametrize("between", [*BLANK, *SPACES, *UNSEEN], ids=lambda c: f"U+{ord(c):04X}")
def test_two_hundred_words_are_two_hundred_words(between: str) -> None:
    assert count_words(between.join(["word"] * 200)) == 200
    assert (
        count_words((between * 3).join(["Ünïon", "7", "μέτρο", "слово", "cafe\u0301", "e\u0301t\u0301"])) == 6
    )


def test_every_character_that_is_not_rendered_parts_latin_words() -> None:
    """Whatever Unicode has as format, control or separator, and is not drawn, parts words."""
    drawn = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
    egyptian = {chr(c) for c in range(0x13430, 0x13440)}  # marks of quadrats: they join hieroglyphs
    joined = [
        f"U+{c:04X}"
        for c in range(0x110000)
        if unicodedata.category(chr(c)) in ("Cc", "Cf", "Zs", "Zl", "Zp")
        and chr(c) not in drawn | egyptian
        and count_words(f"one{chr(c)}two") != 2
    ]
    assert joined == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("\u2800\u3164 \u200b", 0),
        ("\u200d\ufe0f \u00ad", 0),
        ("می\u200cخواهم بروم", 2),  # Persian: the joiner is spelling
        ("क्\u200dष", 1),
        ("👩\u200d👩\u200d👧 is one", 3),
        ("❤\ufe0f yes", 2),
        ("\u200eword\u200f", 1),
        ("well-known don't 3.5 e.g.", 4),
    ],
)
def test_what_belongs_to_a_word_stays_there(text: str, expected: int) -> None:
    assert count_words(text) == expected


def test_what_nobody_sees_is_blank() -> None:
    assert all(blank(text) for text in ("", " \n", "\u2800\u3164", "\u200d\u200e", *BLANK, *SPACES, *UNSEEN))
    assert not any(blank(text) for text in (".", "a", "\u200d.", "👍\ufe0f", "क्"))


def test_the_longest_word() -> None:
    assert longest_word("") == 0 and longest_word("a bcd\u2800ef") == 3 and longest_word("word," * 40) == 200
    assert words("one\u3164two three") == ["one", "two", "three"]
