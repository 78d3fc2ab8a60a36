"""Report generation in the manner of ARGUE: cited reports, judged by nuggets and sources.

Inputs: requests (the topics) and the collection that reports cite. Truths: nuggets, and where people judge, their judgments. The
run's file has one report a line. Who judges is the task's choice: the offline judge, a model behind the gateway, or people.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.argue.asking import Judge, Question, Unjudged, Verdict
from evaluator.argue.formats.checking import Rules, load_reports
from evaluator.argue.formats.lookup import Lookup
from evaluator.argue.formats.report import Report
from evaluator.argue.formats.requests import limit_of, read_requests, truncate
from evaluator.argue.formats.tracks import Track, track
from evaluator.argue.judging import MAX_READ, Flow, Judging, characters_at_most, questions_at_most
from evaluator.argue.models import COMPAT, Bank, JudgedReport, ReportRequest, Segment
from evaluator.argue.options import ReportOptions
from evaluator.argue.scoring import measures as measuring
from evaluator.argue.scoring.details import detail
from evaluator.argue.scoring.measures import ReportMeasure, parse_measure
from evaluator.argue.scoring.runs import RunScores, score_run
from evaluator.argue.scoring.topic import Options as Scoring
from evaluator.errors import EvaluatorError
from evaluator.findings import Log, plain
from evaluator.judges.addressing import speaks_to_the_judge
from evaluator.measures.interval import intervals
from evaluator.request import Request
from evaluator.scores import Sink

REQUESTS = "requests.jsonl"
COLLECTIONS = ("documents.jsonl", "documents.jsonl.gz")
NUGGETS = "nuggets"
JUDGMENTS = "judgments"


class ReportKind:
    """Options: see ``schemas/kinds/report.schema.json``."""

    name = "report"
    measures = measuring.NAMES

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Check, judge and score the reports; see :class:`evaluator.kinds.base.Kind`."""
        options = ReportOptions(request.options)
        measures = {m.id: parse_measure(m.measure) for m in request.measures}
        log = sink.findings
        with _Reading(inputs, request, options) as reading:
            reports = reading.reports(run, log)
            sink.run_tag = None if log.tag is None else log.tag.decode("utf-8", "backslashreplace")
            if log.invalid:
                return
            banks = _banks(truths, request, options, reading.requests)
            if reports and banks.keys().isdisjoint(one.report.topic_id for one in reports):
                log.add("F028", None, "no topic of the run has nuggets")
                if log.invalid:
                    return
            flow = Flow(
                options.everything,
                options.strict or any(m.strict for m in measures.values()),
                options.negation or any(m.negation for m in measures.values()),
            )
            kept = _affordable(reports, banks, flow, options, log)
            outcome = _judge(kept, banks, reading.lookup, flow, truths, request, options)
        _Result(kept, banks, flow, outcome, options, sink).write(measures, len(reports))

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Check the reports alone; see :class:`evaluator.kinds.base.Checker`."""
        with _Reading(inputs, request, ReportOptions(request.options)) as reading:
            reading.reports(run, log)


KIND = ReportKind()


class Kept(NamedTuple):
    """A report that is judged, and how many of its sentences were cut off."""

    report: Report
    cut: int


class _Reading:
    """What the software saw, and its reports."""

    def __init__(self, inputs: Path, request: Request, options: ReportOptions) -> None:
        self.request, self.options = request, options
        self.requests: Mapping[str, ReportRequest] = read_requests(
            inputs / (options.requests or request.topics or REQUESTS)
        )
        self.track: Track | None = track(options.track) if options.track else None
        self.lookup = _open(inputs, request, options)

    def reports(self, run: Path, log: Log) -> list[Kept]:
        """The reports that may be judged, cut to their limits; what is wrong is in the log."""
        if self.track is not None:
            log.severity.update({**self.track.severities(), **self.request.severities})
        rules = Rules(
            topics=self.requests,
            documents=self.lookup,
            carried=self.options.carried,
            track=self.track,
            limit=self.options.limit,
            suggest=self.request.public,
        )
        found = load_reports(run, log, rules, max_bytes=self.request.max_bytes)
        zero = {t.decode("utf-8", "backslashreplace") for t in log.defects}
        run_id = found[0].run_id if found else ""
        kept = []
        for report in found:
            if report.topic_id not in zero:
                short = self._cut(report)
                kept.append(Kept(replace(short, run_id=run_id), len(report.sentences) - len(short.sentences)))
        return kept

    def _cut(self, report: Report) -> Report:
        limit = limit_of(self.requests.get(report.topic_id)) or self.options.limit
        if self.track is not None and self.track.length_limit is not None:
            limit = self.track.length_limit, self.track.length_unit
        return truncate(report, *limit) if limit is not None and self.options.truncate else report

    def __enter__(self) -> _Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self.lookup.close()


def _open(inputs: Path, request: Request, options: ReportOptions) -> Lookup:
    from evaluator.argue.formats.documents import open_collection

    names = options.collection or ((request.corpus,) if request.corpus else ())
    if not names:
        names = tuple(n for n in COLLECTIONS if (inputs / n).is_file())[:1]
    if not names:
        raise EvaluatorError(
            "the task names no collection",
            fix="name it in task.yaml: options: {collection: documents.jsonl.gz}",
        )
    return Lookup([open_collection(inputs / name, name=name) for name in names])


def _banks(
    truths: Path, request: Request, options: ReportOptions, requests: Mapping[str, ReportRequest]
) -> dict[str, Bank]:
    """The nuggets of the topics of this dataset."""
    from evaluator.argue.formats.nugget_formats import load_nuggets

    named = {m.truths for m in request.measures}
    if options.nuggets is None and len(named) > 1:
        raise EvaluatorError(
            "the measures name several truths",
            ", ".join(sorted(named)),
            "name one: options: {nuggets: nuggets}",
        )
    banks = load_nuggets(truths / (options.nuggets or next(iter(named), NUGGETS)))
    found = {topic: banks[topic] for topic in requests if topic in banks and banks[topic].nuggets}
    if not found:
        raise EvaluatorError("no topic of the dataset has nuggets", f"there are {len(requests):,} requests")
    return found


def _affordable(
    reports: Sequence[Kept], banks: Mapping[str, Bank], flow: Flow, options: ReportOptions, log: Log
) -> list[Kept]:
    """Reports that do not ask for too much judging, of topics that have nuggets."""
    kept = []
    for one in reports:
        topic = one.report.topic_id
        if topic not in banks:
            continue
        count = questions_at_most(one.report, banks[topic], flow)
        size = characters_at_most(one.report, banks[topic], flow)
        if count > options.max_questions:
            why = f"{count:,} questions to judge, {options.max_questions:,} are allowed"
        elif size > MAX_READ:
            why = f"questions that repeat {size:,} of its characters, {MAX_READ:,} are allowed"
        else:
            kept.append(one)
            continue
        log.add("F340", one.report.line, f"the report takes {why}", topic.encode())
    return kept


class Outcome(NamedTuple):
    """What the judge has said. ``reason`` is why there are no scores yet; ``compared`` are (people, judge) pairs."""

    judged: list[JudgedReport]
    facts: dict[str, Any]
    reason: str | None
    judging: Judging
    compared: list[tuple[bool, bool]]


class _Beside:
    """A judge whose verdicts are noted beside those of people, where there are some."""

    def __init__(self, judge: Judge, people: Any) -> None:
        self._judge, self._people = judge, people
        self.name, self.width = judge.name, judge.width
        self.prepare, self.identity, self.facts, self.close = (
            judge.prepare,
            judge.identity,
            judge.facts,
            judge.close,
        )
        self.pairs: dict[Question, tuple[bool, bool]] = {}

    async def decide(self, question: Question) -> Verdict:
        """The judge's answer."""
        said = await self._judge.decide(question)
        known = self._people.says(question)
        if known is not None:
            self.pairs[question] = (known, said.value)
        return said


