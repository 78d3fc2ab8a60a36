"""Queries, corpus and relevance of a dataset, read against one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.data import DataReport
from evaluator.errors import EvaluatorError
from evaluator.formats.perspective import (
    Population,
    Query,
    placed_ids,
    query_file,
    read_corpus,
    read_queries,
)
from evaluator.kinds.options import checked_options
from evaluator.request import Request

NOUNS = {"topic": "query", "document": "argument", "judgment": "relevant argument", "grade": ""}


def check_data(inputs: Path, truths: Path, request: Request, report: DataReport) -> None:
    """Note what is wrong with the data of a dataset; see :mod:`evaluator.commands.check`."""
    options = checked_options("diversity", request.options)
    report.nouns = NOUNS
    corpus = request.corpus or "corpus.jsonl"
    arguments = _ids(inputs, corpus, "argument_id", report)
    report.statistics["documents"] = len(arguments)
    named = sorted({m.truths for m in request.measures} or {corpus})
    try:
        population = read_corpus(truths, named[0], report.broken("truths", named[0]))
    except EvaluatorError as error:
        report.error("truths", error, named[0])
        return
    if arguments:
        fix = "give software and evaluator the same corpus"
        unseen = dict.fromkeys(population.values)
        report.without(arguments, f"inputs/{corpus}", unseen, f"truths/{named[0]}", "argument", fix)
        report.without(
            population.values, f"truths/{named[0]}", arguments, f"inputs/{corpus}", "argument", fix
        )
    split = options["split"].get(request.dataset)
    if split is None:
        report.add(
            "split", f"truths/{named[0]}", None, "options.split of the task does not name this dataset"
        )
        return
    topics: set[int] = set()
    for queries in dict.fromkeys(rule["queries"] for rule in options["scenarios"].values()):
        topics |= _queries(inputs, truths, query_file(queries, split), population, request, report)
    report.statistics["topics"] = len(topics)


def _ids(inputs: Path, name: str, key: str, report: DataReport, *, blinded: bool = False) -> dict[int, int]:
    def look(line: int, data: Mapping[str, Any]) -> None:
        if blinded and "relevant_candidates" in data:
            what = "relevant_candidates stands among the inputs of a blinded dataset"
            fix = "take it out, or let no scenario see it"
            report.add("secret", f"inputs/{name}", line, what, fix, grave=False)

    try:
        return placed_ids(inputs, name, key, report.broken("inputs", name), look)
    except EvaluatorError as error:
        report.error("inputs", error, name)
        return {}


def _queries(
    inputs: Path, truths: Path, name: str, population: Population, request: Request, report: DataReport
) -> set[int]:
    """Compare the queries of one file with their relevance; returns their ids."""
    file, judged = f"inputs/{name}", f"truths/{name}"
    asked = _ids(inputs, name, "query_id", report, blinded=not request.public)
    try:
        placed = placed_ids(truths, name, "query_id", lambda _: None)
        perspective = name.startswith("perspective")
        found = read_queries(
            truths, name, population, perspective=perspective, broken=report.broken("truths", name)
        )
    except EvaluatorError as error:
        report.error("truths", error, name)
        return set(asked)
    if asked:
        report.without(asked, file, placed, judged, "query", "remove its relevance, or add the query")
        fix = "judge it: every run would be refused, or answer what is not scored"
        report.without(placed, judged, asked, file, "query", fix)
    _relevance(found, placed, judged, report)
    listed = [argument for query in found for argument in query.relevant]
    report.truths(
        name, len(listed), len(set(listed)), sum(bool(q.relevant) for q in found), {"relevant": len(listed)}
    )
    return set(asked) | set(placed)


def _relevance(found: Sequence[Query], placed: Mapping[int, int], file: str, report: DataReport) -> None:
    for query in found:
        line = placed.get(query.id)
        if not query.relevant:
            what = f"the query {query.id} has no relevant argument: it counts 0 for every run"
            report.add(
                "nothing relevant",
                file,
                line,
                what,
                "leave it out, or leave it if that is meant",
                grave=False,
            )
        elif len(set(query.relevant)) != len(query.relevant):
            what = f"the query {query.id} lists a relevant argument twice"
            report.add("twice", file, line, what, "keep one of them", grave=False)
