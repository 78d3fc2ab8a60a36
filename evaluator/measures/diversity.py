"""Relevance and diversity of ranked arguments, as Perspective Argument Retrieval 2024 measured them.

The formulas are those of the shared task's evaluation script, peculiarities included: they decide published
numbers. Where they differ from the textbook:

* nDCG: with twins (arguments with exactly the text of a relevant one) as hits, the ideal still counts relevant
  arguments only, so values over 1 are possible. Nothing is clipped.
* P: the divisor is the length of the list where that is shorter than the cut-off.
* alpha-nDCG (after Clarke et al., Novelty and diversity in information retrieval evaluation, SIGIR 2008), one
  property at a time: a value that was seen before counts 1 - alpha, no matter how often, and a value counts as
  seen also where it stood on an argument that is not relevant.
* rKL (after Yang and Stoyanovich, Measuring fairness in ranked outputs, SSDBM 2017): one term for every minority
  value, groups count equally, and cut-off 6 is missing from the list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

from evaluator.errors import EvaluatorError

if TYPE_CHECKING:  # numpy, which those who only ask for names of measures do not need
    from evaluator.formats.fast.words import Array

ALPHA = 0.5
STEPS = (2, 4, 8, 10, 12, 14, 16, 18, 20)  # at which rKL compares shares; 6 is missing in the original too
MANY = 1000  # a query with so many relevant arguments has this many, and the values of the first 999 only
MAX_CUTOFF = 1000

FAMILIES = ("nDCG", "P", "alpha-nDCG", "rKL", "alpha-nDCG-unqueried", "rKL-unqueried")
_MEASURE = re.compile(r"([A-Za-z-]+)@(\d{1,4}(?:,\d{1,4})*)")


class Measure:
    """A measure such as ``alpha-nDCG@8``, or its mean over cut-offs, such as ``nDCG@4,8,16,20``.

    ``family`` is one of :data:`FAMILIES` without ``-unqueried``; ``unqueried`` tells whether the property that the
    query asks for is left out (a variant: the shared task's own figure never leaves one out).
    """

    def __init__(self, text: str) -> None:
        """Parse ``text``. Raises :class:`EvaluatorError`."""
        match = _MEASURE.fullmatch(text)
        if match is None or match[1] not in FAMILIES:
            raise EvaluatorError(
                f"there is no measure {text[:60]!r}",
                f"measures are {', '.join(FAMILIES)}, each with cut-offs",
                "write for example nDCG@8, or nDCG@4,8,16,20 for the mean over cut-offs",
            )
        self.text = text
        self.unqueried = match[1].endswith("-unqueried")
        self.family = match[1].removesuffix("-unqueried")
        self.cutoffs = tuple(map(int, match[2].split(",")))
        least = STEPS[0] if self.family == "rKL" else 1
        if not all(least <= k <= MAX_CUTOFF for k in self.cutoffs) or len(set(self.cutoffs)) != len(
            self.cutoffs
        ):
            raise EvaluatorError(
                f"the cut-offs of {text[:60]} are wrong", f"they are different numbers from {least} to 1000"
            )

    @property
    def diverse(self) -> bool:
        """Whether it needs the authors' properties."""
        return self.family in ("alpha-nDCG", "rKL")

    def values(self, scores: Scores, asked: Sequence[int | None]) -> list[float]:
        """The value of every query, where each asks for the property numbered ``asked`` (None: for none of them)."""
        columns = [self._at(scores, k, asked) for k in self.cutoffs]
        return [fsum(at) / len(at) for at in zip(*columns, strict=True)]

    def _at(self, scores: Scores, k: int, asked: Sequence[int | None]) -> list[float]:
        if not self.diverse:
            column: list[float] = (scores.ndcg if self.family == "nDCG" else scores.precision)[k].tolist()
            return column
        rows = self.by_property(scores, k)
        if self.unqueried:
            rows = [row if p is None else row[:p] + row[p + 1 :] for row, p in zip(rows, asked, strict=True)]
        return [fsum(row) / len(row) for row in rows]

    def by_property(self, scores: Scores, k: int) -> list[list[float]]:
        """The values of every query, one for each property in the order of the population's."""
        rows: list[list[float]] = (scores.alpha_ndcg if self.family == "alpha-nDCG" else scores.rkl)[
            k
        ].tolist()
        return rows


class Scores(NamedTuple):
    """The values of all queries by cut-off; those of alpha-nDCG and rKL in a row for each, by property. Never clipped."""

    ndcg: dict[int, Array]
    precision: dict[int, Array]
    alpha_ndcg: dict[int, Array]
    rkl: dict[int, Array]
