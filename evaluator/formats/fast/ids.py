"""The ids of a large corpus as sorted 64-bit hashes, 8 bytes for each.

Two ids have the same hash by chance only, with a probability of 2^-64: its multipliers are drawn anew for each index, so nobody
can make an id that passes for another. A wrong id passes for one of nine million with a probability of 5e-13.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from itertools import islice

import numpy as np

from evaluator.formats.fast.words import (
    WIDEST,
    Array,
    Unusual,
    drawn_hashed,
    first_fields,
    gather,
    padded,
    words_of,
)
from evaluator.formats.files import BOM
from evaluator.formats.trec_lines import CONTROLS

_DRAWN = (2, 1 + WIDEST // 4)  # multipliers: two rows of one and one for each half of a word
_BATCH = 100_000
_PIECE = 4 << 20


class IdIndex:
    """The ids of a corpus; see :class:`evaluator.formats.ranked.KnownDocuments`.

    ``batches`` are all ids as rows of words (:func:`in_batches`, :func:`of_lines`); ``everyone`` reads the ids themselves. Raises
    :class:`Unusual` for ids that have no place in words, and without any.
    """

    def __init__(self, batches: Iterator[Array], everyone: Callable[[], Iterator[bytes]]) -> None:
        self._drawn = np.frombuffer(os.urandom(8 * _DRAWN[0] * _DRAWN[1]), dtype=np.uint64).reshape(_DRAWN)
        hashes = [self.hashed(words) for words in batches]
        if not hashes:
            raise Unusual
        self._hashes = np.concatenate(hashes)
        del hashes
        self._hashes.sort()
        self._everyone = everyone

    def __len__(self) -> int:
        return len(self._hashes)

    def hashed(self, words: Array) -> Array:
        """The hash of every document, given as rows of words: what :meth:`knows` is asked."""
        with np.errstate(over="ignore"):
            return drawn_hashed(words, self._drawn)

    def knows(self, hashes: Array) -> bool:
        """Whether all documents with these hashes are in the corpus."""
        return bool(self._found(np.sort(hashes)).all())  # sorted, they are looked up faster

    def missing(self, docs: Collection[bytes]) -> Collection[bytes]:
        """Return those of ``docs`` that are not in the corpus."""
        fitting = [doc for doc in docs if len(doc) <= WIDEST and b"\0" not in doc]
        found = self._found(self.hashed(words_of(fitting))) if fitting else np.empty(0, dtype=bool)
        known = {doc for doc, one in zip(fitting, found.tolist(), strict=True) if one}
        return {doc for doc in docs if doc not in known}

    def ids(self) -> Iterator[bytes]:
        """Every id."""
        return self._everyone()

    def _found(self, wanted: Array) -> Array:
        """For every hash whether it is there."""
        found: Array = self._hashes.take(np.searchsorted(self._hashes, wanted), mode="clip") == wanted
        return found


def in_batches(ids: Iterator[bytes]) -> Iterator[Array]:
    """Ids as rows of words, many at a time. Raises :class:`Unusual` for one that has no place in them."""
    while some := list(islice(ids, _BATCH)):
        if max(map(len, some)) > WIDEST or b"\0" in b"".join(some):
            raise Unusual
        yield words_of(some)


def of_lines(read: Callable[[int], bytes]) -> Iterator[Array]:
    """The first field of every line as rows of words. Raises :class:`Unusual` as :func:`in_batches`."""
    rest, mark = b"", BOM
    while piece := read(_PIECE):
        lines = rest + piece.removeprefix(mark)
        end = lines.rfind(b"\n") + 1
        yield from _first_words(lines[:end])
        rest, mark = lines[end:], b""
    yield from _first_words(rest + b"\n")


def _first_words(lines: bytes) -> Iterator[Array]:
    text = padded(lines)
    starts, lengths = first_fields(text)
    if len(lines) != len(lines.translate(None, CONTROLS)) or not lengths.all():
        # Something that is no blank for Python, or lines that are empty or begin with a blank.
        words = (line.split(None, 1)[:1] for line in lines.split(b"\n"))
        yield from in_batches(word for one in words for word in one)
    elif len(lengths):
        longest = int(lengths.max())
        if longest > WIDEST:
            raise Unusual
        yield gather(text, starts, lengths, longest)
