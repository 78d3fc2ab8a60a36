"""Form ``judgments``: the run is ``evaluations.jsonl`` (one line per debate), truths hold people's labels."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import Any

from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.formats.evaluations import Judgments, Shape, read_failures, read_judgments, read_shape
from evaluator.formats.gold import Gold, read_gold
from evaluator.measures.judging import Counts, Measure, count, spans, total
from evaluator.measures.records.resampling import Spread
from evaluator.request import Request
from evaluator.scores import Sink
from schemas.debates import CRITERIA

DEBATES = "debates.jsonl"
FAILURES = "turns.jsonl"  # the driver's record, beside the run of a judge that is a server


def evaluate(
    run: Path, inputs: Path, truths: Path, request: Request, options: Mapping[str, Any], sink: Sink
) -> None:
    """Check and score ``evaluations.jsonl``."""
    measures = {m.id: (Measure(m.measure), m.truths) for m in request.measures}
    shape = shape_of(inputs, request)
    gold = {
        name: read_gold(truths / name, shape, reading=options["reading"])
        for name in dict.fromkeys(name for _, name in measures.values())
    }
    for labels in gold.values():
        if shape is None:
            shape = Shape([len(turns) for turns in labels])
        elif len(labels) != len(shape.turns):
            raise EvaluatorError("the measures' labels are of different numbers of debates")
    if shape is None:
        raise EvaluatorError("there is nothing to compare with: the task has no measures")
    judged = _read(run, shape, request, options, sink.findings)
    if sink.findings.invalid:
        return
    for name, labels in gold.items():
        mine = {i: measure for i, (measure, of) in measures.items() if of == name}
        _score(mine, labels, judged, options, sink)


def check(run: Path, inputs: Path, request: Request, options: Mapping[str, Any], log: Log) -> None:
    """Check ``evaluations.jsonl`` alone."""
    shape = shape_of(inputs, request)
    if shape is None:
        raise EvaluatorError("the debates are not in the inputs", f"there is no {request.topics or DEBATES}")
    _read(run, shape, request, options, log)


def shape_of(inputs: Path, request: Request) -> Shape | None:
    """The debates in the inputs; None where they are not there, and nothing names them. Raises EvaluatorError."""
    name = request.topics or DEBATES
    path = next((p for n in (name, f"{name}.gz") if (p := inputs / n).exists()), None)
    if path is None and request.topics:
        raise EvaluatorError("the debates are not in the inputs", f"there is no {name}")
    return None if path is None else read_shape(path, name)


def _read(run: Path, shape: Shape, request: Request, options: Mapping[str, Any], log: Log) -> Judgments:
    return read_judgments(
        run,
        shape,
        log,
        reading=options["reading"],
        failures=read_failures(run.parent / FAILURES, shape) if request.records else {},
        max_bytes=request.max_bytes,
    )


def _score(
    measures: Mapping[str, Measure], labels: Gold, judged: Judgments, options: Mapping[str, Any], sink: Sink
) -> None:
    debates = counted(labels, judged)
    overall = {c: total([debate[c] for debate in debates]) for c in CRITERIA}
    ready = {}
    for name, measure in measures.items():
        if reason := lacking(measure, overall, judged):
            sink.pending[name] = reason
        else:
            ready[name] = measure
    intervals = spans(ready, debates) if options["interval"] else {}
    for name, measure in ready.items():
        topics, covered = _coverage(measure, labels, judged)
        span = intervals.get(name, Spread())
        drawn = None if measure.by_turn or span.resamples is None else span.resamples.as_dict()
        value = measure.value(overall)
        sink.aggregate(name, value, topics=topics, covered=covered, interval=span.interval, resamples=drawn)
        _parts(name, measure, labels, judged, debates, sink)


def counted(labels: Gold, judged: Judgments) -> list[dict[str, Counts]]:
    """For every debate and criterion the judged turns by what judge and people said."""
    return [
        {
            c: count([turn[k] for turn in turns], judged.of(place, c) if c in judged.part else [None] * len(turns))
            for k, c in enumerate(CRITERIA)
        }
        for place, turns in enumerate(labels)
    ]  # fmt: skip


def lacking(measure: Measure, overall: Mapping[str, Counts], judged: Judgments) -> str:
    """Why a measure has no value: a criterion that the judge does not judge, or that nobody has labelled; or ""."""
    unlabelled = [c.capitalize() for c in measure.criteria if not sum(overall[c])]
    if unlabelled:
        return f"no answer is labelled for {', '.join(unlabelled)}"
    unjudged = [c.capitalize() for c in measure.criteria if c not in judged.part]
    return f"does not judge {', '.join(unjudged)}" if unjudged else ""


def _coverage(measure: Measure, labels: Gold, judged: Judgments) -> tuple[int, int]:
    """Turns with a label for one of the measure's criteria, and those of them with all the scores they need."""
    columns = [CRITERIA.index(c) for c in measure.criteria]
    topics = covered = 0
    for turns, said in zip(labels, judged.scores, strict=True):
        for label, scores in zip(turns, said, strict=True):
            wanted = [scores[k] for k in columns if label[k] is not None]
            topics += bool(wanted)
            covered += bool(wanted) and all(s is not None and not isnan(s) for s in wanted)
    return topics, covered


def _parts(
    name: str,
    measure: Measure,
    labels: Gold,
    judged: Judgments,
    debates: list[dict[str, Counts]],
    sink: Sink,
) -> None:
    """Values of single debates; and of single turns, where the measure is a mean over turns (accuracy of a criterion).

    Values of debates have a facet: the value over all debates is not their mean.
    """
    for place, counts in enumerate(debates, 1):
        if any(sum(counts[c]) for c in measure.criteria):
            sink.score(name, f"{place}", measure.value(counts), {"debate": place})
    if not measure.by_turn:
        return
    criterion = measure.criteria[0]
    column = CRITERIA.index(criterion)
    for place, turns in enumerate(labels):
        for turn, (label, score) in enumerate(zip(turns, judged.of(place, criterion), strict=True), 1):
            one = count([label[column]], [score])
            if sum(one):
                sink.score(name, f"{place + 1}.{turn}", measure.value({criterion: one}))
