"""What the measures of a kind mean and in which unit they are, from its schema (``x-measures``)."""

from __future__ import annotations

import re
from typing import NamedTuple

from schemas.checking import kinds, schema

_OTHER_FIGURE = re.compile(r"\bmacro\s*=|\brule\s*=\s*(?!['\"]?mean\b)")


class Meaning(NamedTuple):
    """What a measure tells, in a few words, and its unit, such as ``0 to 1`` or ``ms``; both may be empty."""

    unit: str = ""
    says: str = ""


def base(measure: str) -> str:
    """The name of a measure without options, cut-off and source: ``nDCG`` of ``nDCG(dcg='log2')@10``."""
    return re.split(r"[(@]", measure, maxsplit=1)[0].strip()


def meaning(kind: str, measure: str) -> Meaning:
    """The meaning of a measure of a kind; empty where the kind's schema does not say."""
    if kind not in kinds():
        return Meaning()
    found = schema(f"kinds/{kind}").get("x-measures", {})
    return Meaning(**(found.get(measure) or found.get(base(measure)) or {}))


def mean_of_topics(kind: str, measure: str) -> bool:
    """Whether the value of a measure over all topics is the mean of those by topic, so that it can be told for a part of them.

    The kind's schema says so (``x-topic-means``, with exceptions in ``x-sums``), of measures that it names. With a parameter
    ``macro``, or a ``rule`` other than the mean, it is another figure.
    """
    if kind not in kinds():
        return False
    found = schema(f"kinds/{kind}")
    name = base(measure)
    return (
        bool(found.get("x-topic-means"))
        and name in found["x-measures"]
        and name not in found.get("x-sums", ())
        and not _OTHER_FIGURE.search(measure)
    )
