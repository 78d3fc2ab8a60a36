"""Integers and decimals of a column, eight digits at a time: the doubles that ``float()`` would make of them.

Eight digits are one word. Exclusive or with eight times the character 0 makes each byte its digit; a shift to the left
throws away what stood behind a shorter number, and puts zeros in front of it, since the first byte is the lowest. Then
neighbours are joined: digits to pairs, pairs to fours, fours to eight.

A decimal whose digits make an integer below 2^53 is that integer divided by a power of ten, which rounds correctly. Columns of
other decimals go to ``float()``.
"""

from __future__ import annotations

import numpy as np

from evaluator.formats.fast.words import LOW, Array, Unusual, pieces
from evaluator.formats.trec_lines import finite_decimals

_ZEROS = np.uint64(0x3030303030303030)
_HIGH = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIX = np.uint64(0x0606060606060606)
_TEN = 10 ** np.arange(20, dtype=np.uint64)
_TEN_FLOAT = np.array([float(10**k) for k in range(20)])
_EIGHT = np.uint64(8)


def _joined(digits: Array) -> Array:
    """The number that the eight digits in the bytes of every word make. The words are overwritten."""
    pairs = digits * np.uint64(10)
    digits >>= _EIGHT
    pairs += digits
    high = pairs >> np.uint64(16)
    high &= np.uint64(0x000000FF000000FF)
    high *= np.uint64(0x0000271000000001)
    pairs &= np.uint64(0x000000FF000000FF)
    pairs *= np.uint64(0x000F424000000064)
    pairs += high
    pairs >>= np.uint64(32)
    return pairs


def _no_digits(digits: Array) -> Array:
    """Which bytes of words that should hold digits hold something else: bits that are set."""
    wrong = (
        digits + _SIX
    )  # a byte of ten or more gets a high half; one that is too large to carry has one already
    wrong |= digits
    wrong &= _HIGH
    return wrong


def integers(text: bytes, starts: Array, lengths: Array) -> Array:
    """The integers of a column. Raises :class:`Unusual` unless each has one to eight digits and nothing else."""
    if lengths.min() < 1 or lengths.max() > 8:
        raise Unusual
    digits = pieces(text, starts, 8)[:, 0]
    digits ^= _ZEROS
    digits <<= (64 - 8 * lengths).astype(np.uint64)
    if _no_digits(digits).any():
        raise Unusual
    return _joined(digits)


def decimals(text: bytes, starts: Array, ends: Array) -> Array:
    """The doubles of a column of decimals, rounded as ``float()`` does. Raises :class:`Unusual` for what is none."""
    alike = _alike(text, starts, ends)
    if alike is not None:
        return alike
    places = zip(starts.tolist(), ends.tolist(), strict=True)
    values = finite_decimals([text[start:end] for start, end in places])
    if values is None:
        raise Unusual
    return np.array(values)


def _alike(text: bytes, starts: Array, ends: Array) -> Array | None:
    """The doubles, if all decimals have as many digits behind the point as the first one; else None."""
    point = text.find(b".", starts[0], ends[0])
    behind = int(ends[0]) - point - 1
    points = ends - (behind + 1)
    before = points - starts
    if point < 0 or not 1 <= behind <= 8 or before.min() < 1 or before.max() > min(8, 15 - behind):
        return None
    if (np.frombuffer(text, dtype=np.uint8)[points] != ord(".")).any():
        return None
    whole = pieces(text, starts, 8)[:, 0]
    whole ^= _ZEROS
    whole <<= (64 - 8 * before).astype(np.uint64)
    part = pieces(text, ends - 8, 8)[:, 0]
    part ^= _ZEROS
    part &= ~LOW[8 - behind]
    if _no_digits(whole).any() or _no_digits(part).any():
        return None
    whole = _joined(whole)
    whole *= _TEN[behind]
    whole += _joined(part)
    out: Array = whole.astype(np.float64)
    out /= _TEN_FLOAT[behind]
    return out
