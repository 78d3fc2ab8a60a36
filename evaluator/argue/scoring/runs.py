"""The measures of a run over its topics, in the order of a scores file (see :mod:`evaluator.argue.scoring.measures`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from evaluator.argue.models import COMPAT, Bank, JudgedReport
from evaluator.argue.scoring.measures import (
    ARGUE,
    LENGTH,
    Options,
    mean,
    median,
    topic_measures,
    with_shares,
)
from evaluator.argue.scoring.topic import TopicScores, no_report, score_topic
from evaluator.errors import EvaluatorError
from evaluator.findings import show

ALL = "all"


class Row(NamedTuple):
    """One line of a scores file."""

    run: str
    topic: str
    measure: str
    value: float


@dataclass(frozen=True)
class RunScores:
    """One run: its topics in ascending order, and ``overall``, the values of the row ``all`` in order.

    ``missing`` are topics with nuggets but without a report; ``skipped`` are judged topics that have no nuggets, and
    count nowhere.
    """

    run: str
    options: Options
    topics: Mapping[str, TopicScores]
    overall: Mapping[str, float]
    missing: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    compat: str = COMPAT

    def rows(self) -> Iterator[Row]:
        """Every value in the order of a scores file: first ``all``, then the topics."""
        for name, value in self.overall.items():
            yield Row(self.run, ALL, name, value)
        names = topic_measures(self.options)
        for topic, scores in self.topics.items():
            for name in names:
                yield Row(self.run, topic, name, scores.values[name])


def score_run(
    judged: Iterable[JudgedReport],
    banks: Mapping[str, Bank],
    options: Options | None = None,
    *,
    run: str | None = None,
) -> RunScores:
    """The measures of one run over the topics that have at least one nugget.

    Args:
        judged: its reports with their judgments.
        banks: the nuggets by topic.
        options: how judgments become scores; the default options without.
        run: names a run that may have no report at all.

    Raises:
        EvaluatorError: reports are of several runs, a topic is there twice, or judgments are refused.
    """
    options = options or Options()
    scored: dict[str, TopicScores] = {}
    skipped: list[str] = []
    for report in judged:
        run = report.run_id if run is None else run
        if report.run_id != run:
            raise EvaluatorError(
                "the judgments are of several runs", f"{show(run)} and {show(report.run_id)}"
            )
        topic = report.request_id
        if topic in scored or topic in skipped:
            raise EvaluatorError(f"the run {show(run)} has two judged reports on topic {show(topic)}")
        bank = banks.get(topic)
        if bank is None or not bank.nuggets:
            skipped.append(topic)
        else:
            scored[topic] = score_topic(report, bank, options)
    if run is None:
        raise EvaluatorError("there are no judgments to score")
    missing = sorted(t for t, b in banks.items() if b.nuggets and t not in scored)
    if options.missing == "penalize":
        scored |= {topic: no_report(banks[topic], options) for topic in missing}
    ordered = {topic: scored[topic] for topic in sorted(scored)}
    return RunScores(
        run, options, ordered, overall(ordered.values(), options), tuple(missing), tuple(sorted(skipped))
    )


def score_runs(
    judged: Iterable[JudgedReport], banks: Mapping[str, Bank], options: Options | None = None
) -> dict[str, RunScores]:
    """The measures of every run in the judgments, in the order in which runs appear. Raises as :func:`score_run`."""
    by_run: dict[str, list[JudgedReport]] = {}
    for report in judged:
        by_run.setdefault(report.run_id, []).append(report)
    return {run: score_run(reports, banks, options, run=run) for run, reports in by_run.items()}


def overall(topics: Iterable[TopicScores], options: Options) -> dict[str, float]:
    """The row ``all`` from the topics, in the order of a scores file."""
    found = list(topics)
    sums = {n: float(sum(t.values[n] for t in found)) for g in options.groups for n in g.counts}
    micro = with_shares(sums, options)
    lengths = [t.values[LENGTH] for t in found if t.answered]
    out: dict[str, float] = {}
    for group in options.groups:
        out |= {name: sums[name] for name in group.counts}
        if group is ARGUE:
            out |= {f"{LENGTH}_median": median(lengths), f"{LENGTH}_max": max(lengths, default=0.0)}
        for name in group.ratios:
            out[f"{name}_micro"] = micro[name]
            out[f"{name}_macro"] = mean([t.values[name] for t in found])
    return out
