"""How much of a report's cited sentences is copied from what they cite: sentences taken over word by word are always attested.

A word counts as copied when it stands in :data:`RUN` words in a row that a cited document has in the same order (case and
punctuation aside). Ours; it changes no score.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from evaluator.argue.formats.report import Report

RUN = 8  # words in a row: names and fixed phrases are shorter
_WORD = re.compile(r"\w+")


class Copied(NamedTuple):
    """Words that were copied, of all words, in the cited sentences of one report or several."""

    copied: int
    words: int

    @property
    def share(self) -> float:
        """Between 0 and 1; 0.0 where no sentence is cited."""
        return self.copied / self.words if self.words else 0.0


def copied(report: Report, text: Callable[[str], str | None]) -> Copied:
    """The copied words of a report; ``text`` gives a document (title and content) by its id."""
    runs: dict[str, set[tuple[str, ...]]] = {}
    taken = words = 0
    for sentence in report.sentences:
        cited = [str(citation) for citation in dict.fromkeys(sentence.citations)]
        if not cited:
            continue
        said = _words(sentence.text)
        for name in cited:
            if name not in runs:
                runs[name] = {run for _, run in _runs(_words(text(name) or ""))}
        found = {at + i for at, run in _runs(said) if any(run in runs[n] for n in cited) for i in range(RUN)}
        taken, words = taken + len(found), words + len(said)
    return Copied(taken, words)


def together(found: Iterable[Copied]) -> Copied:
    """The sums."""
    rows = list(found)
    return Copied(sum(one.copied for one in rows), sum(one.words for one in rows))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(words: list[str]) -> Iterable[tuple[int, tuple[str, ...]]]:
    return ((at, tuple(words[at : at + RUN])) for at in range(len(words) - RUN + 1))
