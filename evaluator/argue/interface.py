"""All names that ``evaluator.argue`` offers to Python programs, in one place; the package imports it when one is asked for."""

# mypy: implicit-reexport
# ruff: noqa: F401

from __future__ import annotations

from evaluator.argue.formats.checking import Checker, Rules, load_reports
from evaluator.argue.formats.documents import Collection, open_collection
from evaluator.argue.formats.judgments import (
    load_judgments,
    read_judgments,
    validate_judgments,
    write_judgments,
)
from evaluator.argue.formats.lookup import DEFAULT_COLLECTIONS, Lookup, open_lookup
from evaluator.argue.formats.nugget_formats import load_nuggets, read_nuggets, write_v3
from evaluator.argue.formats.report import Report, read_reports, write_reports
from evaluator.argue.formats.requests import DEFAULT_LIMIT, length, limit_of, read_requests, truncate
from evaluator.argue.formats.tracks import Track, track
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
    ReportRequest,
    Segment,
    Sentence,
)
from evaluator.argue.scoring.explaining import explain, explanation, run_explanation
from evaluator.argue.scoring.measures import Options
from evaluator.argue.scoring.nuggetizer import score_nuggetizer
from evaluator.argue.scoring.output import leaderboard, scores_tsv, write_leaderboard, write_scores
from evaluator.argue.scoring.runs import RunScores, score_run, score_runs
from evaluator.argue.scoring.topic import TopicScores, score_topic

__all__ = sorted(name for name in globals() if not name.startswith("_") and name != "annotations")
