"""Names that scripts for Auto-ARGUE import from its module ``utils``."""

from evaluator.argue.models import JudgmentType, Nugget, Sentence
from evaluator.argue.report import Report

__all__ = ["JudgmentType", "Nugget", "Report", "Sentence"]
