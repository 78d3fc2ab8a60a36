"""Names that scripts for Auto-ARGUE import from its module ``utils``."""

from evaluator.argue.models import JudgmentType, Nugget, Report, Sentence

__all__ = ["JudgmentType", "Nugget", "Report", "Sentence"]
