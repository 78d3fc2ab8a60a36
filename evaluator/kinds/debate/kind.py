"""Debates of a simulated user with a software: what can be counted, and the four criteria from people, judges and models.

Inputs: the claims (``claims.jsonl``, or the file that the dataset names as its topics). The run's file has one debate a
line; where the request says that our driver held the debates, ``turns.jsonl`` and ``served.jsonl`` beside it are its
records. Nobody else's are looked at: they could say that arguments were retrieved which never were. The index that arguments are
compared with is the data of the task's search service. Truths: ``labels/`` (people's labels), ``judgments/`` (judges'
scores) and, if the task has its own, prompts.
"""

from __future__ import annotations

from pathlib import Path

from evaluator.findings import Log
from evaluator.kinds.debate.measures import KNOWN, Criterion, parse_measure
from evaluator.kinds.debate.remarks import remarks
from evaluator.kinds.debate.run import Run
from evaluator.kinds.debate.scoring import counted, judged
from evaluator.kinds.debate.sources import Sources
from evaluator.kinds.options import checked_options
from evaluator.request import Request
from evaluator.scores import Sink


class Debate:
    """Options: see ``schemas/kinds/debate.schema.json``."""

    name = "debate"
    measures = KNOWN

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Check and score the debates; see :class:`evaluator.kinds.base.Kind`."""
        options = checked_options(self.name, request.options)
        measures = {m.id: parse_measure(m.measure) for m in request.measures}
        debates = Run(run, inputs, request, options, sink.findings)
        if sink.findings.invalid:
            return
        sources = Sources(debates, truths)
        for i, measure in measures.items():
            if isinstance(measure, Criterion):
                judged(i, measure, debates, sources, sink)
            else:
                counted(i, measure, debates, sink)
        remarks({i: m for i, m in measures.items() if isinstance(m, Criterion)}, debates, sources, sink)

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Check the debates alone; see :class:`evaluator.kinds.base.Checker`."""
        log.answered = Run(run, inputs, request, checked_options(self.name, request.options), log).covered


KIND = Debate()
