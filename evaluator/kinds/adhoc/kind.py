"""Ad-hoc retrieval: a ranked list of documents for every topic, in TREC's run format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator.errors import EvaluatorError
from evaluator.findings import Log, show
from evaluator.formats.corpus import read_corpus
from evaluator.formats.qrels import Qrels, read_qrels
from evaluator.formats.ranked import Rules, Scan
from evaluator.formats.topics import read_topics
from evaluator.formats.trec import scan
from evaluator.kinds.adhoc.remarks import report_ties, report_unmatched, wanted
from evaluator.kinds.options import checked_options
from evaluator.measures.interval import intervals
from evaluator.measures.ir import Measure, Values, aggregate, evaluate, first_wanted, require
from evaluator.request import Request
from evaluator.scores import Sink


class AdHoc:
    """Ranked retrieval. Options: ``max_documents`` per topic, ``interval``, ``cross_check``."""

    name = "adhoc"
    measures = "ir-measures strings, such as nDCG@10, AP, RR@10, P(rel=2)@5; and condensed nDCG@5"

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Check and score the run; see :class:`evaluator.kinds.base.Kind`."""
        options = checked_options(self.name, request.options)
        measures = {m.id: Measure(m.measure) for m in request.measures}
        require(measures.values())
        names = {m.id: m.truths for m in request.measures}
        qrels = {name: read_qrels(truths / name, name) for name in dict.fromkeys(names.values())}
        log = sink.findings
        read = _scan(
            run,
            inputs,
            request,
            options["max_documents"],
            log,
            judged=wanted(qrels.values()),
            first=first_wanted(measures.values()),
        )
        if read.tag is not None:
            sink.run_tag = read.tag.decode("utf-8", "backslashreplace")
        report_unmatched(read, qrels.values(), log)
        if log.invalid:
            return
        if request.unchecked:
            sink.note("documents-unchecked", corpus=request.corpus)
        for topic in log.defects:
            read.topics.pop(topic, None)
        values: dict[str, Values] = {}
        for name, judgements in qrels.items():
            mine = [measures[i] for i in measures if names[i] == name]
            computed = evaluate(mine, judgements, read.topics)
            values.update({i: computed[measures[i].text] for i in measures if names[i] == name})
            report_ties(read, mine, judgements, computed, log, public=request.public)
            _note_subtopics(mine, judgements, sink)
            _cross_check(options.get("cross_check"), mine, judgements, run, computed, request, sink)
        _report(measures, values, read, sink, interval=options["interval"])

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Check the run alone; see :class:`evaluator.kinds.base.Checker`."""
        most = checked_options(self.name, request.options)["max_documents"]
        read = _scan(run, inputs, request, most, log)
        log.answered, log.tag = len(read.topics), read.tag


KIND = AdHoc()


def _scan(run: Path, inputs: Path, request: Request, most: int, log: Log, **wanted: Any) -> Scan:
    """Read the run by the topics and documents in ``inputs``, at most ``most`` documents a topic.

    ``wanted`` is what is kept of it, see :class:`Rules`. Topics without documents are findings, unless nothing could be
    read at all.
    """
    topics = read_topics(inputs / request.topics, request.topics) if request.topics else None
    corpus = None if request.unchecked else request.corpus
    rules = Rules(
        topics=None if topics is None else frozenset(topics),
        documents=read_corpus(inputs / corpus, corpus) if corpus else None,
        max_documents=most,
        double=request.double,
        suggest=request.public,
        **wanted,
    )
    read = scan(run, rules, log, max_bytes=request.max_bytes)
    for topic in topics or ():
        if read.topics and topic not in read.topics:
            log.add("F018", None, f"the run has no document for topic {show(topic)}", topic)
    return read


def _note_subtopics(measures: list[Measure], qrels: Qrels, sink: Sink) -> None:
    """Say so beside the scores if a measure of subtopics has truths that know one subtopic only."""
    others = {m.text: m.foreign for m in measures if not m.own}
    if others:
        from evaluator.measures.foreign import without_subtopics

        for text in without_subtopics(others, qrels):
            sink.note("no-subtopics", measure=text, truths=qrels.name)


def _cross_check(
    asked: bool | None,
    measures: list[Measure],
    qrels: Qrels,
    run: Path,
    computed: Mapping[str, Values],
    request: Request,
    sink: Sink,
) -> None:
    """Compare with ir_measures: all measures if the task asks for it, else (None) those of ir_measures for small runs.

    Raises :class:`EvaluatorError` for a difference; a run that cannot be compared gets a note.
    """
    chosen = measures if asked else [m for m in measures if not m.own]
    if asked is False or not chosen:
        return
    from evaluator.measures.crosscheck import cross_check, incomparable, small

    if not asked and not small(qrels, sink.findings):
        return
    if why := incomparable(sink.findings, double=request.double):
        sink.note(why)
    elif (found := cross_check(chosen, qrels, run, computed)) is not None:
        raise EvaluatorError(
            f"the cross-check of {found[0]} with ir_measures failed", found[1] if request.public else ""
        )


def _report(
    measures: Mapping[str, Measure], values: Mapping[str, Values], read: Scan, sink: Sink, *, interval: bool
) -> None:
    columns = {i: list(v.values()) for i, v in values.items() if not measures[i].total}
    spans = intervals(columns) if interval else {}
    for i, by_topic in values.items():
        for topic, value in by_topic.items():
            name = topic.decode("utf-8", "backslashreplace")
            sink.score(i, name, value, answered=topic in read.topics)
        covered = sum(1 for topic in by_topic if topic in read.topics)
        sink.aggregate(
            i, aggregate(measures[i], by_topic), topics=len(by_topic), covered=covered, interval=spans.get(i)
        )
