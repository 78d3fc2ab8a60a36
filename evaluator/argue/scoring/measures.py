"""The measures of reports by their strings: ``nugget_coverage``, ``f1@micro``, ``character_count@max`` …"""

from __future__ import annotations

from typing import NamedTuple

from evaluator.argue.scoring.runs import RunScores
from evaluator.argue.scoring.topic import (
    COUNTS,
    F1S,
    NEGATION_COUNTS,
    NEGATION_F1S,
    NEGATION_SHARES,
    SHARES,
    STRICT_COUNTS,
    STRICT_F1S,
    STRICT_SHARES,
)
from evaluator.errors import EvaluatorError

LENGTH = "character_count"
_STRICT = frozenset({*STRICT_COUNTS, *STRICT_SHARES, *STRICT_F1S})
_NEGATION = frozenset({*NEGATION_COUNTS, *NEGATION_SHARES, *NEGATION_F1S})
_COUNTED = frozenset({*COUNTS, *STRICT_COUNTS, *NEGATION_COUNTS})
_SHARED = frozenset({*SHARES, *F1S, *STRICT_SHARES, *STRICT_F1S, *NEGATION_SHARES, *NEGATION_F1S})
# What needs no judge; the second group needs none where relevance is looked up.
_UNJUDGED = frozenset(
    {"sentences", "nuggets", "nuggets_weighted", "citations", LENGTH, "unanswerable_nuggets"}
)
_LOOKED_UP = frozenset({"relevant_citations", "citation_relevance"})
NAMES = (
    f"{', '.join([*SHARES, *F1S])}, each also @micro (default @macro); {', '.join(COUNTS)}; {LENGTH}@median or @max; "
    f"our own: {', '.join([*STRICT_COUNTS, *STRICT_SHARES, *STRICT_F1S])}, "
    f"{', '.join([*NEGATION_COUNTS, *NEGATION_SHARES, *NEGATION_F1S])}"
)


class ReportMeasure(NamedTuple):
    """A measure: its name by topic, and how it is joined (``macro``, ``micro``, ``sum``, ``median``, ``max``)."""

    name: str
    join: str

    @property
    def strict(self) -> bool:
        """Whether it needs judgments about answers that were kept out."""
        return self.name in _STRICT

    @property
    def negation(self) -> bool:
        """Whether it needs judgments about statements of ignorance."""
        return self.name in _NEGATION

    def unjudged(self, everything: bool) -> bool:
        """Whether it can be computed without any judge."""
        return self.name in _UNJUDGED or (self.name in _LOOKED_UP and not everything)

    def total(self, scores: RunScores) -> float:
        """Its value over all topics."""
        whole = {"sum": self.name}.get(self.join, f"{self.name}_{self.join}")
        return scores.overall[whole]


def parse_measure(text: str) -> ReportMeasure:
    """The measure of a string. Raises :class:`EvaluatorError` for a string that is none."""
    name, at, join = text.partition("@")
    for ending in ("_macro", "_micro", "_median"):  # as a scores file writes them
        if not at and name.endswith(ending):
            name, at, join = name.removesuffix(ending), "@", ending[1:]
    if not at and name == f"{LENGTH}_max":
        name, at, join = LENGTH, "@", "max"
    legal = False
    if name in _COUNTED:
        legal, join = not at, "sum"
    elif name == LENGTH:
        join = join if at else "median"
        legal = join in ("median", "max")
    elif name in _SHARED:
        join = join if at else "macro"
        legal = join in ("macro", "micro")
    if not legal:
        raise EvaluatorError(
            f"there is no measure {text[:60]!r}",
            f"measures are {NAMES}",
            "write for example f1 or nugget_coverage@micro",
        )
    return ReportMeasure(name, join)
