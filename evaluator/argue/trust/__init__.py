"""How far a judge can be trusted: what Auto-ARGUE lacks.

``agreement`` with people, ``correlation`` of the orders of runs, ``consistency`` under repetition, and ``canaries``: whether a
judge does what the texts tell it that it reads. Each prints a table or JSON, and the figures that belong next to every
score can be put into a file (``--reliability``; see :mod:`evaluator.argue.trust.figures`).
"""

from __future__ import annotations

from collections.abc import Sequence


def call(name: str, words: Sequence[str]) -> int:
    """Do ``evaluator argue NAME WORDS``. Returns the exit code. Raises :class:`evaluator.errors.EvaluatorError`."""
    from evaluator.argue.trust import agreement, canaries, consistency, correlation

    commands = {
        "agreement": agreement,
        "correlation": correlation,
        "consistency": consistency,
        "canaries": canaries,
    }
    code: int = commands[name].run(words)
    return code
