"""Topics, corpus and judgments of a dataset, read against one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from evaluator.data import DataReport, progress
from evaluator.errors import EvaluatorError
from evaluator.findings import show
from evaluator.formats import corpus, qrels, topics
from evaluator.request import Request

Places = dict[bytes, int]  # an id, and the line on which it stands first


class Judgments:
    """What one file of judgments names: topics and documents with the lines of their first mention."""

    def __init__(self, name: str) -> None:
        self.file = f"truths/{name}"
        self.topics: Places = {}
        self.documents: Places = {}


def check_data(inputs: Path, truths: Path, request: Request, report: DataReport) -> None:
    """Note what is wrong with the data of a dataset; see :mod:`evaluator.commands.check`."""
    known = _topics(inputs / request.topics, request.topics, report) if request.topics else None
    names = dict.fromkeys(measure.truths for measure in request.measures)
    judged = [found for name in names if (found := _judgments(truths / name, name, report)) is not None]
    if known is not None:
        for one in judged:
            _compare_topics(known, f"inputs/{request.topics}", one, report)
    if request.corpus:
        _documents(inputs / request.corpus, request.corpus, judged, report)


def _unreadable(file: str, error: EvaluatorError, report: DataReport) -> None:
    report.add("unreadable", file, None, ": ".join(filter(None, (error.what, error.why))), error.fix)


def _without_place(error: EvaluatorError) -> str:
    """Why a line has no id, without file and line."""
    return error.why.rpartition(": ")[2]


def _topics(path: Path, name: str, report: DataReport) -> Places | None:
    """The topics with their lines; None when nothing can be compared with them."""
    file, known = f"inputs/{name}", Places()
    try:
        for number, topic in topics.placed_topics(path, name):
            if isinstance(topic, EvaluatorError):
                report.add("line", file, number, _without_place(topic), topics.WITHOUT)
            elif (first := known.setdefault(topic, number)) != number:
                what = f"the topic {show(topic)} is there twice (first at line {first})"
                report.add("twice", file, number, what, "keep one of them")
    except EvaluatorError as error:
        _unreadable(file, error, report)
        return None
    if not known:
        report.add("empty", file, None, "it holds no topic ids", topics.WITHOUT)
    report.statistics["topics"] = len(known)
    return known or None


def _judgments(path: Path, name: str, report: DataReport) -> Judgments | None:
    """What a file of judgments names; None when it cannot be read."""
    found, grades, rows = Judgments(name), Counter[int](), 0
    seen: dict[tuple[bytes, bytes, bytes], tuple[int, int]] = {}
    try:
        data = qrels.read_truths(path, name)
    except EvaluatorError as error:
        _unreadable(found.file, error, report)
        return None
    for number, (topic, iteration, doc, text), wrong in qrels.lines_of(data):
        if wrong:
            report.add("line", found.file, number, wrong, qrels.COLUMNS)
            continue
        rows, grade = rows + 1, int(text)
        grades[grade] += 1
        found.topics.setdefault(topic, number)
        found.documents.setdefault(doc, number)
        first, before = seen.setdefault((topic, iteration, doc), (number, grade))
        if first != number:
            what = f"the document {show(doc)} is judged twice for the topic {show(topic)} (first at line {first})"
            how = "" if before == grade else ", with another grade"
            report.add(f"twice{how}", found.file, number, what + how, "keep one of them", grave=bool(how))
        if grade < 0:
            what, fix = "the grade is negative", "nothing, if that is meant: it counts as not relevant"
            report.add("negative", found.file, number, what, fix, grave=False)
    if not rows:
        report.add("empty", found.file, None, "it holds no judgment", qrels.COLUMNS)
    report.truths(name, rows, len(found.documents), len(found.topics), grades)
    return found


def _compare_topics(known: Places, file: str, judged: Judgments, report: DataReport) -> None:
    for topic, number in judged.topics.items():
        if topic not in known:
            what = f"the topic {show(topic)} is not in {file}: every run would get 0 for it"
            report.add("unknown topic", judged.file, number, what, "remove its judgments, or add the topic")
    for topic, number in known.items():
        if judged.topics and topic not in judged.topics:
            what = f"the topic {show(topic)} has no judgment in {judged.file}: it does not count"
            fix = "judge it, or leave it if that is meant"
            report.add(f"without {judged.file}", file, number, what, fix, grave=False)


def _documents(path: Path, name: str, judged: Iterable[Judgments], report: DataReport) -> None:
    """Read the corpus once, and note ids that stand twice and judged documents that are missing.

    Published TREC collections have both, so that only judgments of which no document is in the corpus are an error.
    """
    file = f"inputs/{name}"
    unseen = {doc for one in judged for doc in one.documents}

    def broken(number: int, error: EvaluatorError) -> None:
        report.add("line", file, number, _without_place(error), corpus.WITHOUT)

    try:
        count, repeated = corpus.survey(path, name, unseen.discard, broken=broken, progress=progress(name))
    except EvaluatorError as error:
        _unreadable(file, error, report)
        return
    report.statistics["documents"] = count
    if not count:
        report.add("empty", file, None, "it holds no document ids", corpus.WITHOUT)
        return
    for doc, number, first in repeated:
        what = f"the document {show(doc)} is there twice (first at line {first})"
        fix = "leave it if the corpus was published like this: scores do not depend on it"
        report.add("twice", file, number, what, fix, grave=False)
    for one in judged:
        missing = [(doc, number) for doc, number in one.documents.items() if doc in unseen]
        if not missing:
            continue
        # Official judgments may name documents that a later version of the corpus no longer has.
        grave = len(missing) == len(one.documents)
        doc, number = missing[0]
        what = f"{len(missing):,} of {len(one.documents):,} judged documents are not in {file}, such as {show(doc)}"
        fix = "leave the judgments as they are if the corpus is a later version: official figures depend on them"
        if grave:
            fix = "name the corpus that was judged, and write document ids as the judgments do"
        report.add("unknown document", one.file, number, what, fix, grave=grave)
