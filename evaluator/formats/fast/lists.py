"""Lists of integers in JSON as everybody writes them: ``{"query_id": 0, "relevant_candidates": [2019017, ...]}``, one object a line.

A line is taken here only where nothing about it is in doubt; any other is for the reader that says what is wrong. Integers are read
by numpy, and looked up by a hash that gives each known one a place; equal ones are neighbours once they are sorted.
"""

from __future__ import annotations

import re

import numpy as np

from evaluator.formats.fast.words import Array

_HEAD = re.compile(rb'\{"query_id": ?(0|[1-9][0-9]{0,17}), ?"relevant_candidates": ?')
_DIGITS = b"0123456789"
_TOO_LARGE = 10**18  # what is larger than 64 bits is read as the largest integer that they hold
_MIX = np.uint64(
    0x9E3779B97F4A7C15
)  # odd; the upper bits of a product with it are well spread (Knuth's multiplicative hashing)


class Integers:
    """A set of integers, and whether all of an array are in it."""

    def __init__(self, known: frozenset[int]) -> None:
        self._known = known
        self._integers = np.array([one for one in known if 0 <= one < _TOO_LARGE] or [0], dtype=np.int64)
        bits = min(22, 5 + len(self._integers).bit_length())  # at least 16 places for each
        self._shift = np.uint64(64 - bits)
        self._places = np.zeros(1 << bits, dtype=np.int32)
        # Where two have one place, the last has it; the others are looked up in the set.
        self._places[self._place(self._integers)] = np.arange(len(self._integers))

    def _place(self, integers: Array) -> Array:
        place: Array = (integers.view(np.uint64) * _MIX) >> self._shift
        return place

    def has(self, integers: Array) -> bool:
        """Whether all are in the set."""
        other = self._integers[self._places[self._place(integers)]] != integers
        return self._known.issuperset(integers[other].tolist()) if other.any() else True


def listed(line: bytes) -> tuple[int, Array] | None:
    """The query of a line and its candidates; None for a line that is not written as usual."""
    head, _, rest = line.partition(b"[")
    query = _HEAD.fullmatch(head)
    if query is None or not rest.endswith(b"]}"):
        return None
    text = rest[:-2]
    try:
        integers = np.fromstring(text, dtype=np.int64, sep=",")
    except ValueError:
        return None
    # Numpy is lenient: it takes signs, blanks, zeros in front, and nothing between two commas for 0. None of these is there where
    # all but digits is as many separators as there have to be, all integers are positive, and none begins with 0.
    between, n = text.translate(None, _DIGITS), len(integers)
    if n == 0 or between not in (b", " * (n - 1), b"," * (n - 1)):
        return None
    if text.startswith(b"0") or b" 0" in text or b",0" in text:
        return None
    return (int(query[1]), integers) if integers.min() > 0 and integers.max() < _TOO_LARGE else None


def distinct(integers: Array) -> bool:
    """Whether no two are equal."""
    ordered = np.sort(integers)
    return not (ordered[1:] == ordered[:-1]).any()
