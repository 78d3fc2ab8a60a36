"""Records that were wrong, for people: a field with its confusion matrix or sizes of errors; as lines for a terminal, as JSON and on a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from runner.views.show.contents import Contents
from runner.views.text import cut, quoted, width, wrapped

OTHERS, MISSING = "(others)", "(missing)"  # no label looks so: see named()
LISTED = 10  # records with the largest errors on a terminal
LABEL = 24  # characters of a class in a matrix
_PLAIN = re.compile(r"[^\W_]([\w .:/+-]*\w)?")


def named(text: str) -> str:
    """A label or an id of somebody else, in quotes unless it is a plain word: nothing that stands there passes for ours."""
    return text if _PLAIN.fullmatch(text) else '"' + text.replace('"', '\\"') + '"'


@dataclass(frozen=True)
class Matrix:
    """How often which class was taken for which. ``counts`` has a row for each label that is right, and one for the others.

    Its columns are what was said: the labels, other ones, and nothing. ``others`` is how many labels have no row of their own.
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    others: int = 0

    @property
    def heads(self) -> list[str]:
        """What was said, for each column that is shown."""
        names = [*self._names, OTHERS, MISSING]
        return [names[n] for n in self._columns]

    @property
    def rows(self) -> list[tuple[str, list[tuple[int, bool | None]]]]:
        """For each class: its name, and its counts, with whether they are good (None: 0, or nobody can say)."""
        names = [*self._names, *([OTHERS] if self.others else [])]
        return [
            (name, [(line[n], self._good(row, n) if line[n] else None) for n in self._columns])
            for row, (name, line) in enumerate(zip(names, self.counts, strict=False))
        ]

    @property
    def _names(self) -> list[str]:
        """The labels, short."""
        return [cut(named(label), LABEL) for label in self.labels]

    @property
    def _columns(self) -> list[int]:
        """Those of the labels, and the others where there are any."""
        known = len(self.labels)
        missing = any(row[known + 1] for row in self.counts)
        return [*range(known), *([known] if self.others else []), *([known + 1] if missing else [])]

    def _good(self, row: int, column: int) -> bool | None:
        """Others may be the right one or another one."""
        return None if row == column == len(self.labels) else row == column


@dataclass(frozen=True)
class Pair:
    """A class that was taken for another one (``said`` None: the record is missing): how often, and ids of some records."""

    right: str
    said: str | None
    count: int
    ids: tuple[str, ...]

    @property
    def words(self) -> tuple[str, str]:
        """What is right, and what was said."""
        return named(self.right), MISSING if self.said is None else named(self.said)

    @property
    def records(self) -> str:
        """The ids, and whether there are more."""
        return ", ".join(map(named, self.ids)) + (" …" if self.count > len(self.ids) else "")


