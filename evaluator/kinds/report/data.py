"""Requests, documents and nuggets of a dataset, read against one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from evaluator.argue.formats.nugget_formats import read_nuggets
from evaluator.argue.formats.requests import placed_requests
from evaluator.argue.models import Bank
from evaluator.data import DataReport, progress
from evaluator.errors import EvaluatorError
from evaluator.findings import show
from evaluator.formats import corpus
from evaluator.kinds.options import checked_options
from evaluator.kinds.report.reading import NUGGETS, REQUESTS, collections_of
from evaluator.request import Request
from schemas import Problem

NOUNS = {"topic": "request", "judgment": "nugget", "grade": ""}


def check_data(inputs: Path, truths: Path, request: Request, report: DataReport) -> None:
    """Note what is wrong with the data of a dataset; see :mod:`evaluator.commands.check`."""
    options = checked_options("report", request.options)
    report.nouns = NOUNS
    name = options.get("requests") or request.topics or REQUESTS
    requests, problems = placed_requests(inputs / name)
    _add(problems, f"inputs/{name}", report)
    report.statistics["topics"] = len(requests)
    named = options.get("nuggets") or next((m.truths for m in request.measures), NUGGETS)
    banks, problems = read_nuggets(truths / named)
    _add(problems, f"truths/{named}", report, folder=(truths / named).is_dir())
    places = {bank.topic_id: _place(bank, named, truths) for bank in banks.values()}
    for topic, file in places.items():
        if requests and topic not in requests:
            what = f"the topic {show(topic)} is not in inputs/{name}: its nuggets do not count"
            report.add("unknown topic", file, None, what, "remove them, or add the request")
    for topic, (_, line) in requests.items():
        if banks and not (topic in banks and banks[topic].nuggets):
            what = f"the request {show(topic)} has no nuggets in truths/{named}: it does not count"
            report.add(
                "without",
                f"inputs/{name}",
                line,
                what,
                "write some, or leave it if that is meant",
                grave=False,
            )
    _documents(inputs, collections_of(inputs, request, options), banks.values(), places, report)
    documents = {doc for bank in banks.values() for doc in bank.documents}
    nuggets = Counter({topic: len(bank.nuggets) for topic, bank in banks.items()})
    report.truths(named, nuggets.total(), len(documents), sum(n > 0 for n in nuggets.values()), {})


def _add(problems: Iterable[Problem], file: str, report: DataReport, *, folder: bool = False) -> None:
    for problem in problems:
        inner = problem.where.rpartition(":")[0] if problem.line else problem.where
        report.add("line", f"{file}/{inner}" if folder else file, problem.line, problem.what, problem.fix)


def _place(bank: Bank, named: str, truths: Path) -> str:
    """The file that a bank was read from, as the dataset's folder knows it."""
    inner = bank.source.partition(":")[0]
    return f"truths/{named}/{inner}" if inner and (truths / named / inner).is_file() else f"truths/{named}"


def _documents(
    inputs: Path, names: Iterable[str], banks: Iterable[Bank], places: Mapping[str, str], report: DataReport
) -> None:
    """Read the collections once: their size, and documents of nuggets that are in none of them."""
    judged = {doc.encode(): bank.topic_id for bank in banks for doc in sorted(bank.documents)}
    unseen = dict(judged)
    count = 0
    for name in names:
        try:
            found, repeated = corpus.survey(
                inputs / name,
                name,
                lambda doc: unseen.pop(doc, None),
                broken=lambda _, error: report.error("inputs", error),
                progress=progress(name),
            )
        except EvaluatorError as error:
            report.error("inputs", error, name)
            return
        count += found
        for again, number, first in repeated:
            what = f"the document {show(again)} is there twice (first at line {first})"
            fix = "leave it if the collection was published like this: scores do not depend on it"
            report.add("twice", f"inputs/{name}", number, what, fix, grave=False)
    report.statistics["documents"] = count
    grave = len(unseen) == len(judged)
    fix = "leave it if the collection is a later version; otherwise correct the id, or add the document"
    for doc, topic in unseen.items():
        what = f"the document {show(doc)} of nuggets of {show(topic)} is in no collection"
        report.add("unknown document", places[topic], None, what, fix, grave=grave)
