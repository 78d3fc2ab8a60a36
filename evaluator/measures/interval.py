"""How sure a mean over topics is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from typing import Any

RESAMPLES = 10_000
MANY = 500  # topics; from here on the normal approximation is as good and costs nothing


def intervals(
    columns: Mapping[str, Sequence[float]], *, seed: int = 20_260_101
) -> dict[str, tuple[float, float]]:
    """Return a 95 % interval for the mean of each column of values by topic.

    Percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13): 10,000 resamples of
    the topics, the same ones for every column of a length, with a fixed seed, so that results repeat. Over 500 topics
    the normal approximation mean ± 1.96 s/sqrt(n) takes its place. Columns with fewer than 2 topics have none.
    """
    out: dict[str, tuple[float, float]] = {}
    drawn: dict[int, Any] = {}
    for name, values in columns.items():
        n = len(values)
        if n < 2:
            continue
        if n > MANY:
            mean = fsum(values) / n
            half = 1.959963984540054 * sqrt(fsum((v - mean) ** 2 for v in values) / (n - 1) / n)
            out[name] = (mean - half, mean + half)
            continue
        import numpy as np

        counts = drawn.get(n)
        if counts is None:
            rng = np.random.default_rng(seed)
            drawn[n] = counts = rng.integers(0, n, size=(RESAMPLES, n), dtype=np.int16)
        means = np.asarray(values, dtype=np.float64)[counts].mean(axis=1)
        low, high = np.quantile(means, (0.025, 0.975))
        out[name] = (float(low), float(high))
    return out
