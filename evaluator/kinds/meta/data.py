"""Debates and labels, or leaderboards, of a dataset for judges: what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator.data import DataReport
from evaluator.errors import EvaluatorError
from evaluator.findings import Log, show
from evaluator.formats.evaluations import Shape, read_shape
from evaluator.formats.files import plain_or_gzip
from evaluator.formats.gold import read_gold
from evaluator.formats.leaderboards import Board, read_board
from evaluator.kinds.meta.judgments import DEBATES
from evaluator.kinds.options import checked_options
from evaluator.measures.boards import Comparison
from evaluator.measures.correlation import LEAST
from evaluator.request import Request
from schemas.debates import CRITERIA


def check_data(inputs: Path, truths: Path, request: Request, report: DataReport) -> None:
    """Note what is wrong with the data of a dataset; see :mod:`evaluator.commands.check`."""
    options = checked_options("meta", request.options)
    names = dict.fromkeys(m.truths for m in request.measures)
    if options["form"] == "judgments":
        report.nouns = {"topic": "debate", "document": "answer", "judgment": "label", "grade": "label"}
        shape = _debates(inputs, request, report)
        for name in names:
            _labels(truths / name, name, shape, options, report)
        return
    report.nouns = {"document": "run", "judgment": "value", "grade": ""}
    for name in names:
        board = _board(truths / name, name, options, report)
        for measure in (Comparison(m.measure) for m in request.measures if m.truths == name):
            values, _ = board.overall(measure.truth, recompute=options["recompute"])
            if len(values) < LEAST:
                what = f"{len(values)} runs have {show(measure.truth)}: a correlation needs {LEAST}"
                report.add(
                    "few", f"truths/{name}", None, what, "correct the name of the measure, or add runs"
                )


def _debates(inputs: Path, request: Request, report: DataReport) -> Shape | None:
    """The debates; None where labels cannot be compared with them, because some are broken."""
    name = request.topics or DEBATES
    path = plain_or_gzip(inputs / name)
    broken: list[EvaluatorError] = []
    try:
        shape = read_shape(path, path.name, broken.append)
        report.statistics["topics"] = len(shape.turns)
    except EvaluatorError as error:
        broken.append(error)
    for one in broken:
        report.error("inputs", one, name)
    return None if broken else shape


def _labels(
    path: Path, name: str, shape: Shape | None, options: Mapping[str, Any], report: DataReport
) -> None:
    """What is wrong with people's labels; debates of which nothing is labelled; how many say yes and no."""
    try:
        gold = read_gold(path, shape, reading=options["reading"], broken=report.broken("truths", name))
    except EvaluatorError as error:
        if shape is not None:
            report.error("truths", error, name)
        return
    for place, turns in enumerate(gold, 1):
        if not any(label is not None for turn in turns for label in turn):
            what, fix = f"no answer of debate {place} is labelled", "label it, or leave it if that is meant"
            report.add("unlabelled", f"truths/{name}", place, what, fix, grave=False)
    for column, criterion in enumerate(CRITERIA):
        said = {turn[column] for turns in gold for turn in turns} - {None}
        if len(said) == 1:
            what = f"every label of {criterion.capitalize()} is {said.pop()}: a judge who always says so is perfect"
            report.add("one value", f"truths/{name}", None, what, grave=False)
    values = Counter(label for turns in gold for turn in turns for label in turn if label is not None)
    answers = sum(any(label is not None for label in turn) for turns in gold for turn in turns)
    report.truths(name, values.total(), answers, len(gold), values)


def _board(path: Path, name: str, options: Mapping[str, Any], report: DataReport) -> Board:
    """The leaderboard of one file or folder; every broken line is noted."""
    files = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] != ".") if path.is_dir() else [path]
    board = Board()
    for file in files:
        log = Log(file.name)
        read_board(file, options["truth_format"], log, into=board)
        place = f"truths/{name}/{file.name}" if path.is_dir() else f"truths/{name}"
        for one in log.sorted():
            report.add(one.code, place, one.line, one.message, one.fix, grave=one.severity == "error")
    rows = list(board.rows())
    report.truths(name, len(rows), len(board.runs), len({row.topic for row in rows}), {})
    return board
