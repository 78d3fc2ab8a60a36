"""Relevance and diversity of ranked arguments, as Perspective Argument Retrieval 2024 measured them.

The formulas are those of the shared task's evaluation script, peculiarities included: they decide published
numbers. Where they differ from the textbook:

* nDCG: with twins (arguments with exactly the text of a relevant one) as hits, the ideal still counts relevant
  arguments only, so values over 1 are possible. Nothing is clipped.
* P: the divisor is the length of the list where that is shorter than the cut-off.
* alpha-nDCG (after Clarke et al., Novelty and diversity in information retrieval evaluation, SIGIR 2008), one
  property at a time: a value that was seen before counts 1 - alpha, no matter how often, and a value counts as
  seen also where it stood on an argument that is not relevant.
* rKL (after Yang and Stoyanovich, Measuring fairness in ranked outputs, SSDBM 2017): one term for every minority
  value, groups count equally, and cut-off 6 is missing from the list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from math import fsum, log, log2
from typing import NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.formats.perspective import Population

ALPHA = 0.5
STEPS = (2, 4, 8, 10, 12, 14, 16, 18, 20)  # at which rKL compares shares; 6 is missing in the original too
MANY = 1000  # a query with so many relevant arguments has this many, and the values of the first 999 only
MAX_CUTOFF = 1000

FAMILIES = ("nDCG", "P", "alpha-nDCG", "rKL", "alpha-nDCG-unqueried", "rKL-unqueried")
_MEASURE = re.compile(r"([A-Za-z-]+)@(\d{1,4}(?:,\d{1,4})*)")


class Measure:
    """A measure such as ``alpha-nDCG@8``, or its mean over cut-offs, such as ``nDCG@4,8,16,20``.

    ``family`` is one of :data:`FAMILIES` without ``-unqueried``; ``unqueried`` tells whether the property that the
    query asks for is left out (a variant: the shared task's own figure never leaves one out).
    """

    def __init__(self, text: str) -> None:
        """Parse ``text``. Raises :class:`EvaluatorError`."""
        match = _MEASURE.fullmatch(text)
        if match is None or match[1] not in FAMILIES:
            raise EvaluatorError(
                f"there is no measure {text[:60]!r}",
                f"measures are {', '.join(FAMILIES)}, each with cut-offs",
                "write for example nDCG@8, or nDCG@4,8,16,20 for the mean over cut-offs",
            )
        self.text = text
        self.unqueried = match[1].endswith("-unqueried")
        self.family = match[1].removesuffix("-unqueried")
        self.cutoffs = tuple(map(int, match[2].split(",")))
        least = STEPS[0] if self.family == "rKL" else 1
        if not all(least <= k <= MAX_CUTOFF for k in self.cutoffs) or len(set(self.cutoffs)) != len(
            self.cutoffs
        ):
            raise EvaluatorError(
                f"the cut-offs of {text[:60]} are wrong", f"they are different numbers from {least} to 1000"
            )

    @property
    def diverse(self) -> bool:
        """Whether it needs the authors' properties."""
        return self.family in ("alpha-nDCG", "rKL")

    def values(self, scores: Scores, asked: Sequence[int | None]) -> list[float]:
        """The value of every query, where each asks for the property numbered ``asked`` (None: for none of them)."""
        columns = [self._at(scores, k, asked) for k in self.cutoffs]
        return [fsum(at) / len(at) for at in zip(*columns, strict=True)]

    def _at(self, scores: Scores, k: int, asked: Sequence[int | None]) -> list[float]:
        if not self.diverse:
            return (scores.ndcg if self.family == "nDCG" else scores.precision)[k]
        rows = self.by_property(scores, k)
        if self.unqueried:
            rows = [row if p is None else row[:p] + row[p + 1 :] for row, p in zip(rows, asked, strict=True)]
        return [fsum(row) / len(row) for row in rows]

    def by_property(self, scores: Scores, k: int) -> list[list[float]]:
        """The values of every query, one for each property in the order of the population's."""
        return (scores.alpha_ndcg if self.family == "alpha-nDCG" else scores.rkl)[k]


class Scores(NamedTuple):
    """The values of all queries by cut-off; those of alpha-nDCG and rKL in a row for each, by property. Never clipped."""

    ndcg: dict[int, list[float]]
    precision: dict[int, list[float]]
    alpha_ndcg: dict[int, list[list[float]]]
    rkl: dict[int, list[list[float]]]


UNKNOWN = -1  # value of an argument that is not in the corpus


class Scorer:
    """Scores ranked lists of arguments at the given cut-offs.

    ``twins``: arguments with exactly the text of a relevant one are hits too. Without ``diversity`` only nDCG and P
    are computed. Only the first ``depth`` candidates of a list matter.
    """

    def __init__(
        self, population: Population, cutoffs: Sequence[int], *, twins: bool, diversity: bool = True
    ) -> None:
        self.population = population
        self.cutoffs = tuple(sorted(set(cutoffs)))
        self.twins = twins
        self.diversity = diversity
        self.depth = max(self.cutoffs[-1], STEPS[-1] if diversity else 1)
        self._discounts = [1 / log2(r + 1) for r in range(1, self.depth + 1)]
        self._ideal = [0.0, *accumulate(self._discounts)]
        self._minority = [
            fsum(s for g, s in enumerate(shares) if g != population.majority[p])
            for p, shares in enumerate(population.shares)
        ]
        self._tables: list[dict[int, list[list[float]]]] = [{} for _ in population.properties]
        self._last_step = [(k, sum(step <= k for step in STEPS) - 1) for k in self.cutoffs]

    def score(self, relevant: Sequence[Sequence[int]], candidates: Sequence[Sequence[int]]) -> Scores:
        """Score lists of candidates, best first, each against the relevant arguments of its query (which may be listed twice).

        Copies of a candidate are scored as often as they are there, and candidates that are not in the corpus
        count as not relevant and as nobody's.
        """
        diverse = self.cutoffs if self.diversity else ()
        scores = Scores(
            {k: [] for k in self.cutoffs},
            {k: [] for k in self.cutoffs},
            {k: [] for k in diverse},
            {k: [] for k in diverse},
        )
        for wanted, listed in zip(relevant, candidates, strict=True):
            self._score(wanted, listed, scores)
        return scores

    def _score(self, relevant: Sequence[int], candidates: Sequence[int], scores: Scores) -> None:
        distinct = set(relevant)
        ideal = len(distinct) if len(relevant) < MANY else MANY
        top = candidates[: self.depth]
        hits = self._hits(distinct, top)
        gains = [d if h else 0.0 for h, d in zip(hits, self._discounts, strict=False)]
        dcg = [0.0, *accumulate(gains)]
        found = [0, *accumulate(hits)]
        n = len(top)
        for k in self.cutoffs:
            m = min(k, n)
            scores.ndcg[k].append(dcg[m] / self._ideal[min(k, ideal)] if ideal else 0.0)
            scores.precision[k].append(found[m] / m if m else 0.0)
        if self.diversity:
            self._diversity(relevant, ideal, top, gains, scores)

    def _hits(self, relevant: set[int], top: Sequence[int]) -> list[bool]:
        if not self.twins:
            return [c in relevant for c in top]
        texts = self.population.texts
        wanted = {texts[r] for r in relevant}
        return [texts.get(c) in wanted for c in top]

    def _diversity(
        self, relevant: Sequence[int], ideal: int, top: Sequence[int], gains: list[float], scores: Scores
    ) -> None:
        values = self.population.values
        count = len(self.population.properties)
        nobody = (UNKNOWN,) * count
        ranked: list[tuple[int, ...]] = list(zip(*(values.get(c, nobody) for c in top), strict=True))
        ranked = ranked or [()] * count
        listed = relevant[:ideal] if len(relevant) < MANY else relevant[: MANY - 1]
        kinds = [len(set(column)) for column in zip(*(values[r] for r in listed), strict=True)] or [0] * count
        for k in self.cutoffs:
            scores.alpha_ndcg[k].append([])
            scores.rkl[k].append([])
        for p, column in enumerate(ranked):
            self._alpha_ndcg(column, gains, ideal, kinds[p], scores)
            self._rkl(p, column, scores)

    def _alpha_ndcg(
        self, column: Sequence[int], gains: list[float], ideal: int, kinds: int, scores: Scores
    ) -> None:
        seen: set[int] = set()
        total, dcg = 0.0, [0.0]
        for value, gain in zip(column, gains, strict=True):
            if value in seen:
                total += gain * (1 - ALPHA)
            else:
                total += gain
                seen.add(value)
            dcg.append(total)
        for k in self.cutoffs:
            m = min(k, ideal)
            new = min(m, kinds)
            best = self._ideal[new] + (1 - ALPHA) * (self._ideal[m] - self._ideal[new])
            scores.alpha_ndcg[k][-1].append(dcg[min(k, len(column))] / best if best else 0.0)

    def _rkl(self, p: int, column: Sequence[int], scores: Scores) -> None:
        majority, groups = self.population.majority[p], len(self.population.shares[p]) - 1
        tables = self._tables[p]
        counts: dict[int, int] = {}
        at = 0
        sums: list[float] = []  # the figure at cut-offs from each step on
        total = weights = 0.0
        for i, step in enumerate(STEPS):
            for value in column[at:step]:
                if value != majority and value != UNKNOWN:
                    if value in counts:
                        counts[value] += 1
                    else:
                        counts[value] = 1
                        if value not in tables:
                            tables[value] = _terms(self.population.shares[p][value])
            at = step
            # Every group adds its share, and those that occur something on top (d(P,Q) - Q).
            here = self._minority[p]
            for value, n in counts.items():
                here += tables[value][i][n]
            weight = _WEIGHTS[i]
            total += weight * here
            weights += weight
            sums.append(total / weights / groups)
        for k, last in self._last_step:
            scores.rkl[k][-1].append(sums[last] if last >= 0 else 0.0)


_WEIGHTS = [1 / log2(step) for step in STEPS]


def _terms(share: float) -> list[list[float]]:
    """P ln(P/Q) - P for a group of this share Q, by step and by how often it occurs up to there."""
    return [
        [0.0, *(n / step * log(n / step / share) - n / step for n in range(1, step + 1))] for step in STEPS
    ]
