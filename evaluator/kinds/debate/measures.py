"""The measures of debates by their strings: ``provenance``, ``latency@p95``, ``quality@human``, ``score@software/NAME`` …"""

from __future__ import annotations

from typing import NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.measures import debate as automatic
from schemas.debates import CRITERIA

SOURCES = ("human", "llm", "software", "heuristic")
KNOWN = (
    f"{', '.join(automatic.NAMES)}; and {', '.join(CRITERIA)} or score (their mean), each with "
    + ", ".join(f"@{source}" for source in SOURCES)
)


class Criterion(NamedTuple):
    """A measure such as ``quality@llm``: one of the criteria or ``score``, its source, and which judge of it ("": all)."""

    name: str
    source: str
    judge: str = ""

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria that it is the mean of."""
        return CRITERIA if self.name == "score" else (self.name,)


def parse_measure(text: str) -> str | Criterion:
    """The name of an automatic measure, or a criterion with its source. Raises :class:`EvaluatorError`."""
    if text in automatic.NAMES:
        return text
    name, _, source = text.partition("@")
    source, slash, judge = source.partition("/")
    named = source == "software" and judge
    if name in (*CRITERIA, "score") and source in SOURCES and (named or not slash):
        return Criterion(name, source, judge)
    raise EvaluatorError(
        f"there is no measure {text[:60]!r}",
        f"measures are {KNOWN}",
        "write for example provenance, latency@p95, quality@human or score@software/NAME",
    )
