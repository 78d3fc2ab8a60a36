"""Ranked arguments, judged by relevance and by the diversity of their authors, as JSON Lines.

The truths are a release in the layout of Perspective Argument Retrieval 2024: ``corpus.jsonl`` with the authors'
profiles and, in ``baseline-queries`` and ``perspective-queries``, the queries of the dataset's split with relevance.
Inputs are not needed for scores: what software may see differs between scenarios. To check predictions, the ids of
the queries and arguments in the inputs are enough.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.formats.perspective import Population, Query, query_file, read_corpus, read_ids, read_queries
from evaluator.formats.predictions import Rules, read_predictions
from evaluator.kinds.options import checked_options
from evaluator.measures.diversity import Measure, Scores
from evaluator.measures.interval import intervals
from evaluator.request import Request
from evaluator.scores import Sink


class Cell(NamedTuple):
    """A scenario of a dataset: the file of its ``queries``, whether they ask for a perspective, and the twin rule."""

    queries: str
    perspective: bool
    twins: bool


class Diversity:
    """Options: see ``schemas/kinds/diversity.schema.json``."""

    name = "diversity"
    measures = (
        "nDCG, P, alpha-nDCG, rKL (and -unqueried) at one or more cut-offs, such as rKL@8 or nDCG@4,8,16,20"
    )

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Check and score the predictions; see :class:`evaluator.kinds.base.Kind`."""
        from evaluator.measures.diversity_scorer import Scorer

        options = checked_options(self.name, request.options)
        cell = cell_of(options, request)
        measures = {m.id: Measure(m.measure) for m in request.measures}
        corpora = {m.truths for m in request.measures} or {"corpus.jsonl"}
        if len(corpora) > 1:
            raise EvaluatorError(
                "the measures name different truths", "all of a dataset's measures use one corpus"
            )
        population = read_corpus(truths, corpora.pop())
        if any(m.diverse for m in measures.values()):
            if population.left_out:
                sink.note("same-value", names=", ".join(population.left_out))
            if len(population.properties) < 1 + any(m.unqueried for m in measures.values()):
                raise EvaluatorError(
                    "there is no diversity to measure",
                    "all arguments of the corpus have the same values of nearly all properties",
                    "leave alpha-nDCG and rKL out of the task's measures",
                )
        queries = read_queries(truths, cell.queries, population, perspective=cell.perspective)
        scorer = Scorer(
            population,
            _cutoffs(measures.values()),
            twins=cell.twins,
            diversity=any(m.diverse for m in measures.values()),
        )
        ids = frozenset(q.id for q in queries), frozenset(population.values)
        rules = _rules(*ids, scorer.cutoffs, scorer.depth, options, request)
        found = read_predictions(run, rules, sink.findings, max_bytes=request.max_bytes)
        if sink.findings.invalid:
            return
        for topic in sink.findings.defects:
            found.pop(int(topic), None)
        scores = scorer.score([q.relevant for q in queries], [found.get(q.id, ()) for q in queries])
        answered = {q.id for q in queries if found.get(q.id)}
        _report(measures, queries, scores, answered, population, sink, options)

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Check the predictions alone; see :class:`evaluator.kinds.base.Checker`."""
        options = checked_options(self.name, request.options)
        cutoffs = _cutoffs(Measure(m.measure) for m in request.measures)
        ids = (
            read_ids(inputs, cell_of(options, request).queries, "query_id"),
            read_ids(inputs, request.corpus or "corpus.jsonl", "argument_id"),
        )
        rules = _rules(*ids, cutoffs, cutoffs[-1], options, request)
        log.answered = len(read_predictions(run, rules, log, max_bytes=request.max_bytes))


KIND = Diversity()


def _cutoffs(measures: Iterable[Measure]) -> list[int]:
    """The cut-offs of all measures, rising; at least one."""
    return sorted({k for m in measures for k in m.cutoffs}) or [1]


def cell_of(options: Mapping[str, Any], request: Request) -> Cell:
    """What is evaluated for the request's dataset in its scenario. Raises :class:`EvaluatorError`."""
    if request.dataset not in options["split"]:
        raise EvaluatorError(
            f"options.split of the task says nothing about the dataset {request.dataset[:40]!r}",
            fix="name the split that is evaluated: train, dev or test",
        )
    rule = options["scenarios"].get(request.scenario)
    if rule is None:
        raise EvaluatorError(
            f"options.scenarios of the task says nothing about the scenario {request.scenario[:40]!r}",
            fix="give it queries (baseline or perspective) and twins (true or false)",
        )
    file = query_file(rule["queries"], options["split"][request.dataset])
    return Cell(file, rule["queries"] == "perspective", rule.get("twins", False))


def _rules(
    queries: frozenset[int],
    candidates: frozenset[int],
    cutoffs: Sequence[int],
    depth: int,
    options: Mapping[str, Any],
    request: Request,
) -> Rules:
    """What predictions are checked against: ids, the ``cutoffs``, and ``depth`` candidates that are kept."""
    return Rules(
        queries=queries,
        candidates=candidates,
        kept=depth,
        least=max(cutoffs),
        most=options["max_candidates"],
        repeats=options["duplicates"] == "score",
        suggest=request.public,
    )


def _report(
    measures: Mapping[str, Measure],
    queries: Sequence[Query],
    scores: Scores,
    answered: Collection[int],
    population: Population,
    sink: Sink,
    options: Mapping[str, Any],
) -> None:
    asked = [q.asked for q in queries]
    columns = {i: m.values(scores, asked) for i, m in measures.items()}
    spans = intervals(columns) if options["interval"] else {}
    facets = [{"property": name} for name in population.properties]
    for i, measure in measures.items():
        # Means over cut-offs and variants follow from these, so their parts are not written again.
        single = measure.diverse and not measure.unqueried and len(measure.cutoffs) == 1
        named = facets if single and options["properties"] else []
        parts = measure.by_property(scores, measure.cutoffs[0]) if named else [[]] * len(queries)
        for query, value, by_property in zip(queries, columns[i], parts, strict=True):
            topic = str(query.id)
            sink.score(i, topic, value, answered=query.id in answered)
            for facet, part in zip(named, by_property, strict=True):
                sink.score(i, topic, part, facet)
        sink.aggregate(
            i,
            fsum(columns[i]) / len(queries),
            topics=len(queries),
            covered=len(answered),
            interval=spans.get(i),
        )
