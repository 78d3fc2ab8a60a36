"""The arithmetic of the scores, to the last digit of what Auto-ARGUE has published."""

from __future__ import annotations

from collections.abc import Sequence

_BLOCK = 128  # numpy sums that many values with eight running sums, and halves what is longer


def ratio(part: float, whole: float) -> float:
    """``part / whole``; 0.0 where ``whole`` is 0."""
    return part / whole if whole else 0.0


def harmonic(precision: float, recall: float) -> float:
    """F1 of two shares; 0.0 where both are 0."""
    both = precision + recall
    return 2 * precision * recall / both if both else 0.0


def mean(values: Sequence[float]) -> float:
    """The unweighted mean, 0.0 of nothing.

    Added up in numpy's order, because published files of Auto-ARGUE have the last digits of numpy's mean; numpy itself
    would take longer to import than all scores take to compute.
    """
    return _sum(values, 0, len(values)) / len(values) if values else 0.0


def _sum(values: Sequence[float], start: int, end: int) -> float:
    count = end - start
    if count < 8:
        total = 0.0
        for i in range(start, end):
            total += values[i]
        return total
    if count > _BLOCK:
        half = count // 2
        half -= half % 8
        return _sum(values, start, start + half) + _sum(values, start + half, end)
    s = list(values[start : start + 8])
    whole = start + count - count % 8
    for i in range(start + 8, whole, 8):
        for j in range(8):
            s[j] += values[i + j]
    total = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
    for i in range(whole, end):
        total += values[i]
    return total


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle; 0.0 of nothing."""
    ordered = sorted(values)
    middle, odd = divmod(len(ordered), 2)
    if not ordered:
        return 0.0
    return float(ordered[middle]) if odd else (ordered[middle - 1] + ordered[middle]) / 2
