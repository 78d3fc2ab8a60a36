"""Where the six fields of every line of a block begin and end.

All bytes up to the blank are separators. Where all fields are parted by one and the same blank, six fields a line means:
there are six separators for every line, the sixth is a newline. ``Q0`` and the tag are the same on every line,
so they are compared together with the separators around them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluator.formats.blocks import MAX_LINE
from evaluator.formats.fast.unusual import Unusual
from evaluator.formats.fast.words import FRONT, Array, all_are
from evaluator.formats.trec_lines import CONTROLS

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


def fields_of(text: bytes, size: int, n: int) -> Fields:
    """The fields of the ``n`` lines of a padded text of ``size`` bytes. Raises :class:`Unusual`."""
    buffer = np.frombuffer(text, dtype=np.uint8)
    found = _even(text, buffer, size, n) or _uneven(text, buffer, size, n)
    if len(found.tag) > _SHORT or _longest(found.topic) > _SHORT or _longest(found.score) > _SHORT:
        raise Unusual
    return found


def _longest(field: Field) -> int:
    return int((field.ends - field.starts).max())


def _even(text: bytes, buffer: Array, size: int, n: int) -> Fields | None:
    """The fields, if all are parted by one and the same blank."""
    separators = np.flatnonzero(buffer <= 32)  # the first is the newline before the first line
    if len(separators) != 6 * n + 1:
        return None
    ends = np.ascontiguousarray(separators[1:].reshape(n, 6).T)  # a row for every column of the file
    blank = text[ends[0, 0] : ends[0, 0] + 1]
    tag = text[ends[4, 0] + 1 : ends[5, 0]]
    if blank not in (b" ", b"\t") or not 0 < len(tag) <= _SHORT:  # before it is looked for: padding is short
        return None
    if not all_are(text, ends[0], blank + b"Q0" + blank) or not all_are(text, ends[4], blank + tag + b"\n"):
        if (buffer[ends[5]] == 10).all() and not all_are(text, ends[0] + 1, b"Q0"):
            raise Unusual  # whatever is between the fields
        return None
    if (buffer[ends[2]] != blank[0]).any() or (buffer[ends[3]] != blank[0]).any():
        return None
    fields = Fields(
        Field(separators[:-1:6] + 1, ends[0]),
        Field(ends[1] + 1, ends[2]),
        Field(ends[2] + 1, ends[3]),
        Field(ends[3] + 1, ends[4]),
        tag,
    )
    for field in fields[:4]:
        if not (field.starts < field.ends).all():
            return None
    return fields


def _uneven(text: bytes, buffer: Array, size: int, n: int) -> Fields:
    """The same for any mixture of blanks, tabs and Windows line ends. Raises :class:`Unusual`."""
    data = text[FRONT : FRONT + size]
    if len(data.translate(None, CONTROLS)) != size or data.count(b"\r\n") != data.count(b"\r"):
        raise Unusual
    blank = buffer[FRONT - 1 : FRONT + size] <= 32  # begins with the newline in the padding
    edges = np.flatnonzero(blank[1:] != blank[:-1])
    newlines = np.flatnonzero(buffer[FRONT : FRONT + size] == 10)
    if len(edges) != 12 * n or len(newlines) != n:
        raise Unusual
    edges += FRONT
    newlines += FRONT
    columns = np.ascontiguousarray(edges.reshape(n, 12).T)
    starts, ends = columns[0::2], columns[1::2]
    # One newline behind every sixth field, and so none between others.
    if (newlines < ends[5]).any() or (newlines[:-1] > starts[0, 1:]).any():
        raise Unusual
    if np.diff(newlines, prepend=FRONT).max() > MAX_LINE:
        raise Unusual
    tag = text[starts[5, 0] : ends[5, 0]]
    for column, value in ((1, b"Q0"), (5, tag)):
        if (ends[column] - starts[column] != len(value)).any() or not all_are(text, starts[column], value):
            raise Unusual
    topic, doc, rank, score = (Field(starts[k], ends[k]) for k in (0, 2, 3, 4))
    return Fields(topic, doc, rank, score, tag)