def _judge(
    kept: Sequence[Kept],
    banks: Mapping[str, Bank],
    lookup: Lookup,
    flow: Flow,
    truths: Path,
    request: Request,
    options: ReportOptions,
) -> Outcome:
    judge, reason = _who(truths, request, options)
    known: dict[str, float] = {}
    if options.reliability is not None:
        from evaluator.argue.trust.figures import read_reliability

        known = read_reliability(truths / options.reliability, judge.identity())
    beside: _Beside | None = None
    if options.judge != "human" and (truths / options.labels).exists():
        from evaluator.argue.judges.human import read_annotators

        judge = beside = _Beside(judge, read_annotators(truths / options.labels))

    async def everything() -> tuple[Judging, list[JudgedReport | EvaluatorError]]:
        judging = Judging(judge, flow)
        if reason is not None:
            return judging, []
        try:
            wanted = (
                (one.report, banks[one.report.topic_id], _text(lookup, one.report, options)) for one in kept
            )
            return judging, await judging.reports(wanted)
        finally:
            await judge.close()

    judging, results = asyncio.run(everything())
    judged = [r for r in results if isinstance(r, JudgedReport)]
    failed = [r for r in results if not isinstance(r, JudgedReport)]
    facts = judge.facts()
    if known:
        facts["reliability"] = {**facts.get("reliability", {}), **known}
    pairs = list(beside.pairs.values()) if beside is not None else []
    if failed:
        reason = _why(failed, len(results))
    elif (why := judging.tally.mostly_refused) is not None:
        reason = why
    if pairs:
        facts["reliability"] = {**facts.get("reliability", {}), **_agreement(pairs)}
    return Outcome(judged, facts, reason, judging, pairs)


