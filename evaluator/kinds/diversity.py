"""Ranked arguments, judged by relevance and by the diversity of their authors, as JSON Lines.

The truths are a release in the layout of Perspective Argument Retrieval 2024: ``corpus.jsonl`` with the authors'
profiles and, in ``baseline-queries`` and ``perspective-queries``, the queries of the dataset's split with relevance.
Inputs are not needed for scores: what software may see differs between scenarios. To check predictions, the ids of
the queries and arguments in the inputs are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.formats.perspective import Population, Query, query_file, read_corpus, read_ids, read_queries
from evaluator.formats.predictions import Rules, read_predictions
from evaluator.measures.diversity import Measure, Scorer, Scores
from evaluator.measures.interval import intervals
from evaluator.request import Request
from evaluator.scores import Sink

MAX_CANDIDATES = 1000
DUPLICATES = ("error", "score")
T = TypeVar("T")


class Cell(NamedTuple):
    """A scenario of a dataset: the ``split``, its ``queries`` (baseline or perspective) and the twin rule."""

    split: str
    queries: str
    twins: bool


class Diversity:
    """Options: ``split``, ``scenarios``, ``max_candidates``, ``duplicates``, ``properties``, ``interval``."""

    name = "diversity"
    measures = (
        "nDCG, P, alpha-nDCG, rKL (and -unqueried) at one or more cut-offs, such as rKL@8 or nDCG@4,8,16,20"
    )

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Check and score the predictions; see :class:`evaluator.kinds.base.Kind`."""
        options = Options(request.options)
        cell = options.cell(request.dataset, request.scenario)
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
        queries = read_queries(
            truths,
            query_file(cell.queries, cell.split),
            population,
            perspective=cell.queries == "perspective",
        )
        scorer = Scorer(
            population,
            cutoffs(measures.values()),
            twins=cell.twins,
            diversity=any(m.diverse for m in measures.values()),
        )
        found = read_predictions(
            run,
            rules(
                frozenset(q.id for q in queries),
                frozenset(population.values),
                scorer.cutoffs,
                scorer.depth,
                options,
                public=request.public,
            ),
            sink.findings,
            max_bytes=request.max_bytes,
        )
        if sink.findings.invalid:
            return
        for topic in sink.findings.defects:
            found.pop(int(topic), None)
        scores = [scorer.score(q.relevant, found.get(q.id, ())) for q in queries]
        covered = sum(1 for q in queries if found.get(q.id))
        _report(measures, queries, scores, covered, population, sink, options)

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Check the predictions alone; see :class:`evaluator.kinds.base.Checker`."""
        options = Options(request.options)
        cell = options.cell(request.dataset, request.scenario)
        steps = cutoffs(Measure(m.measure) for m in request.measures)
        expected = rules(
            read_ids(inputs, query_file(cell.queries, cell.split), "query_id"),
            read_ids(inputs, request.corpus or "corpus.jsonl", "argument_id"),
            steps,
            max(steps),
            options,
            public=request.public,
        )
        found = read_predictions(run, expected, log, max_bytes=request.max_bytes)
        log.answered = len(found)


KIND = Diversity()


def cutoffs(measures: Iterable[Measure]) -> list[int]:
    """The cut-offs of all measures, rising; at least one."""
    return sorted({k for m in measures for k in m.cutoffs}) or [1]


class Options:
    """The kind's options, checked."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Raises :class:`EvaluatorError` for options that the kind does not have."""
        known: dict[str, tuple[Callable[[Any], bool], str]] = {
            "split": (lambda v: _words(v), "a split (train, dev or test) for every dataset"),
            "scenarios": (lambda v: isinstance(v, dict), "an object by scenario"),
            "max_candidates": (lambda v: type(v) is int and v >= 1, "a positive integer"),
            "duplicates": (lambda v: v in DUPLICATES, " or ".join(DUPLICATES)),
            "properties": (lambda v: isinstance(v, bool), "true or false"),
            "interval": (lambda v: isinstance(v, bool), "true or false"),
        }
        for key, value in options.items():
            if key not in known:
                raise EvaluatorError(
                    f"the kind diversity has no option {str(key)[:40]!r}", f"it has {', '.join(known)}"
                )
            legal, expected = known[key]
            if not legal(value):
                raise EvaluatorError(f"the option {key} is wrong", f"it has to be {expected}")
        self._options = options
        self.max_candidates: int = options.get("max_candidates", MAX_CANDIDATES)
        self.repeats: bool = options.get("duplicates") == "score"
        self.properties: bool = options.get("properties", True)
        self.interval: bool = options.get("interval", True)

    def cell(self, dataset: str, scenario: str) -> Cell:
        """What is evaluated for a dataset in a scenario. Raises :class:`EvaluatorError`."""
        split = self._options.get("split", {}).get(dataset)
        if split is None:
            raise EvaluatorError(
                f"options.split of the task says nothing about the dataset {dataset[:40]!r}",
                fix="name the split that is evaluated: train, dev or test",
            )
        rule = self._options.get("scenarios", {}).get(scenario)
        if not isinstance(rule, dict) or rule.get("queries") not in ("baseline", "perspective"):
            raise EvaluatorError(
                f"options.scenarios of the task says nothing about the scenario {scenario[:40]!r}",
                fix="give it queries (baseline or perspective) and twins (true or false)",
            )
        return Cell(split, rule["queries"], rule.get("twins") is True)


def _words(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(v, str) and v.isascii() and v.replace("-", "").isalnum() for v in value.values()
    )


def rules(
    queries: frozenset[int],
    candidates: frozenset[int],
    steps: Sequence[int],
    depth: int,
    options: Options,
    *,
    public: bool,
) -> Rules:
    """What predictions are checked against: ids, the cut-offs ``steps``, and ``depth`` candidates that are kept."""
    return Rules(
        queries=queries,
        candidates=candidates,
        kept=depth,
        least=max(steps),
        most=options.max_candidates,
        repeats=options.repeats,
        suggest=public,
    )


def _report(
    measures: Mapping[str, Measure],
    queries: Sequence[Query],
    scores: Sequence[Scores],
    covered: int,
    population: Population,
    sink: Sink,
    options: Options,
) -> None:
    columns = {
        i: [m.value(s, q.asked) for q, s in zip(queries, scores, strict=True)] for i, m in measures.items()
    }
    spans = intervals(columns) if options.interval else {}
    facets = [{"property": name} for name in population.properties]
    for i, measure in measures.items():
        # Means over cut-offs and variants follow from these, so their parts are not written again.
        parts = options.properties and measure.diverse and not measure.unqueried and len(measure.cutoffs) == 1
        for query, value, one in zip(queries, columns[i], scores, strict=True):
            topic = str(query.id)
            sink.score(i, topic, value)
            if parts:
                for facet, part in zip(facets, measure.by_property(one, measure.cutoffs[0]), strict=True):
                    sink.score(i, topic, part, facet)
        sink.aggregate(
            i,
            fsum(columns[i]) / len(queries),
            topics=len(queries),
            covered=covered,
            interval=spans.get(i),
        )
