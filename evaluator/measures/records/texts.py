"""Measures of texts: answers and summaries, compared word by word.

Truths are a text, or a list of texts that will do.
"""

from __future__ import annotations

import re
import string
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, ClassVar

from evaluator.measures.records.base import (
    MISSING,
    TEXT,
    Columns,
    Form,
    Measure,
    Parameter,
    PerRecord,
    one_of,
)

MAX_TEXTS = 100  # that will do for one record
MAX_SENTENCES = 200  # of a text: each is compared with each


def _texts(value: Any) -> Any:
    if not isinstance(value, list):
        value = [value]
    fine = len(value) <= MAX_TEXTS and all(TEXT.read(one) is not MISSING for one in value)
    return tuple(value) if fine else MISSING


TEXTS = Form("texts", f"{TEXT.says}, or a list of up to {MAX_TEXTS} such texts", _texts)


def first_of(truth: Any) -> Any:
    """The first of the texts that will do; empty text where there is none."""
    return (truth[0] if truth else "") if isinstance(truth, list) else truth


_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_normal(text: str) -> str:
    """Lower case, without ASCII punctuation and English articles, words parted by one blank, as SQuAD's evaluation does."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


class _Answer(PerRecord):
    """The best value of a text against each of those that will do."""

    output_form = TEXT
    truth_form = TEXTS

    @property
    def same(self) -> bool:
        """What the truths say is right."""
        return self.rule != "median"

    def perfect(self, truth: Any) -> Any:
        """The first text that will do."""
        return first_of(truth)

    @abstractmethod
    def one(self, said: str, right: str) -> float:
        """The value of a text against another."""

    def values(self, of: Columns) -> Sequence[float]:
        """The best value of each record; 0 of a missing one. No text that will do means empty text (SQuAD 2.0)."""
        pairs = zip(*self.pair(of), strict=True)
        return [
            0.0 if said is MISSING else max(self.one(said, one) for one in right or ("",))
            for said, right in pairs
        ]


class ExactMatch(_Answer):
    """The share of records whose text is one of those that will do, after ``normalise=squad``; or as it is (``none``).

    A missing record is wrong. SQuAD's rule (Rajpurkar et al., EMNLP 2016, evaluation script): lower case, no punctuation, no
    English articles, single blanks. A record of which no answer is right (an empty list, SQuAD 2.0) wants empty text.
    """

    name = "ExactMatch"
    parameters: ClassVar[Mapping[str, Parameter]] = {"normalise": one_of("squad", "none")}

    def one(self, said: str, right: str) -> float:
        """1 or 0."""
        if self.given["normalise"] == "squad":
            said, right = squad_normal(said), squad_normal(right)
        return float(said == right)


class TokenF1(_Answer):
    """The mean F1 of the words of a text and of the best of those that will do, normalised as SQuAD does (see ExactMatch).

    A missing record has 0. Where either has no words, 1 if both have none (Rajpurkar et al., "Know what you don't know", ACL 2018).
    """

    name = "TokenF1"

    def one(self, said: str, right: str) -> float:
        """2 PR / (P + R) of the words."""
        a, b = squad_normal(said).split(), squad_normal(right).split()
        if not a or not b:
            return float(a == b)
        return 2 * (Counter(a) & Counter(b)).total() / (len(a) + len(b))


def _sentences(text: str) -> list[str]:
    """The lines of a text, at most :data:`MAX_SENTENCES`: the last one has all that are left."""
    return text.split("\n", MAX_SENTENCES - 1)


def _tokens(text: str, stemmed: bool) -> list[str]:
    """Runs of ASCII letters and digits, in lower case; those of four and more as their stems."""
    found = re.findall(r"[a-z0-9]+", text.lower())
    return [_stemmer()(one) if len(one) > 3 else one for one in found] if stemmed else found


@cache
def _stemmer() -> Callable[[str], str]:
    """Return Porter's stemmer in the variant of NLTK, which rouge-score uses."""
    from nltk.stem.porter import PorterStemmer

    stem = PorterStemmer().stem
    remembered = lru_cache(maxsize=1 << 14)(stem)
    return lambda word: (
        remembered(word) if len(word) <= 40 else stem(word)
    )  # longer ones would fill the memory


