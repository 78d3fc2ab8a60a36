"""Texts with citations: report generation."""

from __future__ import annotations

from runner.kinds.report.judge import judge_doubt
from runner.kinds.report.presenter import read
from runner.kinds.report.skeleton import files
from runner.model.kinds import KindSpec

SPEC = KindSpec(presenter=read, skeleton=files, judge_doubt=judge_doubt, model_judges=lambda _measure: True)
