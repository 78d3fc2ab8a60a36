"""The one error type of the evaluator: the organiser's files or the call are wrong, not the run."""

from __future__ import annotations


class EvaluatorError(Exception):
    """What happened, why (with the place) and how to fix it. Never holds contents of truths.

    ``usage`` tells a wrong call of the command line from wrong files of the organiser.
    """

    def __init__(self, what: str, why: str = "", fix: str = "", *, usage: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.usage = usage

    def lines(self) -> list[str]:
        """The message as at most three short lines."""
        return [
            self.what,
            *([f"      {self.why}"] if self.why else []),
            *([f"      Fix: {self.fix}"] if self.fix else []),
        ]
