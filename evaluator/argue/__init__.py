"""Report generation judged in the manner of ARGUE: reports, nuggets, documents, judgments, scores.

The names below are for Python programs. They are imported when the first is asked for: a kind that only scores imports the
modules that it needs, and none that indexes documents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluator.argue.interface import *  # noqa: F403

__all__ = [  # noqa: F405
    "COMPAT",
    "DEFAULTS",
    "DEFAULT_COLLECTIONS",
    "DEFAULT_LIMIT",
    "Answer",
    "Bank",
    "Checker",
    "Cited",
    "Collection",
    "Document",
    "JudgedReport",
    "Judgment",
    "JudgmentType",
    "Lookup",
    "Match",
    "Nugget",
    "Options",
    "Reference",
    "Report",
    "ReportRequest",
    "Rules",
    "RunScores",
    "Segment",
    "Sentence",
    "TopicScores",
    "Track",
    "explain",
    "explanation",
    "leaderboard",
    "length",
    "limit_of",
    "load_judgments",
    "load_nuggets",
    "load_reports",
    "open_collection",
    "open_lookup",
    "read_judgments",
    "read_nuggets",
    "read_reports",
    "read_requests",
    "run_explanation",
    "score_run",
    "score_runs",
    "score_topic",
    "scores_tsv",
    "track",
    "truncate",
    "validate_judgments",
    "write_judgments",
    "write_leaderboard",
    "write_reports",
    "write_scores",
    "write_v3",
]


def __getattr__(name: str) -> Any:
    """A name of :mod:`evaluator.argue.interface`. Raises :class:`AttributeError` for any other, also for modules."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from evaluator.argue import interface

    return getattr(interface, name)
