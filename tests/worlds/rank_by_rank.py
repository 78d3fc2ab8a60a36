"""One query of Perspective Argument Retrieval 2024 scored rank by rank, in plain Python: what the arrays of the evaluator are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import fsum, log, log2
from typing import NamedTuple

from evaluator.formats.perspective import Population
from evaluator.measures.diversity import ALPHA, MANY, STEPS

UNKNOWN = -1  # value of an argument that is not in the corpus


class Values(NamedTuple):
    """One query's values by cut-off; those of alpha-nDCG and rKL also by property. Never clipped."""

    ndcg: dict[int, float]
    precision: dict[int, float]
    alpha_ndcg: dict[int, list[float]]
    rkl: dict[int, list[float]]


class RankByRank:
    """Values ranked lists of arguments at the given cut-offs.

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

    def score(self, relevant: Sequence[int], candidates: Sequence[int]) -> Values:
        """Score one list, best first, against the query's relevant arguments (which may be listed twice)."""
        distinct = set(relevant)
        ideal = len(distinct) if len(relevant) < MANY else MANY
        top = candidates[: self.depth]
        hits = self._hits(distinct, top)
        gains = [d if h else 0.0 for h, d in zip(hits, self._discounts, strict=False)]
        dcg = [0.0, *accumulate(gains)]
        found = [0, *accumulate(hits)]
        scores = Values({}, {}, {}, {})
        n = len(top)
        for k in self.cutoffs:
            m = min(k, n)
            scores.ndcg[k] = dcg[m] / self._ideal[min(k, ideal)] if ideal else 0.0
            scores.precision[k] = found[m] / m if m else 0.0
        if self.diversity:
            self._diversity(relevant, ideal, top, gains, scores)
        return scores

    def _hits(self, relevant: set[int], top: Sequence[int]) -> list[bool]:
        if not self.twins:
            return [c in relevant for c in top]
        texts = self.population.texts
        wanted = {texts[r] for r in relevant}
        return [texts.get(c) in wanted for c in top]

    def _diversity(
        self, relevant: Sequence[int], ideal: int, top: Sequence[int], gains: list[float], scores: Values
    ) -> None:
        values = self.population.values
        count = len(self.population.properties)
        nobody = (UNKNOWN,) * count
        ranked: list[tuple[int, ...]] = list(zip(*(values.get(c, nobody) for c in top), strict=True))
        ranked = ranked or [()] * count
        listed = relevant[:ideal] if len(relevant) < MANY else relevant[: MANY - 1]
        kinds = [len(set(column)) for column in zip(*(values[r] for r in listed), strict=True)] or [0] * count
        for k in self.cutoffs:
            scores.alpha_ndcg[k], scores.rkl[k] = [], []
        for p, column in enumerate(ranked):
            self._alpha_ndcg(column, gains, ideal, kinds[p], scores)
            self._rkl(p, column, scores)

    def _alpha_ndcg(
        self, column: Sequence[int], gains: list[float], ideal: int, kinds: int, scores: Values
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
            scores.alpha_ndcg[k].append(dcg[min(k, len(column))] / best if best else 0.0)

    def _rkl(self, p: int, column: Sequence[int], scores: Values) -> None:
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
            scores.rkl[k].append(sums[last] if last >= 0 else 0.0)


_WEIGHTS = [1 / log2(step) for step in STEPS]


def _terms(share: float) -> list[list[float]]:
    """P ln(P/Q) - P for a group of this share Q, by step and by how often it occurs up to there."""
    return [
        [0.0, *(n / step * log(n / step / share) - n / step for n in range(1, step + 1))] for step in STEPS
    ]
