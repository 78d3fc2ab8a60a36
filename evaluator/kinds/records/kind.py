"""Records that the task's own JSON Schema describes: any output of one record for each id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.findings import Log
from evaluator.kinds.records.joining import Reader
from evaluator.kinds.records.options import Options, Output, Wanted, needed
from evaluator.kinds.records.truths import Truths, read_truths, topics_of
from evaluator.kinds.records.wrong import Wrong
from evaluator.measures.records.base import LABEL, MISSING, Columns, PerRecord
from evaluator.measures.records.resampling import Spread, spread
from evaluator.request import Request
from evaluator.scores import Sink

MAX_PARTS = 1_000  # classes of a measure of which the value is written
MAX_SCORES = 20_000  # records up to which the value of each is written


class Scored(NamedTuple):
    """The records of one output, joined with one file of truths."""

    truths: Truths
    reader: Reader


class Records:
    """Options: see ``schemas/kinds/records.schema.json``."""

    name = "records"
    measures = "names with parameters, such as Accuracy(label), F1(label, average=macro) or MAE(score)"

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Check and score the run; see :class:`evaluator.kinds.base.Kind`."""
        options = Options(request)
        topics = topics_of(inputs, request, options)
        judged = {
            key: read_truths(
                truths / name,
                name,
                options.ids_of_truths(output),
                options.needed_truths(group),
                options.truth_schema,
            )
            for key, (name, output, group) in _groups(options).items()
        }
        log = sink.findings
        scored = {}
        for output in options.outputs.values():
            mine = {key: one for key, one in judged.items() if key[0] == output.path}
            known = _known(topics, mine)
            group = [w for w in options.wanted if w.output is output]
            reader = Reader(output, known, needed(group, "output"), log, suggest=request.public)
            if read_one(reader, run, options, log, request):
                scored.update({key: Scored(one, reader) for key, one in mine.items()})
        if log.invalid:
            return
        wrong = Wrong()
        for wanted in options.wanted:
            key = (wanted.output.path, wanted.asked.truths)
            columns = joined(wanted, judged[key], scored.get(key), log)
            clusters = judged[key].columns[options.clusters, LABEL.name] if options.clusters else None
            values = score(wanted, columns, clusters, sink, intervals=options.interval)
            wrong.add(wanted, columns, values)
        sink.details += wrong.rows()

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Check the run alone; see :class:`evaluator.kinds.base.Checker`."""
        options = Options(request)
        topics = topics_of(inputs, request, options)
        for output in options.outputs.values():
            group = [w for w in options.wanted if w.output is output]
            reader = Reader(output, topics, needed(group, "output"), log, suggest=request.public)
            read_one(reader, run, options, log, request)
            if output is options.first:
                log.answered = reader.found if topics is not None else reader.records


KIND = Records()

_Key = tuple[str, str]  # path of an output, name of a file of truths


def _groups(options: Options) -> dict[_Key, tuple[str, Output, list[Wanted]]]:
    """The measures of each output by each file of truths."""
    found: dict[_Key, tuple[str, Output, list[Wanted]]] = {}
    for wanted in options.wanted:
        key = (wanted.output.path, wanted.asked.truths)
        found.setdefault(key, (wanted.asked.truths, wanted.output, []))[2].append(wanted)
    return found


def _known(topics: Mapping[str, int] | None, judged: Mapping[_Key, Truths]) -> Mapping[str, int] | None:
    """The ids that an output may have: those of the inputs, else of its truths."""
    if topics is not None:
        return topics
    if len(judged) == 1:
        return next(iter(judged.values())).rows
    every = dict.fromkeys(key for one in judged.values() for key in one.rows)
    return {key: row for row, key in enumerate(every)} if judged else None


def read_one(reader: Reader, run: Path, options: Options, log: Log, request: Request) -> bool:
    """Read one output beside the run's first one. Returns whether there was such a file."""
    output = reader.output
    whole, log.file = log.file, log.file if output is options.first else output.path
    try:
        path = run if output is options.first else _beside(run, output)
        if path is None:
            if output.required:
                log.add("F412", None, f"there is no {output.path}")
            return False
        reader.read(path, request.max_bytes)
        reader.summarise()
        return True
    finally:
        log.file = whole


def _beside(run: Path, output: Output) -> Path | None:
    names = (output.path, f"{output.path}.gz")
    return next((path for name in names if (path := run.parent / name).is_symlink() or path.exists()), None)


def joined(wanted: Wanted, truths: Truths, found: Scored | None, log: Log) -> Columns:
    """The columns of a measure; what is missing in the output is MISSING, and so are topics with defects."""
    keys = list(truths.rows)
    defects = {one.decode("utf-8", "backslashreplace") for one in log.defects}
    output: dict[str, Sequence[Any]] = {}
    truth: dict[str, Sequence[Any]] = {}
    for column in wanted.measure.columns():
        if column.side == "truth":
            truth[column.field] = truths.columns[column.field, column.form.name]
        elif found is None:
            output[column.field] = [MISSING] * len(keys)
        else:
            values, known = found.reader.columns[column.field, column.form.name], found.reader.known or {}
            if known is not truths.rows or defects:
                rows = [None if key in defects else known.get(key) for key in keys]
                values = [MISSING if row is None else values[row] for row in rows]
            output[column.field] = values
    return Columns(keys, output, truth)


def score(
    wanted: Wanted, columns: Columns, clusters: Sequence[str] | None, sink: Sink, *, intervals: bool
) -> Sequence[float] | None:
    """Put a measure's value into the sink, and those of records where they are not too many. Returns those of records."""
    name, measure = wanted.asked.id, wanted.measure
    values, value = measure.scores(columns)
    read = [columns.output[c.field] for c in measure.columns() if c.side == "output"]
    answered = [True] * len(columns)
    for column in read:
        answered = [there and one is not MISSING for there, one in zip(answered, column, strict=True)]
    covered = sum(answered)
    span = spread(measure, columns, values, clusters) if intervals else Spread()
    # Values of single records are paired in tests only where the value is their mean.
    mean = isinstance(measure, PerRecord) and measure.mean
    drawn = None if mean or span.resamples is None else span.resamples.as_dict()
    sink.aggregate(name, value, topics=len(columns), covered=covered, interval=span.interval, resamples=drawn)
    if values is not None and len(columns) <= MAX_SCORES:
        for key, one, there in zip(columns.keys, values, answered, strict=True):
            sink.score(name, key, one, answered=there)
    elif values is not None:
        sink.note("records-not-kept", most=MAX_SCORES)
    if signature := measure.signature(columns):
        sink.note("measure-signature", measure=measure.text, signature=signature)
    for part, one in islice(measure.parts(columns).items(), MAX_PARTS):
        sink.score(name, "", one, {"class": part})
    return values
