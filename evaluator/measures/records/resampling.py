"""How sure a value over records is: 95 % intervals by bootstrap, of any measure, over records or over clusters of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluator.errors import EvaluatorError
from evaluator.measures.interval import intervals
from evaluator.measures.records.base import Columns, Measure, PerRecord

RESAMPLES = 1_000
FEWEST = 200
MOST = 2_000_000  # rows that are looked at in all, which take about a second
SEED = 20_260_101
_UNDEFINED = 0.05  # share of resamples that may have no value


def interval(
    measure: Measure, of: Columns, values: Sequence[float] | None, clusters: Sequence[str] | None = None
) -> tuple[float, float] | None:
    """A 95 % interval of the value of ``measure``; None where there is none.

    Percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13). A mean over records is resampled as
    everywhere (:mod:`evaluator.measures.interval`). Any other value is computed of 1,000 resamples of the records, of fewer
    from 2,000 records on, and has no interval from 10,000 on. With ``clusters``, the cluster of each record, clusters are drawn whole
    (Davison and Hinkley, Bootstrap Methods and their Application, 1997, ch. 3.8); of one cluster there is none.

    Args:
        measure: What is computed.
        of: The records.
        values: Those of single records, as :meth:`Measure.values` says.
        clusters: The cluster of each record.
    """
    if clusters is None and isinstance(measure, PerRecord) and measure.mean and values is not None:
        return intervals({"": values}).get("")
    times = min(RESAMPLES, MOST // max(len(of), 1))
    if times < FEWEST:
        return None
    groups: dict[str, list[int]] = {}
    for row in range(len(of)):
        groups.setdefault(clusters[row] if clusters is not None else str(row), []).append(row)
    if len(groups) < 2:
        return None
    return _percentiles(measure, of, list(groups.values()), times)


def _percentiles(
    measure: Measure, of: Columns, groups: Sequence[Sequence[int]], times: int
) -> tuple[float, float] | None:
    import numpy as np

    value = measure.resampled(of)
    rng: Any = np.random.default_rng(SEED)
    found = []
    for _ in range(times):
        rows = [row for group in rng.integers(0, len(groups), len(groups)).tolist() for row in groups[group]]
        try:
            found.append(value(rows))
        except EvaluatorError:  # one class only, say
            continue
    if len(found) < times * (1 - _UNDEFINED):
        return None
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)