def _text(lookup: Lookup, report: Report, options: ReportOptions) -> Any:
    return lookup.within(report).text if options.carried else lookup.text


def _who(truths: Path, request: Request, options: ReportOptions) -> tuple[Judge, str | None]:
    """The judge of the task, and why it cannot be asked."""
    if options.judge == "human":
        from evaluator.argue.judges.human import HumanJudge, read_annotators

        if not (truths / options.labels).exists():
            return HumanJudge({}), "people have not judged yet"
        return read_annotators(truths / options.labels), None
    if options.judge == "lexical":
        from evaluator.argue.judges.lexical import LexicalJudge

        return LexicalJudge(), None
    from evaluator.argue.judges.model import ModelJudge
    from evaluator.argue.prompting import read_prompts
    from evaluator.judges.chat import Chat

    prompts = read_prompts(truths / options.prompts if options.prompts else None)
    assert options.model is not None
    chat = Chat(model=options.model, socket=request.gateway, parameters=options.parameters)
    reason = None if request.gateway is not None else "no model can be asked here: there is no gateway"
    return ModelJudge(chat, prompts, name="openai"), reason


def _why(failed: Sequence[EvaluatorError], count: int) -> str:
    first = failed[0]
    if isinstance(first, Unjudged):
        return f"people have judged {count - len(failed):,} of {count:,} reports completely"
    return (
        f"the judge could not be asked about {len(failed):,} of {count:,} reports: {plain(first.what, 150)}"
    )


def _agreement(pairs: Sequence[tuple[bool, bool]]) -> dict[str, float]:
    from evaluator.measures.agreement import kappa

    found = kappa([a for a, _ in pairs], [b for _, b in pairs])
    figures = {"agreement with people": found.observed, "judgments compared": float(found.items)}
    return figures if found.value is None else {**figures, "kappa": found.value}


