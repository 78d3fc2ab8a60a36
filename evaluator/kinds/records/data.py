"""What is wrong with the organiser's files of this kind: schemas, examples, ids of the inputs, truths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from evaluator.codes import CODES
from evaluator.data import DataReport
from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.formats.files import Damaged, TooLarge, Unreadable, plain_or_gzip
from evaluator.kinds.records.joining import Reader, items
from evaluator.kinds.records.options import Options, Output, needed
from evaluator.kinds.records.reading import BROKEN
from evaluator.kinds.records.schema import problems
from evaluator.kinds.records.truths import read_truths, topics_of
from evaluator.kinds.records.words import violations
from evaluator.request import Request
from schemas import render_pointer

_Known = tuple[str, Mapping[str, int] | None]  # the file of the inputs that lists the ids, and these
MOST = 1_000  # records of truths of which is said what is wrong
_TASK = "task/task.yaml"
NOUNS = {"topic": "record", "document": "record", "judgment": "truth", "grade": ""}


def check_data(inputs: Path, truths: Path, request: Request, report: DataReport) -> None:
    """Note what is wrong with the data of a dataset; see :mod:`evaluator.commands.check`."""
    report.nouns = NOUNS
    try:
        options = Options(request)
    except EvaluatorError as error:
        report.error("task", error, "task.yaml")
        return
    if request.run_file.removesuffix(".gz") != options.first.path:
        what = f"output is {request.run_file}, and the first of options.outputs {options.first.path}"
        report.add("output", _TASK, None, what, "give both the same name")
    fine = [
        _schema(output, report) and _example(output, options, report) for output in options.outputs.values()
    ]
    topics = None
    try:
        topics = topics_of(inputs, request, options)
    except EvaluatorError as error:
        report.error("inputs", error, request.topics or "")
    report.statistics["topics"] = None if topics is None else len(topics)
    if all(fine):
        for name in dict.fromkeys(m.truths for m in request.measures):
            _truths(truths / name, name, (request.topics or "", topics), options, report)


def _schema(output: Output, report: DataReport) -> bool:
    """Note what is wrong with the schema of an output; returns whether it can be used."""
    found = problems(output.schema)
    for one in found:
        report.add(f"schema {one}", _TASK, None, f"the schema of {output.path}: {one}", one.fix)
    return not found


def _example(output: Output, options: Options, report: DataReport) -> bool:
    """Note what is wrong with the example of an output: everything that a run would be told."""
    if output.example is None:
        return True
    log = Log(output.path)
    with TemporaryDirectory(prefix="example-") as folder:
        path = Path(folder) / output.path
        path.write_text(output.example, "utf-8")
        group = [w for w in options.wanted if w.output is output]
        Reader(output, None, needed(group, "output"), log, suggest=False).read(path, None)
    for one in log.sorted():
        place = "" if one.line is None else f", line {one.line:,}"
        what = f"the example of {output.path}{place}: {one.message}"
        report.add(f"example {one.code}", _TASK, None, what, one.fix, grave=one.severity == "error")
    return True


def _truths(path: Path, name: str, known: _Known, options: Options, report: DataReport) -> None:
    """Read a file of truths strictly, by its schema and for its measures, and compare its ids with those of the inputs."""
    group = [w for w in options.wanted if w.asked.truths == name]
    try:
        shape = Output({"path": path.name, "schema": options.truth_schema or {}}, "options.truths.schema")
        wrong = list(islice(_wrong(path, shape), MOST))
        for line, what in wrong:
            report.add(what, f"truths/{name}", line, what, "correct the record, or options.truths.schema")
        if len(wrong) == MOST:
            return
        ids = options.ids_of_truths(group[0].output)
        found = read_truths(path, name, ids, options.needed_truths(group), options.truth_schema)
    except EvaluatorError as error:
        report.error("truths", error, name)
        return
    report.truths(name, len(found.rows), len(found.rows), len(found.rows), {})
    file, topics = known
    if topics is not None:
        fix = "give software and evaluator the same records"
        lines = dict.fromkeys(found.rows)
        report.without(topics, f"inputs/{file}", lines, f"truths/{name}", "record", fix)


def _wrong(path: Path, shape: Output) -> Iterator[tuple[int, str]]:
    """Lines of truths that are broken, or do not fit their schema, and where. Of what stands there nothing is said."""
    made, log = shape.validator, Log(path.name)
    try:
        for item in items(plain_or_gzip(path), shape, log, None):
            if item.value is BROKEN:
                yield (
                    item.line,
                    f"the record cannot be read: {CODES[log.kept[-1].code].title if log.kept else 'broken'}",
                )
            elif not made.is_valid(item.value):
                broken = violations(made.iter_errors(item.value), shape.schema)
                places = dict.fromkeys(render_pointer(one.pointer) or "the record" for one in broken)
                yield item.line, f"it does not fit its schema at {', '.join([*places][:5])}"
    except (Unreadable, Damaged, TooLarge):
        return  # said by who reads it next
