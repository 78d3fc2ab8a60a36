"""Report generation in the manner of ARGUE: cited reports, judged by nuggets and sources.

Inputs: requests (the topics) and the collection that reports cite. Truths: nuggets, and where people judge, their judgments. The
run's file has one report a line. Who judges is the task's choice: the offline judge, a model behind the gateway, or people.
"""

from __future__ import annotations

from pathlib import Path

from evaluator.argue.judging import Flow
from evaluator.argue.scoring import measures as measuring
from evaluator.argue.scoring.copied import copied
from evaluator.argue.scoring.measures import parse_measure
from evaluator.findings import Log
from evaluator.kinds.options import checked_options
from evaluator.kinds.report.judge import affordable, judge
from evaluator.kinds.report.reading import Reading, read_banks
from evaluator.kinds.report.result import Result
from evaluator.request import Request
from evaluator.scores import Sink


class ReportKind:
    """Options: see ``schemas/kinds/report.schema.json``."""

    name = "report"
    measures = measuring.NAMES

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Check, judge and score the reports; see :class:`evaluator.kinds.base.Kind`."""
        options = checked_options(self.name, request.options)
        measures = {m.id: parse_measure(m.measure) for m in request.measures}
        log = sink.findings
        with Reading(inputs, request, options) as reading:
            reports = reading.reports(run, log)
            sink.run_tag = None if log.tag is None else log.tag.decode("utf-8", "backslashreplace")
            if log.invalid:
                return
            banks = read_banks(truths, request, options, reading.requests)
            if reports and banks.keys().isdisjoint(one.report.topic_id for one in reports):
                log.add("F028", None, "no topic of the run has nuggets")
                if log.invalid:
                    return
            flow = Flow(
                options["always_check_all_nuggets"],
                options["strict"] or any(m.strict for m in measures.values()),
                options["negative_assertions"] or any(m.negation for m in measures.values()),
            )
            kept = affordable(reports, banks, flow, options["max_questions"], log)
            outcome = judge(kept, banks, reading, flow, truths)
            copies = {one.report.topic_id: copied(one.report, reading.text(one.report)) for one in kept}
        without = [one.report.topic_id for one in reports if one.report.topic_id not in banks]
        result = Result(kept, banks, flow, outcome, options, sink, copies, without, request.public)
        result.write(measures, len(reports))

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Check the reports alone; see :class:`evaluator.kinds.base.Checker`."""
        with Reading(inputs, request, checked_options(self.name, request.options)) as reading:
            reading.reports(run, log)


KIND = ReportKind()