def common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the longest common subsequence, in memory of ``b``.

    Bit-parallel (Crochemore et al., Information Processing Letters 80, 2001): a number holds a column of the usual table.
    """
    column = (1 << len(b)) - 1
    for column in _table(a, b):  # noqa: B007 (the last one)
        pass
    return len(b) - column.bit_count()


def _table(a: Sequence[str], b: Sequence[str]) -> Iterator[int]:
    """For each token of ``a``: bits for ``b``, of which those among the first n that are not set count the subsequence with these."""
    at: dict[str, int] = {}
    for place, token in enumerate(b):
        at[token] = at.get(token, 0) | 1 << place
    whole = column = (1 << len(b)) - 1
    for token in a:
        matches = column & at.get(token, 0)
        column = (column + matches | column - matches) & whole
        yield column


def places_in_common(a: Sequence[str], b: Sequence[str]) -> set[int]:
    """Places in ``a`` of a longest common subsequence; of several the one that rouge_score finds from the end."""
    rows = [(1 << len(b)) - 1, *_table(a, b)]

    def length(i: int, j: int) -> int:
        return j - (rows[i] & ((1 << j) - 1)).bit_count()

    found, i, j = set(), len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            found.add(i)
        elif length(i, j - 1) > length(i - 1, j):
            j -= 1
        else:
            i -= 1
    return found


def summary_overlap(said: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> int:
    """How many tokens of ``right`` are in the union of what its sentences have in common with those of ``said``, each counted once."""
    left = Counter(token for one in said for token in one)
    different = {tuple(one) for one in said}
    hits = 0
    for sentence in right:
        words = {*sentence}
        places = {
            n for one in different if not words.isdisjoint(one) for n in places_in_common(sentence, one)
        }
        for n in places:
            if left[sentence[n]] > 0:
                left[sentence[n]] -= 1
                hits += 1
    return hits


class ROUGE(_Answer):
    """ROUGE of a text against the best of those that will do: ``type=rouge1`` to ``rouge9`` (n-grams), ``rougeL`` or ``rougeLsum``.

    ``part=f`` is F1, ``p`` precision, ``r`` recall, of the text with the best F1. Words are runs of a to z and 0 to 9 in lower case;
    ``stem=true`` compares Porter's stems of English words. A missing record has 0. As ``rouge_score.RougeScorer``, of which ``stem`` is
    ``use_stemmer`` (Lin, "ROUGE: a package for automatic evaluation of summaries", ACL 2004). ``rougeLsum`` takes each line for a
    sentence, and those from the 200th on for one.
    """

    name = "ROUGE"
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "type": one_of("rougeL", "rougeLsum", *(f"rouge{n}" for n in range(1, 10))),
        "part": one_of("f", "p", "r"),
        "stem": Parameter("true or false", lambda v: isinstance(v, bool), False),
    }

    @property
    def same(self) -> bool:
        """Texts may have no words to count."""
        return False

    def one(self, said: str, right: str) -> float:
        """The F1 of one pair."""
        return self._score(said, right)[0]

    def values(self, of: Columns) -> Sequence[float]:
        """The part of the best F1."""
        place = "fpr".index(self.given["part"])
        out = []
        for said, right in zip(*self.pair(of), strict=True):
            found = [] if said is MISSING else [self._score(said, one) for one in right]
            out.append(max(found, key=lambda one: one[0])[place] if found else 0.0)
        return out

    def _score(self, said: str, right: str) -> tuple[float, float, float]:
        """F1, precision and recall."""
        a, b = (_tokens(one, self.given["stem"]) for one in (said, right))
        if self.given["type"] == "rougeLsum":
            lines = [[_tokens(one, self.given["stem"]) for one in _sentences(text)] for text in (said, right)]
            found, of_a, of_b = summary_overlap(*lines), len(a), len(b)
        elif self.given["type"] == "rougeL":
            found, of_a, of_b = common_subsequence(a, b), len(a), len(b)
        else:
            n = int(self.given["type"][-1])
            left, there = (Counter(zip(*(one[i:] for i in range(n)), strict=False)) for one in (a, b))
            found, of_a, of_b = (left & there).total(), left.total(), there.total()
        precision, recall = found / max(of_a, 1), found / max(of_b, 1)
        both = precision + recall
        return (2 * precision * recall / both if both else 0.0), precision, recall


MEASURES: tuple[type[Measure], ...] = (ExactMatch, TokenF1, ROUGE)
