"""Report generation judged in the manner of ARGUE: reports, nuggets, documents, judgments, scores.

The names below are what the other parts use; modules are imported when they are first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluator.argue.checking import Checker, Rules, load_reports
    from evaluator.argue.documents import Collection, open_collection
    from evaluator.argue.explaining import explain, explanation, run_explanation
    from evaluator.argue.judgments import load_judgments, read_judgments, write_judgments
    from evaluator.argue.lookup import DEFAULT_COLLECTIONS, Lookup, open_lookup
    from evaluator.argue.models import (
        COMPAT,
        DEFAULTS,
        Answer,
        Bank,
        Cited,
        Document,
        JudgedReport,
        Judgment,
        JudgmentType,
        Match,
        Nugget,
        Reference,
        Report,
        ReportRequest,
        Segment,
        Sentence,
    )
    from evaluator.argue.nugget_formats import load_nuggets, read_nuggets, write_v3
    from evaluator.argue.output import leaderboard, scores_tsv, write_leaderboard, write_scores
    from evaluator.argue.reports import read_reports
    from evaluator.argue.requests import DEFAULT_LIMIT, length, limit_of, read_requests, truncate
    from evaluator.argue.runs import RunScores, score_run, score_runs
    from evaluator.argue.scoring import Options, TopicScores, score_topic
    from evaluator.argue.tracks import Track, track
    from evaluator.argue.validating import validate_judgments
    from evaluator.argue.writing import write_reports

_WHERE = {
    "checking": ("Checker", "Rules", "load_reports"),
    "documents": ("Collection", "open_collection"),
    "explaining": ("explain", "explanation", "run_explanation"),
    "judgments": ("load_judgments", "read_judgments", "write_judgments"),
    "lookup": ("DEFAULT_COLLECTIONS", "Lookup", "open_lookup"),
    "models": (
        "COMPAT", "DEFAULTS", "Answer", "Bank", "Cited", "Document", "JudgedReport", "Judgment", "JudgmentType",
        "Match", "Nugget", "Reference", "Report", "ReportRequest", "Segment", "Sentence",
    ),
    "nugget_formats": ("load_nuggets", "read_nuggets", "write_v3"),
    "output": ("leaderboard", "scores_tsv", "write_leaderboard", "write_scores"),
    "reports": ("read_reports",),
    "requests": ("DEFAULT_LIMIT", "length", "limit_of", "read_requests", "truncate"),
    "runs": ("RunScores", "score_run", "score_runs"),
    "scoring": ("Options", "TopicScores", "score_topic"),
    "tracks": ("Track", "track"),
    "validating": ("validate_judgments",),
    "writing": ("write_reports",),
}  # fmt: skip
_MODULE = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
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
    """What is imported on demand: a kind that only scores need not load what indexes documents."""
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"evaluator.argue.{_MODULE[name]}"), name)
