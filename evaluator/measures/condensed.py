"""``condensed nDCG@k``: nDCG over a list from which unjudged documents were taken out.

This is the figure that the official script of Touché 2021 and 2022 prints. It looks at the first k documents of a
topic **by the rank column** (the score column is not used; equal ranks keep the order of the file), throws away
those without a judgement, closes the gaps, and divides the DCG of what is left by the DCG of the topic's best k
judgements: sum of grade / log2(i + 1), i from 1. The grade -2 (spam) counts 0, other negative grades count as they
are. On condensed lists in general: Sakai, "Alternatives to Bpref", SIGIR 2007.

A topic has no value, and is left out of the mean, if the run does not answer it, if none of its first k documents is
judged, or if its best k judgements have no gain. So the figure rewards unjudged documents and topics left out. It is
for comparison with published results and should not rank anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import log2

_STRING = re.compile(r"condensed\s+nDCG@(?P<cutoff>[1-9][0-9]{0,3})", re.IGNORECASE)
SPAM = -2  # the one negative grade that counts 0


def condensed_cutoff(text: str) -> int:
    """The k of the string ``condensed nDCG@k`` (1 to 9999), or 0 if ``text`` is something else."""
    match = _STRING.fullmatch(text.strip())
    return 0 if match is None else int(match["cutoff"])


def condensed_ndcg(first: Sequence[bytes], grades: Mapping[bytes, int], k: int) -> float | None:
    """The figure for one topic, or None if it has none.

    ``first`` are the topic's documents in order of the rank column, at least k if there are so many. A document that
    stands there twice counts twice, so that the value may be greater than 1: checking runs is somebody else's work.
    """
    kept = [grades[doc] for doc in first[:k] if doc in grades]
    ideal = _dcg(sorted(map(_gain, grades.values()), reverse=True)[:k])
    if not kept or ideal == 0.0:
        return None
    return _dcg(map(_gain, kept)) / ideal


def _gain(grade: int) -> int:
    return 0 if grade == SPAM else grade


def _dcg(gains: Iterable[int]) -> float:
    total = 0.0
    for i, gain in enumerate(gains, 1):
        total += gain / log2(i + 1)
    return total
