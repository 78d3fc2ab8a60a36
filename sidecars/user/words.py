"""Words and limits. A word is a run of characters that are not white space."""

from __future__ import annotations

import re

WORD_LIMIT = 60
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*$")


def clean(text: str) -> str:
    """``text`` on one line: white space is single blanks, and what cannot be printed is gone."""
    return "".join(char for char in " ".join(text.split()) if char.isprintable())


def count(text: str) -> int:
    """The number of words."""
    return len(text.split())


def fit(text: str, limit: int) -> str:
    """``text`` with at most ``limit`` words: cut after a sentence if that keeps half of them, else with an ellipsis."""
    words = text.split()
    if len(words) <= limit:
        return " ".join(words)
    for end in range(limit, limit // 2 - 1, -1):
        if end and _SENTENCE_END.search(words[end - 1]):
            return " ".join(words[:end])
    return " ".join(words[:limit]).rstrip(",;:-–—") + "…"


def quoted(text: str, words: int = 8) -> str:
    """The first words of ``text`` for quoting, with an ellipsis where there is more; no quotation marks inside."""
    found = clean(text).translate(str.maketrans("", "", '"“”„«»')).split()
    return " ".join(found[:words]).rstrip(".,;:") + ("…" if len(found) > words else "")