@dataclass(frozen=True)
class Difference:
    """Sizes of errors of the records that were answered: percent and the error that so many do not exceed, and which way."""

    shares: tuple[tuple[int, float], ...]
    largest: float | None
    above: int
    below: int

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Share of the records, and the error that these do not exceed."""
        whole = [] if self.largest is None else [("100 %", f"{self.largest:,.6g}")]
        return [*((f"{share} %", f"{error:,.6g}") for share, error in self.shares), *whole]


@dataclass(frozen=True)
class Spans:
    """The numbers of spans that were ``missed``, and of those that are not in the truths (``extra``)."""

    missed: int
    extra: int


@dataclass(frozen=True)
class Record:
    """One record: what was said, what is right, and its value on a measure (of numbers: by how much it is too high).

    For spans it has the spans that were missed, those that are not in the truths, and their numbers.
    """

    id: str
    said: str
    right: str
    value: float | None

    @property
    def name(self) -> str:
        """Its id, in quotes unless it is a plain word."""
        return named(self.id)

    def figure(self, *, sign: bool) -> str:
        """The value, short."""
        return "–" if self.value is None else f"{self.value:{'+' if sign else ''},.6g}"


@dataclass(frozen=True)
class Field:
    """A field of an output: how many of the ``total`` records were wrong (``missing`` ones are counted among them) and how.

    ``wrong`` is None when nobody can say. ``measure`` is what ``records`` are sorted by, "" where these are numbers.
    """

    number: int
    name: str
    output: str
    truth: str
    measures: tuple[str, ...]
    total: int
    wrong: int | None
    missing: int
    matrix: Matrix | None = None
    pairs: tuple[Pair, ...] = ()
    difference: Difference | None = None
    measure: str = ""
    records: tuple[Record, ...] = ()
    missing_ids: tuple[str, ...] = ()
    spans: Spans | None = None

    @property
    def heads(self) -> tuple[str, str, str]:
        """The names of a record's value and of its two texts, the output's first."""
        if self.spans:
            return "wrong spans", "not in the truths", "missed"
        return "error" if self.difference else self.measure, "said", "right"

    @property
    def summary(self) -> str:
        """How many records were wrong."""
        if not self.total:
            return "too much for the evaluation's details, which leave it out"
        gone = f"{self.missing:,} missing" if self.missing else ""
        if self.wrong is None:
            return f"{self.total:,} records" + (f", {gone}" if gone else "")
        inexact = (
            "not exact" if self.difference or self.spans else "wrong" if not self.measure else "not perfect"
        )
        return f"{self.wrong:,} of {self.total:,} records {inexact}" + (f", {gone}" if gone else "")

    @property
    def about(self) -> str:
        """Where it stands, and which measures read it."""
        return f"{named(self.output)}, measured by {', '.join(self.measures)}"

    @property
    def ways(self) -> str:
        """The numbers of values that are too high and too low, or of spans that are missed and not in the truths."""
        if self.spans:
            return f"{self.spans.missed:,} spans missed, {self.spans.extra:,} not in the truths"
        found = self.difference
        return "" if found is None else f"{found.above:,} too high, {found.below:,} too low"

    @property
    def left(self) -> str:
        """Some of the records that are missing; empty where pairs have them, or none is."""
        more = " …" if self.missing > len(self.missing_ids) > 0 else ""
        return ", ".join(map(named, self.missing_ids)) + more


@dataclass(frozen=True)
class Fields(Contents[Field]):
    """The fields of a run's records for one audience."""

    noun: ClassVar[str] = "field"
    closed: ClassVar[str] = "records and truths"
    template: ClassVar[str] = "runner.kinds.records/page.html"
    choice: ClassVar[str] = "FIELD"

    def line(self, piece: Field) -> str:
        """The field, and how many records were wrong."""
        return cut(f"  {named(piece.name)}: {piece.summary}")

    def full(self, piece: Field) -> Iterator[str]:
        """The confusion matrix and what was mixed up, or sizes of errors and the records with the largest."""
        yield ""
        yield from wrapped(f"{named(piece.name)}: {piece.summary}", "")
        yield from wrapped(piece.about, "  ")
        if piece.matrix:
            yield from _matrix(piece.matrix)
        for pair in piece.pairs:
            right, said = pair.words
            yield from wrapped(f"{right} taken for {said}: {pair.records}", f"  {pair.count:>7,} × ")
        if piece.difference:
            for share, error in piece.difference.rows:
                yield f"  {share:>5} of the answered records are off by at most {error}"
        if piece.ways:
            yield f"  {piece.ways}"
        for one in piece.records[:LISTED]:
            yield from _record(piece, one)
        if len(piece.records) > LISTED:
            yield f"    … and {len(piece.records) - LISTED:,} more, which --json and --html FILE have"
        if piece.left:
            yield from wrapped(f"missing: {piece.left}", "  ")


def _record(piece: Field, one: Record) -> Iterator[str]:
    """A wrong record: a number in one line, or its value and the two texts."""
    if piece.difference:
        said = f"{one.said} instead of {one.right} ({one.figure(sign=True)})"
        yield from wrapped(f"{one.name}: {said}", "    ")
        return
    figure, *texts = piece.heads
    yield from wrapped(f"{one.name}: {figure} {one.figure(sign=False)}", "    ")
    wide = max(map(len, texts))
    for head, words in zip(texts, (one.said, one.right), strict=True):
        yield from quoted(words, f"      {head:<{wide}} | ")


def _matrix(found: Matrix) -> Iterator[str]:
    """A confusion matrix as a table; only how many classes it has where a terminal has no space for it."""
    heads, rows = found.heads, found.rows
    names = ["right, then as", *(name for name, _ in rows)]
    cells = [heads, *([f"{count:,}" for count, _ in counts] for _, counts in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    first = max(map(len, names))
    if first + sum(widths) + 2 * len(widths) + 2 > width():
        yield f"  {len(rows):,} classes: --html FILE has the whole table"
        return
    for name, line in zip(names, cells, strict=True):
        figures = (f"{cell:>{wide}}" for cell, wide in zip(line, widths, strict=True))
        yield f"  {name:<{first}}  {'  '.join(figures)}"
