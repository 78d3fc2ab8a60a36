"""Judging the judges: judgments of debates against people's labels, or one leaderboard against another."""

from __future__ import annotations

from pathlib import Path

from evaluator.findings import Log
from evaluator.kinds.meta import judgments, leaderboards
from evaluator.kinds.options import checked_options
from evaluator.measures.judging import KNOWN as JUDGING
from evaluator.request import Request
from evaluator.scores import Sink


class Meta:
    """What a run is, the option ``form`` says; the others: see ``schemas/kinds/meta.schema.json``."""

    name = "meta"
    measures = f"for judgments: {JUDGING}; for leaderboards: kendall@truth measure/judge measure and others"

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Check and score the run; see :class:`evaluator.kinds.base.Kind`."""
        options = checked_options(self.name, request.options)
        if options["form"] == "judgments":
            judgments.evaluate(run, inputs, truths, request, options, sink)
        else:
            leaderboards.evaluate(run, truths, request, options, sink)

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Check the run alone; see :class:`evaluator.kinds.base.Checker`."""
        options = checked_options(self.name, request.options)
        if options["form"] == "judgments":
            judgments.check(run, inputs, request, options, log)
        else:
            leaderboards.check(run, request, options, log)


KIND = Meta()
