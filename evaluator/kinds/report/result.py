"""The result of an evaluation of reports: scores, what they are made of, and what has to be known beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluator.argue.formats.report import Report
from evaluator.argue.judging import Flow
from evaluator.argue.models import COMPAT, Bank, JudgedReport, Segment
from evaluator.argue.scoring.copied import Copied, together
from evaluator.argue.scoring.explaining import detail
from evaluator.argue.scoring.measures import COPIED, ReportMeasure
from evaluator.argue.scoring.measures import Options as Scoring
from evaluator.argue.scoring.runs import RunScores, score_run
from evaluator.codes import CODES
from evaluator.findings import plain
from evaluator.judges.addressing import speaks_to_the_judge
from evaluator.kinds.report.judge import Outcome
from evaluator.kinds.report.reading import Kept
from evaluator.measures.interval import intervals
from evaluator.scores import Sink

NAMED = 20  # topics or lines that a note names for one reason
# Findings for which a line or report is left out, where they are no errors.
LEAVE_OUT = frozenset(("F301", "F302", "F304", "F305", "F310", "F311", "F330"))


@dataclass(frozen=True)
class Result:
    """Puts scores, details and remarks into the sink."""

    kept: Sequence[Kept]
    banks: Mapping[str, Bank]
    flow: Flow
    outcome: Outcome
    options: Mapping[str, Any]
    sink: Sink
    copied: Mapping[str, Copied]  # by topic
    unjudgeable: Sequence[str]  # topics of reports for which there are no nuggets
    public: bool  # whether these may be named: which topics have nuggets is a truth

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
            copies = measure.name == COPIED
            values = [
                self._copied(topic).share if copies else scored.values[measure.name]
                for topic, scored in scores.topics.items()
            ]
            for topic, value in zip(scores.topics, values, strict=True):
                self.sink.score(i, topic, value)
            if measure.join == "macro" and self.options["interval"]:
                columns[i] = values
        spans = intervals(columns) if columns else {}
        for i, measure in measures.items():
            if i not in self.sink.pending:
                self.sink.aggregate(
                    i,
                    together(self.copied.values()).share
                    if measure.name == COPIED
                    else measure.total(scores.overall),
                    topics=len(scores.topics),
                    covered=answered,
                    interval=spans.get(i),
                )
        if self.outcome.reason is None:
            self._details(scores)
            self.sink.judge = self.outcome.facts | self._canaries(measures)
        self._remarks(scores, reports)

    def _copied(self, topic: str) -> Copied:
        return self.copied.get(topic, Copied(0, 0))

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
            credit=self.options["credit"],
            missing="penalize" if self.options["penalize_missing_topics"] else "ignore",
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
        if self.options["penalize_missing_topics"]:
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
        note("report-rules", rules=COMPAT, credit=self.options["credit"])
        cut = sum(one.cut > 0 for one in self.kept)
        if cut:
            note("reports-cut", cut=cut, reports=reports)
        if scores.missing:
            kind = "reports-missing" if self.options["penalize_missing_topics"] else "reports-left-out"
            note(kind, missing=len(scores.missing), topics=len(self.banks))
        if named := self._not_judged(scores):
            note("reports-not-judged", named=named)
        if self.options["judge"]["type"] == "openai":
            self._addressed()
        if self.outcome.reason is not None:
            return
        if self.options["judge"]["type"] == "openai" and not self._canaries({}):
            note("judge-untested")
        tally = self.outcome.judging.counts
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

    def _not_judged(self, scores: RunScores) -> str:
        """Which topics and reports were not judged, by the reason; empty when all were."""
        reasons: dict[str, list[str]] = {}
        explained = set()
        findings = self.sink.findings
        for found in findings.kept:
            scores_nothing = found.severity == "defect" and found.topic is not None
            if scores_nothing or found.code in LEAVE_OUT:
                line = "" if found.line is None else f"line {found.line}"
                at = f"{found.topic} ({line})" if found.topic and line else found.topic or line
                reasons.setdefault(f"{found.code} {CODES[found.code].title}", []).append(at)
                explained.add(found.topic)
        if without := [plain(topic) for topic in scores.missing if plain(topic) not in explained]:
            reasons["no report"] = without
        parts = [f"{why}: {_listed(names)}" for why, names in reasons.items()]
        if self.unjudgeable:
            names = [plain(topic) for topic in self.unjudgeable]
            count = f"{len(names):,} report{'' if len(names) == 1 else 's'}"
            parts.append(f"no nuggets: {_listed(names) if self.public else count}")
        return "; ".join(parts)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more:,} more" if more > 0 else "")


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