class _Result:
    """Puts scores, details and remarks into the sink."""

    def __init__(
        self,
        kept: Sequence[Kept],
        banks: Mapping[str, Bank],
        flow: Flow,
        outcome: Outcome,
        options: ReportOptions,
        sink: Sink,
    ) -> None:
        self.kept, self.banks, self.flow, self.outcome = kept, banks, flow, outcome
        self.options, self.sink = options, sink

    def write(self, measures: Mapping[str, ReportMeasure], reports: int) -> None:
        """Scores by topic and over all; ``reports`` is how many there were."""
        scores = self._scores()
        answered = sum(t.answered for t in scores.topics.values())
        columns: dict[str, list[float]] = {}
        # Whether relevance is the judge's to say: nuggets of the old format name no documents.
        asked = self.flow.everything or not all(b.linked for b in self.banks.values())
        for i, measure in measures.items():
            if self.outcome.reason is not None and not measure.unjudged(asked):
                self.sink.pending[i] = self.outcome.reason[:300]
                continue
            values = [t.values[measure.name] for t in scores.topics.values()]
            for topic, value in zip(scores.topics, values, strict=True):
                self.sink.score(i, topic, value)
            if measure.join == "macro" and self.options.interval:
                columns[i] = values
        spans = intervals(columns) if columns else {}
        for i, measure in measures.items():
            if i not in self.sink.pending:
                self.sink.aggregate(
                    i,
                    measure.total(scores),
                    topics=len(scores.topics),
                    covered=answered,
                    interval=spans.get(i),
                )
        if self.outcome.reason is None:
            self._details(scores)
            self.sink.judge = self.outcome.facts | self._canaries(measures)
        self._remarks(scores, reports)

    def _canaries(self, measures: Mapping[str, ReportMeasure]) -> dict[str, Any]:
        """What a report of orders to the judge would get, as far as the judge's obedience was measured; {} if it was not."""
        obeyed = self.outcome.facts.get("reliability", {}).get("susceptibility to canaries")
        if obeyed is None:
            return {}
        asked = self.flow.everything or not all(b.linked for b in self.banks.values())
        judged = [i for i, m in measures.items() if not m.unjudged(asked)]
        return {"canaries": dict.fromkeys(judged, float(obeyed))}

    def _addressed(self) -> None:
        """Name the sentences that seem to speak to the judge."""
        for one in self.kept:
            for number, sentence in enumerate(one.report.sentences, 1):
                words = speaks_to_the_judge(sentence.text)
                if words is not None:
                    told = f"sentence {number} seems to speak to the judge: {plain(words, 80)}"
                    self.sink.findings.add("F344", one.report.line, told, one.report.topic_id.encode())

    def _scores(self) -> RunScores:
        options = Scoring(
            credit=self.options.credit,
            missing="penalize" if self.options.penalize else "ignore",
            strict=self.flow.strict,
            negation=self.flow.negation,
        )
        if self.outcome.reason is None:
            return score_run([*self.outcome.judged, *self._nothing()], self.banks, options, run=self._run)
        # Only what needs no judgment is taken from these.
        bare = [_unjudged(one.report, self.banks[one.report.topic_id]) for one in self.kept]
        bare += self._nothing()
        return score_run(bare, self.banks, replace(options, incomplete="default"), run=self._run)

    def _nothing(self) -> list[JudgedReport]:
        """Reports that score 0 for a defect. They count where topics without a report are left out, too."""
        if self.options.penalize:
            return []
        zero = {t.decode("utf-8", "backslashreplace") for t in self.sink.findings.defects}
        zero -= {one.report.topic_id for one in self.kept}
        return [JudgedReport(topic, self._run, ()) for topic in self.banks if topic in zero]

    @property
    def _run(self) -> str:
        return self.kept[0].report.run_id if self.kept else "run"

    def _details(self, scores: RunScores) -> None:
        judged = {j.request_id: j for j in self.outcome.judged}
        cut = {one.report.topic_id: one.cut for one in self.kept}
        for topic, one in scores.topics.items():
            self.sink.details.append(detail(one, judged.get(topic), cut=cut.get(topic, 0)))

    def _remarks(self, scores: RunScores, reports: int) -> None:
        note = self.sink.note
        note("report-rules", rules=COMPAT, credit=self.options.credit)
        cut = sum(one.cut > 0 for one in self.kept)
        if cut:
            note("reports-cut", cut=cut, reports=reports)
        if scores.missing:
            kind = "reports-missing" if self.options.penalize else "reports-left-out"
            note(kind, missing=len(scores.missing), topics=len(self.banks))
        if self.options.judge not in ("human", "lexical"):
            self._addressed()
        if self.outcome.reason is not None:
            return
        if self.options.judge not in ("human", "lexical") and not self._canaries({}):
            note("judge-untested")
        tally = self.outcome.judging.tally
        for question, count in sorted(tally.defaults.items()):
            asked = tally.asked[question]
            about = str(question).lower().replace("_", " ")
            what = f"{count:,} of {asked:,} replies about {about} could not be read"
            note("replies-unreadable", unread=count, asked=asked, about=about)
            self.sink.findings.add("F341", None, what, times=count)
        if refused := tally.refused.total():
            what = f"{refused:,} of {tally.total:,} questions were refused by the judge's endpoint"
            note("refused-default", refused=refused, asked=tally.total)
            self.sink.findings.add("F343", None, what, times=refused)


def _unjudged(report: Report, bank: Bank) -> JudgedReport:
    from evaluator.argue.formats import judgments as make
    from evaluator.argue.models import Cited

    segments = tuple(
        Segment(
            s.text,
            tuple(Cited(d) for d in s.citations),
            tuple(make.relevance(d, bank.relevant(d)) for d in s.citations),
        )
        for s in report.sentences
    )
    return JudgedReport(report.topic_id, report.run_id, segments, line=report.line)
