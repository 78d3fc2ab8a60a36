"""Relevance and diversity of many ranked lists of arguments at once; the formulas stand in :mod:`evaluator.measures.diversity`.

Some hundred lists are scored at a time. Of an array with the axes rank, list and property, what is added up along ranks is added in
their order, as if lists were scored one by one: it is the same number to the last bit. Logarithms are those of :mod:`math`, from tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from math import fsum, log, log2

import numpy as np

from evaluator.formats.fast.words import Array
from evaluator.formats.perspective import Population
from evaluator.measures.diversity import ALPHA, MANY, STEPS, Scores

_CELLS = 4 << 20  # of the largest array for the lists that are scored at a time
_MOST = 256  # lists at a time: what is made of them stays in the processor's cache


class Scorer:
    """Scores ranked lists of arguments at the given cut-offs.

    ``twins``: arguments with exactly the text of a relevant one are hits too. Without ``diversity`` only nDCG and P
    are computed. Only the first ``depth`` candidates of a list matter. ``at_once`` (how many lists are scored at a time) is
    chosen by the size of the arrays when None.
    """

    def __init__(
        self,
        population: Population,
        cutoffs: Sequence[int],
        *,
        twins: bool,
        diversity: bool = True,
        at_once: int | None = None,
    ) -> None:
        self.cutoffs = tuple(sorted(set(cutoffs)))
        self.depth = max(self.cutoffs[-1], STEPS[-1] if diversity else 1)
        discounts = [1 / log2(r + 1) for r in range(1, self.depth + 1)]
        self._discounts = np.array(discounts)[:, None]
        self._ideal = np.array([0.0, *accumulate(discounts)])
        self._number = {argument: number for number, argument in enumerate(population.values)}
        self._nobody = len(self._number)  # the number of every argument that is not in the corpus
        # What makes a candidate a hit when a relevant argument has it, too: its text, or that it is the same.
        same = map(population.texts.__getitem__, population.values) if twins else range(self._nobody)
        self._same = np.array([*same, self._nobody])
        self._diversity = _Diversity(population, self.cutoffs, self._ideal) if diversity else None
        widest = max(self._nobody + 1, self._diversity.cells(self.depth) if self._diversity else 0)
        self._at_once = at_once or max(1, min(_MOST, _CELLS // widest))

    def score(self, relevant: Sequence[Sequence[int]], candidates: Sequence[Sequence[int]]) -> Scores:
        """Score lists of candidates, best first, each against the relevant arguments of its query (which may be listed twice).

        Copies of a candidate are scored as often as they are there, and candidates that are not in the corpus
        count as not relevant and as nobody's.
        """
        parts = []
        for start in range(0, len(candidates), self._at_once):
            some = slice(start, start + self._at_once)
            parts.append(self._some(relevant[some], candidates[some]))
        return Scores(*(_joined([part[i] for part in parts]) for i in range(len(Scores._fields))))

    def _some(self, relevant: Sequence[Sequence[int]], candidates: Sequence[Sequence[int]]) -> Scores:
        number, nobody, n = self._number, self._nobody, len(candidates)
        tops = [[number.get(c, nobody) for c in listed[: self.depth]] for listed in candidates]
        lengths = np.array([len(top) for top in tops])
        ranked = np.full((n, self.depth), nobody)
        ranked[np.arange(self.depth) < lengths[:, None]] = _flat(tops)
        ranked = np.ascontiguousarray(ranked.T)  # a row for every rank
        listed = [[number[r] for r in arguments] for arguments in relevant]
        ideal = np.array([len(set(one)) if len(one) < MANY else MANY for one in listed])
        wanted = np.zeros((n, nobody + 1), dtype=bool)
        wanted[_owners(listed), self._same[_flat(listed)]] = True
        hits = wanted[np.arange(n), self._same[ranked]]
        gains = np.where(hits, self._discounts, 0.0)
        dcg, found = np.cumsum(gains, axis=0), np.cumsum(hits, axis=0)
        scores = Scores({}, {}, {}, {})
        for k in self.cutoffs:
            scores.ndcg[k] = _ratio(dcg[k - 1], self._ideal[np.minimum(k, ideal)])
            scores.precision[k] = _ratio(found[k - 1], np.minimum(k, lengths))
        if self._diversity is not None:
            looked = [
                one[:i] if len(one) < MANY else one[: MANY - 1] for one, i in zip(listed, ideal, strict=True)
            ]
            self._diversity.score(ranked, gains, ideal, looked, scores)
        return scores


class _Diversity:
    """alpha-nDCG and rKL of lists of numbers of arguments.

    The values of all properties are numbered through: these are codes. 0 is the value of nobody, which is also behind the end of a
    list. What is counted of a list has a row with a place for every code.
    """

    def __init__(self, population: Population, cutoffs: Sequence[int], ideal: Array) -> None:
        sizes = [len(shares) for shares in population.shares]
        self._cutoffs, self._ideal = cutoffs, ideal
        self._firsts = np.array([*accumulate(sizes, initial=1)][:-1])  # the first code of every property
        self._width = 1 + sum(sizes)
        rows = chain.from_iterable(population.values.values())
        codes = np.fromiter(rows, np.int32).reshape(-1, len(sizes)) + self._firsts.astype(np.int32)
        self._codes = np.concatenate([codes, np.zeros((1, len(sizes)), dtype=np.int32)])
        self._groups = np.array(sizes) - 1
        self._minority = np.array(
            [
                fsum(s for g, s in enumerate(shares) if g != majority)
                for shares, majority in zip(population.shares, population.majority, strict=True)
            ]
        )
        self._shares = [0.0, *chain.from_iterable(population.shares)]
        # The row of each code in the tables of terms, -1 before it was met. Nobody and majorities have row 0: they add nothing.
        self._row = np.full(self._width, -1)
        self._row[0] = 0
        self._row[self._firsts + np.array(population.majority)] = 0
        self._terms = np.zeros((len(STEPS), 1, STEPS[-1] + 1))

    def cells(self, depth: int) -> int:
        """How many cells the largest array has for each list."""
        return max(self._width, depth * len(self._firsts))

    def score(
        self, ranked: Array, gains: Array, ideal: Array, listed: Sequence[Sequence[int]], scores: Scores
    ) -> None:
        """Add the values of both measures to ``scores``.

        ``ranked`` and ``gains`` have a row for every rank and a column for every list; ``listed`` are the relevant arguments whose
        values the ideal list has, ``ideal`` is how many it has.
        """
        codes = self._codes[ranked]  # by rank, list and property
        counts = np.zeros(len(listed) * self._width, dtype=np.int16)  # how often a list had a code so far
        begins = np.arange(len(listed)) * self._width
        kinds = self._kinds(listed, counts, begins)
        places = codes + begins[:, None]
        rows = self._rows(codes[: STEPS[-1]])
        first = np.empty(codes.shape, dtype=bool)  # whether the code is there for the first time
        dcg = np.zeros(codes.shape[1:])
        steps = []
        for rank, (at, gain) in enumerate(zip(places, gains[:, :, None], strict=True), 1):
            before = counts[at]
            counts[at] = before + 1
            new = np.equal(before, 0, out=first[rank - 1])
            dcg += np.where(new, gain, gain * (1 - ALPHA))
            if rank in self._cutoffs:
                scores.alpha_ndcg[rank] = _ratio(dcg, self._best(np.minimum(rank, ideal)[:, None], kinds))
            if rank in STEPS:
                often = np.where(first[:rank], counts[places[:rank]], 0)
                steps.append(self._divergence(self._terms[STEPS.index(rank)], rows[:rank], often))
        self._rkl(steps, scores)

    def _kinds(self, listed: Sequence[Sequence[int]], counts: Array, begins: Array) -> Array:
        """How many values of each property the arguments of a list have. ``counts`` is 0 before and after."""
        places = self._codes[_flat(listed)] + begins[_owners(listed)][:, None]
        counts[places] = 1
        by_code = counts.reshape(len(listed), self._width)
        kinds: Array = np.add.reduceat(by_code, self._firsts, axis=1, dtype=np.int64)
        counts[places] = 0
        return kinds

    def _best(self, m: Array, kinds: Array) -> Array:
        """The DCG of an ideal list of ``m`` relevant arguments: first one of each of the ``kinds`` of values, then the others."""
        new = self._ideal[np.minimum(m, kinds)]
        best: Array = new + (1 - ALPHA) * (self._ideal[m] - new)
        return best

    def _rows(self, codes: Array) -> Array:
        """The rows of codes in the tables of terms, which get a row for every code that is met for the first time."""
        rows: Array = self._row[codes]
        if (rows < 0).any():
            new = np.unique(codes[rows < 0])
            terms = np.array([_terms(self._shares[code]) for code in new.tolist()])  # by code, step and count
            self._row[new] = self._terms.shape[1] + np.arange(len(new))
            self._terms = np.concatenate([self._terms, terms.transpose(1, 0, 2)], axis=1)
            rows = self._row[codes]
        return rows

    def _divergence(self, terms: Array, rows: Array, often: Array) -> Array:
        """The divergence from the corpus at one step: every group adds its share, and those that occur a term on top, in their order.

        ``often``: how often the value at each rank occurs up to the step, where it is there for the first time, else 0 (which adds 0).
        """
        here = np.tile(self._minority, (rows.shape[1], 1))
        for row, n in zip(rows, often, strict=True):
            here += terms[row, n]
        return here

    def _rkl(self, steps: Sequence[Array], scores: Scores) -> None:
        """Add the means over steps, weighted by their discounts, to ``scores``."""
        total, weights, means = np.zeros_like(steps[0]), 0.0, [np.zeros_like(steps[0])]
        for step, here in zip(STEPS, steps, strict=True):
            weight = 1 / log2(step)
            total += weight * here
            weights += weight
            means.append(total / weights / self._groups)
        for k in self._cutoffs:
            scores.rkl[k] = means[sum(step <= k for step in STEPS)]


def _terms(share: float) -> list[list[float]]:
    """P ln(P/Q) - P for a group of this share Q, by step and by how often it occurs up to there (d(P,Q) - Q; P = 0: nothing)."""
    return [
        [n / step * log(n / step / share) - n / step if 0 < n <= step else 0.0 for n in range(STEPS[-1] + 1)]
        for step in STEPS
    ]


def _flat(lists: Sequence[Sequence[int]]) -> Array:
    return np.fromiter(chain.from_iterable(lists), np.int64)


def _owners(lists: Sequence[Sequence[int]]) -> Array:
    """For each element of the flat list, which list it comes from."""
    return np.repeat(np.arange(len(lists)), [len(one) for one in lists])


def _ratio(value: Array, best: Array) -> Array:
    """``value / best``, 0 where best is 0."""
    return np.divide(value, best, out=np.zeros(value.shape), where=best != 0)


def _joined(parts: Sequence[dict[int, Array]]) -> dict[int, Array]:
    return {k: np.concatenate([part[k] for part in parts]) for k in parts[0]} if parts else {}
