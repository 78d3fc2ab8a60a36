"""Names that scripts for Auto-ARGUE import from its module ``utils``."""

from evaluator.argue.formats.report import Report
from evaluator.argue.models import JudgmentType, Nugget, Sentence

__all__ = ["JudgmentType", "Nugget", "Report", "Sentence"]
