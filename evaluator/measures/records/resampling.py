"""How sure a value over records is: 95 % intervals by bootstrap, of any measure, over records or over clusters of them.

What is drawn depends on the ids of the truths and their clusters only, so that it is the same for every run of a dataset. Two runs
can then be compared resample by resample (a paired bootstrap test), also where a measure has no values of single records.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.measures.interval import intervals
from evaluator.measures.records.base import Columns, Measure, PerRecord

RESAMPLES = 1_000
FEWEST = 200
MOST = 2_000_000  # rows that are looked at in all, which take about a second
SEED = 20_260_101
DIGITS = 10  # of a resample's value
_UNDEFINED = 0.05  # share of resamples that may have no value


class Resamples(NamedTuple):
    """The value of a measure in each resample, None where it has none; ``drawn``: SHA-256 of what was drawn, which two runs
    share whose values can be paired."""

    drawn: str
    values: Sequence[float | None]

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` has it, with ten significant digits."""
        rounded = [None if one is None else float(f"{one:.{DIGITS}g}") for one in self.values]
        return {"drawn": self.drawn, "values": rounded}


class Spread(NamedTuple):
    """A 95 % ``interval``, and the ``resamples`` that it was made of; None where there is none."""

    interval: tuple[float, float] | None = None
    resamples: Resamples | None = None


def spread(
    measure: Measure, of: Columns, values: Sequence[float] | None, clusters: Sequence[str] | None = None
) -> Spread:
    """How sure the value of ``measure`` is.

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
        return Spread(intervals({"": values}).get(""))
    times = min(RESAMPLES, MOST // max(len(of), 1))
    if times < FEWEST:
        return Spread()
    groups: dict[str, list[int]] = {}
    for row in range(len(of)):
        groups.setdefault(clusters[row] if clusters is not None else str(row), []).append(row)
    if len(groups) < 2:
        return Spread()
    return percentiles(_resampled(measure, of, groups, times))


def _resampled(measure: Measure, of: Columns, groups: dict[str, list[int]], times: int) -> Resamples:
    import numpy as np

    # The seed is of these ids: the runs of a dataset are drawn alike, and datasets with other ids independently.
    told = hashlib.sha256(json.dumps([SEED, [*of.keys], [*groups.values()]]).encode())
    value, members = measure.resampled(of), [*groups.values()]
    rng: Any = np.random.default_rng(int.from_bytes(told.digest()))
    found: list[float | None] = []
    for _ in range(times):
        drawn = rng.integers(0, len(members), len(members))
        told.update(drawn.astype("<u4").tobytes())
        try:
            found.append(value([row for group in drawn.tolist() for row in members[group]]))
        except EvaluatorError:  # one class only, say
            found.append(None)
    return Resamples(told.hexdigest(), found)


def percentiles(resamples: Resamples) -> Spread:
    """The percentile interval of a value in resamples, with these; nothing where more than a few of them have no value."""
    import numpy as np

    found = [one for one in resamples.values if one is not None]
    if len(found) < len(resamples.values) * (1 - _UNDEFINED):
        return Spread()
    low, high = np.quantile(found, (0.025, 0.975))
    return Spread((float(low), float(high)), resamples)
