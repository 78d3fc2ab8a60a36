"""Claims and judgments about debates of a dataset, read against one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from evaluator.data import DataReport
from evaluator.errors import EvaluatorError
from evaluator.findings import show
from evaluator.formats.dialogue import read_claims
from evaluator.formats.labels import Label, by_file, label_files, read_scores
from evaluator.request import Request
from schemas.debates import CRITERIA

NOUNS = {"topic": "claim", "document": "answer", "judgment": "label", "grade": "label"}


def check_data(inputs: Path, truths: Path, request: Request, report: DataReport) -> None:
    """Note what is wrong with the data of a dataset; see :mod:`evaluator.commands.check`."""
    report.nouns = NOUNS
    name = request.topics or "claims.jsonl"
    try:
        claims = read_claims(inputs / name, report.broken("inputs", name))
    except EvaluatorError as error:
        report.error("inputs", error, name)
        return
    report.statistics["topics"] = len(claims)
    for what, texts in (("id", [c.id for c in claims if c.id]), ("claim", [c.text for c in claims])):
        for text, times in Counter(texts).items():
            if times > 1:
                said = f"{times} lines have the {what} {show(text)}: only their order tells them apart"
                report.add(
                    f"twice {what}", f"inputs/{name}", None, said, "leave it if that is meant", grave=False
                )
    try:
        for path, labels in by_file(truths / "labels", report.broken("truths", "labels/labels")):
            _labels(labels, f"labels/{path.name}", len(claims), report)
        for path in label_files(truths / "judgments"):
            read_scores(path, report.broken("truths", f"judgments/{path.name}"))
    except EvaluatorError as error:
        report.error("truths", error, "labels/labels")


def _labels(labels: Iterable[Label], name: str, claims: int, report: DataReport) -> None:
    """Labels of debates that cannot be, given twice, and how many there are."""
    values: Counter[int] = Counter()
    debates, answers = set(), set()
    seen: set[tuple[str, str, int, int, str]] = set()
    for one in labels:
        debates.add((one.run, one.debate))
        answers.add((one.run, one.debate, one.turn))
        values.update(v for c in CRITERIA if (v := one.values.get(c)) is not None)
        where = f"turn {one.turn} of debate {one.debate}"
        if one.debate > claims:
            what = f"{where} is labelled, and there are {claims:,} claims"
            report.add("unknown debate", f"truths/{name}", None, what, "give the claims that were debated")
        key = (one.run, one.transcript, one.debate, one.turn, one.annotator)
        if key in seen:
            what = f"{where} has two labels of {show(one.annotator)}"
            report.add("twice", f"truths/{name}", None, what, "keep one of them", grave=False)
        seen.add(key)
    report.truths(name, values.total(), len(answers), len(debates), values)
