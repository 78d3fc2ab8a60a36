"""All names that ``evaluator.argue`` offers to Python programs, in one place; the package imports it when one is asked for."""

# mypy: implicit-reexport
# ruff: noqa: F401

from __future__ import annotations

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
    ReportRequest,
    Segment,
    Sentence,
)
from evaluator.argue.nugget_formats import load_nuggets, read_nuggets, write_v3
from evaluator.argue.output import leaderboard, scores_tsv, write_leaderboard, write_scores
from evaluator.argue.report import Report
from evaluator.argue.reports import read_reports
from evaluator.argue.requests import DEFAULT_LIMIT, length, limit_of, read_requests, truncate
from evaluator.argue.runs import RunScores, score_run, score_runs
from evaluator.argue.scoring import Options, TopicScores, score_topic
from evaluator.argue.tracks import Track, track
from evaluator.argue.validating import validate_judgments
from evaluator.argue.writing import write_reports
