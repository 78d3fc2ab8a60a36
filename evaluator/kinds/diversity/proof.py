"""Predictions whose order is known, made from the relevance of arguments.

Only relevance has a best list that can be made at once: no list is the best in diversity for all properties, so alpha-nDCG and rKL are
left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from evaluator.formats.perspective import Query, read_corpus, read_queries
from evaluator.kinds.base import Order
from evaluator.kinds.diversity.kind import cell_of
from evaluator.kinds.options import checked_options
from evaluator.measures.diversity import Measure
from evaluator.request import Request


def proof(inputs: Path, truths: Path, request: Request) -> list[Order]:
    """Return predictions with all relevant arguments. Raises EvaluatorError for wrong truths."""
    options = checked_options("diversity", request.options)
    measures = {m.id: Measure(m.measure) for m in request.measures}
    relevance = [i for i, m in measures.items() if not m.diverse]
    cell = cell_of(options, request)
    population = read_corpus(truths, request.measures[0].truths if request.measures else "corpus.jsonl")
    queries = read_queries(truths, cell.queries, population, perspective=cell.perspective)
    most: int = options["max_candidates"]
    longest = max((len(q.relevant) for q in queries), default=0)

    def others(query: Query) -> list[int]:
        relevant = {population.texts[r] for r in query.relevant}
        found: list[int] = []
        for argument, text in population.texts.items():
            if len(found) > longest:
                break
            if text not in relevant:
                found.append(argument)
        return found

    def mixed(query: Query) -> list[int]:
        both = [*dict.fromkeys(query.relevant), *others(query)]
        return sorted(both, key=lambda c: sha256(b"%d %d" % (query.id, c)).digest())

    outputs = {
        "perfect": _written(queries, lambda q: list(dict.fromkeys(q.relevant))[:most]),
        "shuffled": _written(queries, lambda q: mixed(q)[:most]),
        "empty": _written(queries, lambda _: []),
    }
    return [Order(relevance, outputs, {})] if relevance else []


def _written(queries: Sequence[Query], listed: Callable[[Query], list[int]]) -> bytes:
    return b"".join(_line(q.id, listed(q)) for q in queries)


def _line(query: int, candidates: Any) -> bytes:
    return json.dumps({"query_id": query, "relevant_candidates": candidates}).encode() + b"\n"
