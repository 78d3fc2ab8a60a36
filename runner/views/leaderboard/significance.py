"""Paired tests over topics.

Where single topics have values, the leaderboard uses Fisher's randomisation test (R. A. Fisher, The Design of Experiments, 1935): under the
null hypothesis the sign of each topic's difference is a coin toss. It assumes no distribution, which matters
because scores such as RR are far from normal. Up to 16 topics with a difference every sign pattern is tried;
above that a fixed number of random patterns with a fixed seed. The patterns depend on the number of topics
only, so a row's p-value does not depend on the other rows or their order. A figure over all topics at once, such as an F1,
has a paired bootstrap test (:mod:`runner.model.comparing`).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain
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
_SUMS = 4_000_000  # sums of rows by sign patterns held at once
_BLOCK = 1024  # sign patterns of which all pairs are compared at once: what fits a cache


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


def remembered(differences: Sequence[Sequence[float]]) -> list[float]:
    """The p-values of :func:`randomisation`; the same list is tested once in a process, as long as space for it lasts."""
    keys = [_digest(row) for row in differences]
    _forget(_KNOWN_ALONE)
    missing = {key: row for key, row in zip(keys, differences, strict=True) if key not in _KNOWN_ALONE}
    _KNOWN_ALONE.update(zip(missing, randomisation([*missing.values()]), strict=True))
    return [_KNOWN_ALONE[key] for key in keys]


def _randomise(rows: list[Sequence[float]], length: int) -> list[float]:
    import numpy as np

    data = np.asarray(rows, dtype=np.float64).T
    # Sums in another order differ in their last bits: patterns that tie with what was seen must count as such.
    observed = [abs(math.fsum(row)) - 1e-10 * max(1e-300, math.fsum(abs(x) for x in row)) for row in rows]
    least = np.array(observed)
    extreme = np.zeros(len(rows), dtype=np.int64)
    draws = flips(length)
    for signs in _all_signs(length) if draws == 0 else _random_signs(length, draws):
        for begin in range(0, len(rows), width := max(1, _SUMS // len(signs))):
            part = slice(begin, begin + width)
            extreme[part] += np.count_nonzero(np.abs(signs @ data[:, part]) >= least[part], axis=0)
    if draws == 0:
        return [int(count) / 2**length for count in extreme]
    return [(1 + int(count)) / (1 + draws) for count in extreme]


def between(rows: Sequence[Sequence[float]] | np.ndarray[Any, Any]) -> dict[tuple[int, int], float]:
    """The p-values of :func:`randomisation` for each two of ``rows`` of values on the same topics: (first, second) → p, first < second.

    The sums of a sign pattern are made once a row, not once a pair. What two rows differ by is tested once in a process, as
    long as space for it lasts: a row that is new among many costs its own pairs.
    """
    import numpy as np

    data = np.asarray(rows, dtype=np.float64)
    count = len(data)
    pairs: dict[tuple[int, int], bytes] = {}
    for a in range(count):
        apart = data[a + 1 :] - data[a]
        # Either sign of a difference has the same p-value.
        first = np.sign(apart[np.arange(len(apart)), np.argmax(apart != 0, axis=1)])
        apart = apart * np.where(first == 0, 1.0, first)[:, None] + 0.0
        for b, row in enumerate(apart, start=a + 1):
            pairs[a, b] = _digest(row)
    _forget(_KNOWN)
    missing = [pair for pair, key in pairs.items() if key not in _KNOWN]
    for pair, p in _between(data, missing).items():
        _KNOWN[pairs[pair]] = p
    return {pair: _KNOWN[key] for pair, key in pairs.items()}


_KNOWN: dict[bytes, float] = {}  # p-values by digests of differences
_KNOWN_ALONE: dict[bytes, float] = {}  # those of tests that were asked for one by one
_MOST_KNOWN = 500_000


def _forget(known: dict[bytes, float]) -> None:
    if len(known) > _MOST_KNOWN:
        known.clear()


def _digest(row: Sequence[float] | np.ndarray[Any, Any]) -> bytes:
    import numpy as np

    return hashlib.blake2b(np.asarray(row, dtype=np.float64).tobytes(), digest_size=16).digest()


def _between(data: np.ndarray[Any, Any], pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], float]:
    import numpy as np

    if not pairs:
        return {}
    length = data.shape[1]
    draws = flips(length)
    sizes = np.abs(data).sum(axis=1)
    least = {}
    wanted = _by_row(pairs)
    for a, others in wanted.items():
        apart = data[others] - data[a]
        # As in one test; and the sums of both rows are apart by their own last bits.
        slack = 1e-10 * np.abs(apart).sum(axis=1) + 1e-14 * (sizes[others] + sizes[a]) + 1e-310
        least[a] = (np.abs([math.fsum(row) for row in apart]) - slack)[:, None]
    extreme = {a: np.zeros(len(others), dtype=np.int64) for a, others in wanted.items()}
    # A range of rows is looked at where it lies, others are copied.
    at = {a: slice(o[0], o[-1] + 1) if o == [*range(o[0], o[-1] + 1)] else o for a, o in wanted.items()}
    space = np.empty((len(data), _BLOCK))
    for signs in _all_signs(length) if draws == 0 else _random_signs(length, draws):
        for begin in range(0, len(signs), _BLOCK):
            sums = data @ signs[begin : begin + _BLOCK].T
            for a, others in wanted.items():
                apart = space[: len(others), : sums.shape[1]]
                np.subtract(sums[at[a]], sums[a], out=apart)
                np.abs(apart, out=apart)
                extreme[a] += np.count_nonzero(apart >= least[a], axis=1)
    more, of = (0, 2**length) if draws == 0 else (1, 1 + draws)
    return {
        (min(a, b), max(a, b)): (more + int(found)) / of
        for a, others in wanted.items()
        for b, found in zip(others, extreme[a], strict=True)
    }


def _by_row(pairs: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """Each pair under that one of its rows which has more: few rows with long lists are quicker than many with short ones."""
    often = Counter(chain.from_iterable(pairs))
    found: dict[int, list[int]] = {}
    for a, b in pairs:
        first, second = (b, a) if often[b] > often[a] else (a, b)
        found.setdefault(first, []).append(second)
    return found


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
