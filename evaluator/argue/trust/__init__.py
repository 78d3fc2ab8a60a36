"""How far a judge can be trusted: what Auto-ARGUE lacks.

``agreement`` with people, ``correlation`` of the orders of runs, ``consistency`` under repetition, and ``canaries``: whether a
judge does what the texts tell it that it reads. Each prints a table or JSON, and the figures that belong beside every
score can be put into a file (``--reliability``; see :mod:`evaluator.argue.trust.figures`).
"""

from __future__ import annotations

from collections.abc import Sequence


def call(name: str, words: Sequence[str]) -> int:
    """Do ``evaluator argue NAME WORDS``. Returns the exit code. Raises :class:`evaluator.errors.EvaluatorError`."""
    if name == "agreement":
        from evaluator.argue.trust.agreement import run
    elif name == "correlation":
        from evaluator.argue.trust.correlation import run
    elif name == "consistency":
        from evaluator.argue.trust.consistency import run
    elif name == "canaries":
        from evaluator.argue.trust.canaries import run
    else:
        raise ValueError(f"there is no command {name}")
    return run(words)
