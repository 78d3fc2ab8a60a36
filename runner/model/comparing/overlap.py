"""How much the rankings of two runs overlap: by the documents within a depth, and by their order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.model.comparing.topics import by_number

DEPTHS = (10, 100)
PERSISTENCE = 0.9  # of rank-biased overlap: about 86 % of its weight are on the first ten ranks
Rankings = Mapping[str, Sequence[str]]  # topic -> documents, the best first


@dataclass(frozen=True)
class Overlap:
    """The rankings of one topic: ``shared`` documents within each of :data:`DEPTHS`, their Jaccard coefficients, and
    rank-biased overlap over the first hundred."""

    topic: str
    shared: tuple[int, ...]
    jaccard: tuple[float, ...]
    rbo: float


def overlaps(first: Rankings, second: Rankings) -> list[Overlap]:
    """The overlap on each topic that both runs have documents for, the least similar first."""
    most = max(DEPTHS)
    found = [
        Overlap(
            topic,
            tuple(len({*first[topic][:k]} & {*second[topic][:k]}) for k in DEPTHS),
            tuple(jaccard(first[topic][:k], second[topic][:k]) for k in DEPTHS),
            rank_biased(first[topic][:most], second[topic][:most]),
        )
        for topic in first
        if first[topic] and second.get(topic)
    ]
    return sorted(found, key=lambda one: (one.rbo, by_number(one.topic)))


def mean(found: Sequence[Overlap]) -> Overlap:
    """The means over topics, rounded for counts. ``found`` is not empty."""
    count = len(found)
    columns = range(len(DEPTHS))
    return Overlap(
        "",
        tuple(round(sum(one.shared[k] for one in found) / count) for k in columns),
        tuple(math.fsum(one.jaccard[k] for one in found) / count for k in columns),
        math.fsum(one.rbo for one in found) / count,
    )


def jaccard(first: Sequence[str], second: Sequence[str]) -> float:
    """The share of documents of either list that both have (P. Jaccard, 1912); 0 of two empty ones."""
    ours, theirs = {*first}, {*second}
    return len(ours & theirs) / len(ours | theirs) if ours or theirs else 0.0


def rank_biased(first: Sequence[str], second: Sequence[str], p: float = PERSISTENCE) -> float:
    """Rank-biased overlap, extrapolated, of lists that may differ in length: 0 for nothing in common, 1 for the same order.

    RBO_ext of W. Webber, A. Moffat and J. Zobel, A Similarity Measure for Indefinite Rankings, TOIS 28(4), 2010, equation 32.

    Args:
        first: Documents, none of them twice; not empty.
        second: The same of the other list.
        p: How likely somebody who looks at a rank looks at the next one, too.
    """
    short, long = sorted((first, second), key=len)
    s, depth = len(short), len(long)
    ours, theirs = set[str](), set[str]()
    shared = []  # documents in common within each depth
    for d in range(depth):
        theirs.add(long[d])
        if d < s:
            ours.add(short[d])
        shared.append(len(ours & theirs))
    terms = [shared[d - 1] / d * p**d for d in range(1, depth + 1)]
    terms += [shared[s - 1] * (d - s) / (s * d) * p**d for d in range(s + 1, depth + 1)]
    rest = ((shared[-1] - shared[s - 1]) / depth + shared[s - 1] / s) * p**depth
    return (1 - p) / p * math.fsum(terms) + rest
