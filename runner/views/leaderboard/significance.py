"""Paired tests over topics, and Holm's correction for many comparisons.

The leaderboard uses Fisher's randomisation test (R. A. Fisher, The Design of Experiments, 1935): under the
null hypothesis the sign of each topic's difference is a coin toss. It assumes no distribution, which matters
because scores such as RR are far from normal. Up to 16 topics with a difference every sign pattern is tried;
above that a fixed number of random patterns with a fixed seed. The patterns depend on the number of topics
only, so a row's p-value does not depend on the other rows or their order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

ALPHA = 0.05
SEED = 20_261_121
EXACT_UP_TO = 16
FLIPS = 100_000
FLIPS_MANY_TOPICS = 10_000
MANY_TOPICS = 500
_CHUNK = 1_000_000  # signs held at once


def flips(topics: int) -> int:
    """How many sign patterns the randomisation test draws for this many topics (0: all of them, exactly)."""
    if topics <= EXACT_UP_TO:
        return 0
    return FLIPS if topics <= MANY_TOPICS else FLIPS_MANY_TOPICS


def randomisation(differences: Sequence[Sequence[float]]) -> list[float]:
    """Two-sided p-values of the mean of each list of paired differences being zero; one for each list.

    Lists of the same length share the sign patterns. p = (1 + patterns at least as extreme) / (1 + patterns),
    so it is never 0; exact (extreme / all) where every pattern is tried. No topics, or no differences: 1.
    """
    by_length: dict[int, list[int]] = {}
    for index, row in enumerate(differences):
        by_length.setdefault(len(row), []).append(index)
    result = [1.0] * len(differences)
    for length, members in by_length.items():
        if length:
            for index, p in zip(members, _randomise([differences[i] for i in members], length), strict=True):
                result[index] = p
    return result


def _randomise(rows: list[Sequence[float]], length: int) -> list[float]:
    import numpy as np

    data = np.asarray(rows, dtype=np.float64).T
    # Sums in another order differ in their last bits: patterns that tie with what was seen must count as such.
    observed = [abs(math.fsum(row)) - 1e-10 * max(1e-300, math.fsum(abs(x) for x in row)) for row in rows]
    extreme = np.zeros(len(rows), dtype=np.int64)
    draws = flips(length)
    for signs in _all_signs(length) if draws == 0 else _random_signs(length, draws):
        extreme += np.count_nonzero(np.abs(signs @ data) >= observed, axis=0)
    if draws == 0:
        return [int(count) / 2**length for count in extreme]
    return [(1 + int(count)) / (1 + draws) for count in extreme]


def _all_signs(length: int) -> list[np.ndarray[Any, Any]]:
    import numpy as np

    patterns = np.arange(2**length, dtype=np.uint32)[:, None] >> np.arange(length, dtype=np.uint32)
    return [1.0 - 2.0 * (patterns & 1).astype(np.float64)]


def _random_signs(length: int, draws: int) -> Any:
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(SEED))
    step = max(1, _CHUNK // length)
    while draws:
        count = min(step, draws)
        bits = np.unpackbits(
            np.frombuffer(generator.bytes(count * ((length + 7) // 8)), dtype=np.uint8).reshape(count, -1),
            axis=1,
        )
        yield 1.0 - 2.0 * bits[:, :length].astype(np.float64)
        draws -= count


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (S. Holm, Scandinavian Journal of Statistics 6, 1979): adjusted p-values in
    the order given."""
    count = len(p_values)
    adjusted = [0.0] * count
    highest = 0.0
    for step, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (count - step) * p_values[index]))
        adjusted[index] = highest
    return adjusted
