"""Fields of a text as rows of 64-bit words: gathered, compared and hashed without making an object of any.

A word is eight consecutive bytes read as one little-endian number: the first byte is the lowest. A field of n bytes is
n / 8 words, rounded up; the bytes of the last word that are behind the field are masked to zero. No byte of a field is
zero, so two fields are equal where their words are, and the order of fields as bytes is that of their words read
from the other end.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Unusual(Exception):
    """There is something in a block that numpy does not read here; nothing was changed yet."""


# Words may begin before a text and end behind it. What stands before it ends in a newline, as each of its own lines does.
_FRONT, _BACK = b"~" * 15 + b"\n", b"~" * 136
FRONT = len(_FRONT)
WIDEST = 128  # bytes of a field that are handled here
LOW = np.array([(1 << (8 * k)) - 1 for k in range(9)], dtype=np.uint64)  # keeps the first k bytes of a word

_ODD = np.array(
    [(0x9E3779B97F4A7C15 * (2 * k + 1)) & ((1 << 64) - 1) | 1 for k in range(WIDEST // 8)], dtype=np.uint64
)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_TOPIC_MIX = np.uint64(0xFF51AFD7ED558CCD)


def padded(text: bytes) -> bytes:
    """The text with padding on both sides: its first byte is byte ``FRONT`` of that."""
    return b"".join((_FRONT, text, _BACK))


def pieces(text: bytes, starts: Array, width: int) -> Array:
    """The ``width`` bytes (a multiple of 8) from each of ``starts`` on, as rows of words.

    Raises :class:`Unusual` where they end behind the text: its reader relied on what another line says.
    """
    # The window shows the same bytes once for every place at which a piece can start.
    window: Array = np.ndarray((len(text) - width + 1,), dtype=f"V{width}", buffer=text, strides=(1,))
    try:
        words: Array = window[starts].view(np.uint64).reshape(len(starts), width // 8)
    except IndexError:
        raise Unusual from None
    return words


@cache
def _masks(count: int) -> Array:
    """Row n keeps the first n bytes of ``count`` words."""
    rows = [[(1 << (8 * min(max(n - 8 * k, 0), 8))) - 1 for k in range(count)] for n in range(8 * count + 1)]
    return np.array(rows, dtype=np.uint64)


def gather(text: bytes, starts: Array, lengths: Array, longest: int) -> Array:
    """The fields of these lengths, the greatest of which is ``longest``, as rows of words."""
    count = -(-longest // 8)
    words = pieces(text, starts, 8 * count)
    words &= _masks(count).take(lengths, axis=0)
    return words


def words_of(fields: list[bytes]) -> Array:
    """The same words for fields held as Python objects."""
    width = max(8, -(-max(map(len, fields)) // 8) * 8)
    return np.array(fields, dtype=f"S{width}").view(np.uint64).reshape(len(fields), width // 8)


def all_are(text: bytes, starts: Array, value: bytes) -> bool:
    """Whether ``value`` stands at each of ``starts``."""
    count = -(-len(value) // 8)
    wanted = words_of([value])[0]
    words = pieces(text, starts, 8 * count)
    for k in range(count):
        wrong = words[:, k] ^ wanted[k]
        wrong &= LOW[min(8, len(value) - 8 * k)]
        if wrong.any():
            return False
    return True


def changes(words: Array) -> Array:
    """For every row whether it differs from the one before; the first does."""
    out = np.zeros(len(words), dtype=bool)
    out[0] = True
    for k in range(words.shape[1]):
        out[1:] |= words[1:, k] != words[:-1, k]
    return out


def greater(ours: Array, theirs: Array) -> Array:
    """For every row whether our field comes behind theirs in the order of bytes."""
    out = np.zeros(len(ours), dtype=bool)
    decided = np.zeros(len(ours), dtype=bool)
    for k in range(ours.shape[1]):
        one, other = ours[:, k].byteswap(), theirs[:, k].byteswap()
        out |= ~decided & (one > other)
        decided |= one != other
    return out


def first_fields(text: bytes) -> tuple[Array, Array]:
    """Where each line of a padded text begins, and how long the field is that begins there."""
    buffer = np.frombuffer(text, dtype=np.uint8)
    separators = np.flatnonzero(buffer <= 32)
    newlines = np.flatnonzero(
        buffer[separators] == 10
    )  # places in separators; the first is before the first line
    starts = separators[newlines[:-1]] + 1
    return starts, separators[newlines[:-1] + 1] - starts


def hashed(words: Array) -> Array:
    """A 64-bit hash of every row; zero words at the end change nothing, so widths may differ.

    Its multipliers are known, so fields with equal hashes can be made: it chooses candidates, whose bytes are compared.
    """
    mixed = words >> np.uint64(32)
    mixed ^= words
    mixed *= _ODD[: words.shape[1]]
    out = mixed[:, 0].copy()
    for k in range(1, words.shape[1]):
        out += mixed[:, k]
    out ^= out >> np.uint64(29)
    out *= _MIX
    out ^= out >> np.uint64(32)
    return out


def drawn_hashed(words: Array, drawn: Array) -> Array:
    """A 64-bit hash of every row by two rows of drawn multipliers; zero words at the end change nothing.

    Each row gives the upper 32 bits of a0 + a1 x1 + a2 x2 + ... modulo 2^64, where x are the fields' halves of words: for
    uniform a, even ones too, two fields that differ agree in it with a probability of 2^-32, whichever they are (strongly
    universal multilinear hashing; Dietzfelbinger 1996, Lemire and Kaser 2014), and in both with 2^-64.
    """
    halves = words.view(np.uint32)
    sums = []
    for multipliers in drawn:
        out = np.full(len(words), multipliers[0])
        for k in range(halves.shape[1]):
            out += halves[:, k] * multipliers[1 + k]
        sums.append(out >> np.uint64(32))
    return sums[0] << np.uint64(32) | sums[1]


def paired(topics: Array, docs: Array) -> Array:
    """One hash of a topic and a document; its high bits are the good ones."""
    out: Array = topics * _TOPIC_MIX
    out += docs
    out *= _MIX
    return out
