"""How far annotators agree beyond chance: Cohen's kappa for two, Krippendorff's alpha for any number.

Labels are nominal. What somebody did not judge is missing, not a label of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import NamedTuple


class Kappa(NamedTuple):
    """Two annotators: ``value`` (None if it is not defined), the share of equal labels, and how many both judged."""

    value: float | None
    observed: float
    items: int


class Alpha(NamedTuple):
    """All annotators: ``value`` (None if it is not defined), items with at least two labels, and their labels."""

    value: float | None
    items: int
    labels: int


def kappa(first: Sequence[Hashable | None], second: Sequence[Hashable | None]) -> Kappa:
    """Cohen's kappa (A coefficient of agreement for nominal scales, 1960) over the items that both judged.

    kappa = (p_o − p_e) / (1 − p_e), p_o the share of equal labels and p_e the sum over labels of the product of both
    annotators' shares. Not defined without items, or when both used one and the same label only (p_e = 1).
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    n = len(pairs)
    if not n:
        return Kappa(None, 0.0, 0)
    observed = sum(a == b for a, b in pairs) / n
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    # In whole numbers, so that p_e = 1 is found exactly.
    chance = sum(left[label] * right[label] for label in left)
    if chance == n * n:
        return Kappa(None, observed, n)
    expected = chance / (n * n)
    return Kappa((observed - expected) / (1 - expected), observed, n)


def alpha(items: Sequence[Sequence[Hashable | None]]) -> Alpha:
    """Krippendorff's alpha for nominal labels (Content Analysis, 2004, ch. 11), each item with its annotators' labels.

    alpha = 1 − D_o / D_e. An item with m ≥ 2 labels adds each ordered pair of them with weight 1 / (m − 1); D_o is
    the share of pairs with different labels, D_e the same for labels paired at random over all such items. Not defined
    without such items, or when there is one label only.
    """
    total: Counter[Hashable] = Counter()
    disagreeing: list[float] = []
    used = 0
    for labels in items:
        counts = Counter(label for label in labels if label is not None)
        m = sum(counts.values())
        if m < 2:
            continue
        used += 1
        total.update(counts)
        disagreeing.append(sum(n * (m - n) for n in counts.values()) / (m - 1))
    n = sum(total.values())
    expected = sum(count * (n - count) for count in total.values())
    if not expected:
        return Alpha(None, used, n)
    return Alpha(1 - (n - 1) * fsum(disagreeing) / expected, used, n)


def agreement(labels: Mapping[Hashable, Mapping[str, Hashable | None]]) -> dict[str, object]:
    """Everything about one question: item → annotator → label. As data for ``--json``.

    ``annotators``: how many each judged and how often each label; ``pairs``: kappa of every two who share items;
    ``alpha``; ``doubled``: items with two labels or more.
    """
    names = sorted({name for one in labels.values() for name in one})
    by_name = {name: [one.get(name) for one in labels.values()] for name in names}
    pairs = []
    for a, b in combinations(names, 2):
        found = kappa(by_name[a], by_name[b])
        if found.items:
            pairs.append(
                {"annotators": [a, b], "kappa": found.value, "equal": found.observed, "items": found.items}
            )
    everybody = alpha([list(one.values()) for one in labels.values()])
    return {
        "annotators": {
            name: {
                "judged": sum(v is not None for v in column),
                "yes": sum(v == 1 for v in column),
            }
            for name, column in by_name.items()
        },
        "pairs": pairs,
        "alpha": everybody.value,
        "doubled": everybody.items,
        "labels": sum(v is not None for column in by_name.values() for v in column),
    }


def with_people(pairs: Sequence[tuple[Hashable, Hashable]], what: str) -> dict[str, float]:
    """How far a judge agrees with people, as figures beside its scores; {} without pairs.

    ``agreement with people`` is the share of equal ones among the ``pairs``, whose number is given as ``WHAT compared``;
    ``kappa`` is Cohen's, where it is defined.
    """
    if not pairs:
        return {}
    found = kappa([a for a, _ in pairs], [b for _, b in pairs])
    figures = {"agreement with people": found.observed, f"{what} compared": float(len(pairs))}
    return figures if found.value is None else {**figures, "kappa": found.value}
