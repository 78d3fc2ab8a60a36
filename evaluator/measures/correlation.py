"""How alike two leaderboards order and space the same runs.

All functions take the truth's and the judge's values of the same runs, higher being better, and return None where the
coefficient is undefined: fewer than two runs, or all values of one side equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any

from evaluator.errors import EvaluatorError

LEAST = 3  # runs; with fewer a correlation says nothing
Values = Sequence[float]


def kendall(truth: Values, judge: Values) -> float | None:
    """Kendall's tau-b (1945): (C - D) / sqrt((n0 - ties in truth) (n0 - ties in judge)) over all n0 pairs of runs."""
    from scipy.stats import kendalltau

    return _coefficient(kendalltau, truth, judge)


def pearson(truth: Values, judge: Values) -> float | None:
    """Pearson's product-moment correlation of the values."""
    from scipy.stats import pearsonr

    # Scaled, so that values near the largest floats do not overflow.
    return _coefficient(pearsonr, _scaled(truth), _scaled(judge))


def spearman(truth: Values, judge: Values) -> float | None:
    """Spearman's rho: Pearson's correlation of the ranks, equal values sharing the mean of their ranks."""
    from scipy.stats import spearmanr

    return _coefficient(spearmanr, truth, judge)


def tauap_b(truth: Values, judge: Values) -> float | None:
    """AP correlation with ties, symmetric: the mean of both directions.

    Yilmaz, Aslam and Robertson (SIGIR 2008) walk down one ranking and ask at each run which share of those above it is
    above it in the other ranking, too: 2 / (n - 1) times the sum of the shares, minus 1. With ties as by Urbano and
    Marrero (ICTIR 2017, tau_AP,b): only runs strictly above count, runs in the first group of ties are passed over, and
    a pair that the other ranking ties does not agree.
    """
    _equal(truth, judge)
    there, back = _walk(judge, truth), _walk(truth, judge)
    if there is None or back is None:
        return None
    return (there + back) / 2


def _walk(order: Values, other: Values) -> float | None:
    shares = []
    for i, value in enumerate(order):
        above = [j for j, one in enumerate(order) if one > value]
        if above:
            shares.append(sum(other[j] > other[i] for j in above) / len(above))
    return 2 * fsum(shares) / len(shares) - 1 if shares and len(set(other)) > 1 else None


def tau_gap(truth: Values, judge: Values) -> float | None:
    """tau_GAP of Gao and Oard (SIGIR 2015): as AP correlation, but pairs weigh as much as the truth tells them apart.

    Walks down the judge's ranking (equal values in the given order). At each run: of the gaps between its true value and
    those of all runs above it, the share that belongs to runs which truly are above it. 2 times the mean share, minus 1.
    A run that truly ties with all above it is passed over. Not symmetric.
    """
    _equal(truth, judge)
    if len(set(judge)) < 2:
        return None
    walk = sorted(range(len(judge)), key=lambda i: -judge[i])
    shares = []
    for place, i in enumerate(walk):
        gaps = [truth[j] - truth[i] for j in walk[:place]]
        mass = fsum(abs(gap) for gap in gaps)
        if mass:
            shares.append(fsum(gap for gap in gaps if gap > 0) / mass)
    return 2 * fsum(shares) / len(shares) - 1 if shares else None


METHODS: Mapping[str, Callable[[Values, Values], float | None]] = {
    "kendall": kendall,
    "tauap_b": tauap_b,
    "tau_gap": tau_gap,
    "spearman": spearman,
    "pearson": pearson,
}
KNOWN = ", ".join(METHODS) + ", each also for the best k runs of the truth only (kendall@10)"


class Method:
    """A coefficient by its string, ``name`` or ``name@k``. Raises :class:`EvaluatorError` for a string that is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        name, at, depth = text.partition("@")
        legal = not at or (depth.isascii() and depth.isdigit() and 0 < len(depth) < 10 and int(depth) > 0)
        if name not in METHODS or not legal:
            raise EvaluatorError(f"there is no coefficient {text[:60]!r}", f"there are {KNOWN}", usage=True)
        self.k = int(depth) if at else None
        self.of = METHODS[name]

    def value(self, truth: Mapping[str, float], judge: Mapping[str, float]) -> float | None:
        """The coefficient over the runs that both have; None if it is undefined or fewer than three runs are left.

        With ``k``: over the truth's best k of these runs (equal values by name). Runs are taken in the order of their
        names, which settles ties for ``tau_gap``.
        """
        runs = self.runs(truth, judge)
        if len(runs) < LEAST:
            return None
        return self.of([truth[run] for run in runs], [judge[run] for run in runs])

    def runs(self, truth: Mapping[str, float], judge: Mapping[str, float]) -> list[str]:
        """The runs that count, by their names."""
        runs = sorted(truth.keys() & judge.keys())
        return runs if self.k is None else sorted(sorted(runs, key=lambda run: -truth[run])[: self.k])


def _equal(truth: Values, judge: Values) -> None:
    if len(truth) != len(judge):
        raise ValueError("not as many values on one side as on the other")


def _scaled(values: Values) -> list[float]:
    scale = max(map(abs, values), default=0.0) or 1.0
    return [value / scale for value in values]


def _coefficient(of: Callable[[Values, Values], Any], truth: Values, judge: Values) -> float | None:
    """What a function of scipy says, None where it is undefined (scipy would warn, and say NaN)."""
    _equal(truth, judge)
    if len(set(truth)) < 2 or len(set(judge)) < 2:
        return None
    return float(of(truth, judge).statistic)
