"""Where the six fields of every line of a block begin and end.

All bytes up to the blank are separators. All fields are parted by one and the same blank; six fields a line then means: there are
six separators for every line, the sixth is a newline. ``Q0`` and the tag are the same on every line, so they are compared together
with the separators around them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluator.formats.fast.words import Array, Unusual, all_are

_SHORT = 64  # bytes of a topic, a score or a tag


class Field(NamedTuple):
    """One column: where it begins and ends in the padded text, line by line."""

    starts: Array
    ends: Array

    def taken(self, order: Array) -> Field:
        """The same lines in another order."""
        return Field(self.starts[order], self.ends[order])

    def at(self, text: bytes, i: int) -> bytes:
        """The field of one line."""
        return text[self.starts[i] : self.ends[i]]


class Fields(NamedTuple):
    """The columns that differ from line to line, and the tag, which does not."""

    topic: Field
    doc: Field
    rank: Field
    score: Field
    tag: bytes


def fields_of(text: bytes, n: int) -> Fields:
    """The fields of the ``n`` lines of a padded text. Raises :class:`Unusual`."""
    buffer = np.frombuffer(text, dtype=np.uint8)
    separators = np.flatnonzero(buffer <= 32)  # the first is the newline before the first line
    if len(separators) != 6 * n + 1:
        raise Unusual
    ends = np.ascontiguousarray(separators[1:].reshape(n, 6).T)  # a row for every column of the file
    blank = text[ends[0, 0] : ends[0, 0] + 1]
    tag = text[ends[4, 0] + 1 : ends[5, 0]]
    if blank not in (b" ", b"\t") or not 0 < len(tag) <= _SHORT:  # before it is looked for: padding is short
        raise Unusual
    if not all_are(text, ends[0], blank + b"Q0" + blank) or not all_are(text, ends[4], blank + tag + b"\n"):
        raise Unusual
    if (buffer[ends[2]] != blank[0]).any() or (buffer[ends[3]] != blank[0]).any():
        raise Unusual
    fields = Fields(
        Field(separators[:-1:6] + 1, ends[0]),
        Field(ends[1] + 1, ends[2]),
        Field(ends[2] + 1, ends[3]),
        Field(ends[3] + 1, ends[4]),
        tag,
    )
    if not all((field.starts < field.ends).all() for field in fields[:4]):
        raise Unusual
    if max(_longest(fields.topic), _longest(fields.score)) > _SHORT:
        raise Unusual
    return fields


def _longest(field: Field) -> int:
    return int((field.ends - field.starts).max())
