"""The lines of an ungrouped file, topic by topic, with their numbers: what :func:`blocks.regroup` does line by line.

Topics are numbered in the order in which they come; a stable sort of the lines by that number puts those of a topic together
in the order of the file. Lines that follow one another in both are copied as one piece.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np

from evaluator.formats.blocks import BOM, MAX_LINE, MAX_TOPIC, Lines
from evaluator.formats.fast.words import FRONT, Array, Unusual, first_fields, gather, hashed, padded
from evaluator.formats.trec_lines import CONTROLS

PIECE = 2 << 20  # bytes that are looked at together, or given on together
_LONGEST = 64  # bytes of a topic


def grouped(data: bytes, known: frozenset[bytes] | None, line: int) -> Iterator[Lines]:
    """Blocks of whole topics; ``line`` is the number of the first line of ``data``.

    Raises :class:`Unusual`, before the first block, for what :func:`blocks.regroup` has to report or set apart: topics
    that are not ``known``, empty lines, lines and topics that are too long, a byte order mark.
    """
    if not data.endswith(b"\n") or data.startswith(BOM):
        raise Unusual
    starts, codes = _topics(data, known)
    order = np.argsort(codes, kind="stable").astype(starts.dtype)
    lasts = np.cumsum(np.bincount(codes))  # of every topic: where its lines end in that order
    del codes
    lengths = np.diff(starts)[order]
    sizes = np.add.reduceat(lengths, np.append(0, lasts[:-1]), dtype=np.int64)
    del lengths
    if sizes.max() > MAX_TOPIC:
        raise Unusual
    return _blocks(data, starts, order, lasts.tolist(), sizes.tolist(), line)


def _topics(data: bytes, known: frozenset[bytes] | None) -> tuple[Array, Array]:
    """Where every line begins, and last where the last one ends; and the number of the topic of each."""
    begins: list[Array] = []
    codes: list[Array] = []
    numbers: dict[bytes, int] = {}
    position = 0
    while position < len(data):
        end = data.rfind(b"\n", position, position + PIECE) + 1
        if not end:
            raise Unusual  # a line that is too long
        with np.errstate(over="ignore"):
            starts, here = _piece(data[position:end], numbers)
        begins.append((starts + (position - FRONT)).astype(np.uint32 if len(data) < 1 << 32 else np.int64))
        codes.append(here)
        position = end
    if known is not None and not known.issuperset(numbers):
        raise Unusual
    begins.append(np.array([len(data)], dtype=begins[0].dtype))
    small = np.uint16 if len(numbers) < 1 << 16 else np.int64  # those of 16 bits are sorted by their digits
    return np.concatenate(begins), np.concatenate(codes, dtype=small, casting="unsafe")


def _piece(lines: bytes, numbers: dict[bytes, int]) -> tuple[Array, Array]:
    """Where lines begin when they are padded, and the numbers of their topics; new topics get new ``numbers``."""
    if len(lines) != len(lines.translate(None, CONTROLS)):
        raise Unusual  # something that parts fields here, but is no blank for Python
    text = padded(lines)
    starts, lengths = first_fields(text)
    longest = int(lengths.max())
    if lengths.min() < 1 or longest > _LONGEST or np.diff(starts, append=FRONT + len(lines)).max() > MAX_LINE:
        raise Unusual
    words = gather(text, starts, lengths, longest)
    _, firsts, which = np.unique(hashed(words), return_index=True, return_inverse=True)
    if (words != words[firsts[which]]).any():
        raise Unusual  # a collision of hashes
    codes = np.empty(len(firsts), dtype=np.int32)
    for i in np.argsort(firsts).tolist():
        first = firsts[i]
        topic = text[starts[first] : starts[first] + lengths[first]]
        codes[i] = numbers.setdefault(topic, len(numbers))
    return starts, codes[which]


def _blocks(
    data: bytes, starts: Array, order: Array, lasts: list[int], sizes: list[int], line: int
) -> Iterator[Lines]:
    """The lines in that order, cut where a topic ends: whole topics of about ``PIECE`` bytes, but one at least."""
    begin = held = 0
    for i, (last, size) in enumerate(zip(lasts, sizes, strict=True)):
        held += size
        if i + 1 < len(lasts) and held + sizes[i + 1] <= PIECE:
            continue
        rows = order[begin:last].astype(np.int64)
        # A piece ends where the next row is not the line that follows in the file.
        cuts = np.flatnonzero(np.diff(rows) != 1)
        firsts, ends = np.append(rows[:1], rows[cuts + 1]), np.append(rows[cuts], rows[-1:]) + 1
        places = zip(starts[firsts].tolist(), starts[ends].tolist(), strict=True)
        numbers = array("q", (rows + line).tobytes())
        yield b"".join([data[a:b] for a, b in places]), numbers
        begin, held = last, 0
